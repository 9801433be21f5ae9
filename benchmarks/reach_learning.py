"""CPU seconds until PPO reaches 100 of 100 goals, against panda-gym's reach with the same algorithm.

Learning alone is counted: this process's CPU time without imports and without the evaluations. Both sides are asked
for 5 cm at the end of 50 steps; ours also says when it had 1 cm. Needs panda-gym (and its pybullet) beside bunraku.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import panda_gym  # noqa: F401 - registers its environments
import torch
from gymnasium.vector import AutoresetMode
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from timing import Result

import bunraku  # noqa: F401 - registers the environments
from bunraku.training.config import RunConfig
from bunraku.training.evaluate import torch_actor
from bunraku.training.presets import environment_options, preset
from bunraku.training.rl import RLSettings, _make_envs, _make_model

EVERY, MOST, GOALS = 1024, 40_960, 100


class _Clock(BaseCallback):
    """Notes the CPU time at which the distances after an episode were all under each threshold."""

    def __init__(self, distances: Callable[[], Any], thresholds: tuple[float, ...], began: float) -> None:
        super().__init__()
        self.found: dict[float, float] = {}
        self._distances, self._thresholds, self._began = distances, thresholds, began
        self._checked, self._outside = 0, 0.0

    def _on_step(self) -> bool:
        return len(self.found) < len(self._thresholds)

    def _on_rollout_start(self) -> None:
        if self.num_timesteps - self._checked < EVERY:
            return
        self._checked = self.num_timesteps
        now = time.process_time()
        distances = self._distances()
        for threshold in self._thresholds:
            if (distances < threshold).all():
                self.found.setdefault(threshold, now - self._began - self._outside)
        self._outside += time.process_time() - now


def _ours(seed: int) -> dict[float, float]:
    options, limit = environment_options("PandaReach", "ppo")
    config = RunConfig("rl", "PandaReach", options, limit, seed, {})
    settings = RLSettings(algorithm="ppo", steps=MOST, **preset("PandaReach", "ppo"))
    shown = gymnasium.make_vec(
        "bunraku/PandaReach-v0", num_envs=GOALS, vectorization_mode="vector_entry_point",
        autoreset_mode=AutoresetMode.DISABLED, max_episode_steps=None, **options,
    )  # fmt: skip

    def distances() -> Any:
        act = torch_actor(model.policy)
        seen, _ = shown.reset(seed=1_000_000)
        for _ in range(50):
            seen, *_ = shown.step(act(seen))
        return np.linalg.norm(seen["achieved_goal"] - seen["desired_goal"], axis=1)

    began = time.process_time()
    envs = _make_envs(config, settings)
    model = _make_model(config, settings, envs)
    clock = _Clock(distances, (0.05, 0.01), began)
    model.learn(MOST, callback=clock)
    envs.close()
    shown.close()
    return clock.found


def _peer(seed: int) -> dict[float, float]:
    # panda-gym ends an episode at the touch; this is the same goal, and its own reward
    began = time.process_time()
    envs = make_vec_env("PandaReachDense-v3", n_envs=8, seed=seed)
    model = PPO(
        "MultiInputPolicy", envs, n_steps=128, batch_size=256, n_epochs=10, learning_rate=1e-3, gamma=0.9,
        gae_lambda=0.9, seed=seed, device="cpu", policy_kwargs={"net_arch": [64, 64], "log_std_init": -0.5},
    )  # fmt: skip
    shown = gymnasium.make("PandaReachDense-v3")

    def distances() -> Any:
        found = []
        for i in range(GOALS):
            seen, _ = shown.reset(seed=1_000_000 + i)
            ended = False
            while not ended:
                seen, _, terminated, truncated, _ = shown.step(model.predict(seen, deterministic=True)[0])
                ended = terminated or truncated
            found.append(np.linalg.norm(seen["achieved_goal"] - seen["desired_goal"]))
        return np.array(found)

    clock = _Clock(distances, (0.05,), began)
    model.learn(MOST, callback=clock)
    envs.close()
    shown.close()
    return clock.found


def run(repeats: int = 3) -> list[Result]:
    """Run the benchmark; `repeats` is the number of seeds."""
    torch.set_num_threads(1)
    pairs = [(_ours(seed), _peer(seed)) for seed in range(repeats)]
    never = float("inf")
    near = [ours.get(0.05, never) for ours, _ in pairs]
    close = [ours.get(0.01, never) for ours, _ in pairs]
    peer = [theirs.get(0.05, never) for _, theirs in pairs]
    details = {"ours_5cm_s": near, "ours_1cm_s": close, "peer_5cm_s": peer}

    def result(name: str, ours: float, other: float, required: float) -> Result:
        return Result(name, ours, other, other / ours, "CPU s", repeats, required, details)

    return [
        result(
            "reach-learning 5 cm against panda-gym", statistics.median(near), statistics.median(peer), 3.0
        ),
        result("reach-learning 5 cm, slowest seed, against 6 s", max(near), 6.0, 1.0),
        result("reach-learning 1 cm, slowest seed, against 12 s", max(close), 12.0, 1.0),
    ]
