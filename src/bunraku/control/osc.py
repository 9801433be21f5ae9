"""Operational-space control of one arm, or of many at once: torques that make the tool a spring and damper.

With inertia M, bias h (Coriolis, centrifugal, gravity, less passive torques), tool Jacobian J, task-space inertia
L = (J M^-1 J^T)^-1 and dynamically consistent null space N = 1 - M^-1 J^T L J (Khatib, 1987):

    F   = K e + D (v_target - v) - L Jdot qd          the wrench at the tool
    qdd = M^-1 J^T F + N (k (q_home - q) - d qd)      the posture below it, which the tool does not feel
    tau = M qdd + h

K is the tool's stiffness per world axis [N/m, N m/rad]: in contact it pushes with K times the depth that the target
is in, so an axis is as soft as it is set. D = 2 z sqrt(K L_ii) damps each axis at its own effective mass.

Limits come first: torques, and accelerations that keep joints within their ranges and speeds. Where what is wanted
keeps them, the closed form above is the answer. Where not, a strict hierarchy of quadratic programs decides: limits,
then the tool, then the posture (`bunraku.control.hierarchy`). A joint is slowed so early that it stops before its end
at `BRAKING`.

    control = OperationalSpace(ArmDynamics(ROBOT), dt=0.002)
    torque = control.torque(q, qd, pos, quat_error_matrix(quat), velocity, home)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.control.dynamics import ArmDynamics
from bunraku.control.hierarchy import Level, Limits, solve_levels
from bunraku.geometry import Array

STIFFNESS = (3000.0, 3000.0, 3000.0, 200.0, 200.0, 200.0)
"""Of the tool by default [N/m, N m/rad]."""
DAMPING_RATIO = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""Critical by default."""
POSTURE_STIFFNESS = 20.0
"""Pull of the null space towards the home posture [1/s^2], critically damped."""
BRAKING = 15.0
"""Deceleration that a joint is sure to have [rad/s^2]."""
MARGIN = 0.005
"""Joints are stopped this far before their ends [rad]."""
SPEED_SHARE = 0.99
"""Share of the speed limits that is used: a held torque lets the speed drift a little."""
LENGTH = 0.1
"""Turns are compared with moves at this distance [m], to tell whether the arm is near a singular posture."""
SINGULAR = 0.004
"""Mobility [1/kg] below which a direction counts as singular; it is then given up smoothly.

At home the least mobile direction has 0.013, within 0.5 rad of home at least 0.0087.
"""


