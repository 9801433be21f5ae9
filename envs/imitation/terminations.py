"""When a robot has lost its reference. Thresholds are BeyondMimic's; lengths scale with the robot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import Array

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How far off is lost."""

    anchor_height: float = 0.25
    """Height of the anchor [m]."""
    anchor_tilt: float = 0.8
    """Vertical component of gravity's direction in the anchor's frame."""
    end_effector_height: float = 0.25
    """Height of a hand or foot [m]."""

    def scaled(self, size: float) -> Thresholds:
        """Return the thresholds for a robot `size` times as large as the published one."""
        return Thresholds(self.anchor_height * size, self.anchor_tilt, self.end_effector_height * size)


def anchor_height_lost(reference: Array, robot: Array, threshold: float) -> Mask:
    """Return whether anchors `(..., 3)` differ too much in height `(...)`."""
    return np.asarray(np.abs(reference[..., 2] - robot[..., 2]) > threshold)


def vertical(quat: Array) -> Array:
    """Return the vertical component `(...)` of gravity's direction in frames `(..., 4)`: -1 upright, 1 upside down."""
    return np.asarray(2.0 * (quat[..., 1] * quat[..., 1] + quat[..., 2] * quat[..., 2]) - 1.0)


def anchor_tilted(reference: Array, robot: Array, threshold: float) -> Mask:
    """Return whether anchors `(..., 4)` differ too much in how they stand to gravity `(...)`."""
    return np.asarray(np.abs(vertical(reference) - vertical(robot)) > threshold)


def end_effector_lost(target: Array, robot: Array, threshold: float) -> Mask:
    """Return whether any hand or foot `(..., E, 3)` differs too much in height from its target `(...)`."""
    return np.asarray((np.abs(target[..., 2] - robot[..., 2]) > threshold).any(axis=-1))
