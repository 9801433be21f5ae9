"""Interpolation of joint angles over time: a cubic spline that gives way at limits, and the monotone cubic.

A cubic spline is the smoothest curve through its knots, but swings past them; where it would leave the limits its
slopes are eased to those of the monotone cubic, which stays between its knots. The curve keeps a continuous speed: no
kink, and no value outside.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.errors import BunrakuError
from bunraku.retarget.stages.upsample import frame_times, monotone_slopes

Array = NDArray[np.float64]
Method = Literal["cubic", "monotone", "linear"]


def resample(
    values: ArrayLike,
    fps_in: float,
    fps_out: float,
    method: Method = "cubic",
    lower: ArrayLike | None = None,
    upper: ArrayLike | None = None,
) -> Array:
    """Return samples `(T, n)` at another frame rate.

    Args:
        values: Samples at `fps_in`.
        fps_in: Frames per second of the input.
        fps_out: Frames per second of the output.
        method: `cubic` spline within the limits, `monotone` between the knots, or `linear`.
        lower: Limits `(n,)`; the knots keep them.
        upper: Limits `(n,)`.
    """
    knots = np.asarray(values, dtype=np.float64)
    times = frame_times(len(knots), fps_in, fps_out)
    if len(knots) == 1:
        return np.repeat(knots, len(times), axis=0)
    if method == "linear":
        left = np.minimum(times.astype(np.int64), len(knots) - 2)
        return knots[left] + (times - left)[:, None] * np.diff(knots, axis=0)[left]
    slopes = monotone_slopes(np.diff(knots, axis=0)) if method == "monotone" else spline_slopes(knots)
    if method == "cubic" and (lower is not None or upper is not None):
        low = np.full(knots.shape[1], -np.inf) if lower is None else np.asarray(lower, dtype=np.float64)
        high = np.full(knots.shape[1], np.inf) if upper is None else np.asarray(upper, dtype=np.float64)
        slopes = ease_slopes(knots, slopes, low, high)
        return np.clip(hermite(knots, slopes, times), low, high)  # the last bit
    return hermite(knots, slopes, times)


def spline_slopes(knots: Array) -> Array:
    """Return the slopes at the knots `(T, n)` of the natural cubic spline, in units per frame (Thomas algorithm)."""
    count = len(knots)
    if count == 2:
        return np.repeat(np.diff(knots, axis=0), 2, axis=0)
    right = np.empty_like(knots)
    right[0], right[-1] = 3.0 * (knots[1] - knots[0]), 3.0 * (knots[-1] - knots[-2])
    right[1:-1] = 3.0 * (knots[2:] - knots[:-2])
    diagonal = np.full(count, 4.0)
    diagonal[0] = diagonal[-1] = 2.0
    for i in range(1, count):
        factor = 1.0 / diagonal[i - 1]
        diagonal[i] -= factor
        right[i] -= factor * right[i - 1]
    slopes = np.empty_like(knots)
    slopes[-1] = right[-1] / diagonal[-1]
    for i in range(count - 2, -1, -1):
        slopes[i] = (right[i] - slopes[i + 1]) / diagonal[i]
    return slopes


def ease_slopes(knots: Array, slopes: Array, lower: Array, upper: Array) -> Array:
    """Return slopes with which no segment leaves the limits: those of the monotone cubic where one would."""
    if (knots < lower - 1e-9).any() or (knots > upper + 1e-9).any():
        raise BunrakuError("the frames to interpolate leave the joint limits themselves; clip them first")
    slopes, safe = slopes.copy(), monotone_slopes(np.diff(knots, axis=0))
    while True:
        low, high = _extremes(knots, slopes)
        out = (low < lower) | (high > upper)
        # both knots of a segment that leaves; a knot that is eased already is not looked at again
        at_knots = np.zeros(knots.shape, dtype=bool)
        at_knots[:-1] |= out
        at_knots[1:] |= out
        at_knots &= slopes != safe
        if not at_knots.any():
            return slopes
        slopes = np.where(at_knots, safe, slopes)


def hermite(knots: Array, slopes: Array, times: Array) -> Array:
    """Return the cubic Hermite curve at `times` `(M,)`, in frames."""
    left = np.minimum(times.astype(np.int64), len(knots) - 2)
    s = (times - left)[:, None]
    delta = knots[left + 1] - knots[left]
    t = 1.0 - s
    return (
        knots[left]
        + s * s * (3.0 - 2.0 * s) * delta
        + s * t * t * slopes[left]
        - s * s * t * slopes[left + 1]
    )


def _extremes(knots: Array, slopes: Array) -> tuple[Array, Array]:
    """Return the smallest and largest value within each segment `(T - 1, n)`, exactly."""
    start, end, m0, m1 = knots[:-1], knots[1:], slopes[:-1], slopes[1:]
    delta = end - start
    # value = start + m0 s + (3 d - 2 m0 - m1) s^2 + (m0 + m1 - 2 d) s^3; its derivative vanishes at the roots
    a, b, c = 3.0 * (m0 + m1 - 2.0 * delta), 2.0 * (3.0 * delta - 2.0 * m0 - m1), m0
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    q = -0.5 * (b + np.where(b >= 0.0, root, -root))
    low, high = np.minimum(start, end), np.maximum(start, end)
    with np.errstate(divide="ignore", invalid="ignore"):
        for s in (q / a, c / q):
            s = np.where(np.isfinite(s) & (s > 0.0) & (s < 1.0), s, 0.0)
            value = start + s * (m0 + s * (0.5 * b + s * a / 3.0))
            low, high = np.minimum(low, value), np.maximum(high, value)
    return low, high
