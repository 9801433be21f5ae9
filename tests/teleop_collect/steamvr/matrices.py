"""Poses as matrices, made without the code under test."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bunraku.geometry import Pose, to_matrix


def pose_matrix(pos: ArrayLike = (0.0, 1.0, -0.4), rotvec: ArrayLike = (0.0, 0.0, 0.0)) -> np.ndarray:
    """Return a `(3, 4)` pose from a position [m] and a rotation vector [rad] (Rodrigues' formula)."""
    rotvec = np.asarray(rotvec, dtype=np.float64)
    angle = float(np.linalg.norm(rotvec))
    x, y, z = rotvec / angle if angle else np.zeros(3)
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turn = np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross
    return np.hstack([turn, np.reshape(pos, (3, 1))])


def as_matrix(pose: Pose | ArrayLike) -> np.ndarray:
    """Return the `(3, 4)` matrix of a pose, a matrix, or a position."""
    if isinstance(pose, Pose):
        return np.hstack([to_matrix(pose.quat), pose.pos.reshape(3, 1)])
    array = np.asarray(pose, dtype=np.float64)
    return pose_matrix(array) if array.shape == (3,) else array[:3, :]
