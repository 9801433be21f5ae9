"""Smoothing over time, along the first axis: Savitzky-Golay for key points, a weighted moving mean for joints."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.errors import BunrakuError

Array = NDArray[np.float64]


def savitzky_golay(values: ArrayLike, window: int = 7, order: int = 3) -> Array:
    """Fit a polynomial to each window of frames and return its middle; the ends lie on the first and last fit.

    Args:
        values: Samples `(T, ...)`.
        window: Frames per fit, odd; shortened for clips that are shorter.
        order: Degree of the polynomial, below `window`.
    """
    values = np.asarray(values, dtype=np.float64)
    if window % 2 == 0 or window <= order:
        raise BunrakuError(
            f"a Savitzky-Golay window is odd and longer than its order; got {window} and {order}"
        )
    frames = len(values)
    window = min(window, frames if frames % 2 else frames - 1)
    if window <= order:
        return values.copy()
    half = window // 2
    base = np.arange(-half, half + 1)[:, None] ** np.arange(order + 1)
    hat = base @ np.linalg.pinv(base)  # row i: weights of the fit at place i of the window
    flat = values.reshape(frames, -1)
    out = np.empty_like(flat)
    windows = np.lib.stride_tricks.sliding_window_view(flat, window, axis=0)
    out[half : frames - half] = windows @ hat[half]
    out[:half] = hat[:half] @ flat[:window]
    out[frames - half :] = hat[half + 1 :] @ flat[frames - window :]
    return out.reshape(values.shape)


def weighted_moving_filter(values: ArrayLike, window: int = 7, *, zero_phase: bool = False) -> Array:
    """Average over a window with weights that fall linearly with age.

    The result is a convex mean of the samples, so it never leaves the limits that they keep.

    Args:
        values: Samples `(T, ...)`.
        window: Frames; fewer at the ends.
        zero_phase: False: the mean over the present and past frames, as in live use; it lags by a third of the window.
            True: weights that fall on both sides (a triangle of the same window), which does not lag.
    """
    values = np.asarray(values, dtype=np.float64)
    if window < 1:
        raise BunrakuError(f"a filter window has at least one frame, got {window}")
    flat = values.reshape(len(values), -1)
    if zero_phase:
        half = window // 2
        taps = {shift: float(half + 1 - abs(shift)) for shift in range(-half, half + 1)}
    else:
        taps = {-age: float(window - age) for age in range(window)}
    total, weight = np.zeros_like(flat), np.zeros((len(flat), 1))
    for shift, tap in taps.items():
        if abs(shift) >= len(flat):
            continue
        into = slice(max(0, -shift), len(flat) - max(0, shift))
        source = slice(max(0, shift), len(flat) - max(0, -shift))
        total[into] += tap * flat[source]
        weight[into] += tap
    return (total / weight).reshape(values.shape)
