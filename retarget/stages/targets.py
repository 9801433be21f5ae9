"""From the key points of a frame to what the solver pursues: bone directions at robot lengths, and orientations.

The trunk of the robot does not move as a person's does, so no target is a key point in space. Each limb is rebuilt
from its anchor on the robot: the direction of the human bone times the length of the robot's, link after link. What
is written here are these chains *relative to the anchor*; where the anchor is, the solver reads from the robot's own
kinematics in every step.

Orientations: the chest from spine3 and the collars; the head without a twist against the chest unless a head rotation
is given; the feet from shin and toes. Rest offsets of the skeleton (`calibration`) are taken out.

All functions serve one frame, without allocation, so that live use and files share them; numba compiles them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bunraku.retarget.solver.jit import compiled
from bunraku.retarget.stages.calibration import NARROW

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

PELVIS, LEFT_HIP, RIGHT_HIP, SPINE2, SPINE3 = 0, 1, 2, 6, 9
NECK, LEFT_COLLAR, RIGHT_COLLAR, HEAD, LEFT_SHOULDER, RIGHT_SHOULDER = 12, 13, 14, 15, 16, 17
TINY = 1e-6
"""Bones shorter than this have no direction; the last one is kept [m]."""


class TargetTable(NamedTuple):
    """How key points become targets, as arrays; B bones."""

    bones: Ints
    """`(B, 4)`: human start, human end, task that gets the result (-1: none), bone that it continues (-1: anchor)."""
    lengths: Array
    """Length of the robot's bone `(B,)` [m]."""
    chest: int
    """Task of the chest, -1 without."""
    head: int
    """Task of the head, -1 without."""
    head_rest: Array
    """Direction from neck to head of the robot at rest, unit `(3,)`."""
    head_length: float
    """Distance from neck to head of the robot [m]."""
    feet: Ints
    """`(F, 4)`: task, human knee, ankle and toe of each foot."""
    whole_pelvis: bool
    """Whether the whole rotation of the pelvis is taken out (a free root), or its heading only (a fixed waist)."""


@compiled
def unit(v: Array, out: Array) -> bool:
    """Write `v` `(3,)` at unit length to `out`, unless it is too short; say whether it was long enough."""
    norm = math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])
    if not norm > TINY:  # NaN too
        return False
    for k in range(3):
        out[k] = v[k] / norm
    return True


@compiled
def cross(a: Array, b: Array, out: Array) -> None:
    """Write the cross product of `a` and `b` `(3,)` to `out`, another array."""
    out[0] = a[1] * b[2] - a[2] * b[1]
    out[1] = a[2] * b[0] - a[0] * b[2]
    out[2] = a[0] * b[1] - a[1] * b[0]


@compiled
def basis(up: Array, left: Array, pitch: float, out: Array, work: Array) -> bool:
    """Write the rotation `(3, 3)` with columns forward, left, up to `out`.

    `up` is kept exactly, then leant back by `pitch`, the skeleton's rest. Nothing is written, and False returned, if
    the vectors are parallel or too short. `work` `(3, 3)` is scratch.
    """
    u, side, forward = work[0], work[1], work[2]
    if not unit(up, u):
        return False
    cross(left, u, forward)
    if not unit(forward, forward):
        return False
    cross(u, forward, side)
    s, c = math.sin(pitch), math.cos(pitch)
    for k in range(3):
        out[k, 0] = c * forward[k] + s * u[k]
        out[k, 1] = side[k]
        out[k, 2] = c * u[k] - s * forward[k]
    return True


@compiled
def swing(a: Array, b: Array, out: Array) -> None:
    """Write the rotation `(3, 3)` of the shortest turn from `a` to `b`, units `(3,)`, to `out`."""
    x, y, z = a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]
    c = a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
    if c < -0.999999:  # opposite: any axis across serves; half a turn about it
        k = 0 if abs(a[0]) < 0.9 else 1
        px, py, pz = -a[0] * a[k], -a[1] * a[k], -a[2] * a[k]
        if k == 0:
            px += 1.0
        else:
            py += 1.0
        norm = math.sqrt(px * px + py * py + pz * pz)
        px, py, pz = px / norm, py / norm, pz / norm
        out[0, 0], out[0, 1], out[0, 2] = 2 * px * px - 1, 2 * px * py, 2 * px * pz
        out[1, 0], out[1, 1], out[1, 2] = 2 * px * py, 2 * py * py - 1, 2 * py * pz
        out[2, 0], out[2, 1], out[2, 2] = 2 * px * pz, 2 * py * pz, 2 * pz * pz - 1
        return
    f = 1.0 / (1.0 + c)
    out[0, 0], out[0, 1], out[0, 2] = c + f * x * x, f * x * y - z, f * x * z + y
    out[1, 0], out[1, 1], out[1, 2] = f * x * y + z, c + f * y * y, f * y * z - x
    out[2, 0], out[2, 1], out[2, 2] = f * x * z - y, f * y * z + x, c + f * z * z


