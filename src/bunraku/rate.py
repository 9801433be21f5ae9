"""A fixed-rate loop that knows how late it was.

    rate = Rate(50.0)
    while driving:
        ...
        rate.sleep()
    rate.stats()   # {'ticks': ..., 'late': ..., 'late_ms_max': ...}

Deadlines are multiples of the period from the start, so errors do not add up. A loop that falls more than one
period behind starts its schedule anew instead of racing to catch up.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Rate:
    """Sleeps so that a loop runs at a fixed frequency, and counts missed deadlines."""

    def __init__(
        self,
        frequency: float,
        clock: Callable[[], float] = time.perf_counter,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Start the schedule now.

        Args:
            frequency: Ticks per second [Hz].
            clock: Returns the time [s].
            sleep: Waits for a number of seconds.

        Raises:
            ValueError: If `frequency` is not positive.
        """
        if not frequency > 0.0:
            raise ValueError(f"frequency must be positive, got {frequency} Hz")
        self.period = 1.0 / frequency
        self._clock, self._sleep = clock, sleep
        self._next = clock() + self.period
        self.ticks = 0
        self.late = 0
        self.late_max = 0.0

    def sleep(self) -> float:
        """Wait for the next deadline; return how late the loop is [s], 0 when it is in time."""
        self.ticks += 1
        remaining = self._next - self._clock()
        if remaining > 0.0:
            self._sleep(remaining)
            self._next += self.period
            return 0.0
        lateness = -remaining
        self.late += 1
        self.late_max = max(self.late_max, lateness)
        self._next = (self._clock() if lateness > self.period else self._next) + self.period
        return lateness

    def stats(self) -> dict[str, float]:
        """Return the number of ticks, of late ones, and the largest lateness [ms]."""
        return {"ticks": self.ticks, "late": self.late, "late_ms_max": 1e3 * self.late_max}
