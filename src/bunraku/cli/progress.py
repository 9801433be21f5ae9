"""How long work shows that it goes on: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Self

LOG_INTERVAL = 10.0
"""Seconds between lines where stderr is no terminal."""


class Progress:
    """Counts units of work on stderr, with rate and time left."""

    def __init__(self, what: str, total: int, unit: str) -> None:
        """Say what is done, how many units there are, and what they are called."""
        self._what, self._total, self._unit = what, total, unit
        self._done = 0
        self._bar: Any = None
        self._began = self._told = time.monotonic()

    def __enter__(self) -> Self:
        """Begin."""
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn(self._what),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=self._total, rate="")
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """End."""
        if self._bar is not None:
            self._bar.stop()

    def advance(self, count: int = 1) -> None:
        """Count more units."""
        self._done += count
        now = time.monotonic()
        rate = self._done / max(now - self._began, 1e-9)
        if self._bar is not None:
            self._bar.update(self._task, advance=count, rate=f"{rate:.1f} {self._unit}/s")
        elif now - self._told >= LOG_INTERVAL:
            self._told = now
            left = (self._total - self._done) / rate
            sys.stderr.write(
                f"{self._what}: {self._done}/{self._total} {self._unit}, {rate:.1f}/s, {left:.0f} s left\n"
            )
            sys.stderr.flush()

    def advance_of(self, total: int) -> None:
        """Count one more unit of a total that is known only now."""
        self._total = total
        if self._bar is not None:
            self._bar.update(self._task, total=total)
        self.advance()
