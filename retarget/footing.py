"""Where the sole of one foot should be: held while it stands, carried smoothly from stance to stance.

A sole is its four corners; it is taken apart into the middle of its front edge, yaw, pitch (heel up positive) and
roll, since people stand on their toes long after the heel is up.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SHORTEST_STANCE = 0.12
"""Contacts shorter than this are not stances [s]."""
SHORTEST_SWING = 0.08
"""Gaps between contacts shorter than this are not swings [s]."""
LEVEL = 0.15
"""A standing sole within about this angle of level is laid flat [rad]."""
FADE = 0.06
"""Time in which the speed of a correction dies away once the foot has left the floor [s]."""


def clean_stances(contact: Mask, fps: float) -> Mask:
    """Return the contact of one foot `(T,)` without the gaps and contacts that are too short to be steps."""
    filled = contact.copy()
    for first, last in runs_of(~contact):
        if first > 0 and last < len(contact) and last - first < SHORTEST_SWING * fps:
            filled[first:last] = True
    for first, last in runs_of(filled):
        if last - first < SHORTEST_STANCE * fps:
            filled[first:last] = False
    return filled


def foot_targets(sole: Array, stance: Mask, fps: float, creep: float) -> Array:
    """Return where the corners of one sole should be `(T, 4, 3)` [m].

    Args:
        sole: Where they are `(T, 4, 3)` [m].
        stance: Where the foot stands `(T,)`.
        fps: Frame rate [1/s].
        creep: How far a standing foot may be held from where it is [m].
    """
    toe, yaw, pitch, roll = decompose_sole(sole)
    held_toe, held = toe.copy(), np.stack([yaw, pitch, roll], axis=1)
    free = held.copy()
    for first, last in runs_of(stance):
        span = slice(first, last)
        held[span, 0] = np.median(yaw[span])
        held[span, 1] = pitch[span] - LEVEL * np.tanh(pitch[span] / LEVEL)
        held[span, 2] = 0.0
        held_toe[span, :2] = _led(toe[span, :2], creep)
        # the lowest corner on the floor: with the heel up that is the toe, else the heel
        length = sole_length(sole)
        held_toe[span, 2] = np.maximum(0.0, -length * np.sin(held[span, 1]))
    moved = _bridge(held_toe - toe, stance, fps)
    turned = _bridge(held - free, stance, fps)
    angles = free + turned
    target = compose_sole(sole, toe + moved, angles)
    below = np.minimum(0.0, target[..., 2].min(axis=1))
    target[..., 2] -= below[:, None]
    return target


def decompose_sole(sole: Array) -> tuple[Array, Array, Array, Array]:
    """Return the middle of the front edge `(T, 3)`, yaw, pitch (heel up positive) and roll `(T,)` of a sole."""
    toe = sole[:, :2].mean(axis=1)
    forward = toe - sole[:, 2:].mean(axis=1)
    forward /= np.linalg.norm(forward, axis=-1, keepdims=True)
    left = sole[:, 0] - sole[:, 1]
    left /= np.linalg.norm(left, axis=-1, keepdims=True)
    yaw = np.unwrap(np.arctan2(forward[:, 1], forward[:, 0]))
    pitch = -np.arcsin(np.clip(forward[:, 2], -1.0, 1.0))
    level_left = np.stack([-np.sin(yaw), np.cos(yaw), np.zeros_like(yaw)], axis=1)
    roll = np.arctan2((np.cross(level_left, left) * forward).sum(axis=1), (level_left * left).sum(axis=1))
    return toe, yaw, pitch, roll


def compose_sole(sole: Array, toe: Array, angles: Array) -> Array:
    """Return the corners `(T, 4, 3)` of a sole of the same size with another toe and other angles `(T, 3)`."""
    yaw, pitch, roll = angles.T
    cy, sy, cp, sp, cr, sr = (
        np.cos(yaw),
        np.sin(yaw),
        np.cos(pitch),
        np.sin(pitch),
        np.cos(roll),
        np.sin(roll),
    )
    forward = np.stack([cy * cp, sy * cp, -sp], axis=1)
    level_left = np.stack([-sy, cy, np.zeros_like(yaw)], axis=1)
    up = np.cross(forward, level_left)
    left = cr[:, None] * level_left + sr[:, None] * up
    length, width = sole_length(sole), float(np.linalg.norm(sole[0, 0] - sole[0, 1]))
    back = np.array([0.0, 0.0, -length, -length])
    side = 0.5 * width * np.array([1.0, -1.0, -1.0, 1.0])
    corners: Array = (
        toe[:, None] + back[None, :, None] * forward[:, None] + side[None, :, None] * left[:, None]
    )
    return corners


def sole_length(sole: Array) -> float:
    """Return the length of a sole from its corners `(T, 4, 3)` [m]."""
    return float(np.linalg.norm(sole[0, 0] - sole[0, 3]))


def _led(path: Array, creep: float) -> Array:
    """Return a path `(T, 2)` that stands still unless the given one is further than `creep` away, then is led along."""
    held = np.empty_like(path)
    here = path[0] + np.clip(np.median(path, axis=0) - path[0], -creep, creep)
    for t, point in enumerate(path):
        away = point - here
        distance = np.linalg.norm(away)
        if distance > creep:
            here = here + away * (1.0 - creep / distance)
        held[t] = here
    return held


def _bridge(correction: Array, stance: Mask, fps: float) -> Array:
    """Return a correction `(T, k)` known in stances, carried over swings without a jump in speed."""
    out = np.zeros_like(correction)
    out[stance] = correction[stance]
    runs = runs_of(stance)
    if not runs:
        return out
    slopes = {}
    for first, last in runs:
        ends = correction[first:last]
        slopes[first] = _edge_slope(ends)
        slopes[last - 1] = -_edge_slope(ends[::-1])
    fade = FADE * fps

    def after(t: Array, edge: int) -> Array:
        """Return the correction gone on from an edge, `t` frames away from it: its speed dies away."""
        away = np.sign(t) * fade * (1.0 - np.exp(-np.abs(t) / fade))
        gone_on: Array = correction[edge] + slopes[edge] * away
        return gone_on

    frames = np.arange(float(len(out)))[:, None]
    begin, end = runs[0][0], runs[-1][1] - 1
    out[:begin] = after(frames[:begin] - begin, begin)
    out[end + 1 :] = after(frames[end + 1 :] - end, end)
    for (_, left), (right, _) in itertools.pairwise(runs):
        a, b = left - 1, right
        t = frames[a + 1 : b]
        s = (t - a) / float(b - a)
        s = s**3 * (10.0 - 15.0 * s + 6.0 * s * s)
        out[a + 1 : b] = (1.0 - s) * after(t - a, a) + s * after(t - b, b)
    return out


def _edge_slope(values: Array) -> Array:
    """Return the slope per frame at the beginning of `(T, k)`, from a few frames."""
    count = min(4, len(values))
    if count < 2:
        return np.zeros(values.shape[1])
    slope: Array = (values[count - 1] - values[0]) / (count - 1)
    return slope


def runs_of(mask: Mask) -> list[tuple[int, int]]:
    """Return the runs of true values as (first, one past the last)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
