"""A second pass over the whole clip: least acceleration near a motion, within speed, acceleration and joint limits.

For each joint on its own,

    minimise  sum (x_t - q_t)^2 + smoothness sum (second difference of x)^2
    subject to  lower <= x <= upper,  |first difference| <= speed / fps,  |second difference| <= acceleration / fps^2

It always has a solution, since standing still keeps all limits. ADMM finds it; what the last iterate still breaks, by a
thousandth or so, is taken out by drawing the whole joint that much towards standing still, so the limits hold exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.errors import BunrakuError
from bunraku.retarget.solver.jit import compiled

Array = NDArray[np.float64]

ITERATIONS = 600
MARGIN = 1e-9


def calm(
    dof: ArrayLike,
    fps: float,
    lower: Array,
    upper: Array,
    speed: ArrayLike = np.inf,
    acceleration: ArrayLike = np.inf,
    smoothness: float = 0.0,
) -> Array:
    """Return the nearest calm motion `(T, n)` [rad].

    Args:
        dof: Joint angles `(T, n)` [rad].
        fps: Frames per second.
        lower: Lower joint limits `(n,)` [rad].
        upper: Upper joint limits `(n,)` [rad].
        speed: Largest speed, one or for each joint `(n,)` [rad/s].
        acceleration: Largest acceleration, one or for each joint `(n,)` [rad/s^2].
        smoothness: Weight of the squared second differences.
    """
    q = np.ascontiguousarray(np.clip(np.asarray(dof, dtype=np.float64), lower, upper).T)
    steps = np.broadcast_to(np.asarray(speed, dtype=np.float64) / fps, len(q)) * (1.0 - MARGIN)
    bends = np.broadcast_to(np.asarray(acceleration, dtype=np.float64) / fps**2, len(q)) * (1.0 - MARGIN)
    if not ((steps > 0.0).all() and (bends > 0.0).all() and smoothness >= 0.0):
        raise BunrakuError("limits of speed and acceleration are positive, and smoothness is not negative")
    out = np.empty_like(q)
    for i, angles in enumerate(q):
        first, second = np.abs(np.diff(angles)), np.abs(np.diff(angles, 2))
        idle = smoothness == 0.0 and (first <= steps[i]).all() and (second <= bends[i]).all()
        if idle or len(angles) < 3:
            out[i] = angles
        else:
            admm(angles, lower[i], upper[i], steps[i], bends[i], smoothness, ITERATIONS, out[i])
            out[i] = drawn_in(out[i], lower[i], upper[i], steps[i], bends[i])
    return out.T.copy()


def drawn_in(x: Array, lower: float, upper: float, step: float, bend: float) -> Array:
    """Return one joint `(T,)` drawn towards standing still until it keeps its limits."""
    still = float(np.clip(x.mean(), lower, upper))
    away = x - still
    share = min(
        1.0,
        step / max(float(np.abs(np.diff(x)).max()), 1e-300),
        bend / max(float(np.abs(np.diff(x, 2)).max()), 1e-300),
        (upper - still) / max(float(away.max()), 1e-300),
        (still - lower) / max(float(-away.min()), 1e-300),
    )
    return np.clip(still + share * away, lower, upper)


@compiled
def admm(
    q: Array,
    lower: float,
    upper: float,
    step: float,
    bend: float,
    smoothness: float,
    iterations: int,
    x: Array,
) -> None:
    """Write the solution for one joint to `x` `(T,)`.

    The splitting variables are the angle, its first and its second difference, each scaled so that a limit is about as
    large as the others; the matrix has five diagonals and is factored once.
    """
    n = q.shape[0]
    # scaled differences: bending is small where stepping is, so it weighs more
    w1 = 1.0
    w2 = 4.0
    rho = 1.0
    main, one, two = (
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
    )  # diagonals of the matrix: (i, i), (i, i - 1), (i, i - 2)
    for i in range(n):
        main[i] = 1.0 + rho
    weight = smoothness + rho * w2 * w2
    for t in range(1, n):
        main[t] += rho * w1 * w1
        main[t - 1] += rho * w1 * w1
        one[t] -= rho * w1 * w1
    for t in range(2, n):
        main[t] += weight
        main[t - 1] += 4.0 * weight
        main[t - 2] += weight
        one[t] -= 2.0 * weight
        one[t - 1] -= 2.0 * weight
        two[t] += weight
    # L D L' in place
    for i in range(n):
        if i > 1:
            two[i] /= main[i - 2]
        if i > 0:
            if i > 1:
                one[i] -= two[i] * main[i - 2] * one[i - 1]
            one[i] /= main[i - 1]
            main[i] -= one[i] * one[i] * main[i - 1]
        if i > 1:
            main[i] -= two[i] * two[i] * main[i - 2]
    z0, z1, z2 = q.copy(), np.zeros(n), np.zeros(n)
    u0, u1, u2 = np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(n):
        x[i] = q[i]
    for _ in range(iterations):
        for t in range(n):
            x0 = x[t] + u0[t]
            z0[t] = min(max(x0, lower), upper)
            u0[t] = x0 - z0[t]
            if t > 0:
                x1 = w1 * (x[t] - x[t - 1]) + u1[t]
                z1[t] = min(max(x1, -w1 * step), w1 * step)
                u1[t] = x1 - z1[t]
            if t > 1:
                x2 = w2 * (x[t] - 2.0 * x[t - 1] + x[t - 2]) + u2[t]
                z2[t] = min(max(x2, -w2 * bend), w2 * bend)
                u2[t] = x2 - z2[t]
        for t in range(n):
            x[t] = q[t] + rho * (z0[t] - u0[t])
        for t in range(1, n):
            pull = rho * w1 * (z1[t] - u1[t])
            x[t] += pull
            x[t - 1] -= pull
        for t in range(2, n):
            pull = rho * w2 * (z2[t] - u2[t])
            x[t] += pull
            x[t - 1] -= 2.0 * pull
            x[t - 2] += pull
        for i in range(n):
            if i > 0:
                x[i] -= one[i] * x[i - 1]
            if i > 1:
                x[i] -= two[i] * x[i - 2]
        for i in range(n):
            x[i] /= main[i]
        for i in range(n - 1, -1, -1):
            if i + 1 < n:
                x[i] -= one[i + 1] * x[i + 1]
            if i + 2 < n:
                x[i] -= two[i + 2] * x[i + 2]
