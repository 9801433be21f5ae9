"""The clock of a session: real time for people, simulated time for a scripted device."""

from __future__ import annotations


class SimulatedClock:
    """A clock that the session moves by one control step at a time."""

    def __init__(self) -> None:
        """Start at 0."""
        self._steps = 0
        self._base = 0.0
        self._step = 0.0

    def advance(self, seconds: float) -> None:
        """Move on; equal steps are counted, not summed, so that no rounding error grows."""
        if seconds != self._step:
            self._base, self._steps, self._step = self(), 0, seconds
        self._steps += 1

    def __call__(self) -> float:
        """Return the time [s]."""
        return self._base + self._steps * self._step
