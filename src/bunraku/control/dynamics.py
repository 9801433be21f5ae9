"""Dynamics of an arm on scratch data: inertia, bias, tool Jacobian and drift, for one configuration or for many.

    dynamics = ArmDynamics(ROBOT)
    dynamics.update(q, qd)
    torque = dynamics.mass @ qdd + dynamics.bias

As `bunraku.control.kinematics`, this never touches the simulation: it has the bare arm in a model of its own, many
times over for many configurations, so that one call of MuJoCo's C routines serves them all with the same bits. The
fingers stand still, open; the arm's own inertias are those of the robot's file.
"""

from __future__ import annotations

import mujoco
import numpy as np

from bunraku.geometry import Array, rotate
from bunraku.robot import RobotSpec

_TOOL = "tool_frame"
_CHUNK = 64
"""Arms per scratch model, as in `bunraku.control.kinematics`."""


def dynamic_model(
    robot: RobotSpec,
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0),
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0),
    copies: int = 1,
) -> mujoco.MjModel:
    """Return a model of the bare arm with its inertias, fingers fixed open, any number of times.

    Args:
        robot: The robot whose arm it is.
        pos: Position of the base in the world [m].
        quat: Orientation of the base in the world.
        copies: Number of arms; all stand at the same place.

    Returns:
        Joints and bodies only, with a body `<i>_tool_frame` of no mass at each tool centre point.
    """
    arm = robot.load()
    for element in [*arm.geoms, *arm.excludes, *arm.cameras, *arm.lights]:
        arm.delete(element)
    for name in robot.gripper_joints:
        joint = arm.joint(name)
        finger = joint.parent
        finger.pos = finger.pos + rotate(finger.quat, joint.axis * robot.gripper_range[1])
        arm.delete(joint)
    site = arm.site(robot.tool_site)
    site.parent.add_body(name=_TOOL, pos=site.pos, quat=site.quat)
    arm.delete(site)
    scene = mujoco.MjSpec()
    scene.copy_during_attach = True
    scene.memory = 1 << 22  # nothing collides
    for i in range(copies):
        scene.attach(arm, frame=scene.worldbody.add_frame(pos=list(pos), quat=list(quat)), prefix=f"{i}_")
    return scene.compile()


