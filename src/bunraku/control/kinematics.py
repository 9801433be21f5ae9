"""Forward kinematics of an arm at joint angles of the caller's choice, on scratch data.

The simulation's own state is never touched: an arm's kinematics has a model and data of its own, made from
the same robot without geoms. `update(q)` computes the live arrays `anchor`, `axis`, `pos` and `quat`, for one
configuration `(n,)` or for many `(nsim, n)` with the same bits.

Many configurations are many copies of the arm in one scratch model, so that one call of `mj_kinematics`
serves them all (measured: a third of the time of a `mujoco.batch.Batch` forward, which also computes
inertias).
"""

from __future__ import annotations

import mujoco
import numpy as np

from bunraku.geometry import Array
from bunraku.robot import RobotSpec

_TOOL = "tool_frame"
_CHUNK = 64
"""Arms per scratch model: attaching costs time in proportion to the square of their number."""


def kinematic_model(
    robot: RobotSpec,
    pos: tuple[float, float, float] = (0.0, 0.0, 0.0),
    quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0),
    copies: int = 1,
) -> mujoco.MjModel:
    """Return a model of the bare arm at a base pose, any number of times.

    Args:
        robot: The robot whose arm it is.
        pos: Position of the base in the world [m].
        quat: Orientation of the base in the world.
        copies: Number of arms; all stand at the same place.

    Returns:
        Joints and bodies only, with a body `<i>_tool_frame` at each tool centre point.
    """
    arm = robot.load()
    for element in [*arm.geoms, *arm.excludes, *arm.cameras, *arm.lights]:
        arm.delete(element)
    for name in robot.gripper_joints:
        arm.delete(arm.joint(name).parent)
    site = arm.site(robot.tool_site)
    site.parent.add_body(name=_TOOL, pos=site.pos, quat=site.quat)
    arm.delete(site)
    for body in arm.bodies[1:]:
        # inertial frames at the body frames are not computed anew; nothing of dynamics is asked of this model
        body.explicitinertial, body.mass, body.inertia = True, 1.0, [1.0, 1.0, 1.0]
        body.ipos, body.iquat = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
    scene = mujoco.MjSpec()
    scene.copy_during_attach = True
    scene.memory = 1 << 20  # nothing but kinematics is computed
    for i in range(copies):
        scene.attach(arm, frame=scene.worldbody.add_frame(pos=list(pos), quat=list(quat)), prefix=f"{i}_")
    return scene.compile()


class ArmKinematics:
    """Kinematics of one arm, for one configuration or for many at once."""

    anchor: Array
    """Points on the joint axes `(..., n, 3)`, world [m]."""
    axis: Array
    """Joint axes `(..., n, 3)`, world, unit."""
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
        arms = 1 if nsim is None else min(nsim, _CHUNK)
        self.model = kinematic_model(robot, pos, quat, copies=arms)
        self.lower: Array = self.model.jnt_range[: robot.dof, 0].copy()
        self.upper: Array = self.model.jnt_range[: robot.dof, 1].copy()
        self._scratch = _Scratch(self.model, robot.dof, arms)
        self._blocks: list[slice] = []
        """Rows that go through the scratch data one after another; empty if all fit at once."""
        if nsim is None:
            self._q = self._scratch.q[0]
            self.anchor, self.axis, self.pos, self.quat = (a[0] for a in self._scratch.arrays)
        elif nsim == arms:
            self._q = self._scratch.q
            self.anchor, self.axis, self.pos, self.quat = self._scratch.arrays
        else:
            self._q = np.zeros((nsim, robot.dof))
            self.anchor, self.axis = np.zeros((nsim, robot.dof, 3)), np.zeros((nsim, robot.dof, 3))
            self.pos, self.quat = np.zeros((nsim, 3)), np.zeros((nsim, 4))
            # one scratch for all: it stays in the processor's cache
            self._blocks = [slice(i, min(i + arms, nsim)) for i in range(0, nsim, arms)]

    def update(self, q: Array) -> None:
        """Compute the arrays at joint angles `q` `(..., n)` [rad]."""
        self._q[...] = q
        scratch = self._scratch
        if not self._blocks:
            mujoco.mj_kinematics(self.model, scratch.data)
            return
        for rows in self._blocks:
            used = rows.stop - rows.start
            scratch.q[:used] = self._q[rows]
            mujoco.mj_kinematics(self.model, scratch.data)
            for own, all_rows in zip(
                scratch.arrays, (self.anchor, self.axis, self.pos, self.quat), strict=True
            ):
                all_rows[rows] = own[:used]

    def jacobian(self) -> Array:
        """Return the geometric Jacobian `(..., 6, n)` of the tool at the last `update`: linear, then angular."""
        linear = np.cross(self.axis, self.pos[..., None, :] - self.anchor)
        return np.concatenate([linear, self.axis], axis=-1).swapaxes(-1, -2)


class _Scratch:
    """Live views into one scratch MjData, with a leading axis over its arms."""

    def __init__(self, model: mujoco.MjModel, dof: int, arms: int) -> None:
        self.data = mujoco.MjData(model)
        bodies = (model.nbody - 1) // arms
        tool = int(model.body(f"0_{_TOOL}").id) - 1
        self.q: Array = self.data.qpos.reshape(arms, dof)
        self.arrays: tuple[Array, Array, Array, Array] = (
            self.data.xanchor.reshape(arms, dof, 3),
            self.data.xaxis.reshape(arms, dof, 3),
            self.data.xpos[1:].reshape(arms, bodies, 3)[:, tool],
            self.data.xquat[1:].reshape(arms, bodies, 4)[:, tool],
        )
