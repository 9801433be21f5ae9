"""Passes of the solver over the frames of a clip, each one compiled call."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bunraku.retarget.solver.jit import compiled
from bunraku.retarget.solver.kernels import box_qp, forward, linearise, place, rotation_error
from bunraku.retarget.solver.problem import Packed

Array = NDArray[np.float64]


@compiled
def sweep(
    p: Packed,
    x: Array,
    offsets: Array,
    rotations: Array,
    first: int,
    last: int,
    follow: bool,
    substeps: int,
    target_step: float,
    limit_gain: float,
    bound: Array,
    pull: float,
    two_sided: bool,
) -> int:
    """Solve the frames from `first` to `last` (either may be the larger), writing joint angles into `x`.

    Args:
        p: The problem.
        x: Joint angles `(T, n)`, in and out.
        offsets: Targets relative to the anchors `(T, K, 3)`.
        rotations: Target rotations `(T, K, 3, 3)`.
        first: First frame to solve.
        last: Last frame to solve.
        follow: Whether a frame starts at its predecessor's solution (tracking) or at its own (refining).
        substeps: Solver steps per frame.
        target_step: Longest position error that counts in one step [m].
        limit_gain: Share of the way to a joint limit that one step may go.
        bound: Largest difference to the predecessor `(n,)` [rad].
        pull: Weight `pull |q_t - (q_{t-1} + q_{t+1}) / 2|^2` towards the neighbours' middle [1/rad^2].
        two_sided: Whether `bound` also holds to the successor.

    Returns:
        The number of factorisations.
    """
    frames, n = x.shape
    hessian, factor, gradient = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
    rot, pos, axes, columns = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    work, scratch, step = np.zeros((7, 3)), np.zeros(n), np.zeros(n)
    low, high, floor, ceiling = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    active = np.zeros(n, dtype=np.int8)
    towards = 1 if last >= first else -1
    count = 0
    for t in range(first, last + towards, towards):
        before, after = t - towards, t + towards
        has_before, has_after = 0 <= before < frames, 0 <= after < frames
        for i in range(n):
            floor[i], ceiling[i] = p.lower[i], p.upper[i]
            if has_before:
                floor[i] = max(floor[i], x[before, i] - bound[i])
                ceiling[i] = min(ceiling[i], x[before, i] + bound[i])
            if two_sided and has_after:
                floor[i] = max(floor[i], x[after, i] - bound[i])
                ceiling[i] = min(ceiling[i], x[after, i] + bound[i])
            if follow and has_before:
                x[t, i] = x[before, i]
        q = x[t]
        for _ in range(substeps):
            linearise(
                p, q, offsets[t], rotations[t], target_step, hessian, gradient, rot, pos, axes, columns, work
            )
            for i in range(n):
                if pull > 0.0 and has_before and has_after:
                    hessian[i, i] += 2.0 * pull
                    gradient[i] += pull * (2.0 * q[i] - x[before, i] - x[after, i])
                low[i] = max(limit_gain * (p.lower[i] - q[i]), floor[i] - q[i])
                high[i] = min(limit_gain * (p.upper[i] - q[i]), ceiling[i] - q[i])
                low[i], high[i] = min(low[i], 0.0), max(high[i], 0.0)
            count += box_qp(p.parent, hessian, gradient, low, high, active, step, factor, scratch)
            for i in range(n):
                q[i] = min(max(q[i] + step[i], floor[i]), ceiling[i])
    return count


@compiled
def costs(p: Packed, x: Array, offsets: Array, rotations: Array) -> Array:
    """Return the objective of every frame and group `(T, G)` at the joint angles `x` `(T, n)`."""
    frames, n = x.shape
    groups = p.task_group.max() + 1
    out = np.zeros((frames, groups))
    rot, pos, axes = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    tip, base, turn, f = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros((3, 3))
    for t in range(frames):
        forward(p, x[t], rot, pos, axes)
        for k in range(p.link.shape[0]):
            cost = 0.0
            if p.weights[k, 0] > 0.0:
                place(rot, pos, p.link[k], p.point[k], tip)
                place(rot, pos, p.anchor[k], p.anchor_point[k], base)
                for m in range(3):
                    error = base[m] + offsets[t, k, m] - tip[m]
                    cost += p.weights[k, 0] * error * error
            if p.weights[k, 1] > 0.0:
                rotation_error(rotations[t, k], rot[p.link[k]], p.turn[k], turn, f)
                for m in range(3):
                    cost += p.weights[k, 1] * turn[m] * turn[m]
            out[t, p.task_group[k]] += 0.5 * cost
        for i in range(n):
            out[t, p.joint_group[i]] += 0.5 * p.scalars[0] * (x[t, i] - p.rest[i]) ** 2
    return out


@compiled
def errors(p: Packed, x: Array, offsets: Array, rotations: Array) -> Array:
    """Return position [m] and orientation [rad] error of every task `(T, K, 2)` at the joint angles `x` `(T, n)`."""
    frames, n = x.shape
    out = np.zeros((frames, p.link.shape[0], 2))
    rot, pos, axes = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 3))
    tip, base, turn, f = np.zeros(3), np.zeros(3), np.zeros(3), np.zeros((3, 3))
    for t in range(frames):
        forward(p, x[t], rot, pos, axes)
        for k in range(p.link.shape[0]):
            place(rot, pos, p.link[k], p.point[k], tip)
            place(rot, pos, p.anchor[k], p.anchor_point[k], base)
            total = 0.0
            for m in range(3):
                total += (base[m] + offsets[t, k, m] - tip[m]) ** 2
            out[t, k, 0] = math.sqrt(total)
            rotation_error(rotations[t, k], rot[p.link[k]], p.turn[k], turn, f)
            out[t, k, 1] = math.sqrt(turn[0] ** 2 + turn[1] ** 2 + turn[2] ** 2)
    return out
