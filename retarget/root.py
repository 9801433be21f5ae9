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
from bunraku.retarget.footing import SHORTEST_STANCE, clean_stances, foot_targets, runs_of
from bunraku.retarget.legs import Leg
from bunraku.retarget.solver.tree import Tree

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

CREEP = 0.12
"""A standing foot is led along once the person's has gone further than this share of the robot's leg."""
EASY = 0.96
"""A swinging leg is used freely to this share of its length, and beyond with more and more reserve."""
STRETCH = 0.995
"""A leg is used to this share of its length."""
ROUNDS = 2
"""How often the legs are solved, each time from what is known of where the soles came to lie."""
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
    root_pos = root_pos - _lowering(legs, dof, root_pos, rot, targets, fps)[:, None] * [0.0, 0.0, 1.0]
    targets = _within_reach(legs, dof, root_pos, rot, targets, stance, fps)
    wanted = targets[..., 2].min(axis=2)
    for _ in range(ROUNDS):
        local = np.einsum("tji,tfcj->tfci", rot, targets - root_pos[:, None, None])
        for f, leg in enumerate(legs):
            dof = leg.solve(dof, local[:, f])
        soles = world_soles(legs, dof, root_pos, root_quat)
        # a foot that cannot lie as flat as it should still touches the floor with its lowest corner
        lowest = soles[..., 2].min(axis=2)
        targets[..., 2] += np.where(stance | (lowest < 0.0), wanted - lowest, 0.0)[..., None]
    return Grounded(dof, root_pos, root_quat, soles, stance)


def ground_offset(soles: Array, stance: Mask) -> float:
    """Return by how much to raise a motion so that its standing feet are on the floor [m].

    The median of the lowest corners in stance; without any, the lowest corner of the clip.

    Args:
        soles: Corners of the soles `(T, F, 4, 3)` [m].
        stance: Where each foot stands `(T, F)`.
    """
    lowest = soles[..., 2].min(axis=-1)
    return -float(np.median(lowest[stance]) if stance.any() else lowest.min())


def _lowering(
    legs: tuple[Leg, ...], dof: Array, root_pos: Array, rot: Array, targets: Array, fps: float
) -> Array:
    """Return how far the root must go down `(T,)` [m] for all legs to reach, smooth in time."""
    needed = np.zeros(len(dof))
    for f, leg in enumerate(legs):
        hip, ankle, reach = _ends(leg, dof, root_pos, rot, targets[:, f])
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


def _within_reach(
    legs: tuple[Leg, ...],
    dof: Array,
    root_pos: Array,
    rot: Array,
    targets: Array,
    stance: Mask,
    fps: float,
) -> Array:
    """Return the targets with swinging feet drawn to the hip where a leg would snap straight, smoothly."""
    out = targets.copy()
    for f, leg in enumerate(legs):
        hip, ankle, reach = _ends(leg, dof, root_pos, rot, targets[:, f])
        distance = np.linalg.norm(ankle - hip, axis=1)
        over = np.maximum(distance / reach - EASY, 0.0)
        room = STRETCH - EASY
        wanted = reach * (EASY + room * np.tanh(over / room))
        pull = np.where(over > 0.0, distance - wanted, 0.0) * _inside(~stance[:, f], SHORTEST_STANCE * fps)
        out[:, f] += (pull / np.maximum(distance, 1e-9))[:, None, None] * (hip - ankle)[:, None]
    out[..., 2] -= np.minimum(0.0, out[..., 2].min(axis=2, keepdims=True))
    return out


def _inside(mask: Mask, ramp: float) -> Array:
    """Return 1 well inside the runs of a mask `(T,)`, 0 outside, smooth over `ramp` frames between."""
    weight = np.zeros(len(mask))
    for first, last in runs_of(mask):
        t = np.arange(first, last)
        before = (t - first + 1) / ramp if first > 0 else np.full(len(t), 1.0)
        after = (last - t) / ramp if last < len(mask) else np.full(len(t), 1.0)
        s = np.clip(np.minimum(before, after), 0.0, 1.0)
        weight[first:last] = s * s * (3.0 - 2.0 * s)
    return weight


def _ends(leg: Leg, dof: Array, root_pos: Array, rot: Array, target: Array) -> tuple[Array, Array, float]:
    """Return hip and ankle `(T, 3)` in the world when the sole is at its target, and the length of the leg [m]."""
    _, _, _, origins = leg.walk(dof)
    hips, reach = leg.hip_to_sole(dof)
    hip = root_pos + np.einsum("tij,tj->ti", rot, hips)
    # the ankle keeps its place in the sole as it was before the root moved
    local_ankle, local_sole = origins[:, -1], leg.corners(dof)
    ours, theirs = _axes(local_sole), _axes(target)
    in_sole = np.einsum("tji,tj->ti", ours, local_ankle - local_sole.mean(axis=1))
    ankle = target.mean(axis=1) + np.einsum("tij,tj->ti", theirs, in_sole)
    return hip, ankle, reach


def _axes(sole: Array) -> Array:
    """Return the rotation `(T, 3, 3)` of a sole: forward, left, up as columns."""
    forward = sole[:, 0] - sole[:, 3]
    left = sole[:, 0] - sole[:, 1]
    forward = forward / np.linalg.norm(forward, axis=1, keepdims=True)
    left = left / np.linalg.norm(left, axis=1, keepdims=True)
    return np.stack([forward, left, np.cross(forward, left)], axis=2)
