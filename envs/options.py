"""Checks of environment options: what was given, what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bunraku.errors import UnknownNameError
from bunraku.geometry import Array


def check_positive(name: str, value: float) -> None:
    """Raise ValueError unless `value` is a positive number."""
    if not value > 0.0:
        raise ValueError(f"{name} must be positive, got {value!r}")


def check_choice(name: str, value: str, choices: Iterable[str]) -> None:
    """Raise UnknownNameError unless `value` is one of `choices`."""
    if value not in choices:
        raise UnknownNameError(name, value, choices)


def check_known(kind: str, given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise UnknownNameError for the first key of `given` that is not known."""
    for key in given:
        if key not in known:
            raise UnknownNameError(kind, key, known)


def vector_option(name: str, value: Any, shape: tuple[int, ...]) -> Array | None:
    """Return an array option in the shape wanted, or None if it was not given.

    Args:
        name: The option's name, for the message.
        value: What was given: an array of that shape, or of the same number of elements in fewer axes.
        shape: The shape wanted.

    Raises:
        ValueError: If the number of elements is another, or one is not finite.
    """
    if value is None:
        return None
    array = np.asarray(value, dtype=np.float64)
    if array.size != int(np.prod(shape)):
        raise ValueError(f"option {name!r} needs shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"option {name!r} must be finite, got {array.tolist()}")
    return array.reshape(shape)