@compiled
def frame_targets(
    table: TargetTable,
    rest: Array,
    joints: Array,
    head_local: Array,
    has_head: bool,
    offsets: Array,
    rotations: Array,
    ends: Array,
    chest: Array,
    work: Array,
) -> int:
    """Write the targets of one frame; where a direction cannot be told, the values already there are kept.

    Args:
        table: How key points become targets.
        rest: Calibration `(5,)`: chest, head, spine, left and right foot pitch [rad].
        joints: Key points `(22, 3)` in the robot's root frame (heading or pelvis taken out) [m].
        head_local: Head rotation in the chest `(3, 3)`.
        has_head: Whether `head_local` is given.
        offsets: Out `(K, 3)` [m].
        rotations: Out `(K, 3, 3)`.
        ends: In and out, the ends of the bones against their anchor `(B, 3)`, then directions: `(2B, 3)`.
        chest: In and out, the chest's rotation `(3, 3)`.
        work: Scratch `(9, 3)`.

    Returns:
        How many directions were lacking.
    """
    lacking = 0
    v, w, d = work[0], work[1], work[2]
    for k in range(3):
        v[k] = 0.5 * (joints[LEFT_COLLAR, k] + joints[RIGHT_COLLAR, k]) - joints[SPINE3, k]
        w[k] = joints[LEFT_COLLAR, k] - joints[RIGHT_COLLAR, k]
    if v[0] * v[0] + v[1] * v[1] + v[2] * v[2] < NARROW * NARROW:  # collars at spine3, as in CMU skeletons
        for k in range(3):
            v[k] = joints[NECK, k] - joints[PELVIS, k]
    if w[0] * w[0] + w[1] * w[1] + w[2] * w[2] < NARROW * NARROW:  # collars in one point, as in CMU skeletons
        for k in range(3):
            w[k] = joints[LEFT_SHOULDER, k] - joints[RIGHT_SHOULDER, k]
    if not basis(v, w, rest[0], chest, work[3:6]):
        lacking += 1
    if table.chest >= 0:
        rotations[table.chest, :, :] = chest
    count = table.bones.shape[0]
    for b in range(count):
        start, end, task, after = table.bones[b, 0], table.bones[b, 1], table.bones[b, 2], table.bones[b, 3]
        for k in range(3):
            v[k] = joints[end, k] - joints[start, k]
        if not unit(v, ends[count + b]):
            lacking += 1
        for k in range(3):
            ends[b, k] = table.lengths[b] * ends[count + b, k]
            if after >= 0:
                ends[b, k] += ends[after, k]
            if task >= 0:
                offsets[task, k] = ends[b, k]
    if table.head >= 0:
        lacking += head_target(
            table, rest[1], joints, head_local, has_head, offsets, rotations, chest, v, w, d, work
        )
    for f in range(table.feet.shape[0]):
        task, knee, ankle, toe = table.feet[f, 0], table.feet[f, 1], table.feet[f, 2], table.feet[f, 3]
        for k in range(3):
            v[k] = joints[toe, k] - joints[ankle, k]
            d[k] = joints[knee, k] - joints[ankle, k]
        cross(d, v, w)  # shin times toes: left
        # forward is the toes' direction, so "up" is what is across it and left
        cross(v, w, d)
        if not basis(d, w, rest[3 + f], rotations[task], work[3:6]):
            lacking += 1
    return lacking


@compiled
def head_target(
    table: TargetTable,
    pitch: float,
    joints: Array,
    head_local: Array,
    has_head: bool,
    offsets: Array,
    rotations: Array,
    chest: Array,
    v: Array,
    w: Array,
    d: Array,
    work: Array,
) -> int:
    """Write the head's offset and rotation; return 1 if neck and head coincide, else 0."""
    task, turn = table.head, work[6:9]
    if has_head:
        for k in range(3):
            for m in range(3):
                rotations[task, k, m] = (
                    chest[k, 0] * head_local[0, m]
                    + chest[k, 1] * head_local[1, m]
                    + chest[k, 2] * head_local[2, m]
                )
    else:
        for k in range(3):
            v[k] = joints[HEAD, k] - joints[NECK, k]
        if not unit(v, d):
            return 1
        # in the chest frame; leant back by the skeleton's rest
        for m in range(3):
            w[m] = chest[0, m] * d[0] + chest[1, m] * d[1] + chest[2, m] * d[2]
        s, c = math.sin(pitch), math.cos(pitch)
        w[0], w[2] = c * w[0] - s * w[2], s * w[0] + c * w[2]
        swing(table.head_rest, w, turn)
        for k in range(3):
            for m in range(3):
                rotations[task, k, m] = (
                    chest[k, 0] * turn[0, m] + chest[k, 1] * turn[1, m] + chest[k, 2] * turn[2, m]
                )
    for k in range(3):
        offsets[task, k] = table.head_length * (
            rotations[task, k, 0] * table.head_rest[0]
            + rotations[task, k, 1] * table.head_rest[1]
            + rotations[task, k, 2] * table.head_rest[2]
        )
    return 0


