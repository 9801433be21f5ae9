"""Demonstrations as rows for behaviour cloning and for replay buffers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.episode.reader import EpisodeFile
from bunraku.errors import BunrakuError
from bunraku.training.features import flatten


@dataclass(frozen=True, slots=True)
class Demonstrations:
    """The rows of all episodes, one after another."""

    observations: NDArray[np.float32]
    """`(N, n)`, parts joined by sorted key."""
    actions: NDArray[np.float32]
    """`(N, A)`."""
    episode: NDArray[np.int64]
    """`(N,)`, number of the episode of each row."""
    env_id: str
    """The environment."""
    env_kwargs: dict[str, Any]
    """Its options."""
    longest: int
    """Rows of the longest episode."""


def load_demonstrations(path: str | Path, mask: str | None, *, drop_idle: bool) -> Demonstrations:
    """Load a demonstration file.

    Args:
        path: The file.
        mask: Filter list, such as `success`; None for all episodes.
        drop_idle: Leave out rows in which the operator rests before the first success: the hand lets go to reach
            again, which has no cause in the observation and would teach a policy to stop.

    Raises:
        BunrakuError: There is nothing to learn from, or a number is not finite.
    """
    with EpisodeFile(path) as file:
        names = file.names(mask)
        if not names:
            raise BunrakuError(
                f"{path} has no episode{f' in {mask}' if mask else ''} to learn from; record some"
            )
        rows, acts, numbers, longest = [], [], [], 0
        for number, name in enumerate(names):
            episode = file.load(name)
            observations = flatten({key: array[:-1] for key, array in episode.observations.items()})
            for what, array in (("observations", observations), ("actions", episode.actions)):
                if not np.isfinite(array).all():
                    raise BunrakuError(f"{name} of {path} has {what} that are not finite; delete it first")
            keep = np.ones(len(episode), dtype=bool)
            if drop_idle:
                keep = moving_rows(episode.actions, episode.success)
            rows.append(observations[keep].astype(np.float32))
            acts.append(episode.actions[keep].astype(np.float32))
            numbers.append(np.full(int(keep.sum()), number))
            longest = max(longest, len(episode))
        return Demonstrations(
            np.concatenate(rows),
            np.concatenate(acts),
            np.concatenate(numbers),
            file.env_id,
            file.env_kwargs,
            longest,
        )


def moving_rows(actions: NDArray[Any], success: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows `(T,)` are not rests of the operator before the first success.

    A row rests if every component has the value that it has in most rows of the episode in which nothing moves: 0 for
    speeds; a gripper's component does not count, as it keeps its value.
    """
    changing = np.ptp(actions, axis=0) > 1e-6
    rests = (np.abs(actions[:, changing]) < 1e-6).all(axis=1)
    solved = np.flatnonzero(success)
    first = int(solved[0]) if len(solved) else len(actions)
    return np.asarray(~rests | (np.arange(len(actions)) >= first))
