"""Episodes that differ from the others in a measure of quality."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

MEASURES = ("seconds", "jerk", "idle_share", "path_efficiency", "pose_age_ms", "dropped", "clutches")
"""Measures that are compared."""

LIMIT = 3.5
"""Deviations from the median, in units of the spread of the middle of the episodes, from which one stands out."""

FEWEST = 5
"""Of fewer episodes none stands out."""

_FLOOR = {"seconds": 0.5, "jerk": 2.0, "idle_share": 0.03, "path_efficiency": 0.02, "pose_age_ms": 1.0}
"""Smallest spread by measure: equal episodes do not make a small difference an outlier."""


def outliers(facts: Mapping[str, Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the reasons why episodes stand out, by name; those that do not are absent.

    A deviation counts in units of 1.4826 times the median absolute deviation, which is the standard deviation
    where numbers are normally distributed, and does not grow with the outliers themselves.

    Args:
        facts: Measures of each episode.
    """
    found: dict[str, list[str]] = {}
    for measure in MEASURES:
        known = {
            name: float(fact[measure])
            for name, fact in facts.items()
            if isinstance(fact.get(measure), int | float) and np.isfinite(fact[measure])
        }
        if len(known) < FEWEST:
            continue
        values = np.array(list(known.values()))
        middle = float(np.median(values))
        spread = max(1.4826 * float(np.median(np.abs(values - middle))), _FLOOR.get(measure, 1.0))
        for name, value in known.items():
            if abs(value - middle) > LIMIT * spread:
                words = measure.replace("_", " ")
                found.setdefault(name, []).append(f"{words} {value:.3g} (median {middle:.3g})")
    return found
