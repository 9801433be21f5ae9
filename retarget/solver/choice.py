"""Which of several solutions each limb follows: the cheapest path through them, jumps priced."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bunraku.retarget.solver.jit import compiled

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled
def choose(candidates: Array, cost: Array, joint_group: Ints, price: float, out: Array) -> None:
    """Write to `out` `(T, n)`, limb by limb, the path through the candidates with the least cost and jumps (Viterbi).

    A path costs the objective of its frames, plus `price` times the squared joint step wherever it takes one.

    Args:
        candidates: Joint angles of each candidate `(C, T, n)`.
        cost: Objective of each group `(C, T, G)`.
        joint_group: Group of each joint `(n,)`.
        price: Cost of a step [1/rad^2].
        out: The chosen joint angles.
    """
    count, frames, n = candidates.shape
    total, fresh = np.zeros(count), np.zeros(count)
    back = np.zeros((frames, count), dtype=np.int8)
    for g in range(cost.shape[2]):
        for c in range(count):
            total[c] = cost[c, 0, g]
        for t in range(1, frames):
            for c in range(count):
                least, origin = np.inf, 0
                for b in range(count):
                    step = 0.0
                    for i in range(n):
                        if joint_group[i] == g:
                            step += (candidates[c, t, i] - candidates[b, t - 1, i]) ** 2
                    if total[b] + price * step < least:
                        least, origin = total[b] + price * step, b
                fresh[c] = least + cost[c, t, g]
                back[t, c] = origin
            total[:] = fresh
        pick = 0
        for c in range(1, count):
            if total[c] < total[pick]:
                pick = c
        for t in range(frames - 1, -1, -1):
            for i in range(n):
                if joint_group[i] == g:
                    out[t, i] = candidates[pick, t, i]
            pick = back[t, pick]
