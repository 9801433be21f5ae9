"""Depth, turns and the gap under the bit over time, as a PNG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from bunraku.errors import MissingDependencyError
from bunraku.screw import figures
from bunraku.screw.gif import FRAME_MS
from bunraku.screw.measures import Row

_STAGES = {
    "approach": (0, figures.APPROACH_END),
    "press": (figures.APPROACH_END, figures.PRESS_END),
    "turn": (figures.PRESS_END, figures.TURN_END),
    "lift": (figures.TURN_END, figures.LIFT_END),
    "hold": (figures.LIFT_END, figures.FRAMES),
}


def load_plot() -> Callable[[Sequence[Row], Path], None]:
    """Return `plot`, once it is sure that it can draw.

    Raises:
        MissingDependencyError: Matplotlib is not installed.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("Matplotlib", "the plot", "plots") from error
    return plot


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw what the frames showed.

    Args:
        rows: One of each frame.
        path: The PNG.
    """
    from matplotlib.figure import Figure

    # a figure of its own draws without a display and leaves pyplot's state alone
    figure = Figure(figsize=(8.0, 6.5), layout="constrained")
    axes = figure.subplots(3, 1, sharex=True)
    seconds = np.arange(len(rows)) * FRAME_MS / 1000.0
    lines = (
        ("depth [mm]", [1000.0 * row.depth for row in rows], "tab:brown"),
        ("turns", [row.turn / (2.0 * np.pi) for row in rows], "tab:blue"),
        ("bit above screw [mm]", [1000.0 * row.gap for row in rows], "tab:red"),
    )
    for axis, (label, values, color) in zip(axes, lines, strict=True):
        axis.plot(seconds, values, color=color)
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        for start, end in list(_STAGES.values())[1::2]:
            axis.axvspan(start * FRAME_MS / 1000.0, end * FRAME_MS / 1000.0, color="0.93", zorder=0)
    for name, (start, end) in _STAGES.items():
        middle = (start + end) / 2.0 * FRAME_MS / 1000.0
        axes[0].text(middle, 1.02, name, transform=axes[0].get_xaxis_transform(), ha="center")
    axes[-1].set_xlabel("time [s]")
    axes[-1].set_xlim(0.0, seconds[-1])
    figure.savefig(path, dpi=110, format="png")
