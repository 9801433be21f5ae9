"""Behaviour cloning: a policy that does what the demonstrations do (Pomerleau, 1989).

The network is stable-baselines3's actor-critic policy, so that PPO can go on from it. Episodes, not rows, are set
aside for validation, and the weights that validate best are kept.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bunraku.errors import BunrakuError
from bunraku.training.config import RunConfig, begin_run, check_writable
from bunraku.training.dataset import Demonstrations, check_actions, load_demonstrations
from bunraku.training.networks import make_policy, mean_action, policy_kwargs, seed_everything
from bunraku.training.policies import save_policy, spaces_of


@dataclass(frozen=True)
class BCSettings:
    """How to clone."""

    mask: str | None = "success"
    """Filter list to learn from; None for all episodes."""
    epochs: int = 200
    """Most passes over the rows."""
    batch_size: int = 256
    """Rows per update."""
    learning_rate: float = 1e-3
    """Adam's, annealed to zero by a cosine."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers."""
    validation: float = 0.1
    """Share of the episodes that is set aside."""
    patience: int = 40
    """Passes without a better validation after which to stop."""
    drop_idle: bool = True
    """Leave out rows in which the operator rests before the first success."""
    state_weight: float = 0.0
    """Where there are goals: weight of the rest of the observation beside the way to the goal. An operator's speed
    tells the next speed better than anything else, and a policy that has learned so stops once it is slow."""
    noise: float = 0.01
    """Noise added to the scaled observations while learning, so that small errors are known to the policy."""


def train_bc(
    data: Path,
    out: Path,
    settings: BCSettings,
    seed: int = 0,
    *,
    force: bool = False,
    told: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Clone a demonstration file into a run folder.

    Args:
        data: The demonstrations.
        out: The run folder.
        settings: How to clone.
        seed: Seed of the split, the weights and the order of the rows.
        force: Replace an existing run.
        told: Called after each pass.

    Returns:
        Number of passes, best validation error, and rows.

    Raises:
        BunrakuError: There is too little to learn from, or a loss is not finite.
    """
    check_writable(out, force=force)
    demos = load_demonstrations(data, settings.mask, drop_idle=settings.drop_idle)
    config = RunConfig(
        "bc", demos.env_id, demos.env_kwargs, demos.longest, seed, {**asdict(settings), "data": str(data)}
    )
    return clone(demos, config, settings, out, force=force, told=told)


def clone(
    demos: Demonstrations,
    config: RunConfig,
    settings: BCSettings,
    out: Path,
    *,
    start: Any = None,
    force: bool = False,
    told: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Fit a policy to rows of demonstrations, in a new run folder.

    Args:
        demos: The rows.
        config: The run.
        settings: How to clone.
        out: The run folder.
        start: Policy whose weights and scale are the start; None for a new one.
        force: Replace an existing run.
        told: Called after each pass.

    Returns:
        Number of passes, best validation error, and rows.
    """
    torch.set_num_threads(1)
    rng = seed_everything(config.seed)
    train, valid = _split(demos, settings.validation, rng)
    observation_space, action_space = spaces_of(demos.env_id, demos.env_kwargs)
    check_actions(demos.actions, str(config.settings["data"]), demos.env_id, action_space)
    policy = start
    if policy is None:
        mean, std = demos.observations[train].mean(axis=0), demos.observations[train].std(axis=0)
        kwargs = policy_kwargs(settings.hidden, -1.0, mean.tolist(), std.tolist(), settings.state_weight)
        policy = make_policy(observation_space, action_space, kwargs)
    policy.set_training_mode(True)
    begin_run(out, config, force=force)
    best, passes = _fit(policy, demos, train, valid, settings, out / "progress.csv", rng, told)
    policy.set_training_mode(False)
    save_policy(out, policy, config)
    return {"epochs": passes, "validation_error": best, "rows": len(train)}


def _split(demos: Demonstrations, share: float, rng: np.random.Generator) -> tuple[Any, Any]:
    count = int(demos.episode[-1]) + 1
    if count < 2:
        raise BunrakuError("one episode cannot be split for validation; record more")
    aside = rng.permutation(count)[: max(1, round(share * count))]
    valid = np.isin(demos.episode, aside)
    return np.flatnonzero(~valid), np.flatnonzero(valid)


def _fit(
    policy: Any,
    demos: Demonstrations,
    train: Any,
    valid: Any,
    settings: BCSettings,
    log: Path,
    rng: np.random.Generator,
    told: Callable[[], None],
) -> tuple[float, int]:
    observations, actions = torch.as_tensor(demos.observations), torch.as_tensor(demos.actions)
    extractor = policy.features_extractor
    jitter = settings.noise / extractor.scale
    parameters = [p for p in policy.parameters() if p.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr=settings.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.epochs)
    best, best_weights, since, passes = np.inf, None, 0, 0
    with open(log, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["epoch", "training_error", "validation_error"])
        for passes in range(1, settings.epochs + 1):
            losses = []
            for rows in np.array_split(rng.permutation(train), max(1, len(train) // settings.batch_size)):
                given = observations[rows] + jitter * torch.randn(len(rows), observations.shape[1])
                loss = ((mean_action(policy, given) - actions[rows]) ** 2).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses.append(float(loss.detach()))
            schedule.step()
            with torch.no_grad():
                error = float(((mean_action(policy, observations[valid]) - actions[valid]) ** 2).mean())
            if not np.isfinite(error):
                raise BunrakuError(
                    f"the validation error is {error} in pass {passes}; lower the learning rate"
                )
            writer.writerow([passes, float(np.mean(losses)), error])
            since += 1
            if error < best:
                best, since = error, 0
                best_weights = {key: value.clone() for key, value in policy.state_dict().items()}
            told()
            if since >= settings.patience:
                break
    if best_weights is not None:
        policy.load_state_dict(best_weights)
    return best, passes
