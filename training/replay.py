"""Demonstrations in the replay buffer of an off-policy learner, so that it begins with what an operator did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bunraku.episode.episode import Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.training.config import RunConfig
from bunraku.training.dataset import check_actions, check_episode, check_same_task, episode_names


def fill_replay_buffer(model: Any, path: Path, config: RunConfig) -> int:
    """Put the successful demonstrations of a file into the buffer of an algorithm.

    The buffer has a lane per simulation, and takes a row of all lanes at a time; so the episodes are laid out in as
    many lanes, one after another, until the shortest lane ends.

    Args:
        model: The algorithm, with its environment.
        path: The demonstrations.
        config: The run that they are for.

    Returns:
        Number of transitions.

    Raises:
        BunrakuError: The file is of another environment or action space, is empty, or not finite.
    """
    buffer, lanes = model.replay_buffer, model.n_envs
    with EpisodeFile(path) as file:
        check_same_task(file, path, config)
        names = episode_names(file, path, "success")
        episodes = [file.load(name) for name in names]
        for name, episode in zip(names, episodes, strict=True):
            check_episode(episode, name, path)
            check_actions(episode.actions, path, config.env, model.action_space)
    # with fewer episodes than lanes some are laid out twice
    order = [episodes[i % len(episodes)] for i in range(max(len(episodes), lanes))]
    streams = [_joined(order[lane::lanes]) for lane in range(lanes)]
    count = min(min(len(stream["reward"]) for stream in streams), buffer.buffer_size)
    for stream in streams:
        stream["done"][count - 1] = True
    _reward(model, streams)
    for row in range(count):
        at = [{key: part[row] for key, part in stream.items()} for stream in streams]
        done = np.array([one["done"] for one in at])
        buffer.add(
            {key: np.stack([one["obs " + key] for one in at]) for key in episodes[0].observations},
            {key: np.stack([one["next " + key] for one in at]) for key in episodes[0].observations},
            np.stack([one["action"] for one in at]),
            np.array([one["reward"] for one in at]),
            done,
            # a demonstration that stops is not over: what follows is still worth something
            [{"TimeLimit.truncated": bool(d)} for d in done],
        )
    return count * lanes


def _joined(episodes: list[Episode]) -> dict[str, Any]:
    keys = episodes[0].observations
    parts = {"obs " + key: np.concatenate([e.observations[key][:-1] for e in episodes]) for key in keys}
    parts |= {"next " + key: np.concatenate([e.observations[key][1:] for e in episodes]) for key in keys}
    ends = np.cumsum([len(e) for e in episodes]) - 1
    done = np.zeros(int(ends[-1]) + 1, dtype=bool)
    done[ends] = True
    return parts | {
        "action": np.concatenate([e.actions for e in episodes]),
        "reward": np.concatenate([e.rewards for e in episodes]),
        "done": done,
    }


def _reward(model: Any, streams: list[dict[str, Any]]) -> None:
    """Where the reward follows from goals, take the one of this run: its threshold or kind may differ."""
    if "next achieved_goal" not in streams[0]:
        return
    for stream in streams:
        goals = stream["next achieved_goal"], stream["next desired_goal"]
        stream["reward"] = model.get_env().env_method("compute_reward", *goals, {})[0]
