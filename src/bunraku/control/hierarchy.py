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

FREE = 1e-5
"""Weight of a direction that a level does not ask for, beside 1 for those it does: what nobody asks for is small."""
RANK = 1e-5
"""Directions in which a level has less than this share of its largest effect are left to lower levels."""
SMALLEST = 1e-9
"""A level with less effect than this in every direction asks for nothing."""
TOLERANCES = (1e-7, 1e-6, 1e-5)
"""daqp keeps limits to the first; in a corner where a higher level ended it may find no way but with the next."""
ROUNDING = 1e-6
"""Where a level ended at a limit, the next may pass it by this share, so that rounding is no contradiction."""


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
    first = True
    for level in levels:
        if basis.shape[1] == 0:
            break
        program = _Program(level.matrix @ basis, level.wanted - level.matrix @ x)
        step = program.solve(daqp, basis, x, limits, keep=not first)
        if step is None and first:
            limits = _give_way(daqp, limits, when)
            step = program.solve(daqp, basis, x, limits, keep=False)
        if step is None:
            raise InfeasibleError(_diagnosis(daqp, limits, when))
        x, basis = x + basis @ step, basis @ program.null_space
        first = False
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

    def solve(self, daqp: Any, basis: Array, x: Array, limits: Limits, keep: bool) -> Array | None:
        """Return the step in coordinates of `basis`, or None if there is none; with `keep`, 0 is a step."""
        matrix = np.ascontiguousarray(limits.matrix @ (basis @ self._scaled))
        at = limits.matrix @ x
        lower, upper = limits.lower - at, limits.upper - at
        if keep:
            # the level before ends at limits to rounding, which must not look like a contradiction
            slack = ROUNDING * (1.0 + np.abs(at))
            lower, upper = np.minimum(lower, -slack), np.maximum(upper, slack)
        for tolerance in TOLERANCES if keep else TOLERANCES[:1]:
            u, _, flag, _ = daqp.solve(
                self._hessian, self._gradient, matrix, upper, lower, primal_tol=tolerance
            )
            if flag == 1:
                return self._scaled @ np.asarray(u)
        return None


def _give_way(daqp: Any, limits: Limits, when: float | None) -> Limits:
    """Return limits that can be kept together: the soft ones moved as little as possible, in the sum of squares.

    Raises:
        InfeasibleError: If the hard ones alone cannot be kept; the message says which, and when.
    """
    if limits.soft is None or not limits.soft.any():
        raise InfeasibleError(_diagnosis(daqp, limits, when))
    n, soft = limits.matrix.shape[1], np.flatnonzero(limits.soft)
    gap = np.zeros((len(limits.lower), len(soft)))
    gap[soft, np.arange(len(soft))] = 1.0
    matrix = np.concatenate([limits.matrix, gap], axis=1)
    hessian = np.diag(np.repeat([FREE, 1.0], [n, len(soft)]))
    x, _, flag, _ = daqp.solve(
        hessian,
        np.zeros(len(hessian)),
        matrix,
        limits.upper.copy(),
        limits.lower.copy(),
        primal_tol=TOLERANCES[0],
    )
    if flag != 1:
        raise InfeasibleError(_diagnosis(daqp, limits, when))
    reached = limits.matrix[soft] @ np.asarray(x)[:n]
    slack = ROUNDING * (1.0 + np.abs(reached))
    lower, upper = limits.lower.copy(), limits.upper.copy()
    lower[soft] = np.minimum(lower[soft], reached - slack)
    upper[soft] = np.maximum(upper[soft], reached + slack)
    return Limits(limits.names, limits.matrix, lower, upper, limits.soft)


def _diagnosis(daqp: Any, limits: Limits, when: float | None) -> str:
    """Find the limit that gives way most, relative to its size, when all may: it contradicts the others."""
    rows, n = limits.matrix.shape
    size = np.maximum(np.minimum(np.abs(limits.lower), np.abs(limits.upper)), 1.0)
    matrix = np.concatenate([limits.matrix, np.diag(size)], axis=1)
    hessian = np.diag(np.repeat([FREE, 1.0], [n, rows]))
    x, *_ = daqp.solve(hessian, np.zeros(len(hessian)), matrix, limits.upper.copy(), limits.lower.copy())
    at = limits.matrix @ np.asarray(x)[:n]
    miss = np.maximum(limits.lower - at, at - limits.upper) / size
    worst = int(miss.argmax())
    side = "above" if at[worst] > limits.upper[worst] else "below"
    bound = limits.upper[worst] if side == "above" else limits.lower[worst]
    return (
        f"the limits cannot be kept together{_at(when)}: {limits.names[worst]} would have to be {at[worst]:.4g}, {side}"
        f" its limit of {bound:.4g}"
    )


def _at(when: float | None) -> str:
    return "" if when is None else f" at t = {when:.3f} s"
