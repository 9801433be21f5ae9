"""Looks after an algorithm while it learns: counts, checks that numbers are finite, saves and evaluates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback

from bunraku.training.checkpoints import save_checkpoint
from bunraku.training.config import RunConfig
from bunraku.training.evaluate import evaluate, torch_actor
from bunraku.training.policies import save_policy

if TYPE_CHECKING:
    from bunraku.training.rl import RLSettings


class Stop(Exception):
    """Ends PPO between a rollout and the next; its callbacks cannot say so there."""


class Watcher(BaseCallback):
    """Counts, checks, saves and evaluates while the algorithm learns."""

    def __init__(
        self,
        config: RunConfig,
        settings: RLSettings,
        out: Path,
        told: Callable[[int], None],
        say: Callable[[str], None],
    ) -> None:
        """Take the run, its folder, and who hears of new steps and of sentences worth telling."""
        super().__init__()
        self.config, self.settings, self.out, self.told, self.say = config, settings, out, told, say
        self.failed = ""
        """What was not finite first; empty while all is well."""
        self.last: dict[str, Any] = {}
        """The last evaluation."""
        self._counted = self._saved = self._evaluated = 0

    def _on_training_start(self) -> None:
        self._counted = self._saved = self._evaluated = self.num_timesteps

    def _on_step(self) -> bool:
        self.told(self.num_timesteps - self._counted)
        self._counted = self.num_timesteps
        self.failed = self.failed or self._where(
            {
                "observation": self.locals.get("new_obs"),
                "reward": self.locals.get("rewards"),
                "action": self.locals.get("actions"),
            }
        )
        if self.failed:
            return False
        # PPO's turn comes between rollouts, in `_on_rollout_start`
        return self.settings.algorithm == "ppo" or self._between_updates()

    def _on_rollout_start(self) -> None:
        if self.settings.algorithm == "ppo" and not self._between_updates():
            raise Stop

    def _between_updates(self) -> bool:
        settings = self.settings
        self.failed = self.failed or self.diagnose()
        if self.failed:
            return False
        if self.num_timesteps - self._saved >= settings.checkpoint_every:
            save_checkpoint(self.model, self.out)
            save_policy(self.out, self.model.policy, self.config)
            self._saved = self.num_timesteps
        if settings.evaluate_every and self.num_timesteps - self._evaluated >= settings.evaluate_every:
            self._evaluated = self.num_timesteps
            return self._evaluate()
        return True

    def _evaluate(self) -> bool:
        found = evaluate(
            torch_actor(self.model.policy), self.config.env, self.config.env_kwargs,
            episodes=self.settings.evaluation_episodes, max_episode_steps=self.config.max_episode_steps,
        )  # fmt: skip
        self.last = asdict(found)
        self.logger.record("evaluation/success_rate", found.success_rate)
        self.say(
            f"step {self.num_timesteps}: success {found.success_rate:.2f}, return {found.mean_return:.2f}"
        )
        return not (self.settings.stop_at and found.success_rate >= self.settings.stop_at)

    def diagnose(self) -> str:
        """Return which of the learner's numbers is not finite, in the order in which they are made; "" if none."""
        losses = {key: value for key, value in self.logger.name_to_value.items() if key.startswith("train/")}
        # of a constant return no variance can be explained, which is no fault
        losses.pop("train/explained_variance", None)
        # buffers are scales, which do not change
        weights = {f"weights {name}": value.detach() for name, value in self.model.policy.named_parameters()}
        return self._where(losses) or self._where(weights)

    def _where(self, terms: Mapping[str, Any]) -> str:
        for name, value in terms.items():
            if isinstance(value, Mapping):
                inner = self._where({f"{name} {key}": part for key, part in value.items()})
                if inner:
                    return inner
            elif isinstance(value, torch.Tensor):
                if not bool(torch.isfinite(value).all()):
                    return f"{name} is not finite at step {self.num_timesteps}"
            elif value is not None and not np.isfinite(value).all():
                return f"{name} is not finite at step {self.num_timesteps}"
        return ""
