"""Pushes: a horizontal force on the root for a tenth of a second, every now and then.

The force stands in `xfrc_applied`, which is part of MuJoCo's state, and its schedule follows from the episode's key.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bunraku.envs.imitation.noise import uniform
from bunraku.geometry import Array

DURATION = 0.1
"""How long a push lasts [s]."""
INTERVAL = (1.0, 3.0)
"""Shortest and longest time between the ends and beginnings of pushes [s]."""
_STREAM = 1


def wait(key: Array, count: Array) -> Array:
    """Return the time before push number `count` `(...)` [s]."""
    low, high = INTERVAL
    return np.asarray(low + (high - low) * uniform(key, count, _STREAM, 2)[..., 0])


def direction(key: Array, count: Array) -> Array:
    """Return the horizontal direction of push number `count`, unit `(..., 3)`."""
    angle = 2.0 * np.pi * uniform(key, count, _STREAM, 2)[..., 1]
    return np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=-1)


def advance(key: Array, count: Array, timer: Array, step: float) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Return number `(...)` and time left `(...)` [s] of the coming push after a step, and whether it pushes `(...)`.

    Args:
        key: Keys of the episodes `(...)`.
        count: Number of the coming push `(...)`.
        timer: Time until it begins, negative once it has begun `(...)` [s].
        step: Time that passes [s].
    """
    timer = timer - step
    over = timer <= -DURATION + 1e-9
    count = np.where(over, count + 1.0, count)
    timer = np.where(over, wait(key, count), timer)
    return count, timer, timer <= 1e-9
