"""From what hands do to an action of the environment.

Each hand has a line of its own: guard, frame, filter, clutch, and the arm it drives. The newest sample of the device
is taken once per control step; the result is the action for `env.step` and a record of how it came about.

    teleop = Teleoperator(device, env.unwrapped.task.arms(), profile)
    step = teleop.read(now)
    env.step(step.action)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bunraku.device import COMMANDS, Device, DeviceState, HandName, HandState
from bunraku.geometry import Array, Pose
from bunraku.task import DrivenArm
from bunraku.teleop_collect.clutch import Clutch, Grip
from bunraku.teleop_collect.filters import make_filter
from bunraku.teleop_collect.frames import device_to_world
from bunraku.teleop_collect.guards import PoseGuard
from bunraku.teleop_collect.profile import Profile

LOSS_TIMEOUT = 0.1
"""A hand that is untracked for this long is lost: it disengages [s]. Shorter drops hold the last pose."""
UNREACHABLE_DISTANCE, UNREACHABLE_ANGLE = 0.01, 0.06
"""The tool trails its target by this much [m, rad] when the target is out of reach."""
UNREACHABLE_AFTER = 0.15
"""How long it must trail before the operator is told [s]."""
DISENGAGING_EVENTS = frozenset(
    {"connected", "disconnected", "role_changed", "recentred", "standby", "dashboard_opened", "quit"}
)
"""Device events after which a hand must be engaged anew."""


@dataclass(frozen=True, slots=True)
class HandReport:
    """What became of one hand's sample."""

    engaged: bool
    """Whether the hand drives its arm."""
    tracked: bool
    """Whether the sample had a pose that was believed."""
    target: Pose
    """Where the tool is driven to, world."""
    gripper: float
    """1 open, -1 closed."""
    age: float
    """Age of the pose at use [s]; NaN without a pose."""
    dropped: int
    """Samples dropped so far."""
    clutches: int
    """Engagements so far."""
    precision: bool
    """Whether precision is held."""
    unreachable: bool
    """Whether the target is out of the arm's reach."""
    sample: HandState
    """The sample of the hand that drives the arm."""


@dataclass(frozen=True, slots=True)
class TeleopStep:
    """One control step of teleoperation."""

    action: Array
    """`(A,)` float32, for `env.step`."""
    state: DeviceState
    """The sample that it was made from."""
    hands: Mapping[HandName, HandReport]
    """By hand that drives an arm."""
    commands: tuple[str, ...]
    """What the operator told the recorder, by buttons or keys."""
    started: float
    """`time.perf_counter()` when the device had given its sample: a tick begins here."""

    @property
    def engaged(self) -> bool:
        """Whether any hand drives."""
        return any(report.engaged for report in self.hands.values())


