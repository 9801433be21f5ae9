"""A clock that a test sets."""

from __future__ import annotations


class ManualClock:
    """Stands still until it is moved on."""

    def __init__(self, start: float = 100.0) -> None:
        self.now = start

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
