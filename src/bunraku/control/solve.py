"""Inverse kinematics of one arm to a tolerance, fast: every step runs in MuJoCo's C routines.

    solver = PoseSolver(kinematic_model(ROBOT), ROBOT.dof)
    result = solver.solve(q, world_tool)      # warm started at q; usually one or two steps

A step is damped least squares as in `bunraku.control.ik`, but lambda, too, falls with the error, so that the
last steps converge like Newton's (after Sugihara, "Solvability-unconcerned inverse kinematics by the
Levenberg-Marquardt method", 2011):

    w = min(1, |e| / e0)
    dq = z + J^T (J J^T + (w lambda^2 + |e|^2) 1)^-1 (e - J z)

z moves the first step of each pose a little towards the middle of the joint ranges, within the null space.
Without it an arm with a spare joint wanders into its limits after a while, and there the joints that are left
cannot follow: on a path of 10,000 poses around home that cost up to 480 poses, and none with it.

A joint that the step would push through its limit is held there and the step is solved again with the others.
"""

from __future__ import annotations

from math import sqrt
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
    """e0: error (metres and radians together) from which the whole damping acts."""
    CENTRING = 0.05
    """Share of the way to the middle of the joint ranges that the first step wishes to go, at an error of e0."""

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
        self._middle = 0.5 * (self._lower + self._upper)
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
        self._rotation = self._data.xmat[self._tool].reshape(3, 3)

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
            max_step: Largest change of the joint angles over all steps [rad], as the length of the vector;
                more would not be continuous motion. A target that is farther away takes several calls.
        """
        target_pos, target_quat = world_tool.pos, world_tool.quat
        linear, angular, local, pos, quat = self._linear, self._angular, self._local, self._pos, self._quat
        if self._qpos.tobytes() != q.tobytes():
            self._qpos[:] = q
            self._update()
        used = 0
        while True:
            np.subtract(target_pos, pos, out=linear)
            mujoco.mju_subQuat(local, target_quat, quat)
            (x, y, z), (a, b, c) = linear.tolist(), local.tolist()
            distance, angle = sqrt(x * x + y * y + z * z), sqrt(a * a + b * b + c * c)
            if (
                used == iterations
                or (distance <= position_tolerance and angle <= rotation_tolerance)
                or max_step <= 0.0
            ):
                return IKResult(self._qpos.copy(), used, distance, angle)
            np.dot(self._rotation, local, out=angular)
            share = min(1.0, (distance + angle) / self.FULL_DAMPING)
            damping = share * self._damping + distance * distance + angle * angle
            wish = (self.CENTRING * share) * (self._middle - self._qpos) if used == 0 else None
            step, length = self._step(damping, wish, max_step)
            max_step -= length
            self._qpos += step
            self._update()
            used += 1

    def _update(self) -> None:
        """Compute kinematics and Jacobian."""
        model, data = self._model, self._data
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_jacBody(model, data, self._jacp, self._jacr, self._tool)

    def _step(self, damping: float, wish: Array | None, max_step: float) -> tuple[Array, float]:
        """Return a step of the joint angles, and its length."""
        q = self._qpos
        step = self._increment(self._jac, self._jac_t, damping, wish)
        free = q + step
        new = np.minimum(np.maximum(free, self._lower), self._upper)
        if new.tobytes() != free.tobytes():
            blocked = new != free
            held = np.where(blocked, 0.0, self._jac)
            wish = None if wish is None else np.where(blocked, 0.0, wish)
            free = q + np.where(blocked, new - q, self._increment(held, held.T, damping, wish))
            step = np.minimum(np.maximum(free, self._lower), self._upper) - q
        length = sqrt(step.dot(step))
        return (step, length) if length <= max_step else (step * (max_step / length), max_step)

    def _increment(self, jac: Array, jac_t: Array, damping: float, wish: Array | None) -> Array:
        gram, dual = self._gram, self._dual
        np.dot(jac, jac_t, out=gram)
        diagonal = self._diagonal
        diagonal += damping
        mujoco.mju_cholFactor(gram, 0.0)
        if wish is None:
            mujoco.mju_cholSolve(dual, gram, self._error)
            return dual.dot(jac)
        mujoco.mju_cholSolve(dual, gram, self._error - jac.dot(wish))
        return wish + dual.dot(jac)