class HandLine:
    """Guard, frame, filter and clutch of one hand, and the arm it drives."""

    def __init__(self, arm: DrivenArm, to_world: Callable[[Pose], Pose], profile: Profile) -> None:
        """Connect a hand to its arm."""
        self.arm, self._to_world, self._buttons = arm, to_world, profile.buttons
        self.guard = PoseGuard()
        self.filter = make_filter(profile.filter, profile.filter_tau)
        self.clutch = Clutch(profile.hand_scale, profile.precision)
        self.unreachable = False
        self.reset()

    def reset(self) -> None:
        """Let go and hold the arm where it is: a new episode, or the driver was changed."""
        self.clutch.disengage()
        self.gripper = 1.0
        self._source = ""
        self._seen = -np.inf
        self._trailing_since: float | None = None
        self._hold = self.arm.target()

    def hold_here(self) -> None:
        """Hold the arm where its target is now: something else has moved it."""
        self._hold = self.arm.target()

    def update(self, state: HandState | None, now: float, interrupted: bool) -> HandReport:
        """Take the newest sample at a time [s]; `interrupted` if an event demands to engage anew."""
        state = state or HandState(time=now, connected=False)
        was_engaged = self.clutch.engaged
        changed = bool(self._source and state.source and state.source != self._source)
        self._source = state.source or self._source
        if changed or interrupted or not state.connected:
            self.clutch.disengage()
            self.guard.reset()
        sample = self.guard.check(state.pose, state.time)
        if state.pose is not None and sample.verdict != "dropped":
            self._seen = now
        lost = now - self._seen > LOSS_TIMEOUT
        if lost:
            self.clutch.disengage()
        if sample.pose is not None:
            self._drive(sample.pose, now, sample.verdict == "rebased", state, lost)
        if was_engaged and not self.clutch.engaged:
            self.hold_here()
        self._watch_reach(now)
        tracked = sample.verdict in ("good", "stale", "rebased")
        return HandReport(
            engaged=self.clutch.engaged,
            tracked=tracked,
            target=self._hold,
            gripper=self.gripper,
            age=max(0.0, now - sample.time) if tracked else np.nan,
            dropped=self.guard.dropped,
            clutches=self.clutch.engagements,
            precision=self._held(state, "precision"),
            unreachable=self.unreachable,
            sample=state,
        )

    def _drive(self, pose: Pose, now: float, rebased: bool, state: HandState, lost: bool) -> None:
        hand = self._to_world(pose)
        if rebased:
            self.filter.reset(hand, now)
        filtered = self.filter.update(hand, now)
        pressed = any(self._buttons.get(name) == "rereference" for name in state.pressed)
        grip = Grip(state.trigger, pressed or rebased, self._held(state, "precision"))
        if self.clutch.engaged:
            self._hold = self.clutch.drive(filtered, grip, self._hold)
        elif self.clutch.wants_to_engage(grip) and not lost:
            # the reference is the hand itself, not the lagging filter
            self.filter.reset(hand, now)
            self._hold = self.arm.target()
            self.clutch.engage(hand, self._hold)
        if self.clutch.engaged:
            self.gripper = 1.0 - 2.0 * state.squeeze

    def _held(self, state: HandState, action: str) -> bool:
        return any(self._buttons.get(name) == action for name in state.buttons)

    def _watch_reach(self, now: float) -> None:
        distance, angle = self.arm.tracking_error()
        if self.clutch.engaged and (distance > UNREACHABLE_DISTANCE or angle > UNREACHABLE_ANGLE):
            self._trailing_since = now if self._trailing_since is None else self._trailing_since
            self.unreachable = now - self._trailing_since >= UNREACHABLE_AFTER
        else:
            self._trailing_since, self.unreachable = None, False

    def action(self) -> Array:
        """Return this arm's part of the action."""
        return self.arm.action_towards(self._hold, self.gripper)


@dataclass(slots=True)
class _Haptics:
    """Tells the operator by pulses what the screen shows too."""

    device: Device
    last: dict[HandName, float] = field(default_factory=dict)

    def tell(self, hand: HandName, before: HandReport | None, report: HandReport, now: float) -> None:
        if before is not None and report.engaged != before.engaged:
            self.device.rumble(hand, 0.4 if report.engaged else 0.2, 0.04)
        elif report.unreachable and now - self.last.get(hand, -np.inf) > 0.25:
            self.last[hand] = now
            self.device.rumble(hand, 0.8, 0.08)


class Teleoperator:
    """A device that drives the arms of a task."""

    def __init__(self, device: Device, arms: Sequence[DrivenArm], profile: Profile | None = None) -> None:
        """Connect each hand of the device to the arm of that hand.

        Args:
            device: An opened device.
            arms: The arms; one arm alone is driven by the profile's `hand`.
            profile: The operator's profile.
        """
        self.device = device
        self.profile = profile or Profile()
        to_world = device_to_world(device.frame, self.profile.facing_deg)
        self.lines: dict[HandName, HandLine] = {
            arm.hand: HandLine(arm, to_world, self.profile) for arm in arms
        }
        # one arm alone is driven by the hand that the operator prefers
        self._sources: dict[HandName, HandName] = {
            arm.hand: self.profile.hand if len(arms) == 1 else arm.hand for arm in arms
        }
        self._size = max(arm.action_slice.stop for arm in arms)
        self._haptics = _Haptics(device)
        self._last: dict[HandName, HandReport] = {}

    def reset(self) -> None:
        """Let go of every arm: the scene was reset."""
        for line in self.lines.values():
            line.reset()

    def read(self, now: float) -> TeleopStep:
        """Take the device's newest sample and make the action of one control step.

        Args:
            now: Time on the device's clock [s].
        """
        state = self.device.read()
        started = time.perf_counter()
        interrupted = bool(DISENGAGING_EVENTS.intersection(state.events))
        action = np.zeros(self._size)
        reports: dict[HandName, HandReport] = {}
        commands = list(state.commands)
        for hand, line in self.lines.items():
            sample = state.hands.get(self._sources[hand])
            report = line.update(sample, now, interrupted)
            action[line.arm.action_slice] = line.action()
            self._haptics.tell(self._sources[hand], self._last.get(hand), report, now)
            reports[hand] = report
        for sample in state.hands.values():
            commands += [
                command
                for name in sorted(sample.pressed)
                if (command := self.profile.buttons.get(name, "none")) in COMMANDS
            ]
        self._last = reports
        return TeleopStep(action.astype(np.float32), state, reports, tuple(commands), started)
