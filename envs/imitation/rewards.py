"""The reward: six terms `exp(-mean squared error / sigma^2)` between 0 and 1, and three penalties.

Weights and widths are BeyondMimic's (Liao et al., 2025); widths that are lengths are for a robot of `PUBLISHED_HEIGHT`
and scale with the robot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.geometry import Array, conjugate, multiply

PUBLISHED_SCALE = 0.754
"""Size over a human's (1.75 m) of the robot that published widths and thresholds are for (Unitree G1, 1.32 m)."""


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """Weights of the terms; the best reward of a step is the sum of the first six: 5."""

    anchor_position: float = 0.5
    """Where the anchor is in the world."""
    anchor_orientation: float = 0.5
    """How the anchor is turned in the world."""
    body_position: float = 1.0
    """Where the key points are, around the anchor."""
    body_orientation: float = 1.0
    """How they are turned."""
    body_linear_velocity: float = 1.0
    """How fast they go."""
    body_angular_velocity: float = 1.0
    """How fast they turn."""
    action_rate: float = -0.1
    """Per squared change of the action."""
    joint_limits: float = -10.0
    """Per radian beyond the soft limits."""
    contacts: float = -0.1
    """Per contact that is none of a foot with the floor."""


@dataclass(frozen=True, slots=True)
class RewardWidths:
    """Errors at which a term has fallen to 1/e."""

    anchor_position: float = 0.3
    """[m]"""
    anchor_orientation: float = 0.4
    """[rad]"""
    body_position: float = 0.3
    """[m]"""
    body_orientation: float = 0.4
    """[rad]"""
    body_linear_velocity: float = 1.0
    """[m/s]"""
    body_angular_velocity: float = 3.14
    """[rad/s]"""

    def scaled(self, size: float) -> RewardWidths:
        """Return the widths for a robot `size` times as large as the published one."""
        return RewardWidths(
            self.anchor_position * size,
            self.anchor_orientation,
            self.body_position * size,
            self.body_orientation,
            self.body_linear_velocity * size,
            self.body_angular_velocity,
        )


def squared_distance(a: Array, b: Array) -> Array:
    """Return squared distances `(...)` between vectors `(..., 3)`."""
    e = a - b
    return e[..., 0] * e[..., 0] + e[..., 1] * e[..., 1] + e[..., 2] * e[..., 2]


def squared_angle(a: Array, b: Array) -> Array:
    """Return squared angles `(...)` [rad^2] of the rotations between unit quaternions `(..., 4)`."""
    turn = multiply(conjugate(a), b)
    x, y, z = turn[..., 1], turn[..., 2], turn[..., 3]
    angle = 2.0 * np.arctan2(np.sqrt(x * x + y * y + z * z), np.abs(turn[..., 0]))
    return np.asarray(angle * angle)


def near(mean_squared_error: Array, width: float) -> Array:
    """Return `exp(-error / width^2)` `(...)`: 1 at no error."""
    return np.exp(mean_squared_error * (-1.0 / (width * width)))


def anchor_position(reference: Array, robot: Array, width: float) -> Array:
    """Reward `(...)` for anchors `(..., 3)` at the same place."""
    return near(squared_distance(reference, robot), width)


def anchor_orientation(reference: Array, robot: Array, width: float) -> Array:
    """Reward `(...)` for anchors `(..., 4)` turned alike."""
    return near(squared_angle(reference, robot), width)


def body_position(target: Array, robot: Array, width: float) -> Array:
    """Reward `(...)` for key points `(..., B, 3)` at their targets."""
    return near(squared_distance(target, robot).mean(axis=-1), width)


def body_orientation(target: Array, robot: Array, width: float) -> Array:
    """Reward `(...)` for key points `(..., B, 4)` turned as their targets."""
    return near(squared_angle(target, robot).mean(axis=-1), width)


def body_linear_velocity(reference: Array, robot: Array, width: float) -> Array:
    """Reward `(...)` for key points that go as fast, world `(..., B, 3)` [m/s]."""
    return near(squared_distance(reference, robot).mean(axis=-1), width)


def body_angular_velocity(reference: Array, robot: Array, width: float) -> Array:
    """Reward `(...)` for key points that turn as fast, world `(..., B, 3)` [rad/s]."""
    return near(squared_distance(reference, robot).mean(axis=-1), width)


def action_rate(action: Array, previous: Array) -> Array:
    """Return the squared change `(...)` of actions `(..., A)`."""
    change = action - previous
    return np.asarray((change * change).sum(axis=-1))


def limit_overshoot(dof: Array, lower: Array, upper: Array) -> Array:
    """Return by how much [rad], in sum `(...)`, joint angles `(..., n)` are beyond limits `(n,)`."""
    return np.asarray((np.maximum(lower - dof, 0.0) + np.maximum(dof - upper, 0.0)).sum(axis=-1))


def undesired_contacts(of_robot: Array, with_floor: Array, of_feet: Array) -> Array:
    """Return how many contacts `(...)` are undesired: the robot with itself, and with the floor but for its feet.

    Args:
        of_robot: Contacts between two parts of the robot `(...)`.
        with_floor: Contacts of any part with the floor `(...)`.
        of_feet: Contacts of each foot with the floor `(..., 2)`.
    """
    return np.asarray(of_robot + with_floor - of_feet.sum(axis=-1))
