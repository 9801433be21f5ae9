"""A simulated operator: hands that look at the screen and move, through the same path as a person's.

It is a device like any other. It samples at 90 Hz, on whatever clock it is given: with simulated time it runs as
fast as the computer can. Everything is drawn from its seed. With `style="hand"` it holds two controllers, in the Y-up
frame of a headset; with `style="mouse"` it has a hand on a 3D mouse.
"""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Literal, Self

import numpy as np

from bunraku.device import HANDS, Clock, DeviceState, HandName, HandState, OperatorView
from bunraku.errors import UnknownNameError
from bunraku.geometry import Y_UP_TO_Z_UP_QUAT, Pose, change_frame, conjugate
from bunraku.teleop_collect.clutch import PRECISION, SCALE
from bunraku.teleop_collect.faults import Faults, FaultyTracker
from bunraku.teleop_collect.simulated_cap import SimulatedCap
from bunraku.teleop_collect.simulated_hand import REACTION, Seen, SimulatedHand

SAMPLE_FREQ = 90.0
FAULT_SETS = {"noise": Faults(), "all": Faults.all_on(), "none": Faults.none()}
"""Values of the option `faults`."""

# where hands are held, in the operator's frame: x forward, y left, z up [m]
_HOMES: dict[HandName, Pose] = {
    "left": Pose(np.array([0.35, 0.2, 1.1]), np.array([1.0, 0.0, 0.0, 0.0])),
    "right": Pose(np.array([0.35, -0.2, 1.1]), np.array([1.0, 0.0, 0.0, 0.0])),
}

_Z_UP_TO_Y_UP = conjugate(Y_UP_TO_Z_UP_QUAT)


