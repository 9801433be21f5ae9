"""Settings that were found to work, by environment and algorithm. What is given on the command line goes first."""

from __future__ import annotations

from typing import Any

ON_POLICY: dict[str, Any] = {
    "num_envs": 64,
    "learning_rate": 3e-3,
    "gamma": 0.8,
    "hidden": (64, 64),
    "n_steps": 8,
    "batch_size": 256,
    "n_epochs": 10,
    "gae_lambda": 0.8,
    "clip_range": 0.3,
    "state_weight": 0.02,
    "log_std": -0.5,
}
"""PPO: small rollouts of many simulations, large batches. A reach is decided within a few steps, so the discount is
short; joint angles and speeds hardly count, as few episodes cannot tell which of them matter.
"""

OFF_POLICY: dict[str, Any] = {
    "num_envs": 8,
    "learning_rate": 1e-3,
    "gamma": 0.95,
    "hidden": (64, 64),
    "batch_size": 256,
    "gradient_steps": 4,
    "state_weight": 0.05,
}
"""SAC, TD3 and TQC with hindsight replay."""

ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "PandaReach": {"env_kwargs": {"reward_type": "dense"}, "max_episode_steps": 20},
}
"""By short name: options of the environment for on-policy learning, and steps of an
episode: a goal is at most ten steps away, and short episodes show more goals."""


def preset(env: str, algorithm: str) -> dict[str, Any]:
    """Return the settings for an environment's short name and an algorithm."""
    return dict(ON_POLICY if algorithm == "ppo" else OFF_POLICY)


def environment_options(env: str, algorithm: str) -> tuple[dict[str, Any], int | None]:
    """Return options of the environment and its step limit; off-policy learners get the sparse reward for hindsight."""
    known = ENVIRONMENTS.get(env, {})
    kwargs = dict(known.get("env_kwargs", {})) if algorithm == "ppo" else {}
    return kwargs, known.get("max_episode_steps")
