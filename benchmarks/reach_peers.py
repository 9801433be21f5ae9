"""Our reach against panda-gym's: CPU time per simulated second, end-effector mode, one simulation and 64.

A simulated second and not a step is the unit, as the steps differ (50 ms and 40 ms); CPU time and not wall time, as
ours uses all cores for 64.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import panda_gym  # noqa: F401 - registers its environments
from timing import Result

import bunraku  # noqa: F401 - registers the environments

SECONDS = 8.0


def _cpu(step: Callable[[], Any], seconds: float, count: int) -> float:
    """Return CPU microseconds per simulated second of `count` steps of `seconds` each."""
    begin = time.process_time()
    for _ in range(count):
        step()
    return 1e6 * (time.process_time() - begin) / (count * seconds)


def run(repeats: int = 5) -> list[Result]:
    """Run the benchmark."""
    rng = np.random.default_rng(0)
    one: Any = gymnasium.make("bunraku/PandaReach-v0", max_episode_steps=-1, disable_env_checker=True)
    many: Any = gymnasium.make_vec(
        "bunraku/PandaReach-v0", num_envs=64, vectorization_mode="vector_entry_point", max_episode_steps=None
    )
    peer: Any = gymnasium.make("PandaReach-v3", disable_env_checker=True)
    for env in (one, many, peer):
        env.reset(seed=0)

    def peer_step() -> None:
        _, _, terminated, truncated, _ = peer.step(rng.uniform(-1, 1, 3).astype(np.float32))
        if terminated or truncated:
            peer.reset()

    rounds = []
    for _ in range(repeats + 1):
        rounds.append(
            (
                _cpu(lambda: one.step(rng.uniform(-1, 1, 3)), 0.05, int(SECONDS / 0.05)),
                _cpu(lambda: many.step(rng.uniform(-1, 1, (64, 3))), 64 * 0.05, int(SECONDS / 0.05) // 8),
                _cpu(peer_step, 0.04, int(SECONDS / 0.04)),
            )
        )
    del rounds[0]  # warm-up

    def result(name: str, column: int, required: float) -> Result:
        ratios = [row[2] / row[column] for row in rounds]
        ours, other = (statistics.median(row[i] for row in rounds) for i in (column, 2))
        return Result(name, ours, other, statistics.median(ratios), "CPU us/s", repeats, required)

    return [
        result("reach-peers single against panda-gym", 0, 3.0),
        result("reach-peers 64 against panda-gym", 1, 6.0),
    ]
