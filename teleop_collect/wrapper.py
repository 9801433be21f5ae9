"""An environment that an operator drives, or takes over.

    env = TeleopWrapper(gym.make("bunraku/PandaReach-v0", control_mode="ee_delta_pose"), device)
    env.reset(seed=0)
    env.step(None)      # the operator's action
    env.step(action)    # the policy's, unless the operator is engaged: then the operator's

`info["intervention"]` says whose action it was, `info["action"]` what it was; so the same wrapper serves recording
and DAgger (Ross, Gordon and Bagnell, 2011).
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from bunraku.device import Clock, Device, OperatorView
from bunraku.teleop_collect.profile import Profile
from bunraku.teleop_collect.teleoperator import Teleoperator, TeleopStep


class TeleopWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Lets a device drive the environment's arms."""

    def __init__(
        self, env: gymnasium.Env[Any, Any], device: Device, *, clock: Clock, profile: Profile | None = None
    ) -> None:
        """Connect an opened device to the environment.

        Args:
            env: An environment of bunraku whose control mode moves the tool.
            device: An opened device.
            clock: The clock that the device was made with.
            profile: The operator's profile.
        """
        super().__init__(env)
        self.task = env.unwrapped.task  # type: ignore[attr-defined]
        self.device, self.clock = device, clock
        self.teleop = Teleoperator(device, self.task.arms(), profile)
        self.last: TeleopStep | None = None
        """How the last action came about."""
        self._episode = 0
        self._success = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; every hand must engage anew."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._episode += 1
        self._success = bool(info.get("is_success", False))
        self.teleop.reset()
        self._show()
        return observation, info

    def read(self) -> TeleopStep:
        """Take the operator's newest sample, without stepping."""
        self.last = self.teleop.read(self.clock())
        return self.last

    def step(self, action: NDArray[Any] | None = None) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Advance by one control step.

        Args:
            action: The policy's action, which an engaged operator overrides; None for the operator's own.
        """
        step = self.read()
        intervention = action is None or step.engaged
        chosen = step.action if action is None or step.engaged else np.asarray(action, dtype=np.float32)
        observation, reward, terminated, truncated, info = self.env.step(chosen)
        if not intervention:
            # the operator takes over from where the policy left the arms
            for line in self.teleop.lines.values():
                line.hold_here()
        self._success = bool(info.get("is_success", False))
        self._show()
        return observation, reward, terminated, truncated, {
            **info,
            "intervention": bool(intervention),
            "action": chosen,
            "teleop": step,
        }  # fmt: skip

    def _show(self) -> None:
        """Show the operator the scene."""
        arms = self.task.arms()
        goals = {arm.hand: goal for arm in arms if (goal := arm.goal()) is not None}
        asked = {"goal_tolerance": self.task.goal_tolerance} if hasattr(self.task, "goal_tolerance") else {}
        self.device.see(
            OperatorView(
                time=self.clock(),
                tools={arm.hand: arm.tool() for arm in arms},
                goals=goals,
                goal_has_orientation=bool(getattr(self.task, "goal_orientation", False)),
                **asked,
                success=self._success,
                episode=self._episode,
            )
        )
