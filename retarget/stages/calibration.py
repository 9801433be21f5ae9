"""What a skeleton's rest pose looks like, read from a clip: the pitch offsets that differ between skeletons.

The line from neck to head leans 45 degrees forward in SMPL and not at all in a CMU skeleton; the chest, the spine and
the foot differ likewise. Taken as they are, such lines pull every frame of a clip the same wrong way. So each is
compared with the whole trunk (pelvis to neck), which stands upright in every skeleton, and its median pitch against
the trunk over the clip counts as its rest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

(
    PELVIS,
    LEFT_HIP,
    RIGHT_HIP,
    SPINE1,
    LEFT_KNEE,
    RIGHT_KNEE,
    SPINE2,
    LEFT_ANKLE,
    RIGHT_ANKLE,
    SPINE3,
    LEFT_FOOT,
    RIGHT_FOOT,
    NECK,
    LEFT_COLLAR,
    RIGHT_COLLAR,
    HEAD,
    LEFT_SHOULDER,
    RIGHT_SHOULDER,
    LEFT_ELBOW,
    RIGHT_ELBOW,
    LEFT_WRIST,
    RIGHT_WRIST,
) = range(22)
"""Indices of the 22 key points (SMPL order)."""


NARROW = 0.005
"""Collars nearer than this to one another or to spine3 tell no direction; shoulders or trunk do [m]."""


class Calibration(NamedTuple):
    """Rest pitches [rad] about the left axis, positive leaning forward."""

    chest: float = 0.0
    """Spine to collars against the trunk."""
    head: float = 0.0
    """Neck to head against the trunk."""
    spine: float = 0.0
    """Pelvis to mid spine against the trunk."""
    left_foot: float = 0.4
    """Ankle to toe below the horizontal, foot flat."""
    right_foot: float = 0.4
    """The same on the right."""


def pitch_against(vectors: ArrayLike, reference: ArrayLike, left: ArrayLike) -> Array:
    """Return the signed angle `(...)` [rad] from `reference` to `vectors` about `left`, all `(..., 3)`."""
    v, r, axis = (np.asarray(a, dtype=np.float64) for a in (vectors, reference, left))
    axis = axis / np.maximum(np.linalg.norm(axis, axis=-1, keepdims=True), 1e-12)
    v = v - (v * axis).sum(axis=-1, keepdims=True) * axis
    r = r - (r * axis).sum(axis=-1, keepdims=True) * axis
    return np.arctan2((np.cross(r, v) * axis).sum(axis=-1), (r * v).sum(axis=-1))


def calibrate(joints: ArrayLike) -> Calibration:
    """Estimate the rest pitches of the skeleton of a clip.

    Args:
        joints: Key points `(T, 22, 3)`, Z up, in any heading.
    """
    j = np.asarray(joints, dtype=np.float64)
    left = j[:, LEFT_HIP] - j[:, RIGHT_HIP]
    shoulders = j[:, LEFT_SHOULDER] - j[:, RIGHT_SHOULDER]
    trunk = j[:, NECK] - j[:, PELVIS]

    def median(vectors: Array, axis: Array) -> float:
        return float(np.median(pitch_against(vectors, trunk, axis)))

    chest = 0.5 * (j[:, LEFT_COLLAR] + j[:, RIGHT_COLLAR]) - j[:, SPINE3]
    collars = j[:, LEFT_COLLAR] - j[:, RIGHT_COLLAR]
    chest = np.where(np.linalg.norm(chest, axis=-1, keepdims=True) < NARROW, trunk, chest)
    collars = np.where(np.linalg.norm(collars, axis=-1, keepdims=True) < NARROW, shoulders, collars)
    return Calibration(
        chest=median(chest, collars),
        head=median(j[:, HEAD] - j[:, NECK], shoulders),
        spine=median(j[:, SPINE2] - j[:, PELVIS], left),
        left_foot=flat_foot_pitch(j[:, LEFT_ANKLE], j[:, LEFT_FOOT]),
        right_foot=flat_foot_pitch(j[:, RIGHT_ANKLE], j[:, RIGHT_FOOT]),
    )


def flat_foot_pitch(ankle: ArrayLike, toe: ArrayLike) -> float:
    """Return how far ankle to toe points below the horizontal [rad] when the foot is flat on the ground.

    The source takes frame 0 for the neutral ankle, which is wrong by the whole bend of the ankle if a clip does not
    start standing. Here the frames count in which the toe is near the lowest place where it ever is, and as still as
    in the calmest third of the clip: the foot stands. Their median is taken; a single frame stands for itself.

    Args:
        ankle: Ankle positions `(T, 3)`, Z up.
        toe: Toe positions `(T, 3)`.
    """
    ankle, toe = np.asarray(ankle, dtype=np.float64), np.asarray(toe, dtype=np.float64)
    foot = toe - ankle
    length = np.maximum(np.linalg.norm(foot, axis=-1), 1e-9)
    down = np.arcsin(np.clip(-foot[:, 2] / length, -1.0, 1.0))
    if len(toe) == 1:
        return float(down[0])
    low = toe[:, 2] <= np.quantile(toe[:, 2], 0.02) + 0.05
    motion = np.linalg.norm(np.gradient(toe, axis=0), axis=-1)
    stance = low & (motion <= np.quantile(motion[low], 0.34))
    return float(np.clip(np.median(down[stance]), 0.0, 1.2))
