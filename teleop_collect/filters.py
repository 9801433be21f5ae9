"""Filters for hand poses. Each is given by a time, so that it is the same filter at any sample rate.

The first-order low pass `y += a (x - y)` with a = 0.3 at 90 Hz has the time constant `-1 / (90 ln 0.7)` = 31 ms; at
another interval dt its factor is `1 - exp(-dt / tau)`. The one-euro filter (Casiez, Roussel and Vogel, 2012)
lowers the time constant as the hand speeds up.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from bunraku.errors import UnknownNameError
from bunraku.geometry import Pose, angle_between, nlerp

FILTERS = ("low_pass", "one_euro", "none")


def time_constant(alpha: float, frequency: float) -> float:
    """Return the time constant [s] of `y += alpha (x - y)` applied `frequency` times a second.

    Raises:
        ValueError: If alpha is not between 0 and 1 or the frequency is not positive.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be between 0 and 1, got {alpha}")
    if not frequency > 0.0:
        raise ValueError(f"frequency must be positive, got {frequency} Hz")
    return -1.0 / (frequency * math.log1p(-alpha))


DEFAULT_TIME_CONSTANT = time_constant(0.3, 90.0)


class PoseFilter(Protocol):
    """Smooths one hand's pose."""

    def reset(self, pose: Pose, time: float) -> None:
        """Start anew at a pose, without lag."""
        ...

    def update(self, pose: Pose, time: float) -> Pose:
        """Take a sample at a time [s]; return the filtered pose."""
        ...


class LowPass:
    """First-order low pass: linear for position, normalised linear interpolation for orientation."""

    def __init__(self, tau: float = DEFAULT_TIME_CONSTANT) -> None:
        """Set the time constant [s]; 0 passes everything.

        Raises:
            ValueError: If it is negative.
        """
        if tau < 0.0:
            raise ValueError(f"the filter's time constant must not be negative, got {tau} s")
        self.tau = tau
        self._pose: Pose | None = None
        self._time = 0.0

    def reset(self, pose: Pose, time: float) -> None:
        """Start anew at a pose, without lag."""
        self._pose, self._time = pose, time

    def update(self, pose: Pose, time: float) -> Pose:
        """Take a sample at a time [s]; return the filtered pose."""
        last = self._pose
        if last is None:
            self.reset(pose, time)
            return pose
        factor = low_pass_factor(time - self._time, self.tau)
        self._pose = Pose(last.pos + factor * (pose.pos - last.pos), nlerp(last.quat, pose.quat, factor))
        self._time = time
        return self._pose


class OneEuro:
    """One-euro filter: steady at rest, quick in motion."""

    def __init__(self, min_cutoff: float = 1.5, beta: float = 8.0, speed_cutoff: float = 1.0) -> None:
        """Set the filter.

        Args:
            min_cutoff: Cut-off frequency at rest [Hz].
            beta: Increase of the cut-off per speed [Hz per m/s, and per rad/s over four].
            speed_cutoff: Cut-off of the speed estimate [Hz].
        """
        self.min_cutoff, self.beta, self.speed_cutoff = min_cutoff, beta, speed_cutoff
        self._raw: Pose | None = None
        self._pose: Pose | None = None
        self._time = 0.0
        self._speed = np.zeros(2)

    def reset(self, pose: Pose, time: float) -> None:
        """Start anew at a pose, without lag."""
        self._raw = self._pose = pose
        self._time, self._speed = time, np.zeros(2)

    def update(self, pose: Pose, time: float) -> Pose:
        """Take a sample at a time [s]; return the filtered pose."""
        if self._pose is None or self._raw is None:
            self.reset(pose, time)
            return pose
        dt = time - self._time
        if dt <= 0.0:
            return self._pose
        moved = np.array(
            [np.linalg.norm(pose.pos - self._raw.pos), 0.25 * angle_between(self._raw.quat, pose.quat)]
        )
        self._speed += self._factor(self.speed_cutoff, dt) * (moved / dt - self._speed)
        linear, angular = (
            self._factor(self.min_cutoff + self.beta * float(speed), dt) for speed in self._speed
        )
        self._raw, self._time = pose, time
        self._pose = Pose(
            self._pose.pos + linear * (pose.pos - self._pose.pos), nlerp(self._pose.quat, pose.quat, angular)
        )
        return self._pose

    @staticmethod
    def _factor(cutoff: float, dt: float) -> float:
        return low_pass_factor(dt, 1.0 / (2.0 * math.pi * cutoff))


def low_pass_factor(dt: float, tau: float) -> float:
    """Return the factor of a first-order low pass after `dt` seconds: 0 for dt <= 0, 1 for tau = 0."""
    if dt <= 0.0:
        return 0.0
    return 1.0 if tau == 0.0 else -math.expm1(-dt / tau)


def make_filter(kind: str, tau: float = DEFAULT_TIME_CONSTANT) -> PoseFilter:
    """Return a new filter.

    Args:
        kind: One of `FILTERS`.
        tau: Time constant of the low pass [s].

    Raises:
        UnknownNameError: If there is no such filter.
    """
    if kind == "low_pass":
        return LowPass(tau)
    if kind == "one_euro":
        return OneEuro()
    if kind == "none":
        return LowPass(0.0)
    raise UnknownNameError("filter", kind, FILTERS)