@compiled
def root_rotation(
    joints: Array, whole: bool, spine_pitch: float, heading: float, out: Array, work: Array
) -> bool:
    """Write the rotation of the person's root `(3, 3)` to `out`: its heading, or the whole pelvis.

    Args:
        joints: Key points `(22, 3)`, Z up.
        whole: Whether pitch and roll of the pelvis belong to it.
        spine_pitch: Rest pitch of the spine [rad].
        heading: The heading to use where only that is wanted [rad].
        out: Out; kept where it cannot be told.
        work: Scratch `(5, 3)`.

    Returns:
        Whether it could be told.
    """
    if not whole:
        s, c = math.sin(heading), math.cos(heading)
        out[:, :] = 0.0
        out[0, 0], out[0, 1], out[1, 0], out[1, 1], out[2, 2] = c, -s, s, c, 1.0
        return True
    for k in range(3):
        work[0, k] = joints[SPINE2, k] - joints[PELVIS, k]
        work[1, k] = joints[LEFT_HIP, k] - joints[RIGHT_HIP, k]
    # the hips' line is rigid, the spine bends: make the left axis exact
    left, up, forward = work[1], work[0], work[2]
    if not unit(left, left):
        return False
    cross(left, up, forward)
    if not unit(forward, forward):
        return False
    cross(forward, left, up)
    s, c = math.sin(spine_pitch), math.cos(spine_pitch)
    for k in range(3):
        out[k, 0] = c * forward[k] + s * up[k]
        out[k, 1] = left[k]
        out[k, 2] = c * up[k] - s * forward[k]
    return True


@compiled
def clip_targets(
    table: TargetTable,
    rest: Array,
    joints: Array,
    headings: Array,
    heads: Array,
    has_heads: bool,
    offsets: Array,
    rotations: Array,
    roots: Array,
    lacking: Ints,
) -> None:
    """Write the targets of a clip, frame by frame.

    Args:
        table: How key points become targets.
        rest: Calibration `(5,)` [rad].
        joints: Key points `(T, 22, 3)`, Z up [m].
        headings: Heading of each frame `(T,)` [rad].
        heads: Head rotations in the chest `(T, 3, 3)`, or of length 1 if there are none.
        has_heads: Whether there are any.
        offsets: Out `(T, K, 3)`.
        rotations: Out `(T, K, 3, 3)`.
        roots: Out, the person's root rotation `(T, 3, 3)`.
        lacking: Out, directions that could not be told, per frame `(T,)`.
    """
    local, work = np.zeros((22, 3)), np.zeros((9, 3))
    ends, chest = np.zeros((2 * table.bones.shape[0], 3)), np.eye(3)
    ends[table.bones.shape[0] :, 2] = -1.0  # until seen, bones hang down
    for t in range(joints.shape[0]):
        if t > 0:
            offsets[t], rotations[t], roots[t] = offsets[t - 1], rotations[t - 1], roots[t - 1]
        else:
            offsets[t], rotations[t], roots[t] = 0.0, 0.0, 0.0
            for k in range(3):
                roots[t, k, k] = 1.0
                rotations[t, :, k, k] = 1.0
        root = roots[t]
        missed = 0 if root_rotation(joints[t], table.whole_pelvis, rest[2], headings[t], root, work) else 1
        for i in range(22):
            x, y, z = (
                joints[t, i, 0] - joints[t, 0, 0],
                joints[t, i, 1] - joints[t, 0, 1],
                joints[t, i, 2] - joints[t, 0, 2],
            )
            for k in range(3):
                local[i, k] = root[0, k] * x + root[1, k] * y + root[2, k] * z
        lacking[t] = missed + frame_targets(
            table,
            rest,
            local,
            heads[t if has_heads else 0],
            has_heads,
            offsets[t],
            rotations[t],
            ends,
            chest,
            work,
        )
