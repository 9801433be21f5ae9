"""Self-collision taken out of a motion: joints give way where the robot would be in itself, and no more than that.

A person's arm lies against the body; a robot whose trunk is wider has it inside. Each deep frame is a small quadratic
program: the least joint change whose linearised distances (MuJoCo's) are no deeper than allowed, within the joint
limits, repeated until it holds. Changes are eased in and out in time, and checked again, so that no frame jumps.

    motion = separate(kinematics, dof, fps=90.0)
    motion.dof, motion.unresolved       # joint angles (T, n); frames that stay deeper, (T,) bool
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bunraku.retarget.kinematics.mujoco_backend import MujocoKinematics
from bunraku.retarget.stages.filters import weighted_moving_filter

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

DEEP = 0.004
"""Frames deeper than this are changed [m]; 5 mm count as a collision in the metrics."""
AIM = 0.001
"""Depth that a changed frame is brought to [m]."""
REACH = 0.006
"""Pairs nearer than this are watched, so that getting out of one does not lead into another [m]."""
AROUND = 0.03
"""Pairs further apart than this when a frame is begun cannot meet in it [m]."""
LARGEST_STEP = 0.08
"""Largest change of a joint per step [rad]."""
STEPS = 40
"""Steps per frame at most."""
EASE = 0.12
"""Time in which a change begins and ends [s]."""
ROUNDS = 6
"""How often changed motions are checked and changed again."""


@dataclass(frozen=True)
class Separated:
    """A motion without self-collision."""

    dof: Array
    """Joint angles `(T, n)` [rad]."""
    changed: Mask
    """Frames that were changed `(T,)`."""
    unresolved: Mask
    """Frames that stay deeper than `DEEP` `(T,)`: the joint limits leave no way out."""


def separate(kinematics: MujocoKinematics, dof: Array, fps: float) -> Separated:
    """Change joint angles where the robot is in itself.

    Args:
        kinematics: The robot.
        dof: Joint angles `(T, n)` [rad].
        fps: Frames per second.
    """
    original, dof = dof, dof.copy()
    deep = kinematics.self_depths(dof) > DEEP
    pairs = kinematics.self_pairs()
    ease = max(1, round(EASE * fps))
    changed: Mask = np.zeros(len(dof), dtype=bool)
    for turn in range(ROUNDS):
        if not deep.any():
            break
        # later rounds aim for more room, since easing takes some back
        aim = AIM * (1 - turn)
        change = np.zeros_like(dof)
        last = None
        for t in np.flatnonzero(deep):
            # begin with what the frame before needed, so that neighbours leave on the same side
            start = dof[t] + change[t - 1] if last == t - 1 else dof[t]
            change[t] = (
                leave(kinematics, pairs, np.clip(start, kinematics.lower, kinematics.upper), aim) - dof[t]
            )
            last = t
        change = weighted_moving_filter(eased(change, deep, ease), max(1, ease), zero_phase=True)
        dof = np.clip(dof + change, kinematics.lower, kinematics.upper)
        moved: Mask = np.any(dof != original, axis=1)
        fresh = moved | deep
        deep = np.zeros(len(dof), dtype=bool)
        deep[fresh] = kinematics.self_depths(dof[fresh]) > DEEP
        changed |= moved
    return Separated(dof, changed, deep)


def leave(kinematics: MujocoKinematics, pairs: NDArray[np.int64], q: Array, aim: float) -> Array:
    """Return the joint angles nearest to `q` `(n,)` found at which no pair is deeper than `aim` [m]."""
    q = q.copy()
    kinematics.update(q)
    pairs = pairs[kinematics.self_distances(pairs, AROUND)[0] < AROUND]
    if len(pairs) == 0:
        return q
    for _ in range(STEPS):
        kinematics.update(q)
        distance, gradient = kinematics.self_distances(pairs, REACH)
        if distance.min() >= -aim - 1e-4:
            break
        near = np.linalg.norm(gradient, axis=1) > 1e-9
        # never more than a step's worth, so that the linearisation holds
        lack = np.minimum(-aim - distance[near], 0.004)
        q = np.clip(q + least_change(gradient[near], lack), kinematics.lower, kinematics.upper)
    return q


def least_change(gradient: Array, lack: Array) -> Array:
    """Return the shortest step `(n,)` with `gradient @ step >= lack`, at most `LARGEST_STEP` per joint.

    The dual of this quadratic program has one multiplier per pair, found by Gauss-Seidel.

    Args:
        gradient: Gradients of the distances `(P, n)` [m/rad].
        lack: How much each distance must grow `(P,)` [m]; negative: how much it may shrink.
    """
    square = (gradient * gradient).sum(axis=1) + 1e-9
    multiplier, step = np.zeros(len(lack)), np.zeros(gradient.shape[1])
    for _ in range(60):
        moved = 0.0
        for i in range(len(lack)):
            new = max(0.0, multiplier[i] + (lack[i] - gradient[i] @ step) / square[i])
            if new != multiplier[i]:
                step += (new - multiplier[i]) * gradient[i]
                moved = max(moved, abs(new - multiplier[i]) * square[i])
                multiplier[i] = new
        if moved < 1e-8:
            break
    return step * min(1.0, LARGEST_STEP / max(float(np.abs(step).max(initial=0.0)), 1e-12))


def eased(change: Array, deep: Mask, ease: int) -> Array:
    """Return changes `(T, n)` that begin and end smoothly around the deep frames, over `ease` frames each way.

    A frame outside takes the change of the nearest deep frames before and after it, weighted by a cosine of how far
    they are.
    """
    frames = len(change)
    times, at = np.arange(frames), np.flatnonzero(deep)
    place = np.searchsorted(at, times)
    before, after = at[np.maximum(place - 1, 0)], at[np.minimum(place, len(at) - 1)]
    out = np.zeros_like(change)
    weights = []
    for near in (before, after):
        away = np.minimum(np.abs(times - near) / (ease + 1), 1.0)
        weights.append(0.5 + 0.5 * np.cos(np.pi * away))
    total = np.maximum(weights[0] + weights[1], 1e-12)
    strength = np.maximum(weights[0], weights[1])
    out = (weights[0][:, None] * change[before] + weights[1][:, None] * change[after]) / total[:, None]
    out *= strength[:, None]
    out[deep] = change[deep]
    return out
