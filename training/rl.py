"""Reinforcement learning with stable-baselines3 on our vector environments.

A run folder has checkpoints, from which `resume` goes on after a kill, a CSV and a TensorBoard log, and at the end
the policy. A number that is not finite stops the run with the last good checkpoint kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from stable_baselines3 import PPO, SAC, TD3, HerReplayBuffer
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.logger import configure

from bunraku.errors import BunrakuError, MissingDependencyError, UnknownNameError
from bunraku.training.checkpoints import read_state, save_checkpoint
from bunraku.training.config import RunConfig, begin_run, check_writable, read_run
from bunraku.training.features import NormalisedFeatures, flatten
from bunraku.training.networks import policy_kwargs
from bunraku.training.policies import load_policy, save_policy
from bunraku.training.replay import fill_replay_buffer
from bunraku.training.vec_env import SB3VecEnv
from bunraku.training.watcher import Stop, Watcher

ALGORITHMS = ("ppo", "sac", "td3", "tqc")


@dataclass(frozen=True)
class RLSettings:
    """How to learn."""

    algorithm: str
    """`ppo`, `sac`, `td3` or `tqc`."""
    steps: int
    """Control steps of all simulations together."""
    num_envs: int
    """Simulations."""
    learning_rate: float
    """Of the optimiser."""
    gamma: float
    """Discount."""
    hidden: tuple[int, ...]
    """Sizes of the hidden layers."""
    batch_size: int
    """Samples per update."""
    n_steps: int = 16
    """Steps of each simulation in a rollout (PPO)."""
    n_epochs: int = 10
    """Passes over a rollout (PPO)."""
    gae_lambda: float = 0.95
    """Of the generalised advantage estimate (PPO)."""
    clip_range: float = 0.2
    """How far the probability of an action may move in one rollout (PPO)."""
    log_std: float = -0.5
    """Logarithm of the first spread of the actions (PPO)."""
    state_weight: float = 1.0
    """Where there are goals: weight of the rest of the observation beside the way to the goal."""
    gradient_steps: int = 1
    """Updates per step of the simulations (SAC, TD3, TQC)."""
    hindsight: bool = True
    """Relabel goals in hindsight where the environment has goals (SAC, TD3, TQC)."""
    start: str = ""
    """Run folder of behaviour cloning whose weights are the start (PPO)."""
    demonstrations: str = ""
    """Demonstrations that are put in the replay buffer first (SAC, TD3, TQC)."""
    checkpoint_every: int = 20_000
    """Steps between checkpoints."""
    evaluate_every: int = 0
    """Steps between evaluations on fresh episodes; 0 for none."""
    stop_at: float = 0.0
    """Success rate of such an evaluation at which to stop; 0 for never."""
    evaluation_episodes: int = 100
    """Episodes of such an evaluation."""


def train_rl(
    config: RunConfig,
    out: Path,
    *,
    force: bool = False,
    told: Callable[[int], None] = lambda _: None,
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Begin a run.

    Args:
        config: The run; its settings are those of `RLSettings`.
        out: The run folder.
        force: Replace an existing run.
        told: Called with the number of new steps.
        say: Called with a sentence worth telling.

    Returns:
        Steps done, and what the last evaluation said, if there was one.
    """
    settings = RLSettings(**config.settings)
    if settings.algorithm not in ALGORITHMS:
        raise UnknownNameError("algorithm", settings.algorithm, ALGORITHMS)
    if settings.demonstrations and settings.algorithm == "ppo":
        raise BunrakuError(
            "ppo has no replay buffer for demonstrations; clone them and give the run as --start"
        )
    check_writable(out, force=force)
    torch.set_num_threads(1)
    envs = _make_envs(config, settings)
    try:
        model = _make_model(config, settings, envs)
        if settings.demonstrations:
            rows = fill_replay_buffer(model, Path(settings.demonstrations), config)
            say(f"{rows} demonstrated steps in the replay buffer")
        begin_run(out, config, force=force)
        # shows before any time is spent that there is room, and a run can always be resumed
        save_checkpoint(model, out)
        return _learn(model, config, settings, out, 0, told, say)
    finally:
        envs.close()


