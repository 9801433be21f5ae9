"""Strict priorities under limits: one small quadratic program per level, solved by daqp (extra `control`).

    x = solve_levels([Level("hand", A1, b1), Level("posture", A2, b2)], limits)

Level k minimises |A_k x - b_k|^2 among all x that keep the limits and what the levels before it reached, so nothing
of a lower level can spoil a higher one (Kanoun, Lamiraux and Wieber, "Kinematic control of redundant manipulators:
generalizing the task-priority framework to inequality task", 2011). What a level leaves free is carried on as a basis
of its null space, so that the next program is smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bunraku.errors import BunrakuError, MissingDependencyError
from bunraku.geometry import Array

FREE = 1e-6
"""Weight of a direction that a level does not ask for, beside 1 for those it does: what nobody asks for is small."""
RANK = 1e-5
"""Directions in which a level has less than this share of its largest effect are left to lower levels."""
SMALLEST = 1e-9
"""A level with less effect than this in every direction asks for nothing."""
TOLERANCE = 1e-9
"""daqp keeps limits to this."""
FEASIBLE = 1e-7
"""Limits are kept to this, relative to their size."""


class Level(NamedTuple):
    """What one priority asks for: `matrix @ x = wanted`, in the least-squares sense."""

    name: str
    matrix: Array
    """`(m, n)`"""
    wanted: Array
    """`(m,)`"""


@dataclass(frozen=True, slots=True)
class Limits:
    """`lower <= matrix @ x <= upper`, row by row, hard or (last resort) soft."""

    names: Sequence[str]
    """What each row is, for messages."""
    matrix: Array
    """`(c, n)`"""
    lower: Array
    """`(c,)`"""
    upper: Array
    """`(c,)`"""
    soft: Array | None = None
    """Boolean `(c,)`: rows that may give way, as little as possible, where the others leave no choice."""


class InfeasibleError(BunrakuError):
    """Limits that cannot be kept together."""


def load_daqp() -> Any:
    """Return the solver.

    Raises:
        MissingDependencyError: If it is not installed.
    """
    try:
        import daqp
    except ImportError as error:
        raise MissingDependencyError("daqp", "control under limits", "control") from error
    return daqp


def solve_levels(levels: Sequence[Level], limits: Limits, when: float | None = None) -> Array:
    """Return x `(n,)`.

    Args:
        levels: From the highest priority to the lowest.
        limits: What every level keeps.
        when: Time for messages [s].

    Raises:
        InfeasibleError: If hard limits cannot be kept together; the message says which, and when.
        MissingDependencyError: If daqp is not installed.
    """
    daqp = load_daqp()
    check_limits(limits, when)
    n = limits.matrix.shape[1]
    x, basis = np.zeros(n), np.eye(n)
    for level in levels:
        if basis.shape[1] == 0:
            break
        program = _Program(level.matrix @ basis, level.wanted - level.matrix @ x)
        step, limits = program.solve(daqp, basis, x, limits, when)
        x, basis = x + basis @ step, basis @ program.null_space
    return x


def check_limits(limits: Limits, when: float | None) -> None:
    """Raise InfeasibleError for the first row whose lower bound exceeds its upper, or is not a number."""
    bad = ~(limits.lower <= limits.upper)
    if bad.any():
        i = int(bad.argmax())
        raise InfeasibleError(
            f"limits of {limits.names[i]} are inconsistent{_at(when)}: lower {limits.lower[i]:g}, upper"
            f" {limits.upper[i]:g}"
        )


class _Program:
    """One level in coordinates in which it is a distance: `y = scaled @ u`, effect `u[:rank]`, the rest free.

    So the Hessian is diagonal, and the answer without limits is exact however badly the task is scaled.
    """

    def __init__(self, task: Array, error: Array) -> None:
        left, values, rows = np.linalg.svd(task)
        largest = float(values[0]) if len(values) else 0.0
        rank = int((values > RANK * largest).sum()) if largest > SMALLEST else 0
        self.null_space = rows[rank:].T
        self._scaled = np.concatenate([rows[:rank].T / values[:rank], self.null_space], axis=1)
        self._gradient = np.concatenate([-(left[:, :rank].T @ error), np.zeros(len(rows) - rank)])
        self._hessian = np.diag(np.repeat([1.0, FREE], [rank, len(rows) - rank]))

    def solve(
        self, daqp: Any, basis: Array, x: Array, limits: Limits, when: float | None
    ) -> tuple[Array, Limits]:
        """Return the step in coordinates of `basis`, and the limits for lower levels (soft ones may have given way)."""
        matrix = np.ascontiguousarray(limits.matrix @ (basis @ self._scaled))
        at = limits.matrix @ x
        lower, upper = limits.lower - at, limits.upper - at
        # a limit that the level before touches is missed by rounding only, which is no contradiction
        slack = FEASIBLE * (1.0 + np.abs(at))
        lower = np.where((lower > 0.0) & (lower < slack), 0.0, lower)
        upper = np.where((upper < 0.0) & (upper > -slack), 0.0, upper)
        sense = np.zeros(len(lower), dtype=np.int32)
        u, flag = self._daqp(daqp, matrix, lower, upper, sense)
        if flag == 1:
            return self._scaled @ u, limits
        if limits.soft is not None and limits.soft.any():
            sense[limits.soft] = 8
            u, flag = self._daqp(daqp, matrix, lower, upper, sense)
            if flag > 0:
                reached = at + matrix @ u
                low = np.where(limits.soft, np.minimum(limits.lower, reached), limits.lower)
                high = np.where(limits.soft, np.maximum(limits.upper, reached), limits.upper)
                return self._scaled @ u, Limits(limits.names, limits.matrix, low, high, limits.soft)
        raise InfeasibleError(_diagnosis(daqp, limits, when))

    def _daqp(self, daqp: Any, matrix: Array, lower: Array, upper: Array, sense: Any) -> tuple[Array, int]:
        u, _, flag, _ = daqp.solve(
            self._hessian, self._gradient, matrix, upper, lower, sense, primal_tol=TOLERANCE, iter_limit=1000
        )
        return np.asarray(u), int(flag)


def _diagnosis(daqp: Any, limits: Limits, when: float | None) -> str:
    """Find the limits that give way when all may: those that cannot be kept together with the others."""
    n = limits.matrix.shape[1]
    sense = np.full(len(limits.lower), 8, dtype=np.int32)
    x, *_ = daqp.solve(
        1e-8 * np.eye(n), np.zeros(n), np.ascontiguousarray(limits.matrix), limits.upper, limits.lower, sense
    )
    at = limits.matrix @ x
    miss = np.maximum(limits.lower - at, at - limits.upper)
    worst = int(miss.argmax())
    side = "above" if at[worst] > limits.upper[worst] else "below"
    bound = limits.upper[worst] if side == "above" else limits.lower[worst]
    return (
        f"the limits cannot be kept together{_at(when)}: {limits.names[worst]} would have to be {at[worst]:.4g}, {side}"
        f" its limit of {bound:.4g}"
    )


def _at(when: float | None) -> str:
    return "" if when is None else f" at t = {when:.3f} s"
