"""Rotations and rigid poses on arrays with any leading axes.

Quaternions are w, x, y, z everywhere in bunraku, as in MuJoCo; this file is the only place that converts
between quaternions, matrices, rotation vectors and the x, y, z, w order of other libraries. A pose variable
is named by its frames: `world_hand` takes hand coordinates to world coordinates, so `world_hand @ hand_tip`
is `world_tip`.

    >>> import numpy as np
    >>> quarter = from_rotvec(np.array([0.0, 0.0, np.pi / 2]))
    >>> np.round(rotate(quarter, np.array([1.0, 0.0, 0.0])), 6).tolist()
    [0.0, 1.0, 0.0]

Formulas: quaternion algebra and the exponential map as in J. Sola, "Quaternion kinematics for the error-state
Kalman filter" (2017), sections 1 and 2; matrix to quaternion by the largest of four candidates (Shepperd,
1978).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

IDENTITY_QUAT: Array = np.array([1.0, 0.0, 0.0, 0.0])
IDENTITY_QUAT.flags.writeable = False

Y_UP_TO_Z_UP: Array = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
"""Rotation from a Y-up frame that looks along -z (OpenVR, OpenXR) to Z up, x forward, y left.

It is +90 degrees about x (y goes to z), then -90 degrees about z (so that the operator's forward, -z, is +x).
"""
Y_UP_TO_Z_UP.flags.writeable = False
Y_UP_TO_Z_UP_QUAT: Array = np.array([0.5, 0.5, -0.5, -0.5])
"""The same rotation as a quaternion."""
Y_UP_TO_Z_UP_QUAT.flags.writeable = False


def normalize(quat: ArrayLike) -> Array:
    """Return `quat` `(..., 4)` scaled to unit length."""
    quat = np.asarray(quat, dtype=np.float64)
    return quat / np.sqrt((quat * quat).sum(axis=-1, keepdims=True))


def conjugate(quat: ArrayLike) -> Array:
    """Return the inverse of unit quaternions `(..., 4)`."""
    return np.asarray(quat, dtype=np.float64) * np.array([1.0, -1.0, -1.0, -1.0])


def multiply(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the Hamilton product of quaternions `(..., 4)`: the rotation `b` followed by `a`."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    aw, ax, ay, az = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    bw, bx, by, bz = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        axis=-1,
    )


def rotate(quat: ArrayLike, vec: ArrayLike) -> Array:
    """Return vectors `(..., 3)` rotated by unit quaternions `(..., 4)`."""
    quat, vec = np.asarray(quat, dtype=np.float64), np.asarray(vec, dtype=np.float64)
    axis = quat[..., 1:]
    twice = 2.0 * _cross(axis, vec)
    return vec + quat[..., :1] * twice + _cross(axis, twice)


def _cross(a: Array, b: Array) -> Array:
    """Return `np.cross(a, b)` of `(..., 3)`, whose checks cost several times the product for a single vector."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    out = np.empty(np.broadcast_shapes(a.shape, b.shape))
    out[..., 0] = ay * bz - az * by
    out[..., 1] = az * bx - ax * bz
    out[..., 2] = ax * by - ay * bx
    return out


def to_matrix(quat: ArrayLike) -> Array:
    """Return rotation matrices `(..., 3, 3)` of unit quaternions `(..., 4)`."""
    quat = np.asarray(quat, dtype=np.float64)
    w, x, y, z = quat[..., 0], quat[..., 1], quat[..., 2], quat[..., 3]
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def from_matrix(matrix: ArrayLike) -> Array:
    """Return unit quaternions `(..., 4)`, w >= 0, of rotation matrices `(..., 3, 3)`.

    The matrix need not be exactly orthonormal (controllers report float32): the result is normalised.
    """
    m = np.asarray(matrix, dtype=np.float64)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    wx, wy, wz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    candidates = np.stack(
        [
            np.stack([1 + xx + yy + zz, wx, wy, wz], axis=-1),
            np.stack([wx, 1 + xx - yy - zz, xy, xz], axis=-1),
            np.stack([wy, xy, 1 - xx + yy - zz, yz], axis=-1),
            np.stack([wz, xz, yz, 1 - xx - yy + zz], axis=-1),
        ],
        axis=-2,
    )
    diagonal = np.stack([candidates[..., i, i] for i in range(4)], axis=-1)
    best = diagonal.argmax(axis=-1)
    quat = np.take_along_axis(candidates, best[..., None, None], axis=-2)[..., 0, :]
    return with_positive_w(normalize(quat))


def with_positive_w(quat: ArrayLike) -> Array:
    """Return the same rotations with w >= 0."""
    quat = np.asarray(quat, dtype=np.float64)
    return np.where(quat[..., :1] < 0.0, -quat, quat)


def from_rotvec(rotvec: ArrayLike) -> Array:
    """Return unit quaternions `(..., 4)` of rotation vectors `(..., 3)` [rad]: the exponential map."""
    rotvec = np.asarray(rotvec, dtype=np.float64)
    angle = np.sqrt((rotvec * rotvec).sum(axis=-1, keepdims=True))
    half = 0.5 * angle
    small = angle < 1e-6
    safe = np.where(small, 1.0, angle)
    scale = np.where(small, 0.5 - angle * angle / 48.0, np.sin(half) / safe)
    return np.concatenate([np.cos(half), scale * rotvec], axis=-1)


def to_rotvec(quat: ArrayLike) -> Array:
    """Return rotation vectors `(..., 3)` [rad], length at most pi, of unit quaternions: the logarithm."""
    quat = with_positive_w(quat)
    vec = quat[..., 1:]
    norm = np.sqrt((vec * vec).sum(axis=-1, keepdims=True))
    small = norm < 1e-9
    safe = np.where(small, 1.0, norm)
    return vec * np.where(small, 2.0, 2.0 * np.arctan2(norm, quat[..., :1]) / safe)


def angle_between(a: ArrayLike, b: ArrayLike) -> Array:
    """Return the angle [rad] `(...)` of the rotation between unit quaternions `(..., 4)`."""
    rotvec = to_rotvec(multiply(conjugate(a), b))
    return np.sqrt((rotvec * rotvec).sum(axis=-1))


def nlerp(a: ArrayLike, b: ArrayLike, t: ArrayLike) -> Array:
    """Return the normalised linear interpolation from `a` to `b` `(..., 4)`, along the shorter arc.

    Args:
        a: Unit quaternions at t = 0.
        b: Unit quaternions at t = 1.
        t: Fraction `(...)`.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    t = np.asarray(t, dtype=np.float64)[..., None]
    same_side = (a * b).sum(axis=-1, keepdims=True) >= 0.0
    return normalize((1.0 - t) * a + t * np.where(same_side, b, -b))


def from_xyzw(quat_xyzw: ArrayLike) -> Array:
    """Return w, x, y, z of quaternions in x, y, z, w order (SciPy, ROS, LeRobot)."""
    return np.roll(np.asarray(quat_xyzw, dtype=np.float64), 1, axis=-1)


def to_xyzw(quat: ArrayLike) -> Array:
    """Return x, y, z, w of quaternions in w, x, y, z order."""
    return np.roll(np.asarray(quat, dtype=np.float64), -1, axis=-1)


def is_rotation(matrix: ArrayLike, tolerance: float = 1e-2) -> bool:
    """Say whether one `(3, 3)` matrix is finite, orthonormal to `tolerance` and right-handed."""
    m = np.asarray(matrix, dtype=np.float64)
    if not np.isfinite(m).all():
        return False
    return bool(np.abs(m @ m.T - np.eye(3)).max() <= tolerance and np.linalg.det(m) > 0.0)


@dataclass(frozen=True, slots=True)
class Pose:
    """A rigid pose (or many, over leading axes); named by its two frames, as in `world_hand`."""

    pos: Array
    """Position `(..., 3)` [m]."""
    quat: Array
    """Orientation `(..., 4)`, unit, w, x, y, z."""

    @classmethod
    def identity(cls) -> Self:
        """Return the pose of a frame in itself."""
        return cls(np.zeros(3), IDENTITY_QUAT.copy())

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Self:
        """Return the pose of homogeneous matrices `(..., 3, 4)` or `(..., 4, 4)`."""
        m = np.asarray(matrix, dtype=np.float64)
        return cls(m[..., :3, 3].copy(), from_matrix(m[..., :3, :3]))

    def __matmul__(self, other: Pose) -> Pose:
        """Compose: `a_b @ b_c` is `a_c`."""
        return Pose(self.pos + rotate(self.quat, other.pos), multiply(self.quat, other.quat))

    def inverse(self) -> Pose:
        """Return `b_a` of `a_b`."""
        quat = conjugate(self.quat)
        return Pose(-rotate(quat, self.pos), quat)

    def apply(self, point: ArrayLike) -> Array:
        """Return points `(..., 3)` of the inner frame in the outer frame."""
        return self.pos + rotate(self.quat, point)

    def as_array(self) -> Array:
        """Return `(..., 7)`: position, then w, x, y, z."""
        return np.concatenate([self.pos, self.quat], axis=-1)

    @classmethod
    def from_array(cls, array: ArrayLike) -> Self:
        """Return the pose of `(..., 7)`: position, then w, x, y, z."""
        a = np.asarray(array, dtype=np.float64)
        return cls(a[..., :3].copy(), a[..., 3:7].copy())


def change_frame(new_old_quat: Array, old_pose: Pose) -> Pose:
    """Express a pose in another coordinate system, both for the outer and the inner frame.

    The pose as a whole is conjugated (`R T R^-1`), so that a body whose axes lay along the old coordinate
    axes has its axes along the new ones: a turn about the old vertical is a turn about the new vertical.

    Args:
        new_old_quat: Unit quaternion `(4,)` from old to new coordinates.
        old_pose: The pose in old coordinates.
    """
    return Pose(
        rotate(new_old_quat, old_pose.pos),
        multiply(multiply(new_old_quat, old_pose.quat), conjugate(new_old_quat)),
    )


def y_up_to_z_up(pose: Pose) -> Pose:
    """Express a pose of a Y-up device frame (OpenVR) in Z up, x forward, y left (see `Y_UP_TO_Z_UP`)."""
    return change_frame(Y_UP_TO_Z_UP_QUAT, pose)
