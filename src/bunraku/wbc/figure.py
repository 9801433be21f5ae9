"""One picture of a solution: arm poses, hand paths, errors, trunk and leakage, from the dense histories unclipped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bunraku.errors import BunrakuError, MissingDependencyError
from bunraku.geometry import Array
from bunraku.wbc.check import Histories
from bunraku.wbc.planar import TRUNK, UPPER_ARM, PlanarProblem, arms, hands

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RIGHT, LEFT, BODY, GOAL = "#c44e2b", "#2b6cc4", "#444444", "#3a8f4d"
SNAPSHOTS = 6


def save_figure(path: Path, problem: PlanarProblem, h: Histories) -> None:
    """Draw the figure and write it; the format is that of the file's ending.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        BunrakuError: If the file cannot be written in that format.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError("matplotlib", "--save", "plots") from error
    figure = Figure(figsize=(13.0, 8.0), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    known = canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        raise BunrakuError(f"cannot save {path}: the ending must be one of {', '.join(sorted(known))}")
    grid = figure.add_gridspec(3, 3)
    _poses(figure.add_subplot(grid[:2, :2]), problem, h)
    _lines(
        figure.add_subplot(grid[0, 2]),
        h.time,
        {
            "right, polynomials": (h.right_error, RIGHT),
            "right, integrated": (h.integrated_error, "#e0a58f"),
            "left": (h.left_error, LEFT),
        },
        "hand error [m]",
        log=True,
    )
    _lines(figure.add_subplot(grid[1, 2]), h.time, {"trunk": (h.x[:, 0], BODY)}, "trunk angle [rad]")
    _lines(
        figure.add_subplot(grid[2, 2]),
        h.time,
        {"J N": (h.leakage, BODY)},
        "null-space leakage, Frobenius norm",
    )
    names = {0: ("trunk", BODY), 3: ("left shoulder", LEFT), 4: ("left elbow", "#7fb0e8")}
    _lines(
        figure.add_subplot(grid[2, 0]),
        h.time,
        {name: (h.z[:, i], color) for i, (name, color) in names.items()},
        "null-space command z [rad/s²]",
    )
    _lines(
        figure.add_subplot(grid[2, 1]),
        h.time,
        {name: (h.x[:, 5 + i], color) for i, (name, color) in names.items()},
        "joint speed [rad/s]",
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def _poses(axes: Axes, problem: PlanarProblem, h: Histories) -> None:
    """Draw the body at sampled times, the hands' paths and the targets."""
    for k, i in enumerate(np.linspace(0, len(h.time) - 1, SNAPSHOTS).astype(int)):
        alpha = 0.2 + 0.8 * k / (SNAPSHOTS - 1)
        q = h.x[i, :5]
        lean = TRUNK * np.array([np.sin(-q[0]), np.cos(q[0])])
        axes.plot([0.0, lean[0]], [0.0, lean[1]], color=BODY, alpha=alpha, lw=5, solid_capstyle="round")
        for points, color in zip(_arm_points(q), (RIGHT, LEFT), strict=True):
            axes.plot(*points.T, color=color, alpha=alpha, lw=2.5, marker="o", ms=4)
    axes.plot(*h.right.T, color=RIGHT, lw=1.2, ls="--", label="right hand's path")
    axes.plot(*h.left.T, color=LEFT, lw=1.2, ls="--", label="left hand's path")
    axes.plot(
        *(problem.right_start + np.array(problem.move)),
        color=GOAL,
        marker="x",
        ms=10,
        mew=2,
        ls="",
        label="targets",
    )
    axes.plot(*problem.left_goal, color=GOAL, marker="x", ms=10, mew=2, ls="")
    axes.plot(0.0, TRUNK, color=BODY, marker="s", ms=7, ls="", label="shoulders (stabilised)")
    axes.set_aspect("equal")
    axes.set(xlabel="x [m]", ylabel="y [m]", title=f"poses from t = 0 (faint) to {problem.duration:g} s")
    axes.legend(loc="lower right", fontsize=8)
    axes.grid(alpha=0.25)


def _arm_points(q: Array) -> tuple[Array, Array]:
    """Return shoulder, elbow and hand `(3, 2)` of right and left arm [m]."""
    a = arms(q)
    shoulder = np.array([0.0, TRUNK])
    elbows = [
        shoulder + UPPER_ARM * np.array([sign * a.cos1[i], a.sin1[i]]) for i, sign in enumerate((1.0, -1.0))
    ]
    right, left = (np.array([shoulder, elbow, hand]) for elbow, hand in zip(elbows, hands(a), strict=True))
    return right, left


def _lines(axes: Axes, time: Array, lines: dict[str, Any], title: str, log: bool = False) -> None:
    for label, (values, color) in lines.items():
        # on a logarithmic axis an exact zero has no place; it is left out, not moved
        axes.plot(
            time, np.where(values > 0.0, values, np.nan) if log else values, color=color, lw=1.3, label=label
        )
    if log:
        axes.set_yscale("log")
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("t [s]", fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.25)
    if len(lines) > 1:
        # between the two levels of the right hand's error
        axes.legend(fontsize=8, loc=(0.03, 0.2) if log else "best")
