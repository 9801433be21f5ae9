"""More frames per second without overshoot: a monotone cubic between the frames that were solved.

A cubic spline rings around fast moves and leaves joint limits that all its knots keep. The monotone cubic of Fritsch
and Butland (1984) stays between its two knots, so between frames a limit holds whenever it holds at them.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.errors import BunrakuError

Array = NDArray[np.float64]


def frame_times(frames: int, fps_in: float, fps_out: float) -> Array:
    """Return the times [in input frames] of the output frames, the first at 0, none past the last input frame."""
    if fps_in <= 0.0 or fps_out <= 0.0:
        raise BunrakuError(f"frame rates are positive, got {fps_in:g} and {fps_out:g}")
    count = int(np.floor((frames - 1) * fps_out / fps_in + 1e-9)) + 1
    return np.minimum(np.arange(count) * (fps_in / fps_out), frames - 1)


def upsample(
    values: ArrayLike, fps_in: float, fps_out: float, method: Literal["monotone", "linear"] = "monotone"
) -> Array:
    """Resample joint angles `(T, n)` from one frame rate to another.

    Args:
        values: Angles at `fps_in` [rad].
        fps_in: Frames per second of the input.
        fps_out: Frames per second of the output.
        method: `monotone` has a continuous speed; `linear` never moves faster than the input's steps.
    """
    y = np.asarray(values, dtype=np.float64)
    times = frame_times(len(y), fps_in, fps_out)
    if len(y) == 1:
        return y.copy()
    left = np.minimum(times.astype(np.int64), len(y) - 2)
    s = (times - left).reshape((-1,) + (1,) * (y.ndim - 1))
    delta = np.diff(y, axis=0)
    if method == "linear":
        out = y[left] + s * delta[left]
    else:
        slope = monotone_slopes(delta)
        start, end = s * (1.0 - s) * (1.0 - s), s * s * (1.0 - s)
        out = y[left] + s * s * (3.0 - 2.0 * s) * delta[left] + start * slope[left] - end * slope[left + 1]
    # between two knots up to the last bit
    return np.clip(out, np.minimum(y[left], y[left + 1]), np.maximum(y[left], y[left + 1]))


def monotone_slopes(delta: Array) -> Array:
    """Return the slopes at the knots `(T, n)` of the differences between them `(T - 1, n)`: harmonic means."""
    if len(delta) == 1:
        return np.concatenate([delta, delta])
    before, after = delta[:-1], delta[1:]
    total = before + after
    same = before * after > 0.0
    inner = np.where(same, 2.0 * before * after / np.where(same, total, 1.0), 0.0)
    return np.concatenate([_end(delta[0], delta[1])[None], inner, _end(delta[-1], delta[-2])[None]])


def _end(near: Array, far: Array) -> Array:
    """Return the one-sided three-point slope at an end, kept monotone."""
    slope = 0.5 * (3.0 * near - far)
    slope = np.where(slope * near <= 0.0, 0.0, slope)
    steep = (near * far <= 0.0) & (np.abs(slope) > 3.0 * np.abs(near))
    return np.where(steep, 3.0 * near, slope)