class Scripted:
    """The simulated operator as a device."""

    name = "scripted"
    frame: Literal["y_up", "z_up"] = "y_up"
    scripted = True

    def __init__(
        self,
        *,
        clock: Clock = time.perf_counter,
        seed: int = 0,
        faults: str | Faults = "noise",
        scale: float = SCALE,
        precision: float = PRECISION,
        style: Literal["hand", "mouse"] = "hand",
    ) -> None:
        """Set up the operator.

        Args:
            clock: Returns the time [s].
            seed: Seed of everything that is drawn.
            faults: `none`, `noise` (tremor and tracking noise), `all` (also drop-outs, jumps and swapped buttons), or
                a `Faults`.
            scale: Tool motion per hand motion that the operator is used to.
            precision: Factor on it while precision is held.
            style: `hand` for tracked controllers, `mouse` for a 3D mouse, whose only faults are trembling fingers and
                axes that leak into each other.

        Raises:
            UnknownNameError: If `faults` or `style` is not known.
        """
        if style not in ("hand", "mouse"):
            raise UnknownNameError("style", style, ("hand", "mouse"))
        if isinstance(faults, str) and faults not in FAULT_SETS:
            raise UnknownNameError("faults", faults, FAULT_SETS)
        self._clock = clock
        self._faults = FAULT_SETS[faults] if isinstance(faults, str) else faults
        rng = np.random.default_rng(seed)
        self._hands = {hand: SimulatedHand(_HOMES[hand], scale, precision, rng.spawn(1)[0]) for hand in HANDS}
        self._caps: dict[HandName, SimulatedCap] = {}
        if style == "mouse":
            self.frame = "z_up"
            trembling = self._faults != Faults.none()
            self._caps = {hand: SimulatedCap(scale, precision, trembling, rng.spawn(1)[0]) for hand in HANDS}
        self._trackers = {hand: FaultyTracker(self._faults, rng.spawn(1)[0]) for hand in HANDS}
        self._views: deque[OperatorView] = deque(maxlen=256)
        self._episode = -1
        self._sample = 0
        self._start = 0.0
        self._newest: dict[HandName, HandState] = {}
        self._pressed: dict[HandName, set[str]] = {hand: set() for hand in HANDS}
        self.pulses: list[tuple[float, HandName, float]] = []
        """Haptic pulses felt: time [s], hand, strength."""

    def __enter__(self) -> Self:
        """Start the clock of the samples."""
        self._start, self._sample = self._clock(), 0
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Nothing to release."""

    def see(self, view: OperatorView) -> None:
        """Show the operator the scene."""
        if view.episode != self._episode:
            self._episode = view.episode
            self._views.clear()
            for hand in HANDS:
                self._hands[hand].begin_episode(view.time)
                if self._caps:
                    self._caps[hand].begin_episode(view.time)
                self._trackers[hand].begin_episode()
        self._views.append(view)

    def read(self) -> DeviceState:
        """Advance the hands to now, sample by sample; return the newest sample."""
        now = self._clock()
        last = int((now - self._start) * SAMPLE_FREQ + 1e-6)
        if not self._newest and last == self._sample:
            self._advance(self._start)
        while self._sample < last:
            self._sample += 1
            self._advance(self._start + self._sample / SAMPLE_FREQ)
        hands = {hand: self._take(hand) for hand in self._newest}
        return DeviceState(now, hands)

    def _take(self, hand: HandName) -> HandState:
        state, pressed = self._newest[hand], frozenset(self._pressed[hand])
        self._pressed[hand].clear()
        return HandState(
            time=state.time,
            pose=state.pose,
            trigger=state.trigger,
            squeeze=state.squeeze,
            buttons=state.buttons,
            pressed=pressed,
            source=state.source,
        )

    def _advance(self, now: float) -> None:
        view = self._seen_at(now - REACTION)
        for hand in HANDS:
            body = self._caps[hand] if self._caps else self._hands[hand]
            if view is not None and hand in view.tools and hand in view.goals:
                turn, tolerance = view.goal_has_orientation, view.goal_tolerance
                body.advance(now, Seen(view.tools[hand], view.goals[hand], turn, tolerance))
            self._newest[hand] = self._push(hand, now) if self._caps else self._measure(hand, now)

    def _seen_at(self, time: float) -> OperatorView | None:
        """Return the newest view that is old enough to have been taken in."""
        while len(self._views) > 1 and self._views[1].time <= time:
            self._views.popleft()
        return self._views[0] if self._views else None

    def _measure(self, hand: HandName, now: float) -> HandState:
        body, tracker = self._hands[hand], self._trackers[hand]
        pose = tracker.report(body.pose, now, 1.0 / SAMPLE_FREQ)
        drives = body.squeezing and body.other_button == tracker.swapped
        grips = body.squeezing and not drives
        down = {"trigger": drives, "squeeze": grips, "thumbstick": body.precision}
        buttons = frozenset(name for name, held in down.items() if held)
        before = self._newest[hand].buttons if hand in self._newest else frozenset()
        self._pressed[hand] |= buttons - before
        return HandState(
            time=now,
            pose=None if pose is None else change_frame(_Z_UP_TO_Y_UP, pose),
            trigger=float(drives),
            squeeze=float(grips),
            buttons=buttons,
            source=f"scripted-{hand}",
        )

    def _push(self, hand: HandName, now: float) -> HandState:
        """Return the sample of a hand on a 3D mouse."""
        cap = self._caps[hand]
        driving = cap.driving(now)
        down = {"trigger": driving, "thumbstick": cap.precision and driving}
        buttons = frozenset(name for name, held in down.items() if held)
        before = self._newest[hand].buttons if hand in self._newest else frozenset()
        self._pressed[hand] |= buttons - before
        return HandState(
            time=now, pose=cap.pose, trigger=float(driving), buttons=buttons, source=f"scripted-mouse-{hand}"
        )

    def rumble(self, hand: HandName, strength: float, seconds: float) -> None:
        """Remember the pulse."""
        self.pulses.append((self._clock(), hand, strength))


DEVICE = Scripted
