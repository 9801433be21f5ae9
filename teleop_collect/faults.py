"""What goes wrong between a hand and the numbers a tracker reports, seeded, for the simulated operator.

Tremor is a sum of sines between 8 and 12 Hz, as a steady hand's is; tracking noise is white; drop-outs, jumps and
swapped buttons are what users of inside-out tracking report.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.geometry import Array, Pose, from_rotvec, multiply


@dataclass(frozen=True, slots=True)
class Faults:
    """How bad it is."""

    tremor: float = 3e-4
    """Amplitude of the hand's tremor [m]."""
    noise: float = 2e-4
    """Standard deviation of the tracked position [m]."""
    angle_noise: float = 5e-4
    """Standard deviation of the tracked orientation [rad]."""
    dropout_rate: float = 0.0
    """Drop-outs of the tracking per second."""
    dropout_seconds: tuple[float, float] = (0.03, 0.5)
    """Shortest and longest drop-out [s]."""
    jump_rate: float = 0.0
    """Jumps per second: the reported pose is off by `jump_distance` for a while, then right again."""
    jump_distance: tuple[float, float] = (0.1, 0.6)
    """Smallest and largest jump [m]."""
    jump_seconds: tuple[float, float] = (0.011, 0.6)
    """Shortest and longest jump [s]."""
    swapped: float = 0.0
    """Share of episodes in which trigger and grip are swapped."""

    @classmethod
    def all_on(cls) -> Faults:
        """Return every fault at a rate that an operator would complain about."""
        return cls(dropout_rate=0.4, jump_rate=0.4, swapped=0.25)

    @classmethod
    def none(cls) -> Faults:
        """Return a perfect hand and tracker."""
        return cls(tremor=0.0, noise=0.0, angle_noise=0.0)


class FaultyTracker:
    """Turns the true pose of one hand into what the tracker reports, sample by sample."""

    def __init__(self, faults: Faults, rng: np.random.Generator) -> None:
        """Draw the tremor's phases."""
        self.faults, self._rng = faults, rng
        self._frequency = rng.uniform(8.0, 12.0, (3, 3))
        self._phase = rng.uniform(0.0, 2.0 * np.pi, (3, 3))
        self._until = -1.0
        self._offset: Array | None = None
        self.swapped = False
        """Whether trigger and grip are swapped in this episode."""

    def begin_episode(self) -> None:
        """Draw what is drawn per episode."""
        self.swapped = bool(self._rng.uniform() < self.faults.swapped)

    def report(self, pose: Pose, time: float, dt: float) -> Pose | None:
        """Return the pose that the tracker reports, or None while it has lost the hand.

        Args:
            pose: Where the hand is.
            time: Time of the sample [s].
            dt: Time since the last sample [s].
        """
        f, rng = self.faults, self._rng
        if time >= self._until:
            self._offset = None
            drop, jump = rng.uniform(size=2)
            if drop < f.dropout_rate * dt:
                self._until = time + rng.uniform(*f.dropout_seconds)
                return None
            if jump < f.jump_rate * dt:
                self._until = time + rng.uniform(*f.jump_seconds)
                direction = rng.normal(size=3)
                self._offset = direction / np.linalg.norm(direction) * rng.uniform(*f.jump_distance)
        elif self._offset is None:
            return None
        tremor = f.tremor / 3.0 * np.sin(2.0 * np.pi * self._frequency * time + self._phase).sum(axis=0)
        pos = pose.pos + tremor + rng.normal(0.0, f.noise, 3)
        if self._offset is not None:
            pos = pos + self._offset
        return Pose(pos, multiply(from_rotvec(rng.normal(0.0, f.angle_noise, 3)), pose.quat))
