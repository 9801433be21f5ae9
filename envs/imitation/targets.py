"""Targets relative to the anchor: where the robot goes and heads is forgiven, how high it is not.

The form is that of BeyondMimic (Liao et al., 2025).
"""

from __future__ import annotations

import numpy as np

from bunraku.geometry import Array, conjugate, multiply, rotate


def yaw_only(quat: Array) -> Array:
    """Return the turn about the vertical `(..., 4)` that is nearest to rotations `(..., 4)`.

    A rotation by half a turn about a horizontal axis is equally far from all of them: it gives no turn.
    """
    out = np.zeros_like(quat)
    w, z = quat[..., 0], quat[..., 3]
    norm = np.sqrt(w * w + z * z)
    none = norm < 1e-9
    safe = np.where(none, 1.0, norm)
    out[..., 0] = np.where(none, 1.0, w / safe)
    out[..., 3] = np.where(none, 0.0, z / safe)
    return out


def anchor_relative(
    reference_pos: Array,
    reference_quat: Array,
    reference_anchor_pos: Array,
    reference_anchor_quat: Array,
    robot_anchor_pos: Array,
    robot_anchor_quat: Array,
) -> tuple[Array, Array]:
    """Return target positions `(..., B, 3)` [m] and orientations `(..., B, 4)` of bodies, world.

    With the turn about the vertical from reference anchor to robot anchor, the reference's bodies are set around the
    robot's anchor, at the reference's height.

    Args:
        reference_pos: Bodies of the reference `(..., B, 3)` [m].
        reference_quat: Their orientations `(..., B, 4)`.
        reference_anchor_pos: The anchor of the reference `(..., 3)`.
        reference_anchor_quat: Its orientation `(..., 4)`.
        robot_anchor_pos: The anchor of the robot `(..., 3)`.
        robot_anchor_quat: Its orientation `(..., 4)`.
    """
    turn = yaw_only(multiply(robot_anchor_quat, conjugate(reference_anchor_quat)))
    cos = turn[..., 0] * turn[..., 0] - turn[..., 3] * turn[..., 3]
    sin = 2.0 * turn[..., 0] * turn[..., 3]
    offset = reference_pos - reference_anchor_pos[..., None, :]
    pos = np.empty_like(offset)
    pos[..., 0] = (
        robot_anchor_pos[..., None, 0] + cos[..., None] * offset[..., 0] - sin[..., None] * offset[..., 1]
    )
    pos[..., 1] = (
        robot_anchor_pos[..., None, 1] + sin[..., None] * offset[..., 0] + cos[..., None] * offset[..., 1]
    )
    pos[..., 2] = reference_pos[..., 2]
    return pos, multiply(turn[..., None, :], reference_quat)


def in_anchor_frame(pos: Array, quat: Array, anchor_pos: Array, anchor_quat: Array) -> tuple[Array, Array]:
    """Return positions `(..., B, 3)` and orientations `(..., B, 4)` in the frame of an anchor."""
    world_to_anchor = conjugate(anchor_quat)[..., None, :]
    return rotate(world_to_anchor, pos - anchor_pos[..., None, :]), multiply(world_to_anchor, quat)


def two_columns(quat: Array) -> Array:
    """Return the first two columns `(..., 6)` of the rotation matrices of quaternions: continuous, unlike angles."""
    w, x, y, z = quat[..., 0], quat[..., 1], quat[..., 2], quat[..., 3]
    return np.stack(
        [
            w * w + x * x - y * y - z * z,
            2.0 * (x * y + w * z),
            2.0 * (x * z - w * y),
            2.0 * (x * y - w * z),
            w * w - x * x + y * y - z * z,
            2.0 * (y * z + w * x),
        ],
        axis=-1,
    )
