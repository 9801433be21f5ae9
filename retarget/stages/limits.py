"""Keeping joint trajectories inside limits: positions without a kink, speeds without a penalty."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.retarget.solver.jit import compiled

Array = NDArray[np.float64]

MARGIN = 0.05
"""Width of the bend before a joint limit [rad]."""


@compiled
def bend(x: float, lower: float, upper: float, margin: float) -> float:
    """Return one angle inside its limits: slope 1 up to `margin` before a limit, then falling to 0.

    A plain clamp leaves a kink, which is a jump of speed, where a trajectory runs into a limit. Here the last `margin`
    is `upper - margin exp(-(x - upper + margin) / margin)`: continuous with its slope, and never at the limit.

    Args:
        x: Angle [rad].
        lower: Lower limit [rad].
        upper: Upper limit [rad].
        margin: Width of the bend [rad]; at most a quarter of the range.
    """
    width = max(min(margin, 0.25 * (upper - lower)), 1e-12)
    if x > upper - width:
        return upper - width * math.exp(-(x - upper + width) / width)
    if x < lower + width:
        return lower + width * math.exp((x - lower - width) / width)
    return x


def soft_clamp(values: ArrayLike, lower: ArrayLike, upper: ArrayLike, margin: float = MARGIN) -> Array:
    """Return angles `(..., n)` [rad] bent smoothly (`bend`) into the limits `(n,)`."""
    values = np.asarray(values, dtype=np.float64)
    out = np.empty_like(values)
    low, high = np.broadcast_to(lower, values.shape), np.broadcast_to(upper, values.shape)
    for i in np.ndindex(values.shape):
        out[i] = bend(float(values[i]), float(low[i]), float(high[i]), margin)
    return out


def bound_steps(values: ArrayLike, bound: ArrayLike) -> Array:
    """Return the nearest-in-the-middle trajectory whose steps are at most `bound`, neither early nor late.

    The upper envelope `min_s (x_s + b |t - s|)` and the lower one `max_s (x_s - b |t - s|)` both have steps of at most
    `b`; so has their mean, which equals x where x is slow enough, and stays within the range of x.

    Args:
        values: Samples `(T, n)`.
        bound: Largest step per frame `(n,)`; infinite leaves a joint alone.
    """
    x = np.asarray(values, dtype=np.float64)
    bound = np.broadcast_to(np.asarray(bound, dtype=np.float64), x.shape[1:])
    if len(x) < 2 or (np.abs(np.diff(x, axis=0)) <= bound).all():
        return x.copy()
    high, low = x.copy(), x.copy()
    for t in range(1, len(x)):
        np.minimum(high[t], high[t - 1] + bound, out=high[t])
        np.maximum(low[t], low[t - 1] - bound, out=low[t])
    for t in range(len(x) - 2, -1, -1):
        np.minimum(high[t], high[t + 1] + bound, out=high[t])
        np.maximum(low[t], low[t + 1] - bound, out=low[t])
    return 0.5 * (high + low)
