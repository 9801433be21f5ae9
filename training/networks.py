"""The policy network that behaviour cloning fills and reinforcement learning goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy

from bunraku.training.features import NormalisedFeatures


def policy_kwargs(
    hidden: Sequence[int],
    log_std: float,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    state_weight: float = 1.0,
) -> dict[str, Any]:
    """Return what stable-baselines3's actor-critic policies are made with.

    Args:
        hidden: Sizes of the hidden layers, of actor and critic alike.
        log_std: Logarithm of the first spread of the actions.
        mean: Means of the observations' components, for their scale.
        std: Their spreads.
        state_weight: Weight of the observation beside the way to a goal, where there is one.
    """
    extractor = {
        "mean": None if mean is None else [float(m) for m in mean],
        "std": None if std is None else [float(s) for s in std],
        "state_weight": state_weight,
    }
    return {
        "net_arch": {"pi": list(hidden), "vf": list(hidden)},
        "log_std_init": log_std,
        "activation_fn": torch.nn.Tanh,
        "features_extractor_class": NormalisedFeatures,
        "features_extractor_kwargs": extractor,
    }


def make_policy(
    observation_space: spaces.Space[Any], action_space: spaces.Box, kwargs: dict[str, Any]
) -> ActorCriticPolicy:
    """Return an untrained actor-critic policy for an environment's spaces."""
    if isinstance(observation_space, spaces.Dict):
        return MultiInputActorCriticPolicy(observation_space, action_space, lambda _: 1e-3, **kwargs)
    return ActorCriticPolicy(observation_space, action_space, lambda _: 1e-3, **kwargs)


def mean_action(policy: Any, rows: torch.Tensor) -> torch.Tensor:
    """Return the deterministic action `(N, A)` of joined observations `(N, n)`, before it is clipped to [-1, 1]."""
    if hasattr(policy, "mlp_extractor"):  # PPO
        scaled = policy.features_extractor(rows)
        action: torch.Tensor = policy.action_net(policy.mlp_extractor.forward_actor(scaled))
        return action
    actor = policy.actor
    scaled = actor.features_extractor(rows)
    if hasattr(actor, "latent_pi"):  # SAC, TQC
        return torch.tanh(actor.mu(actor.latent_pi(scaled)))
    deterministic: torch.Tensor = actor.mu(scaled)  # TD3
    return deterministic


def seed_everything(seed: int) -> np.random.Generator:
    """Seed torch and return a generator for the rest."""
    torch.manual_seed(seed)
    return np.random.default_rng(seed)