def resume_rl(
    out: Path, *, told: Callable[[int], None] = lambda _: None, say: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """Go on with a run that was stopped or killed, from its last checkpoint; `told` hears of the steps before, too.

    Raises:
        BunrakuError: The folder is no run, or has no checkpoint.
    """
    config = read_run(out)
    settings = RLSettings(**config.settings)
    state = read_state(out)
    torch.set_num_threads(1)
    envs = _make_envs(config, settings)
    try:
        kind = _kind(settings.algorithm)
        model = kind.load(out / state["model"], env=envs, device="cpu")
        if state["buffer"]:
            model.load_replay_buffer(out / state["buffer"])  # type: ignore[attr-defined]
        say(f"{out}: goes on at step {state['steps']}")
        told(int(state["steps"]))
        return _learn(model, config, settings, out, int(state["steps"]), told, say)
    finally:
        envs.close()


def _make_envs(config: RunConfig, settings: RLSettings) -> SB3VecEnv:
    envs = SB3VecEnv(
        config.env, config.env_kwargs, num_envs=settings.num_envs, max_episode_steps=config.max_episode_steps
    )
    envs.seed(config.seed)
    return envs


def _kind(algorithm: str) -> type[BaseAlgorithm]:
    if algorithm == "tqc":
        try:
            from sb3_contrib import TQC
        except ImportError as error:
            raise MissingDependencyError("sb3-contrib", "TQC", "train") from error
        return TQC
    kinds: dict[str, type[BaseAlgorithm]] = {"ppo": PPO, "sac": SAC, "td3": TD3}
    return kinds[algorithm]


def _make_model(config: RunConfig, settings: RLSettings, envs: SB3VecEnv) -> BaseAlgorithm:
    kind: Any = _kind(settings.algorithm)
    dictionary = isinstance(envs.observation_space, spaces.Dict)
    policy = "MultiInputPolicy" if dictionary else "MlpPolicy"
    common: dict[str, Any] = {
        "learning_rate": settings.learning_rate,
        "gamma": settings.gamma,
        "batch_size": settings.batch_size,
        "seed": config.seed,
        "device": "cpu",
    }
    scale = _scale(envs, config.seed)
    if settings.algorithm == "ppo":
        model = kind(
            policy, envs, n_steps=settings.n_steps, n_epochs=settings.n_epochs, gae_lambda=settings.gae_lambda,
            clip_range=settings.clip_range,
            policy_kwargs=policy_kwargs(settings.hidden, settings.log_std, *scale, settings.state_weight), **common,
        )  # fmt: skip
        if settings.start:
            _start_from(model, Path(settings.start), settings.log_std)
        return model
    if settings.start:
        raise BunrakuError(
            f"{settings.algorithm} starts from demonstrations, not from a cloned policy; use ppo"
        )
    goals = dictionary and {"achieved_goal", "desired_goal"} <= set(envs.observation_space.spaces)  # type: ignore[attr-defined]
    her = {"replay_buffer_class": HerReplayBuffer, "replay_buffer_kwargs": {"n_sampled_goal": 4}}
    horizon = config.max_episode_steps or 100
    return kind(
        policy, envs, gradient_steps=settings.gradient_steps, train_freq=1,
        # hindsight needs whole episodes before the first sample
        learning_starts=(horizon + 1) * settings.num_envs,
        policy_kwargs={
            "net_arch": list(settings.hidden),
            "features_extractor_class": NormalisedFeatures,
            "features_extractor_kwargs": {"mean": scale[0], "std": scale[1], "state_weight": settings.state_weight},
        },
        **(her if goals and settings.hindsight else {}), **common,
    )  # fmt: skip


def _scale(envs: SB3VecEnv, seed: int, steps: int = 16) -> tuple[list[float], list[float]]:
    """Return means and spreads of the observations under random actions, which the policy is scaled with."""
    rng = np.random.default_rng(seed)
    seen = [flatten(envs.reset())]
    for _ in range(steps):
        actions = rng.uniform(-1.0, 1.0, (envs.num_envs, *envs.action_space.shape))  # type: ignore[misc]
        seen.append(flatten(envs.step(actions)[0]))
    rows = np.concatenate(seen)
    return rows.mean(axis=0).tolist(), rows.std(axis=0).tolist()


def _start_from(model: Any, folder: Path, log_std: float) -> None:
    """Take the weights of a cloned policy, with small first steps of exploration."""
    cloned = load_policy(folder)
    if (
        cloned.observation_space != model.policy.observation_space
        or cloned.action_space != model.policy.action_space
    ):
        raise BunrakuError(
            f"{folder} was cloned for other observations or actions; train it on this environment"
        )
    kwargs = dict(cloned._get_constructor_parameters())
    model.policy = type(cloned)(**{**kwargs, "lr_schedule": model.lr_schedule})
    model.policy_kwargs = {key: kwargs[key] for key in model.policy_kwargs if key in kwargs}
    weights = cloned.state_dict()
    weights["log_std"] = torch.full_like(weights["log_std"], log_std)
    model.policy.load_state_dict(weights)


def _learn(
    model: Any,
    config: RunConfig,
    settings: RLSettings,
    out: Path,
    done: int,
    told: Callable[[int], None],
    say: Callable[[str], None],
) -> dict[str, Any]:
    model.set_logger(configure(str(out / f"log-{done:09d}"), _log_formats()))
    watcher = Watcher(config, settings, out, told, say)
    left = settings.steps - done
    if left > 0:
        try:
            model.learn(left, callback=watcher, reset_num_timesteps=done == 0, progress_bar=False)
        except Stop:
            pass  # an evaluation was good enough, or `failed` says what went wrong
        except ValueError as error:
            # torch's distributions refuse a mean (`loc`) or spread (`scale`) that is not finite
            bad = re.match(r"Expected parameter (loc|scale) ", str(error))
            watcher.failed = watcher.failed or watcher.diagnose()
            if bad and not watcher.failed:
                what = {"loc": "the mean", "scale": "the spread"}[bad[1]]
                watcher.failed = f"{what} of the actions is not finite at step {model.num_timesteps}"
            if not watcher.failed:
                raise
        except KeyboardInterrupt:
            save_checkpoint(model, out)
            save_policy(out, model.policy, config)
            raise
    if watcher.failed:
        raise BunrakuError(
            f"{out}: {watcher.failed}; stopped, the checkpoint of step {read_state(out)['steps']} is good: go on from "
            "it with --resume, or begin anew with a lower learning rate"
        )
    save_checkpoint(model, out)
    save_policy(out, model.policy, config)
    return {"steps": int(model.num_timesteps), **watcher.last}


def _log_formats() -> list[str]:
    try:
        import tensorboard  # type: ignore[import-untyped]  # noqa: F401
    except ImportError:
        return ["csv"]
    return ["csv", "tensorboard"]
