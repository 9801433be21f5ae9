"""Where the person faces: yaw from the hips, and its removal.

A robot whose waist is fixed cannot turn around, so the turning of the person is taken out of the key points frame by
frame. The heading is that of the vector from the right to the left hip, in the ground plane, less a quarter turn.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.geometry import from_rotvec, rotate

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

PELVIS, LEFT_HIP, RIGHT_HIP = 0, 1, 2
FLAT = 0.3
"""Below this share of the hips' width their ground vector says nothing: the person lies on a side."""


def hip_yaw(joints: ArrayLike) -> tuple[Array, Mask]:
    """Return the continuous heading of each frame `(T,)` [rad] and whether it could be seen `(T,)`.

    Where the hips are above one another (lying on a side) or have swapped sides since the frame before, the heading is
    interpolated between its neighbours.

    Args:
        joints: Key points `(T, J, 3)`, Z up.
    """
    joints = np.asarray(joints, dtype=np.float64)
    left = joints[:, LEFT_HIP] - joints[:, RIGHT_HIP]
    flat = np.hypot(left[:, 0], left[:, 1])
    width = np.maximum(np.linalg.norm(left, axis=-1), 1e-9)
    raw = np.arctan2(left[:, 1], left[:, 0]) - 0.5 * np.pi
    seen = (flat > FLAT * np.median(width)) & np.isfinite(raw)
    yaw = np.where(seen, raw, 0.0)
    last = None
    for t in np.flatnonzero(seen):
        turn = 0.0 if last is None else _wrap(yaw[t] - yaw[last])
        if last is not None and abs(turn) > 0.5 * np.pi and t - last < 3 and _swapped(joints[t]):
            seen[t] = False
            continue
        yaw[t] = _wrap(yaw[t]) if last is None else yaw[last] + turn
        last = t
    good = np.flatnonzero(seen)
    if len(good) == 0:
        return np.zeros(len(joints)), seen
    return np.interp(np.arange(len(joints)), good, yaw[good]), seen


def _swapped(joints: Array) -> bool:
    """Say whether the hips point against the shoulders in one frame `(J, 3)`: crossed key points."""
    hips, shoulders = joints[LEFT_HIP] - joints[RIGHT_HIP], joints[16] - joints[17]
    return bool(hips[:2] @ shoulders[:2] < 0.0)


def _wrap(angle: float) -> float:
    return float((angle + np.pi) % (2.0 * np.pi) - np.pi)


def align_yaw(
    joints: ArrayLike, reference: Literal["forward", "first"] = "forward"
) -> tuple[Array, Array, Mask]:
    """Turn every frame about the vertical through the pelvis, so that the heading stays the same.

    Args:
        joints: Key points `(T, J, 3)`, Z up.
        reference: `forward`: face along x throughout. `first`: keep the heading of the first frame, as the source
            does; a clip that does not start facing x is then out of reach of a robot that does.

    Returns:
        The aligned key points, the angle removed from each frame `(T,)` [rad], and whether the heading was seen.
    """
    joints = np.asarray(joints, dtype=np.float64)
    yaw, seen = hip_yaw(joints)
    removed = yaw - (yaw[0] if reference == "first" else 0.0)
    quat = from_rotvec(removed[:, None] * np.array([0.0, 0.0, -1.0]))
    origin = joints[:, PELVIS : PELVIS + 1]
    return rotate(quat[:, None], joints - origin) + origin, removed, seen
