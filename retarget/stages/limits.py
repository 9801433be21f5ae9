"""Keeping joint trajectories inside limits: positions without a kink, speeds without a penalty."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def soft_clamp(values: ArrayLike, lower: ArrayLike, upper: ArrayLike, margin: float = 0.05) -> Array:
    """Return values inside the limits, bent smoothly: slope 1 up to `margin` before a limit, then falling to 0.

    A plain clamp leaves a kink, which is a jump of speed, where a trajectory runs into a limit. Here the last `margin`
    is `upper - margin exp(-(x - upper + margin) / margin)`: continuous with its slope, and never at the limit.

    Args:
        values: Angles `(..., n)` [rad].
        lower: Lower limits `(n,)`.
        upper: Upper limits `(n,)`.
        margin: Width of the bend [rad]; at most a quarter of the range.
    """
    x, lower, upper = (np.asarray(v, dtype=np.float64) for v in (values, lower, upper))
    width = np.maximum(np.minimum(margin, 0.25 * (upper - lower)), 1e-12)
    over = np.maximum(x - (upper - width), 0.0)
    under = np.maximum((lower + width) - x, 0.0)
    bent_high = upper - width * np.exp(-over / width)
    bent_low = lower + width * np.exp(-under / width)
    return np.clip(np.where(over > 0.0, bent_high, np.where(under > 0.0, bent_low, x)), lower, upper)


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