class ArmDynamics:
    """Dynamics of one arm, for one configuration or for many at once. Arrays are valid until the next `update`."""

    mass: Array
    """Joint-space inertia `(..., n, n)` [kg m^2], armature included."""
    bias: Array
    """Coriolis, centrifugal and gravity torques less passive ones `(..., n)` [N m]: what holds `qdd` at 0."""
    jacobian: Array
    """Geometric Jacobian `(..., 6, n)` of the tool: linear, then angular, world."""
    drift: Array
    """Its time derivative times the joint speeds `(..., 6)` [m/s^2, rad/s^2]."""
    pos: Array
    """Tool centre point `(..., 3)`, world [m]."""
    quat: Array
    """Tool orientation `(..., 4)`, world, w, x, y, z."""

    def __init__(
        self,
        robot: RobotSpec,
        pos: tuple[float, float, float] = (0.0, 0.0, 0.0),
        quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0),
        nsim: int | None = None,
    ) -> None:
        """Make scratch data.

        Args:
            robot: The robot whose arm this is.
            pos: Position of its base in the world [m].
            quat: Orientation of its base in the world.
            nsim: Number of configurations per call, or None for one without a leading axis.
        """
        self.robot = robot
        n, rows = robot.dof, nsim or 1
        arms = min(rows, _CHUNK)
        self.model = dynamic_model(robot, pos, quat, copies=arms)
        self.lower: Array = self.model.jnt_range[:n, 0].copy()
        self.upper: Array = self.model.jnt_range[:n, 1].copy()
        self._parts = [
            (slice(first, min(first + arms, rows)), _Part(self.model, n, arms))
            for first in range(0, rows, arms)
        ]
        # rows of the lower triangle of a serial chain, as MuJoCo stores it
        self._row, self._column = np.tril_indices(n)
        if not np.array_equal(self.model.M_rownnz, np.tile(np.arange(1, n + 1), arms)):
            raise ValueError(f"{robot.name} is not a serial chain")
        self._q, self._qd = np.zeros((rows, n)), np.zeros((rows, n))
        self._mass, self._bias = np.zeros((rows, n, n)), np.zeros((rows, n))
        self._jacobian, self._drift = np.zeros((rows, 6, n)), np.zeros((rows, 6))
        self._pos, self._quat = np.zeros((rows, 3)), np.zeros((rows, 4))
        one = nsim is None
        self.mass, self.bias, self.jacobian, self.drift, self.pos, self.quat = (
            array[0] if one else array
            for array in (self._mass, self._bias, self._jacobian, self._drift, self._pos, self._quat)
        )

    def update(self, q: Array, qd: Array) -> None:
        """Compute the arrays at joint angles `q` [rad] and speeds `qd` [rad/s], both `(..., n)`."""
        self._q[...], self._qd[...] = q, qd
        for rows, part in self._parts:
            used = rows.stop - rows.start
            part.q[:used], part.qd[:used] = self._q[rows], self._qd[rows]
            mujoco.mj_fwdPosition(self.model, part.data)
            mujoco.mj_fwdVelocity(self.model, part.data)
            entries = part.mass[:used]
            self._mass[rows, self._row, self._column] = entries
            self._mass[rows, self._column, self._row] = entries
            self._bias[rows] = part.bias[:used] - part.passive[:used]
            self._pos[rows], self._quat[rows] = part.pos[:used], part.quat[:used]
            self._motion(rows, part, used)

    def _motion(self, rows: slice, part: _Part, used: int) -> None:
        """Take Jacobian and drift from MuJoCo's joint axes, which it gives about the arm's centre of mass."""
        axes, rates, qd = part.cdof[:used], part.cdof_dot[:used], self._qd[rows][..., None]
        offset = self._pos[rows] - part.center[:used]
        jacobian = self._jacobian[rows]
        angular = axes[..., :3]
        linear = axes[..., 3:] + np.cross(angular, offset[:, None, :])
        jacobian[:, :3] = linear.swapaxes(-1, -2)
        jacobian[:, 3:] = angular.swapaxes(-1, -2)
        # sums over the chain in a fixed order, whatever the number of arms
        spin, velocity = (angular * qd).sum(axis=1), (linear * qd).sum(axis=1)
        spatial = (rates * qd).sum(axis=1)
        drift = self._drift[rows]
        drift[:, 3:] = spatial[:, :3]
        drift[:, :3] = spatial[:, 3:] + np.cross(spatial[:, :3], offset) + np.cross(spin, velocity)


class _Part:
    """Live views into one scratch MjData, with a leading axis over its arms."""

    def __init__(self, model: mujoco.MjModel, dof: int, arms: int) -> None:
        self.data = data = mujoco.MjData(model)
        bodies = (model.nbody - 1) // arms
        tool = int(model.body(f"0_{_TOOL}").id) - 1
        root = int(model.body_rootid[tool + 1]) - 1
        self.q: Array = data.qpos.reshape(arms, dof)
        self.qd: Array = data.qvel.reshape(arms, dof)
        self.mass: Array = data.M.reshape(arms, -1)
        self.bias: Array = data.qfrc_bias.reshape(arms, dof)
        self.passive: Array = data.qfrc_passive.reshape(arms, dof)
        self.cdof: Array = data.cdof.reshape(arms, dof, 6)
        self.cdof_dot: Array = data.cdof_dot.reshape(arms, dof, 6)
        self.center: Array = data.subtree_com[1:].reshape(arms, bodies, 3)[:, root]
        self.pos: Array = data.xpos[1:].reshape(arms, bodies, 3)[:, tool]
        self.quat: Array = data.xquat[1:].reshape(arms, bodies, 4)[:, tool]
