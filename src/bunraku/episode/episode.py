"""One recorded episode in memory.

`observations` has one row more than `actions`: row t is what was seen before action t, the last row what was
seen after the last action. `states` are MuJoCo's `mjSTATE_INTEGRATION` rows at the same T + 1 instants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import Array

LABELS: tuple[str, ...] = ("success", "failure", "timeout", "unlabelled")
"""What became of an episode. Discarded episodes are counted, and not kept."""


@dataclass(slots=True)
class Episode:
    """T steps of one episode of one environment."""

    observations: dict[str, NDArray[Any]]
    """Arrays `(T + 1, ...)` by observation key."""
    states: Array
    """`(T + 1, D)`, `mjSTATE_INTEGRATION` of the simulation before each action and after the last."""
    actions: NDArray[Any]
    """`(T, A)`, exactly what `env.step` was given (commanded)."""
    applied: Array
    """`(T, nu)`, MuJoCo's `ctrl` at the end of each step (applied)."""
    rewards: Array
    """`(T,)`."""
    terminated: NDArray[np.bool_]
    """`(T,)`."""
    truncated: NDArray[np.bool_]
    """`(T,)`."""
    success: NDArray[np.bool_]
    """`(T,)`, `info["is_success"]` after each action."""
    sim_time: Array
    """`(T,)`, simulated time before each action [s]."""
    wall_time: Array
    """`(T,)`, Unix time when each action was given [s]."""
    streams: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Further arrays `(T, ...)` by slash-separated name, such as `device/right` or `target/right`."""
    label: str = "unlabelled"
    """One of `LABELS`."""
    meta: dict[str, Any] = field(default_factory=dict)
    """What JSON can hold: seed, reset_options, versions, device, operator, quality, and `mjcf` (XML)."""

    def __len__(self) -> int:
        """Return T, the number of actions."""
        return len(self.actions)
