"""PPO end to end, simulation and learning, on our batched simulations against SubprocVecEnv of 8 processes.

Same environment, network, batch, epochs and torch threads; the rollout has 1,024 steps on both sides.
"""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import SubprocVecEnv, VecEnv
from timing import Result, in_turn

from bunraku.rollout import make_env
from bunraku.training.vec_env import SB3VecEnv

ROLLOUT, ROLLOUTS, BATCH = 1024, 2, 512
OPTIONS = {"reward_type": "dense"}


def _make_one() -> Any:
    return make_env("PandaReach", OPTIONS, 50)


def _model(envs: VecEnv) -> PPO:
    return PPO(
        "MultiInputPolicy", envs, n_steps=ROLLOUT // envs.num_envs, batch_size=BATCH, n_epochs=5, seed=0,
        device="cpu", policy_kwargs={"net_arch": [256, 256]},
    )  # fmt: skip


def run(repeats: int = 3) -> list[Result]:
    """Run the benchmark."""
    torch.set_num_threads(1)
    ours = _model(SB3VecEnv("PandaReach", OPTIONS, num_envs=128, max_episode_steps=50))
    peer = _model(SubprocVecEnv([_make_one] * 8, start_method="spawn"))
    try:
        return [
            in_turn(
                "ppo against SubprocVecEnv 8",
                lambda: ours.learn(ROLLOUTS * ROLLOUT),
                lambda: peer.learn(ROLLOUTS * ROLLOUT),
                per=ROLLOUTS * ROLLOUT,
                repeats=repeats,
                required=3.0,
            )
        ]
    finally:
        ours.get_env().close()  # type: ignore[union-attr]
        peer.get_env().close()  # type: ignore[union-attr]
