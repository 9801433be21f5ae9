"""Observations on their way into a network: in one row, in a fixed order, scaled by numbers saved with the policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

SMALLEST_SPREAD = 1e-3
"""Components that vary less than this are only centred, not blown up."""

FINE = 5.0
"""Gain of the finely scaled way to the goal."""


def keys_of(space: spaces.Space[Any]) -> list[str]:
    """Return the keys of a dictionary space in the order in which they are joined, or `[""]` for a box."""
    return sorted(space.keys()) if isinstance(space, spaces.Dict) else [""]


def flatten(observation: Any) -> NDArray[np.float64]:
    """Return rows `(N, n)` of an observation: a dictionary's parts by sorted key, or an array as it is."""
    if not isinstance(observation, Mapping):
        rows = np.asarray(observation, dtype=np.float64)
        return rows.reshape(len(rows), -1)
    parts = [np.asarray(observation[key], dtype=np.float64) for key in sorted(observation)]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


class NormalisedFeatures(BaseFeaturesExtractor):
    """Joins the parts of an observation and scales them to mean 0 and spread 1.

    Where there are goals it adds the way from the achieved to the desired goal twice: scaled as the goals are, and
    finely with saturation, so that the last centimetres count as much as all the way before. The other parts can be
    made to count less: from a hundred episodes no network can tell which of 30 joint angles and speeds matter.
    """

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        mean: list[float] | None = None,
        std: list[float] | None = None,
        state_weight: float = 1.0,
    ) -> None:
        """Take the scale.

        Args:
            observation_space: A box, or a dictionary of boxes.
            mean: Means `(n,)` of the joined parts, zeros by default.
            std: Their spreads, ones by default.
            state_weight: Where there are goals, weight of all parts but the way to the goal.
        """
        self.keys = keys_of(observation_space)
        parts: list[Any] = (
            [observation_space[key] for key in self.keys]
            if isinstance(observation_space, spaces.Dict)
            else [observation_space]
        )
        sizes = [int(np.prod(part.shape)) for part in parts]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        self._goals: tuple[slice, slice] | None = None
        extra = 0
        if {"achieved_goal", "desired_goal"} <= set(self.keys):
            achieved, desired = (self.keys.index(key) for key in ("achieved_goal", "desired_goal"))
            self._goals = (
                slice(int(starts[achieved]), int(starts[achieved + 1])),
                slice(int(starts[desired]), int(starts[desired + 1])),
            )
            extra = 2 * sizes[achieved]
        size = int(starts[-1])
        super().__init__(observation_space, size + extra)
        self.state_weight = state_weight
        self.mean: torch.Tensor
        self.scale: torch.Tensor
        centre = np.zeros(size) if mean is None else np.asarray(mean)
        spread = np.ones(size) if std is None else np.asarray(std)
        spread = np.where(spread < SMALLEST_SPREAD, 1.0, spread)
        self.register_buffer("mean", torch.as_tensor(centre, dtype=torch.float32))
        self.register_buffer("scale", torch.as_tensor(1.0 / spread, dtype=torch.float32))

    def forward(self, observations: Any) -> torch.Tensor:
        """Return features `(N, m)` of observations, given by key or joined `(N, n)`."""
        if isinstance(observations, Mapping):
            rows = torch.cat([observations[key].flatten(1) for key in self.keys], dim=1)
        else:
            rows = observations.flatten(1)
        scaled = (rows - self.mean) * self.scale
        if self._goals is None:
            return scaled
        scaled = self.state_weight * scaled
        achieved, desired = self._goals
        way = (rows[:, desired] - rows[:, achieved]) * self.scale[desired]
        return torch.cat([scaled, way, torch.tanh(FINE * way)], dim=1)
