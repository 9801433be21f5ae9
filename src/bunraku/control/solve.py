"""Inverse kinematics of one arm to a tolerance, fast: every step runs in MuJoCo's C routines.

    solver = PoseSolver(kinematic_model(ROBOT), ROBOT.dof)
    result = solver.solve(q, world_tool)      # warm started at q; usually one or two steps

A step is damped least squares as in `bunraku.control.ik`, with a damping that falls with the error, so that the last
steps converge like Newton's (after Sugihara, "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt
method", 2011):

    dq = J^T (J J^T + lambda^2 min(1, |e| / e0) 1)^-1 e

A joint that the step would push through its limit is held there and the step is solved again with the others.
"""

from __future__ import annotations

from typing import NamedTuple

import mujoco
import numpy as np

from bunraku.geometry import Array, Pose


class IKResult(NamedTuple):
    """Where the steps ended."""

    q: Array
    """Joint angles `(n,)` [rad]."""
    iterations: int
    """Number of steps taken."""
    position_error: float
    """Distance of the tool from its target [m]."""
    rotation_error: float
    """Angle between the tool and its target [rad]."""


class PoseSolver:
    """Solves for tool poses of one arm, on scratch data of its own."""

    FULL_DAMPING = 0.05
    """Error (metres and radians together) from which the whole damping acts."""

    def __init__(self, model: mujoco.MjModel, dof: int, damping: float = 0.05) -> None:
        """Make scratch data.

        Args:
            model: The bare arm, from `bunraku.control.kinematics.kinematic_model`.
            dof: Its number of joints.
            damping: lambda of the damped least squares.

        Raises:
            ValueError: If `damping` is not positive.
        """
        if not damping > 0.0:
            raise ValueError(f"damping must be positive, got {damping}")
        self._model, self._data = model, mujoco.MjData(model)
        self._tool = int(model.body("0_tool_frame").id)
        self._lower, self._upper = model.jnt_range[:dof].T.copy()
        self._damping = damping * damping
        self._jac = np.zeros((6, dof))
        self._jacp, self._jacr = self._jac[:3], self._jac[3:]
        self._error = np.zeros(6)
        self._linear, self._angular = self._error[:3], self._error[3:]
        self._jac_t = self._jac.T
        self._gram = np.zeros((6, 6))
        self._diagonal = self._gram.reshape(36)[::7]
        self._dual = np.zeros(6)
        self._local = np.zeros(3)
        self._qpos = self._data.qpos
        self._pos, self._quat = self._data.xpos[self._tool], self._data.xquat[self._tool]

    def solve(
        self,
        q: Array,
        world_tool: Pose,
        iterations: int = 5,
        position_tolerance: float = 1e-4,
        rotation_tolerance: float = 8e-4,
        max_step: float = 0.3,
    ) -> IKResult:
        """Step until the tool is at its target or `iterations` are used up.

        Args:
            q: Joint angles to start from `(n,)` [rad]; for continuous motion, the last solution.
            world_tool: Tool pose wanted, world.
            iterations: Largest number of steps.
            position_tolerance: Distance [m] at which to stop.
            rotation_tolerance: Angle [rad] at which to stop.
            max_step: Largest change of a joint per step [rad].
        """
        target_pos, target_quat = world_tool.pos, world_tool.quat
        linear, angular, local, pos, quat = self._linear, self._angular, self._local, self._pos, self._quat
        if self._qpos.tobytes() != q.tobytes():
            self._move(q)
        used = 0
        while True:
            np.subtract(target_pos, pos, out=linear)
            mujoco.mju_subQuat(local, target_quat, quat)
            mujoco.mju_rotVecQuat(angular, local, quat)
            distance, angle = mujoco.mju_norm3(linear), mujoco.mju_norm3(local)
            if used == iterations or (distance <= position_tolerance and angle <= rotation_tolerance):
                return IKResult(self._qpos.copy(), used, distance, angle)
            self._move(self._stepped(min(1.0, (distance + angle) / self.FULL_DAMPING), max_step))
            used += 1

    def _move(self, q: Array) -> None:
        """Compute kinematics and Jacobian at `q`."""
        model, data = self._model, self._data
        self._qpos[:] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_jacBody(model, data, self._jacp, self._jacr, self._tool)

    def _stepped(self, share: float, max_step: float) -> Array:
        """Return the joint angles after one step with a share of the damping."""
        q = self._qpos
        free = q + self._increment(self._jac, self._jac_t, share, max_step)
        new = np.minimum(np.maximum(free, self._lower), self._upper)
        if new.tobytes() != free.tobytes():
            blocked = new != free
            held = np.where(blocked, 0.0, self._jac)
            free = q + np.where(blocked, new - q, self._increment(held, held.T, share, max_step))
            new = np.minimum(np.maximum(free, self._lower), self._upper)
        return new

    def _increment(self, jac: Array, jac_t: Array, share: float, max_step: float) -> Array:
        gram, dual = self._gram, self._dual
        np.dot(jac, jac_t, out=gram)
        diagonal = self._diagonal
        diagonal += share * self._damping
        mujoco.mju_cholFactor(gram, 0.0)
        mujoco.mju_cholSolve(dual, gram, self._error)
        step = dual @ jac
        largest = max(map(abs, step.tolist()))
        return step if largest <= max_step else step * (max_step / largest)
