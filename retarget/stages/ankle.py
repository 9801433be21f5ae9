"""Ankle pitch from the angle between shin and foot: geometry decides, whatever the solver made of the ankle."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.retarget.stages.limits import soft_clamp

Array = NDArray[np.float64]


def shin_foot_angle(knee: ArrayLike, ankle: ArrayLike, toe: ArrayLike) -> Array:
    """Return the angle between shin and foot `(...)` [rad]: 0 for toes in line with the shin, pointed down.

    Args:
        knee: Knee positions `(..., 3)`.
        ankle: Ankle positions `(..., 3)`.
        toe: Toe positions `(..., 3)`.
    """
    knee, ankle, toe = (np.asarray(v, dtype=np.float64) for v in (knee, ankle, toe))
    shin, foot = ankle - knee, toe - ankle
    cross = np.linalg.norm(np.cross(shin, foot), axis=-1)
    return np.arctan2(cross, (shin * foot).sum(axis=-1))


def ankle_pitch(angle: ArrayLike, flat_pitch: float, lower: float, upper: float) -> Array:
    """Return the ankle joint `(...)` [rad], toes down positive, bent smoothly into its limits.

    Joint angle zero is a flat foot under a vertical shin. A foot whose line from ankle to toe falls by `flat_pitch`
    has the angle `90 degrees - flat_pitch` to the shin there.

    Args:
        angle: Angle between shin and foot `(...)` [rad].
        flat_pitch: Fall of the line from ankle to toe of a flat foot [rad] (`calibration.flat_foot_pitch`).
        lower: Lower joint limit [rad].
        upper: Upper joint limit [rad].
    """
    pitch = 0.5 * np.pi - flat_pitch - np.asarray(angle, dtype=np.float64)
    return soft_clamp(pitch[..., None], [lower], [upper])[..., 0]
