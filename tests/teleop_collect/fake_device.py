"""A device whose samples the test sets by hand, on simulated time."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Literal, Self

import gymnasium
import numpy as np

import bunraku  # noqa: F401 - registers the environments
from bunraku.device import DeviceState, HandName, HandState, OperatorView
from bunraku.geometry import IDENTITY_QUAT, Pose
from bunraku.teleop_collect.clocks import SimulatedClock
from bunraku.teleop_collect.profile import Profile
from bunraku.teleop_collect.wrapper import TeleopWrapper


class FakeDevice:
    """Both hands at rest until the test moves them."""

    name = "fake"
    scripted = True

    def __init__(self, clock: SimulatedClock, frame: Literal["y_up", "z_up"] = "z_up") -> None:
        self.clock, self.frame = clock, frame
        self.pose: dict[HandName, Pose | None] = {
            "left": Pose(np.zeros(3), IDENTITY_QUAT.copy()),
            "right": Pose(np.zeros(3), IDENTITY_QUAT.copy()),
        }
        self.trigger: dict[HandName, float] = {"left": 0.0, "right": 0.0}
        self.squeeze: dict[HandName, float] = {"left": 0.0, "right": 0.0}
        self.buttons: dict[HandName, frozenset[str]] = {"left": frozenset(), "right": frozenset()}
        self.source: dict[HandName, str] = {"left": "L1", "right": "R1"}
        self.connected: dict[HandName, bool] = {"left": True, "right": True}
        self.events: list[str] = []
        self.commands: list[str] = []
        self.pulses: list[tuple[HandName, float]] = []
        self.views: list[OperatorView] = []
        self._before: dict[HandName, frozenset[str]] = dict(self.buttons)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        pass

    def read(self) -> DeviceState:
        now = self.clock()
        hands = {
            hand: HandState(
                time=now,
                pose=self.pose[hand],
                connected=self.connected[hand],
                trigger=self.trigger[hand],
                squeeze=self.squeeze[hand],
                buttons=self.buttons[hand],
                pressed=self.buttons[hand] - self._before[hand],
                source=self.source[hand],
            )
            for hand in self.pose
        }
        self._before = dict(self.buttons)
        events, self.events = tuple(self.events), []
        commands, self.commands = tuple(self.commands), []
        return DeviceState(now, hands, events, commands)

    def rumble(self, hand: HandName, strength: float, seconds: float) -> None:
        self.pulses.append((hand, strength))

    def see(self, view: OperatorView) -> None:
        self.views.append(view)


class Rig:
    """An environment driven by a fake device, one control step at a time."""

    def __init__(
        self,
        env_id: str = "bunraku/PandaReach-v0",
        *,
        frame: Literal["y_up", "z_up"] = "z_up",
        profile: Profile | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        options = {"control_mode": "ee_delta_pose", "gripper": True, "control_freq": 50.0, **kwargs}
        self.clock = SimulatedClock()
        self.device = FakeDevice(self.clock, frame)
        env = gymnasium.make(env_id, max_episode_steps=-1, disable_env_checker=True, **options)
        self.env = TeleopWrapper(
            env, self.device, clock=self.clock, profile=profile or Profile(filter="none")
        )
        self.task = self.env.task
        self.arm = self.task.arms()[-1]
        self.dt = self.task.rates.step
        self.env.reset(seed=seed)

    def step(self, count: int = 1, action: Any = None) -> dict[str, Any]:
        """Advance; return the last info."""
        info: dict[str, Any] = {}
        for _ in range(count):
            self.clock.advance(self.dt)
            info = self.env.step(action)[4]
        return info

    def engage(self, hand: HandName = "right") -> None:
        """Show a released trigger, then press it."""
        self.device.trigger[hand] = 0.0
        self.step()
        self.device.trigger[hand] = 1.0
        self.step()

    def move(self, offset: Any, seconds: float = 0.5, hand: HandName = "right", turn: Any = None) -> None:
        """Move the hand steadily by an offset [m] (and turn it by a rotation vector [rad]) in the device's frame."""
        from bunraku.geometry import from_rotvec, multiply

        start = self.device.pose[hand]
        assert start is not None
        steps = max(1, round(seconds / self.dt))
        for k in range(1, steps + 1):
            share = k / steps
            quat = start.quat
            if turn is not None:
                quat = multiply(from_rotvec(share * np.asarray(turn, dtype=float)), quat)
            self.device.pose[hand] = Pose(start.pos + share * np.asarray(offset, dtype=float), quat)
            self.step()
