"""Policies of run folders: saved, loaded, and written as ONNX for those who have no torch."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces

import bunraku  # noqa: F401 - registers the environments
from bunraku.errors import BunrakuError, MissingDependencyError
from bunraku.policy import INPUT, METADATA, OUTPUT, OnnxPolicy
from bunraku.registration import env_id
from bunraku.training.config import RunConfig
from bunraku.training.features import keys_of
from bunraku.training.networks import mean_action
from bunraku.training.vec_env import _single_precision

POLICY = "policy.pt"
ONNX = "policy.onnx"


def spaces_of(env: str, env_kwargs: dict[str, Any]) -> tuple[spaces.Space[Any], spaces.Box]:
    """Return the observation space, in single precision, and the action space of an environment."""
    made = gymnasium.make(env if "/" in env else env_id(env), disable_env_checker=True, **env_kwargs)
    try:
        action = made.action_space
        if not isinstance(action, spaces.Box):
            raise BunrakuError(f"{env} has actions of {type(action).__name__}; a box is needed")
        return _single_precision(made.observation_space), action
    finally:
        made.close()


def save_policy(folder: Path, policy: Any, config: RunConfig) -> None:
    """Save a policy's weights and how it is made, for `load_policy`; complete or not at all."""
    unfinished = folder / (POLICY + ".new")
    torch.save(policy, unfinished)
    os.replace(unfinished, folder / POLICY)


def load_policy(folder: Path) -> Any:
    """Return the policy of a run.

    The file is one that `bunraku train` wrote: like every torch or stable-baselines3 file it can execute code, so
    load only runs that you trust.

    Raises:
        BunrakuError: The run has none, or it cannot be read.
    """
    path = folder / POLICY
    if not path.exists():
        raise BunrakuError(
            f"{folder} has no {POLICY}: the run was stopped before its first checkpoint; train it again"
        )
    try:
        policy = torch.load(path, weights_only=False, map_location="cpu")
    except (RuntimeError, EOFError, OSError, AttributeError, ImportError) as error:
        raise BunrakuError(f"{path} cannot be read ({error}); take it from a copy") from error
    policy.set_training_mode(False)
    return policy


class _Deployed(torch.nn.Module):
    """What is exported: joined observations in, clipped deterministic actions out."""

    def __init__(self, policy: Any) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.clamp(mean_action(self.policy, rows), -1.0, 1.0)


def export_onnx(policy: Any, config: RunConfig, path: Path) -> float:
    """Write a policy with its normalisation, and compare it with torch on 1,000 observations.

    Returns:
        Largest difference of any action.

    Raises:
        MissingDependencyError: There is no onnx.
        BunrakuError: The difference is over 1e-5.
    """
    try:
        import onnx
    except ImportError as error:
        raise MissingDependencyError("onnx", "the export of a policy", "train") from error
    space = policy.observation_space
    parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    keys = keys_of(space)
    sizes = [int(np.prod(parts[key].shape or ())) for key in keys]
    module = _Deployed(policy).eval()
    example = torch.zeros(2, sum(sizes))
    unfinished = path.with_name(path.name + ".new")
    with warnings.catch_warnings():
        # the newer exporter needs onnxscript, and gains nothing for a few layers
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            module, (example,), str(unfinished), input_names=[INPUT], output_names=[OUTPUT],
            dynamic_axes={INPUT: {0: "n"}, OUTPUT: {0: "n"}}, dynamo=False,
        )  # fmt: skip
    model = onnx.load(str(unfinished))
    entry = model.metadata_props.add()
    entry.key = METADATA
    entry.value = json.dumps(
        {
            "env": config.env,
            "env_kwargs": config.env_kwargs,
            "keys": keys,
            "sizes": sizes,
            "max_episode_steps": config.max_episode_steps,
        },
        default=str,
    )
    onnx.save(model, str(unfinished))
    os.replace(unfinished, path)
    rows = np.random.default_rng(0).normal(size=(1000, sum(sizes))).astype(np.float32)
    scale = policy.features_extractor if hasattr(policy, "mlp_extractor") else policy.actor.features_extractor
    rows = rows / scale.scale.numpy() + scale.mean.numpy()
    with torch.no_grad():
        expected = module(torch.as_tensor(rows)).numpy()
    difference = float(np.abs(OnnxPolicy(path).act(rows) - expected).max())
    if difference > 1e-5:
        raise BunrakuError(
            f"{path} differs from torch by {difference:.3g}; onnxruntime and torch do not agree here"
        )
    return difference
