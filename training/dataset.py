"""Demonstrations as rows for behaviour cloning and for replay buffers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bunraku.episode.episode import Episode
from bunraku.episode.format import differences
from bunraku.episode.reader import EpisodeFile
from bunraku.errors import BunrakuError
from bunraku.registration import env_id
from bunraku.training.config import RunConfig
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


def load_demonstrations(
    path: str | Path, mask: str | None, *, drop_idle: bool, interventions: bool = False
) -> Demonstrations:
    """Load a demonstration file.

    Args:
        path: The file.
        mask: Filter list, such as `success`; None for all episodes.
        drop_idle: Leave out rows in which the operator rests before the first success: the hand lets go to reach
            again, which has no cause in the observation and would teach a policy to stop.
        interventions: Only rows in which the operator had taken over from a policy.

    Raises:
        BunrakuError: There is nothing to learn from, or a number is not finite.
    """
    with EpisodeFile(path) as file:
        names = episode_names(file, path, mask)
        rows, acts, numbers, longest = [], [], [], 0
        for number, name in enumerate(names):
            episode = file.load(name)
            observations = flatten({key: array[:-1] for key, array in episode.observations.items()})
            check_episode(episode, name, path)
            keep = np.ones(len(episode), dtype=bool)
            if drop_idle:
                keep = moving_rows(episode.actions, episode.success)
            if interventions:
                keep &= _interventions(episode, name, path)
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


def _interventions(episode: Episode, name: str, path: str | Path) -> NDArray[np.bool_]:
    if "intervention" not in episode.streams:
        raise BunrakuError(
            f"{name} of {path} does not say where the operator took over; record it with collect --policy"
        )
    return np.asarray(episode.streams["intervention"], dtype=bool)


OF_THE_GOAL = {"reward_type", "success_threshold", "angle_threshold", "terminate_on_success"}
"""Options that change what is asked for, and not what an action does."""


def episode_names(file: EpisodeFile, path: str | Path, mask: str | None) -> list[str]:
    """Return the names of the episodes in a filter list (None: all).

    Raises:
        BunrakuError: There is none.
    """
    names = file.names(mask)
    if not names:
        raise BunrakuError(f"{path} has no episode{f' in {mask}' if mask else ''} to learn from; record some")
    return names


def check_episode(episode: Episode, name: str, path: str | Path) -> None:
    """Raise BunrakuError if an observation or an action is not finite."""
    parts = {f"observations {key}": array for key, array in episode.observations.items()}
    for what, array in {**parts, "actions": episode.actions}.items():
        if not np.isfinite(array).all():
            raise BunrakuError(f"{name} of {path} has {what} that are not finite; delete it first")


def check_actions(actions: NDArray[Any], path: str | Path, env: str, space: spaces.Box) -> None:
    """Raise BunrakuError if the actions of a file are not those of an environment."""
    if space.shape != actions.shape[1:]:
        raise BunrakuError(
            f"{path} has actions of shape {actions.shape[1:]}, {env} takes {space.shape}; record with this version and "
            "these options"
        )


def check_same_task(file: EpisodeFile, path: str | Path, config: RunConfig) -> None:
    """Raise BunrakuError if a file was recorded in another environment, or with options that change its actions."""
    wanted = config.env if "/" in config.env else env_id(config.env)
    if file.env_id != wanted:
        raise BunrakuError(
            f"{path} was recorded in {file.env_id}, not in {wanted}; give another file or --env"
        )
    there = {key: value for key, value in file.env_kwargs.items() if key not in OF_THE_GOAL}
    here = {key: value for key, value in config.env_kwargs.items() if key not in OF_THE_GOAL}
    if found := differences(there, here):
        raise BunrakuError(
            f"{path} was recorded with other options: {'; '.join(found)}; give them as --option"
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