class OperationalSpace:
    """Torques for one arm or for many; limits are the robot's."""

    def __init__(
        self,
        dynamics: ArmDynamics,
        dt: float,
        stiffness: Sequence[float] | Array = STIFFNESS,
        damping_ratio: Sequence[float] | Array = DAMPING_RATIO,
    ) -> None:
        """Take the gains.

        Args:
            dynamics: The arm, for one configuration or for many.
            dt: Time that a torque is held [s].
            stiffness: Of the tool along and about world x, y, z `(6,)` [N/m, N m/rad].
            damping_ratio: Share of critical damping along each `(6,)`.

        Raises:
            ValueError: If a gain is negative or their number is not 6.
        """
        self.dynamics, self.dt = dynamics, dt
        self.stiffness = gains("stiffness", stiffness)
        self.damping_ratio = gains("damping_ratio", damping_ratio)
        robot = dynamics.robot
        self._torque_limit, self._speed = (
            np.array(robot.force_limit),
            SPEED_SHARE * np.array(robot.speed_limit),
        )
        self._lower, self._upper = dynamics.lower + MARGIN, dynamics.upper - MARGIN
        self._scale = np.array([1.0, 1.0, 1.0, LENGTH, LENGTH, LENGTH])
        self._names = [
            *(f"acceleration of {joint}" for joint in robot.joints),
            *(f"torque of {joint}" for joint in robot.joints),
        ]
        self._soft = np.repeat([True, False], robot.dof)
        shape = dynamics.pos.shape[:-1]
        self.error = np.zeros((*shape, 6))
        """Error of the last call `(..., 6)`: metres, then twice the vector part of the error quaternion."""
        self.inertia = np.zeros((*shape, 6, 6))
        """Task-space inertia of the last call."""
        self.limited: NDArray[np.bool_] = np.zeros(shape, dtype=bool)
        """Whether a limit changed the last answer `(...)`."""

    def torque(
        self,
        q: Array,
        qd: Array,
        target_pos: Array,
        error_matrix: Array,
        target_velocity: Array,
        posture: Array,
    ) -> Array:
        """Return the joint torques `(..., n)` [N m].

        Args:
            q: Joint angles `(..., n)` [rad].
            qd: Joint speeds `(..., n)` [rad/s].
            target_pos: Tool position wanted `(..., 3)`, world [m].
            error_matrix: `bunraku.control.ik.quat_error_matrix` of the orientation wanted `(..., 4, 4)`.
            target_velocity: Velocity of the target `(..., 6)`: linear, angular, world.
            posture: Joint angles that the null space is drawn to `(n,)` [rad].
        """
        dynamics = self.dynamics
        dynamics.update(q, qd)
        self._find_error(target_pos, error_matrix)
        jacobian, mass = dynamics.jacobian, dynamics.mass
        toward = np.asarray(np.linalg.solve(mass, jacobian.swapaxes(-1, -2)), dtype=np.float64)  # M^-1 J^T
        self.inertia[...] = task_inertia(jacobian @ toward, self._scale)
        effective: Array = np.diagonal(self.inertia, axis1=-2, axis2=-1)
        damping: Array = 2.0 * self.damping_ratio * np.sqrt(self.stiffness * effective)
        velocity: Array = _apply(jacobian, qd)
        wrench = self.stiffness * self.error + damping * (target_velocity - velocity)
        wrench -= _apply(self.inertia, dynamics.drift)
        free = POSTURE_STIFFNESS * (posture - q) - 2.0 * np.sqrt(POSTURE_STIFFNESS) * qd
        wanted = free + _apply(toward, wrench - _apply(self.inertia, _apply(jacobian, free)))
        torque = _apply(mass, wanted) + dynamics.bias
        return self._within_limits(q, qd, wanted, torque)

    def _find_error(self, target_pos: Array, error_matrix: Array) -> None:
        np.subtract(target_pos, self.dynamics.pos, out=self.error[..., :3])
        quat = _apply(error_matrix, self.dynamics.quat)
        np.multiply(quat[..., 1:], np.copysign(2.0, quat[..., :1]), out=self.error[..., 3:])

    def _within_limits(self, q: Array, qd: Array, wanted: Array, torque: Array) -> Array:
        """Return torques that keep the limits; those that do already are left as they are."""
        low, high = self.acceleration_limits(q, qd)
        over = (wanted < low) | (wanted > high) | (np.abs(torque) > self._torque_limit)
        self.limited = np.asarray(over.any(axis=-1))
        if not self.limited.any():
            return torque
        dynamics = self.dynamics
        rows: Any = list(np.argwhere(self.limited)) if self.limited.ndim else [()]
        for row in rows:
            i = tuple(row)
            mass, bias, jacobian = dynamics.mass[i], dynamics.bias[i], dynamics.jacobian[i]
            # the tool in the metric of its own inertia, so that metres and radians are weighed by the force they need
            root = np.linalg.cholesky(self.inertia[i] + 1e-9 * np.eye(6)).T @ jacobian
            limits = Limits(
                self._names,
                np.concatenate([np.eye(len(bias)), mass]),
                np.concatenate([low[i], -self._torque_limit - bias]),
                np.concatenate([high[i], self._torque_limit - bias]),
                self._soft,
            )
            factor = np.linalg.cholesky(mass).T
            levels = [Level("tool", root, root @ wanted[i]), Level("posture", factor, factor @ wanted[i])]
            reached = mass @ solve_levels(levels, limits) + bias
            torque[i] = np.minimum(np.maximum(reached, -self._torque_limit), self._torque_limit)
        return torque

    def acceleration_limits(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """Return the accelerations `(..., n)` that keep speeds, and joints able to stop before their ends."""
        ahead = q + qd * self.dt
        high = np.minimum(self._speed, np.sqrt(2.0 * BRAKING * np.maximum(self._upper - ahead, 0.0)))
        low = -np.minimum(self._speed, np.sqrt(2.0 * BRAKING * np.maximum(ahead - self._lower, 0.0)))
        return (low - qd) / self.dt, (high - qd) / self.dt

    def distance(self) -> tuple[float, float]:
        """Return the position [m] and rotation [rad] error of the last call (one configuration only)."""
        e = self.error
        half = min(1.0, 0.5 * float(np.sqrt(e[3:] @ e[3:])))
        return float(np.sqrt(e[:3] @ e[:3])), 2.0 * float(np.arcsin(half))


def task_inertia(mobility: Array, scale: Array) -> Array:
    """Return the task-space inertia `(..., m, m)`: the inverse of the mobility J M^-1 J^T.

    Directions with a mobility below `SINGULAR` would need unbounded forces; theirs go to zero with the mobility.

    Args:
        mobility: `(..., m, m)` symmetric.
        scale: Length of each axis's unit `(m,)`, to compare turns with moves.
    """
    values, vectors = np.linalg.eigh(mobility * (scale[:, None] * scale))
    lack = np.maximum(SINGULAR - values, 0.0)
    inverse = values / (values * values + lack * lack)
    scaled = (vectors * inverse[..., None, :]) @ vectors.swapaxes(-1, -2)
    return scaled * (scale[:, None] * scale)


def null_space(mass: Array, jacobian: Array) -> Array:
    """Return the dynamically consistent projector of torques `(..., n, n)`: `J M^-1 (null_space @ tau) = 0`."""
    toward = np.linalg.solve(mass, jacobian.swapaxes(-1, -2))
    inertia = np.linalg.inv(jacobian @ toward)
    return np.eye(mass.shape[-1]) - jacobian.swapaxes(-1, -2) @ inertia @ toward.swapaxes(-1, -2)


def _apply(matrix: Array, vector: Array) -> Array:
    return np.matmul(matrix, vector[..., None])[..., 0]


def gains(name: str, values: Sequence[float] | Array) -> Array:
    """Return six gains as an array `(6,)`.

    Raises:
        ValueError: If they are not six numbers, or one is negative.
    """
    given = np.array(values, dtype=np.float64)
    if given.shape != (6,):
        raise ValueError(
            f"{name} needs 6 numbers, along and about x, y and z, got {np.atleast_1d(given).tolist()}"
        )
    if not ((given >= 0.0) & np.isfinite(given)).all():
        raise ValueError(f"{name} must not be negative, got {given.tolist()}")
    return given
