"""Axes, centring, scale, height: from the frame of the human data to the robot's root frame.

The robot frame is Z up, x forward, y left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.geometry import rotate

Array = NDArray[np.float64]

MODEL_QUAT: Array = np.array([0.5, 0.5, 0.5, 0.5])
"""Y up, facing z (text-to-motion models) to Z up, facing x: x, y, z become y, z, x."""
VIDEO_QUAT: Array = np.array([np.sqrt(0.5), 0.0, 0.0, -np.sqrt(0.5)])
"""-90 degrees about z: Z up, facing y (motion from video) to Z up, facing x."""
MODEL_QUAT.flags.writeable = VIDEO_QUAT.flags.writeable = False


def rotate_axes(points: ArrayLike, quat: ArrayLike = MODEL_QUAT) -> Array:
    """Return points `(..., 3)` turned by one quaternion (w, x, y, z) `(4,)`."""
    return rotate(np.asarray(quat), points)


def centre(joints: ArrayLike, root: int = 0) -> tuple[Array, Array]:
    """Move the root key point to the origin.

    Args:
        joints: Key points `(..., J, 3)` [m].
        root: Index of the key point to centre on.

    Returns:
        The centred key points and where the root was `(..., 3)`.
    """
    joints = np.asarray(joints, dtype=np.float64)
    origin = joints[..., root, :].copy()
    return joints - origin[..., None, :], origin


def scale(points: ArrayLike, factor: float) -> Array:
    """Return centred points times `factor`: the size of the robot over that of the person."""
    return np.asarray(points, dtype=np.float64) * factor


def lift(points: ArrayLike, origin: ArrayLike) -> Array:
    """Return centred points `(..., J, 3)` moved so that their root is at `origin` `(3,)`: the robot's waist."""
    return np.asarray(points, dtype=np.float64) + np.asarray(origin, dtype=np.float64)
