"""Plots as SVG text, without any library: lines over time, bars, dots.

Colours are classes of the page's style sheet (`c0` to `c9`), so that one page can be light or dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import Array

WIDTH, HEIGHT = 420, 130
LEFT, RIGHT, TOP, BOTTOM = 46, 8, 8, 20
MAX_POINTS = 240
COLOURS = 10


def lines(
    times: Array,
    curves: Mapping[str, Array],
    title: str,
    unit: str,
    *,
    shaded: Sequence[tuple[float, float]] = (),
    marks: Sequence[float] = (),
) -> str:
    """Return a plot of curves over time.

    Args:
        times: `(T,)` [s].
        curves: `(T,)` by name; numbers that are not finite leave gaps.
        title: What is plotted.
        unit: Of the values.
        shaded: Times from and to which the background is marked.
        marks: Times of vertical marks.
    """
    finite = [curve[np.isfinite(curve)] for curve in curves.values()]
    values = np.concatenate(finite) if finite else np.zeros(0)
    if not len(times) or not len(values):
        return _frame(title, unit, '<text class="no" x="60" y="60">not recorded</text>', [], [])
    low, high = _padded(float(values.min()), float(values.max()))
    begin, end = float(times[0]), float(max(times[-1], times[0] + 1e-9))

    def x(time: Array | float) -> Array:
        return LEFT + (WIDTH - LEFT - RIGHT) * (np.asarray(time) - begin) / (end - begin)

    def y(value: Array) -> Array:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)

    parts = []
    for first, last in shaded:
        left, right = float(x(first)), float(x(last))
        parts.append(
            f'<rect class="on" x="{left:.1f}" y="{TOP}" width="{max(right - left, 0.5):.1f}" '
            f'height="{HEIGHT - TOP - BOTTOM}"/>'
        )
    for number, (name, curve) in enumerate(curves.items()):
        for piece in _pieces(curve):
            shown = _thinned(curve, piece)
            points = " ".join(
                f"{a:.1f},{b:.1f}" for a, b in zip(x(times[shown]), y(curve[shown]), strict=True)
            )
            parts.append(
                f'<polyline class="c{number % COLOURS}" points="{points}"><title>{escape(name)}</title></polyline>'
            )
    parts += [
        f'<line class="mark" x1="{float(x(t)):.1f}" x2="{float(x(t)):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        for t in marks
    ]
    names = list(curves) if len(curves) > 1 else []
    return _frame(title, unit, "".join(parts), [(low, high), (begin, end)], names)


def bars(edges: Array, counts: Array, title: str, unit: str) -> str:
    """Return a histogram; `edges` has one number more than `counts`."""
    if not len(counts) or not counts.sum():
        return _frame(title, unit, '<text class="no" x="60" y="60">not recorded</text>', [], [])
    top = float(counts.max())
    step = (WIDTH - LEFT - RIGHT) / len(counts)
    parts = []
    for i, count in enumerate(counts):
        height = (HEIGHT - TOP - BOTTOM) * float(count) / top
        parts.append(
            f'<rect class="bar" x="{LEFT + i * step:.1f}" y="{HEIGHT - BOTTOM - height:.1f}" '
            f'width="{max(step - 1, 0.5):.1f}" height="{height:.1f}">'
            f"<title>{edges[i]:.3g} to {edges[i + 1]:.3g} {escape(unit)}: {int(count)}</title></rect>"
        )
    return _frame(title, unit, "".join(parts), [(0.0, top), (float(edges[0]), float(edges[-1]))], [])


def _frame(
    title: str, unit: str, inside: str, ranges: Sequence[tuple[float, float]], names: Sequence[str]
) -> str:
    ticks = ""
    if ranges:
        (low, high), (begin, end) = ranges
        ticks = (
            f'<text class="t" x="{LEFT - 4}" y="{TOP + 8}" text-anchor="end">{high:.3g}</text>'
            f'<text class="t" x="{LEFT - 4}" y="{HEIGHT - BOTTOM}" text-anchor="end">{low:.3g}</text>'
            f'<text class="t" x="{LEFT}" y="{HEIGHT - 6}">{begin:.4g}</text>'
            f'<text class="t" x="{WIDTH - RIGHT}" y="{HEIGHT - 6}" text-anchor="end">{end:.4g}</text>'
        )
    legend = "".join(
        f'<span class="k k{number % COLOURS}">{escape(name)}</span>' for number, name in enumerate(names)
    )
    return (
        f"<figure><figcaption>{escape(title)} <small>[{escape(unit)}]</small> {legend}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        f'<rect class="box" x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" '
        f'height="{HEIGHT - TOP - BOTTOM}"/>{inside}{ticks}</svg></figure>'
    )


def _padded(low: float, high: float) -> tuple[float, float]:
    margin = 0.04 * (high - low) or max(abs(high), 1.0) * 0.1
    return low - margin, high + margin


def _pieces(curve: Array) -> list[tuple[int, int]]:
    """Return first and last + 1 of each stretch of finite numbers."""
    finite = np.concatenate([[False], np.isfinite(curve), [False]])
    edges = np.flatnonzero(np.diff(finite.astype(np.int8)))
    return [(int(first), int(stop)) for first, stop in zip(edges[::2], edges[1::2], strict=True)]


def _thinned(curve: Array, piece: tuple[int, int]) -> NDArray[np.int64]:
    """Return the rows to draw: the lowest and highest of each of many blocks, so that no peak is lost."""
    first, stop = piece
    if stop - first <= MAX_POINTS:
        return np.arange(first, stop, dtype=np.int64)
    cuts = np.linspace(first, stop, MAX_POINTS // 2 + 1).astype(int)
    shown = [first, stop - 1]
    for a, b in pairwise(cuts):
        shown += [a + int(curve[a:b].argmin()), a + int(curve[a:b].argmax())]
    return np.unique(np.array(shown, dtype=np.int64))
