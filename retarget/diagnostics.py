"""What was wrong with frames of the input, by name, so that a poor result can be told from a poor input.

A crash of a retargeting shows as joints that leap or spin. Nearly always its cause is in the input: targets that no
pose within the limits reaches, key points that jump, hips that swap sides. Such frames still get finite joint angles
within limits and bounds, and are listed here.
"""

from __future__ import annotations

from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.int64]


class Degraded(IntFlag):
    """Why a frame is degraded; several reasons may hold at once."""

    NOT_FINITE = 1
    """A key point was not a number; it was taken from its neighbours in time."""
    NO_DIRECTION = 2
    """Two key points of a bone coincide; the direction of the frame before was kept."""
    NO_HEADING = 4
    """The hips are above one another or crossed; the heading was taken from the neighbours in time."""
    JUMP = 8
    """A key point moved faster against the pelvis than a person can."""
    BONE_LENGTH = 16
    """A bone is much longer or shorter than over the clip."""
    OUT_OF_REACH = 32
    """A hand, foot, elbow, knee or head stays away from its target: joint limits are in the way."""
    SPEED_BOUND = 64
    """A joint moves as fast as it may, so it may lag behind the person."""


MEANING = {
    Degraded.NOT_FINITE: "key point not finite",
    Degraded.NO_DIRECTION: "bone without a direction",
    Degraded.NO_HEADING: "heading not seen or hips crossed",
    Degraded.JUMP: "key point jumps",
    Degraded.BONE_LENGTH: "bone length changes",
    Degraded.OUT_OF_REACH: "target out of reach",
    Degraded.SPEED_BOUND: "at the joint speed bound",
}
"""Each reason in words."""

MAX_SPEED = 8.0
"""Faster than this against the pelvis a key point is taken to have jumped [m/s]; a fast punch reaches 9 at the fist."""
LENGTH_CHANGE = 0.15
"""Relative deviation from the median bone length that counts."""
REACH = 0.08
"""Position error that counts as out of reach, as a share of the farthest target's distance from its anchor (a leg)."""

BONES = ((1, 4), (4, 7), (2, 5), (5, 8), (16, 18), (18, 20), (17, 19), (19, 21))
"""Limb bones by their key points."""


def named(flags: int) -> tuple[str, ...]:
    """Return the reasons of one frame in words."""
    return tuple(words for reason, words in MEANING.items() if flags & reason)


def fill_missing(joints: Array) -> tuple[Array, Flags]:
    """Interpolate key points `(T, J, 3)` that are not finite over time; return them and the flags `(T,)`.

    A key point that is never finite is put at the mean of those that are, frame by frame.
    """
    joints = np.array(joints, dtype=np.float64)
    bad: NDArray[np.bool_] = np.logical_not(np.isfinite(joints).all(axis=-1))
    times = np.arange(len(joints))
    for j in np.flatnonzero(bad.any(axis=0)):
        good = ~bad[:, j]
        if good.any():
            for axis in range(3):
                joints[bad[:, j], j, axis] = np.interp(times[bad[:, j]], times[good], joints[good, j, axis])
    never: NDArray[np.bool_] = np.logical_not(np.isfinite(joints).all(axis=-1))
    if never.any():
        centre = np.nan_to_num(np.nanmean(np.where(never[..., None], np.nan, joints), axis=1))
        joints = np.where(never[..., None], centre[:, None], joints)
    return joints, np.where(bad.any(axis=1), int(Degraded.NOT_FINITE), 0).astype(np.int64)


def input_flags(joints: Array, fps: float) -> Flags:
    """Return what is wrong with key points `(T, J, 3)`: jumps and changing bone lengths, `(T,)`."""
    flags = np.zeros(len(joints), dtype=np.int64)
    local = joints - joints[:, :1]
    speed = np.linalg.norm(np.diff(local, axis=0), axis=-1).max(axis=1) * fps
    flags[1:][speed > MAX_SPEED] |= Degraded.JUMP
    starts, ends = np.array(BONES).T
    lengths = np.linalg.norm(joints[:, ends] - joints[:, starts], axis=-1)
    median = np.maximum(np.median(lengths, axis=0), 1e-9)
    flags[(np.abs(lengths / median - 1.0) > LENGTH_CHANGE).any(axis=1)] |= Degraded.BONE_LENGTH
    return flags


def solution_flags(x: Array, errors: Array, offsets: Array, weights: Array, bound: Array | None) -> Flags:
    """Return what is wrong with solved joint angles `(T, n)`: targets out of reach, joints at the speed bound, `(T,)`.

    Args:
        x: Joint angles `(T, n)` [rad].
        errors: Position error of each task `(T, K)` [m].
        offsets: Targets relative to their anchors `(T, K, 3)` [m].
        weights: Squared position weight of each task `(K,)`.
        bound: Largest joint step `(n,)` [rad], or None.
    """
    flags = np.zeros(len(x), dtype=np.int64)
    far = errors > REACH * np.linalg.norm(offsets, axis=-1).max(axis=1, keepdims=True)
    flags[far[:, weights > 0.0].any(axis=1)] |= Degraded.OUT_OF_REACH
    if bound is not None and len(x) > 1:
        flags[1:][(np.abs(np.diff(x, axis=0)) >= bound * (1.0 - 1e-6)).any(axis=1)] |= Degraded.SPEED_BOUND
    return flags
