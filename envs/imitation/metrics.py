"""How well a step tracked its reference. Lengths are at human scale, so that robots of all sizes compare."""

from __future__ import annotations

import numpy as np

from bunraku.envs.imitation.rewards import squared_distance
from bunraku.geometry import Array


def key_point_error(target: Array, robot: Array, human_scale: float) -> Array:
    """Return the mean distance `(...)` [m, human scale] of key points `(..., B, 3)` from their targets."""
    return np.sqrt(squared_distance(target, robot)).mean(axis=-1) / human_scale


def joint_error(reference: Array, dof: Array) -> Array:
    """Return the mean absolute error `(...)` [rad] of joint angles `(..., n)`."""
    return np.asarray(np.abs(reference - dof).mean(axis=-1))


def root_drift(reference: Array, robot: Array, human_scale: float) -> Array:
    """Return the horizontal distance `(...)` [m, human scale] of the root `(..., 3)` from the reference's."""
    offset = reference[..., :2] - robot[..., :2]
    return np.sqrt(offset[..., 0] * offset[..., 0] + offset[..., 1] * offset[..., 1]) / human_scale


def share_tracked(steps: Array, start_frame: Array, clip_frames: Array) -> Array:
    """Return the share `(...)` of what the clip had left at the start that has been tracked, 0 to 1.

    Args:
        steps: Steps without failure.
        start_frame: Frame that the episode began at.
        clip_frames: Frames of the clip.
    """
    return np.minimum(steps / np.maximum(clip_frames - 1.0 - start_frame, 1.0), 1.0)
