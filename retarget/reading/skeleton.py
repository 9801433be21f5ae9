"""Our default person, and forward kinematics of the 22-joint skeleton.

The figures are ours: an adult of about 1.7 m in a T pose. Limb lengths are near the mean of SMPL's (thigh 0.387,
shin 0.407, upper arm 0.261, forearm 0.250 m), and so are the rest directions that tell on a robot: toes 25 degrees
below the ankle, the head 38 degrees forward of the neck, shins a little backwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.geometry import multiply, rotate
from bunraku.motion import SMPL_JOINTS, SMPL_PARENTS

Array = NDArray[np.float64]

_LEFT = {
    "hip": (-0.02, 0.07, -0.085),
    "knee": (0.01, 0.03, -0.385),
    "ankle": (-0.035, -0.01, -0.405),
    "foot": (0.122, 0.02, -0.057),
    "collar": (-0.02, 0.075, 0.115),
    "shoulder": (-0.02, 0.12, 0.04),
    "elbow": (-0.02, 0.26, -0.015),
    "wrist": (-0.005, 0.25, 0.005),
}
_MIDDLE = {
    "pelvis": (0.0, 0.0, 0.0),
    "spine1": (-0.03, 0.0, 0.12),
    "spine2": (0.02, 0.0, 0.135),
    "spine3": (0.0, 0.0, 0.055),
    "neck": (-0.03, 0.0, 0.21),
    "head": (0.062, 0.0, 0.079),
}


def _offset(name: str) -> tuple[float, float, float]:
    if name in _MIDDLE:
        return _MIDDLE[name]
    side, part = name.split("_")
    x, y, z = _LEFT[part]
    return (x, y if side == "left" else -y, z)


REST_OFFSETS: Array = np.array([_offset(name) for name in SMPL_JOINTS])
"""Each key point relative to its parent `(22, 3)` [m], in a T pose, Z up, x forward, y left."""
REST_OFFSETS.flags.writeable = False


def forward_kinematics(offsets: ArrayLike, rotations: ArrayLike, root: ArrayLike) -> tuple[Array, Array]:
    """Return positions `(N, 22, 3)` and orientations `(N, 22, 4)` of the joints.

    Args:
        offsets: Each joint relative to its parent at rest `(22, 3)` [m].
        rotations: Rotation of each joint against its parent `(N, 22, 4)`; that of the pelvis in the world.
        root: Position of the pelvis `(N, 3)` [m].
    """
    offsets, rotations = np.asarray(offsets, dtype=np.float64), np.asarray(rotations, dtype=np.float64)
    points, quats = np.empty((*rotations.shape[:-1], 3)), np.empty(rotations.shape)
    for joint, parent in enumerate(SMPL_PARENTS):
        if parent < 0:
            points[:, joint], quats[:, joint] = root, rotations[:, joint]
        else:
            points[:, joint] = points[:, parent] + rotate(quats[:, parent], offsets[joint])
            quats[:, joint] = multiply(quats[:, parent], rotations[:, joint])
    return points, quats
