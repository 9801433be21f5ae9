"""How good is a policy? Success over seeded episodes that it has not seen, with an interval."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode

from bunraku.registration import env_id
from bunraku.training.features import flatten
from bunraku.training.networks import mean_action

BATCH = 128
"""Episodes that run at the same time."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Success and return of some episodes."""

    episodes: int
    """Their number."""
    success_rate: float
    """Share of episodes that were a success when they ended."""
    success_low: float
    """Lower end of the 95 % interval (Wilson, 1927)."""
    success_high: float
    """Its upper end."""
    reached_rate: float
    """Share of episodes that were a success at some step."""
    mean_return: float
    """Mean sum of rewards."""
    mean_length: float
    """Mean number of steps."""


def evaluate(
    act: Callable[[Any], Any],
    env: str,
    env_kwargs: dict[str, Any],
    *,
    episodes: int = 100,
    seed: int = 1_000_000,
    max_episode_steps: int | None = None,
    log: Path | None = None,
    told: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Run a policy on fresh episodes, many at a time.

    Args:
        act: Returns actions `(N, A)` for observations with a leading axis.
        env: Short name or id.
        env_kwargs: Options.
        episodes: Number of episodes; the i-th is seeded with `seed + i`.
        seed: First seed; far from those of training by default.
        max_episode_steps: Steps of an episode; the environment's own limit by default.
        log: A CSV file for a row per episode.
        told: Called after each episode.
    """
    rows: list[tuple[int, bool, bool, float, int]] = []
    for first in range(0, episodes, BATCH):
        count = min(BATCH, episodes - first)
        for row in _run(act, env, env_kwargs, count, seed + first, max_episode_steps):
            rows.append(row)
            told()
    if log is not None:
        with open(log, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["seed", "success", "reached", "return", "length"])
            writer.writerows(rows)
    successes = sum(row[1] for row in rows)
    low, high = wilson(successes, len(rows))
    return Evaluation(
        episodes=len(rows),
        success_rate=successes / len(rows),
        success_low=low,
        success_high=high,
        reached_rate=sum(row[2] for row in rows) / len(rows),
        mean_return=float(np.mean([row[3] for row in rows])),
        mean_length=float(np.mean([row[4] for row in rows])),
    )


def wilson(successes: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson, 1927)."""
    z, p = 1.959964, successes / count
    centre = (p + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return max(0.0, centre - half), min(1.0, centre + half)


def torch_actor(policy: Any) -> Callable[[Any], Any]:
    """Return the deterministic policy as a function of observations with a leading axis."""

    def act(observation: Any) -> Any:
        with torch.no_grad():
            rows = torch.as_tensor(flatten(observation).astype(np.float32))
            return torch.clamp(mean_action(policy, rows), -1.0, 1.0).numpy()

    return act


def _run(
    act: Callable[[Any], Any], env: str, env_kwargs: dict[str, Any], count: int, seed: int, limit: int | None
) -> list[tuple[int, bool, bool, float, int]]:
    steps: dict[str, Any] = {} if limit is None else {"max_episode_steps": limit}
    envs = gymnasium.make_vec(
        env if "/" in env else env_id(env),
        num_envs=count,
        vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.DISABLED,
        **steps,
        **env_kwargs,
    )
    try:
        observation, _ = envs.reset(seed=seed)
        running = np.ones(count, dtype=bool)
        success, reached = np.zeros(count, dtype=bool), np.zeros(count, dtype=bool)
        returns, lengths = np.zeros(count), np.zeros(count, dtype=np.int64)
        while running.any():
            observation, reward, terminated, truncated, info = envs.step(act(observation))
            returns[running] += reward[running]
            lengths[running] += 1
            success[running] = info["is_success"][running]
            reached |= running & info["is_success"]
            running &= ~(terminated | truncated)
        return [
            (seed + i, bool(success[i]), bool(reached[i]), float(returns[i]), int(lengths[i]))
            for i in range(count)
        ]
    finally:
        envs.close()
