"""A root that moves: feet stand where the person's stand, on the floor, and the pelvis keeps its smooth way.

A human trajectory scaled to the robot slides, since root and legs do not have quite the same scale, and dips into the
floor. Moving the root to hold the stance foot would shake it. Here the legs give way instead:

1. the whole motion is raised or lowered so that standing feet are on the floor (median over contacts);
2. a standing foot is held: its toes where they were on average, its sole level unless the heel is clearly up, its
   lowest corner on the floor; a foot that creeps further than a person's would is led along;
3. between two stances the correction goes smoothly from one to the next; no sole goes below the floor;
4. where a leg is too short, the root goes down, as slowly as it can;
5. the legs are solved for these soles; all other joints stay.

    grounded = ground_root(ROBOT, dof, root_pos, root_quat, contact, fps=90.0)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import to_matrix
from bunraku.humanoid import HumanoidSpec
from bunraku.retarget.legs import Leg
from bunraku.retarget.solver.tree import Tree

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SHORTEST_STANCE = 0.12
"""Contacts shorter than this are not stances [s]."""
SHORTEST_SWING = 0.08
"""Gaps between contacts shorter than this are not swings [s]."""
CREEP = 0.08
"""A standing foot is led along once the person's has gone further than this share of the robot's leg."""
LEVEL = 0.15
"""A standing sole within about this angle of level is laid flat [rad]."""
STRETCH = 0.995
"""A leg is used to this share of its length."""
EASE = 0.15
"""Time in which the root begins to give way to a short leg [s]."""


@dataclass(frozen=True)
class Grounded:
    """A motion whose feet are on the floor."""

    dof: Array
    """Joint angles `(T, n)` [rad]."""
    root_pos: Array
    """Position of the root body `(T, 3)` [m]."""
    root_quat: Array
    """Its orientation `(T, 4)`."""
    soles: Array
    """Corners of the soles in the world `(T, 2, 4, 3)` [m]."""
    stance: Mask
    """Where a foot was held `(T, 2)`."""


def resample_contact(contact: Mask, fps_in: float, fps_out: float, frames: int) -> Mask:
    """Return contact at another frame rate: a frame is in contact where both frames around it are.

    Args:
        contact: Contact of each foot `(T, F)` at `fps_in`.
        fps_in: Frame rate of `contact` [1/s].
        fps_out: Frame rate wanted [1/s].
        frames: How many frames.
    """
    times = np.minimum(np.arange(frames) * fps_in / fps_out, len(contact) - 1)
    before = np.floor(times + 1e-9).astype(np.int64)
    after = np.ceil(times - 1e-9).astype(np.int64)
    both: Mask = contact[before] & contact[after]
    return both


def world_soles(legs: tuple[Leg, ...], dof: Array, root_pos: Array, root_quat: Array) -> Array:
    """Return the corners of all soles in the world `(T, F, 4, 3)` [m]."""
    rot = to_matrix(root_quat)
    local = np.stack([leg.corners(dof) for leg in legs], axis=1)
    soles: Array = root_pos[:, None, None] + np.einsum("tij,tfcj->tfci", rot, local)
    return soles


def ground_root(
    robot: HumanoidSpec, dof: Array, root_pos: Array, root_quat: Array, contact: Mask, fps: float
) -> Grounded:
    """Put the feet of a motion on the floor and hold those that stand.

    Args:
        robot: The robot.
        dof: Joint angles `(T, n)` [rad], in the order of `robot.joints`.
        root_pos: Scaled way of the root body `(T, 3)` [m].
        root_quat: Orientation of the root body `(T, 4)`.
        contact: Where each foot should stand `(T, 2)` (`metrics.ground_contact`, `resample_contact`).
        fps: Frame rate [1/s].
    """
    tree = Tree.from_model(robot.load(root="fixed").compile(), robot.root_body)
    legs = tuple(Leg(tree, foot) for foot in robot.feet)
    stance = np.stack([clean_stances(column, fps) for column in contact.T], axis=1)
    root_pos = root_pos + [0.0, 0.0, ground_offset(world_soles(legs, dof, root_pos, root_quat), stance)]
    soles = world_soles(legs, dof, root_pos, root_quat)
    creep = CREEP * legs[0].hip_to_sole(dof[:1])[1]
    targets = np.stack(
        [foot_targets(soles[:, f], stance[:, f], fps, creep) for f in range(len(legs))], axis=1
    )
    rot = to_matrix(root_quat)
    root_pos = root_pos - _lowering(legs, dof, root_pos, rot, soles, targets, fps)[:, None] * [0.0, 0.0, 1.0]
    local = np.einsum("tji,tfcj->tfci", rot, targets - root_pos[:, None, None])
    for f, leg in enumerate(legs):
        dof = leg.solve(dof, local[:, f])
    return Grounded(dof, root_pos, root_quat, world_soles(legs, dof, root_pos, root_quat), stance)


def clean_stances(contact: Mask, fps: float) -> Mask:
    """Return the contact of one foot `(T,)` without the gaps and contacts that are too short to be steps."""
    filled = contact.copy()
    for first, last in _runs(~contact):
        if 0 < first and last < len(contact) and last - first < SHORTEST_SWING * fps:
            filled[first:last] = True
    for first, last in _runs(filled):
        if last - first < SHORTEST_STANCE * fps:
            filled[first:last] = False
    return filled


def ground_offset(soles: Array, stance: Mask) -> float:
    """Return by how much to raise a motion so that its standing feet are on the floor [m].

    The median of the lowest corners in stance; without any, the lowest corner of the clip.

    Args:
        soles: Corners of the soles `(T, F, 4, 3)` [m].
        stance: Where each foot stands `(T, F)`.
    """
    lowest = soles[..., 2].min(axis=-1)
    return -float(np.median(lowest[stance]) if stance.any() else lowest.min())


def foot_targets(sole: Array, stance: Mask, fps: float, creep: float) -> Array:
    """Return where the corners of one sole should be `(T, 4, 3)` [m].

    Args:
        sole: Where they are `(T, 4, 3)` [m].
        stance: Where the foot stands `(T,)`.
        fps: Frame rate [1/s].
        creep: How far a standing foot may be held from where it is [m].
    """
    toe, yaw, pitch, roll = _decompose(sole)
    held_toe, held = toe.copy(), np.stack([yaw, pitch, roll], axis=1)
    free = held.copy()
    for first, last in _runs(stance):
        span = slice(first, last)
        held[span, 0] = np.median(yaw[span])
        held[span, 1] = pitch[span] - LEVEL * np.tanh(pitch[span] / LEVEL)
        held[span, 2] = 0.0
        held_toe[span, :2] = _led(toe[span, :2], creep)
        # the lowest corner on the floor: with the heel up that is the toe, else the heel
        length = _length(sole)
        held_toe[span, 2] = np.maximum(0.0, -length * np.sin(held[span, 1]))
    moved = _bridge(held_toe - toe, stance, fps)
    turned = _bridge(held - free, stance, fps)
    angles = free + turned
    target = _compose(sole, toe + moved, angles)
    below = np.minimum(0.0, target[..., 2].min(axis=1))
    target[..., 2] -= below[:, None]
    return target


def _decompose(sole: Array) -> tuple[Array, Array, Array, Array]:
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


def _compose(sole: Array, toe: Array, angles: Array) -> Array:
    """Return the corners `(T, 4, 3)` of a sole of the same size with another toe and other angles `(T, 3)`."""
    yaw, pitch, roll = angles.T
    cy, sy, cp, sp, cr, sr = np.cos(yaw), np.sin(yaw), np.cos(pitch), np.sin(pitch), np.cos(roll), np.sin(roll)
    forward = np.stack([cy * cp, sy * cp, -sp], axis=1)
    level_left = np.stack([-sy, cy, np.zeros_like(yaw)], axis=1)
    up = np.cross(forward, level_left)
    left = cr[:, None] * level_left + sr[:, None] * up
    length, width = _length(sole), float(np.linalg.norm(sole[0, 0] - sole[0, 1]))
    back = np.array([0.0, 0.0, -length, -length])
    side = 0.5 * width * np.array([1.0, -1.0, -1.0, 1.0])
    corners: Array = (
        toe[:, None] + back[None, :, None] * forward[:, None] + side[None, :, None] * left[:, None]
    )
    return corners


def _length(sole: Array) -> float:
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
    """Return a correction `(T, k)` known in stances, carried over swings by cubics that leave no jump in speed."""
    out = np.zeros_like(correction)
    out[stance] = correction[stance]
    runs = _runs(stance)
    if not runs:
        return out
    slopes = {}
    for first, last in runs:
        ends = correction[first:last]
        slopes[first] = _edge_slope(ends)
        slopes[last - 1] = -_edge_slope(ends[::-1])
    begin, end = runs[0][0], runs[-1][1] - 1
    fade = SHORTEST_STANCE * fps
    for t in range(begin):
        out[t] = correction[begin] - slopes[begin] * fade * (1.0 - np.exp((t - begin) / fade))
    for t in range(end + 1, len(out)):
        out[t] = correction[end] + slopes[end] * fade * (1.0 - np.exp((end - t) / fade))
    for (_, left), (right, _) in zip(runs, runs[1:], strict=False):
        a, b = left - 1, right
        s = (np.arange(a + 1, b) - a)[:, None] / (b - a)
        hold, go = (b - a) * slopes[a], (b - a) * slopes[b]
        out[a + 1 : b] = (
            (1 + 2 * s) * (1 - s) ** 2 * correction[a]
            + s * (1 - s) ** 2 * hold
            + s * s * (3 - 2 * s) * correction[b]
            + s * s * (s - 1) * go
        )
    return out


def _edge_slope(values: Array) -> Array:
    """Return the slope per frame at the beginning of `(T, k)`, from a few frames."""
    count = min(4, len(values))
    if count < 2:
        return np.zeros(values.shape[1])
    slope: Array = (values[count - 1] - values[0]) / (count - 1)
    return slope


def _lowering(
    legs: tuple[Leg, ...], dof: Array, root_pos: Array, rot: Array, soles: Array, targets: Array, fps: float
) -> Array:
    """Return how far the root must go down `(T,)` [m] for all legs to reach, smooth in time."""
    needed = np.zeros(len(dof))
    for f, leg in enumerate(legs):
        hips, reach = leg.hip_to_sole(dof)
        hip = root_pos + np.einsum("tij,tj->ti", rot, hips)
        ankle = _ankles(leg, dof, root_pos, rot, soles[:, f], targets[:, f])
        flat = np.linalg.norm((ankle - hip)[:, :2], axis=1)
        high = np.sqrt(np.maximum((STRETCH * reach) ** 2 - flat**2, 0.0))
        standing = np.abs(targets[:, f, :, 2].min(axis=1)) < 1e-6
        needed = np.maximum(needed, np.where(standing, hip[:, 2] - ankle[:, 2] - high, 0.0))
    half = max(1, round(EASE * fps))
    padded = np.pad(np.maximum(needed, 0.0), 2 * half, mode="edge")
    widest = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1).max(axis=1)
    window = np.hanning(2 * half + 3)[1:-1]
    smooth: Array = np.convolve(widest, window / window.sum(), mode="valid")
    return smooth


def _ankles(leg: Leg, dof: Array, root_pos: Array, rot: Array, sole: Array, target: Array) -> Array:
    """Return where the last joint of a leg is `(T, 3)` when its sole is at the target."""
    _, _, _, origins = leg.walk(dof)
    ankle = root_pos + np.einsum("tij,tj->ti", rot, origins[:, -1])
    ours, theirs = _axes(sole), _axes(target)
    local = np.einsum("tji,tj->ti", ours, ankle - sole.mean(axis=1))
    moved: Array = target.mean(axis=1) + np.einsum("tij,tj->ti", theirs, local)
    return moved


def _axes(sole: Array) -> Array:
    """Return the rotation `(T, 3, 3)` of a sole: forward, left, up as columns."""
    forward = sole[:, 0] - sole[:, 3]
    left = sole[:, 0] - sole[:, 1]
    forward = forward / np.linalg.norm(forward, axis=1, keepdims=True)
    left = left / np.linalg.norm(left, axis=1, keepdims=True)
    return np.stack([forward, left, np.cross(forward, left)], axis=2)


def _runs(mask: Mask) -> list[tuple[int, int]]:
    """Return the runs of true values as (first, one past the last)."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
