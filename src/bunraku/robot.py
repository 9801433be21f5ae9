"""What a robot is: one frozen record per robot, the only place where its joint and site names are written.

A robot's file builds its MJCF as an `MjSpec`, so that a scene can place it, twice if it likes:

    scene = mujoco.MjSpec()
    ROBOT.attach(scene, prefix="left_", pos=(0.0, 0.3, 0.0), gripper=True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bunraku.geometry import rotate

if TYPE_CHECKING:
    import mujoco


@dataclass(frozen=True, slots=True)
class RobotSpec:
    """A robot arm."""

    name: str
    """The robot's name: that of its file."""
    joints: tuple[str, ...]
    """Names of the arm's joints from the base outwards."""
    base_body: str
    """Name of the fixed body that carries the arm."""
    tool_site: str
    """Name of the site at the tool centre point; z points out of the hand."""
    home: tuple[float, ...]
    """Joint angles [rad] of the rest pose."""
    speed_limit: tuple[float, ...]
    """Largest joint speeds [rad/s]."""
    stiffness: tuple[float, ...]
    """Gains of the joint position actuators [N m/rad]."""
    damping: tuple[float, ...]
    """Velocity gains of the actuators [N m s/rad]."""
    force_limit: tuple[float, ...]
    """Largest actuator torques [N m]."""
    gripper_joints: tuple[str, ...]
    """Names of the finger joints; one actuator drives all of them."""
    gripper_range: tuple[float, float]
    """Finger travel, closed and open [m]."""
    joint_damping: float
    """Passive damping of each joint [N m s/rad]."""
    load: Callable[[], mujoco.MjSpec]
    """Returns a fresh spec of the bare robot: bodies, joints and geoms, without actuators."""

    @property
    def dof(self) -> int:
        """Number of joints of the arm."""
        return len(self.joints)

    @property
    def velocity_lag(self) -> tuple[float, ...]:
        """Lag [s] of each position-controlled joint in steady motion: damping over stiffness.

        A position actuator applies `kp (ctrl - q) - kv qd`; at constant speed the joint trails its target by
        `(kv + joint damping) / kp` seconds. Adding this many seconds of target velocity to `ctrl` removes it.
        """
        return tuple(
            (kv + self.joint_damping) / kp for kp, kv in zip(self.stiffness, self.damping, strict=True)
        )

    def attach(
        self,
        scene: mujoco.MjSpec,
        *,
        prefix: str,
        pos: tuple[float, float, float] = (0.0, 0.0, 0.0),
        quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0),
        gripper: bool = True,
        torque: bool = False,
        source: Callable[[], mujoco.MjSpec] | None = None,
    ) -> None:
        """Place the robot in a scene, with its actuators.

        Args:
            scene: The scene to add to.
            prefix: Put before every name of the robot.
            pos: Position of the base in the world [m].
            quat: Orientation of the base in the world (w, x, y, z).
            gripper: Whether the fingers move. If not, they are fixed open and cost nothing to simulate.
            torque: Whether the arm's actuators are motors, whose `ctrl` is the torque [N m]; by default they hold
                positions [rad].
            source: Builds the bare robot; `load` by default, a meshed model as an option.
        """
        import mujoco

        robot = (source or self.load)()
        if gripper:
            _add_gripper(robot, self)
        else:
            for name in self.gripper_joints:
                joint = robot.joint(name)
                finger = joint.parent
                # keep the fingers where an open gripper has them
                finger.pos = finger.pos + rotate(finger.quat, joint.axis * self.gripper_range[1])
                robot.delete(joint)
        for i, name in enumerate(self.joints):
            limit = self.force_limit[i]
            actuator = robot.add_actuator(
                name=name,
                target=name,
                trntype=mujoco.mjtTrn.mjTRN_JOINT,
                forcelimited=True,
                forcerange=[-limit, limit],
            )
            if not torque:
                actuator.gainprm = [self.stiffness[i]] + [0.0] * 9
                actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
                actuator.biasprm = [0.0, -self.stiffness[i], -self.damping[i]] + [0.0] * 7
        if gripper:
            # after the arm's, so that an arm's actuators are the first in its block with and without gripper
            _add_gripper_actuator(robot, self)
        robot.site(self.tool_site).group = 4  # not drawn by default
        frame = scene.worldbody.add_frame(pos=list(pos), quat=list(quat))
        scene.attach(robot, frame=frame, prefix=prefix)


def _add_gripper(robot: mujoco.MjSpec, spec: RobotSpec) -> None:
    """Couple the fingers, as the real hand's spindle does."""
    import mujoco

    first, *others = spec.gripper_joints
    for other in others:
        equality = robot.add_equality(
            name=f"{first}_{other}",
            type=mujoco.mjtEq.mjEQ_JOINT,
            name1=first,
            name2=other,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
        )
        equality.data[:5] = [0.0, 1.0, 0.0, 0.0, 0.0]


def _add_gripper_actuator(robot: mujoco.MjSpec, spec: RobotSpec) -> None:
    import mujoco

    robot.add_actuator(
        name="gripper",
        target=spec.gripper_joints[0],
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        gainprm=[1000.0] + [0.0] * 9,
        biastype=mujoco.mjtBias.mjBIAS_AFFINE,
        biasprm=[0.0, -1000.0, -60.0] + [0.0] * 7,
        forcelimited=True,
        forcerange=[-70.0, 70.0],  # the real hand grasps with 70 N
    )
