"""Times two things in turn, in one process, and reports the ratio.

A machine that is busy, or warm, slows both; so each round times ours and the peer back to back, and the median of
the rounds' ratios counts. A ratio over 1 means that ours is better.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Result:
    """What a benchmark found."""

    name: str
    """Name of the benchmark."""
    ours: float
    """Median of ours, in `unit`."""
    peer: float
    """Median of the peer, or the limit."""
    ratio: float
    """Over 1: ours is better."""
    unit: str
    """Unit of `ours` and `peer`."""
    repeats: int
    """Rounds."""
    required: float
    """The ratio that is asked for."""
    details: dict[str, Any] = field(default_factory=dict)
    """What else was measured."""

    @property
    def ok(self) -> bool:
        """Whether the ratio is reached."""
        return self.ratio >= self.required


def seconds(function: Callable[[], Any]) -> float:
    """Return the time that a call takes [s]."""
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def in_turn(
    name: str,
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    *,
    per: int = 1,
    repeats: int = 15,
    required: float,
    details: dict[str, Any] | None = None,
) -> Result:
    """Time `ours` and `peer` in turn.

    Args:
        name: Name of the benchmark.
        ours: Our side.
        peer: The other side, doing the same amount of work.
        per: Units of work in a call; times are reported per unit.
        repeats: Rounds.
        required: The ratio that is asked for.
        details: Further facts to report.
    """
    ours(), peer()
    rounds = [(seconds(ours), seconds(peer)) for _ in range(repeats)]
    ratios = sorted(b / a for a, b in rounds)
    return Result(
        name=name,
        ours=1e6 * statistics.median(a for a, _ in rounds) / per,
        peer=1e6 * statistics.median(b for _, b in rounds) / per,
        ratio=statistics.median(ratios),
        unit="us",
        repeats=repeats,
        required=required,
        details={"ratio_min": ratios[0], "ratio_max": ratios[-1], **(details or {})},
    )
