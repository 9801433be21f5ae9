"""Checks of environment options: what was given, what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from bunraku.errors import UnknownNameError
from bunraku.geometry import Array, normalize


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
        value: What was given: an array of that shape, or all its elements in one axis.
        shape: The shape wanted.

    Raises:
        ValueError: If the shape is another, or an element is not a finite number.
    """
    if value is None:
        return None
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"option {name!r} needs numbers of shape {shape}, got {value!r}") from error
    # not any shape of so many elements: two goals as columns would be read as two other goals
    if array.shape not in (shape, (int(np.prod(shape)),)):
        raise ValueError(f"option {name!r} needs shape {shape}, got {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"option {name!r} must be finite, got {array.tolist()}")
    return array.reshape(shape)


def unit_quaternions(name: str, quats: Array | None) -> Array | None:
    """Return quaternions `(..., 4)` scaled to length 1, or None for None.

    Args:
        name: The option's name, for the message.
        quats: Quaternions (w, x, y, z) of any length but zero.

    Raises:
        ValueError: If one has no length, hence no direction.
    """
    if quats is None:
        return None
    if (np.abs(quats).max(axis=-1) < 1e-6).any():
        raise ValueError(f"option {name!r} needs quaternions (w, x, y, z), got {quats.tolist()}")
    return normalize(quats)
