"""Random numbers that are a function of a key and a counter, so that a restored episode draws the same ones again.

A generator has a hidden state that no simulation's state holds. Here an episode keeps one key, drawn at its reset,
and counts its steps: the numbers follow from both. The mixing is that of SplitMix64 (Steele, Lea, Flood, 2014).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.geometry import Array

KEYS = 2**53
"""Keys are whole numbers below this: a double holds them exactly."""
_STEP, _A, _B = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def _mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * _A
    z = (z ^ (z >> np.uint64(27))) * _B
    return z ^ (z >> np.uint64(31))


def uniform(key: ArrayLike, counter: ArrayLike, stream: int, n: int) -> Array:
    """Return `(..., n)` numbers, uniform in [0, 1).

    Args:
        key: Keys of the episodes `(...)`, whole numbers in [0, KEYS).
        counter: Counters `(...)`, whole numbers.
        stream: Which use: numbers of two streams have nothing in common.
        n: How many.
    """
    keys = np.asarray(key, dtype=np.float64)[..., None].astype(np.uint64)
    counters = np.asarray(counter, dtype=np.float64)[..., None].astype(np.uint64)
    offset = np.uint64((stream * int(_STEP)) % 2**64)
    base = _mix(_mix(keys + offset) ^ (counters * _STEP))
    bits = _mix(base + np.arange(1, n + 1, dtype=np.uint64) * _STEP)
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def symmetric(key: ArrayLike, counter: ArrayLike, stream: int, n: int) -> Array:
    """Return `(..., n)` numbers, uniform in [-1, 1)."""
    return 2.0 * uniform(key, counter, stream, n) - 1.0
