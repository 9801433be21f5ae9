"""How physics, inverse kinematics and control fit into one another.

One control step is `ticks` ticks of the inverse kinematics, and one tick is `substeps` substeps of physics.
Both are whole numbers, so a control frequency that does not divide 500 Hz runs slightly finer physics: 200 Hz
control runs 600 Hz physics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

PHYSICS_FREQ = 500.0
"""Physics runs at least this often [Hz]."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The frequencies of an environment, all derived from the control frequency."""

    control_freq: float
    """Environment steps per simulated second [Hz]."""
    ticks: int
    """Inverse-kinematics ticks per environment step."""
    substeps: int
    """Physics substeps per tick."""

    @classmethod
    def make(cls, control_freq: float, ik_freq: float, physics_freq: float = PHYSICS_FREQ) -> Rates:
        """Choose whole numbers of ticks and substeps.

        Args:
            control_freq: Environment steps per second [Hz], 1 to `physics_freq`.
            ik_freq: Wanted ticks of the inverse kinematics per second [Hz]; the nearest that fits is taken.
            physics_freq: Physics runs at least this often [Hz].

        Raises:
            ValueError: If a frequency is out of range.
        """
        if not 1.0 <= control_freq <= physics_freq:
            raise ValueError(f"control_freq must be between 1 and {physics_freq:g} Hz, got {control_freq}")
        if not control_freq <= ik_freq <= physics_freq:
            raise ValueError(
                f"ik_freq must be between control_freq ({control_freq:g}) and {physics_freq:g} Hz, got {ik_freq}"
            )
        total = math.ceil(physics_freq / control_freq - 1e-9)
        wanted = ik_freq / control_freq
        ticks = min((d for d in range(1, total + 1) if total % d == 0), key=lambda d: abs(d - wanted))
        return cls(float(control_freq), ticks, total // ticks)

    @property
    def timestep(self) -> float:
        """Physics timestep [s]."""
        return 1.0 / (self.control_freq * self.ticks * self.substeps)

    @property
    def tick(self) -> float:
        """Time of one tick [s]."""
        return 1.0 / (self.control_freq * self.ticks)

    @property
    def step(self) -> float:
        """Time of one environment step [s]."""
        return 1.0 / self.control_freq
