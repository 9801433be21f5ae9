"""One hand on SteamVR: from readings of whatever controller is in it to `HandState`, with presses latched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bunraku.device import HandName, HandState
from bunraku.geometry import Array, Pose
from bunraku.teleop_collect.openvr_buttons import Controls
from bunraku.teleop_collect.openvr_session import ControllerReading
from bunraku.teleop_collect.openvr_tracking import TrackWatch

AT_REST = 0.1
"""An analog control below this is released."""


class SteamVRHand:
    """What is known of one hand. Not thread-safe: the device has the lock."""

    def __init__(self, hand: HandName, watch: TrackWatch) -> None:
        """Start without a controller."""
        self.hand, self.watch = hand, watch
        self.controller: ControllerReading | None = None
        """The controller as last read, None when there is none."""
        self._time = 0.0
        self._pose: Pose | None = None
        self._pressed: set[str] = set()
        self._announced: frozenset[str] = frozenset()
        self._muted: frozenset[str] = frozenset()

    def update(
        self, reading: ControllerReading | None, presses: list[tuple[int, int]], time: float
    ) -> str | None:
        """Take a reading; return the event that it means, if any.

        Args:
            reading: The controller, None when there is none.
            presses: Index and bit of each button that went down since the reading before.
            time: When it was read [s].
        """
        before, self.controller, self._time = self.controller, reading, time
        event = self._compare(before, reading)
        if event is not None:
            # What is held when a controller comes is not a press: after waking, some have everything down.
            self.watch.reset()
            self._announced = self._muted = frozenset()
        if reading is None:
            self._pose = None
            return event
        self._pose = self.watch.judge(reading.matrix, reading.tracked, time)
        if event is None and before is not None:
            self._latch(before, reading, presses)
        return event

    @staticmethod
    def _compare(before: ControllerReading | None, now: ControllerReading | None) -> str | None:
        if before is None:
            return None if now is None else "connected"
        if now is None:
            return "disconnected"
        same = before.index == now.index and before.identity.serial == now.identity.serial
        return None if same else "role_changed"

    def _latch(
        self, before: ControllerReading, now: ControllerReading, presses: list[tuple[int, int]]
    ) -> None:
        """Latch presses that the states show, and those too short for that, which only the events show."""
        if not (before.listening and now.listening):
            # What closed the dashboard is often still held when the input comes back; it is not for us.
            self._announced = frozenset()
            self._muted = _held(now.controls)
            return
        self._muted &= _held(now.controls)
        new = now.controls.buttons - before.controls.buttons - self._muted
        self._pressed |= new - self._announced
        told = {now.identity.layout.name(bit, self.hand) for index, bit in presses if index == now.index}
        # One that is down now is in the states; one that is not may come in the next, and was told already.
        self._announced = frozenset(name for name in told if name is not None) - now.controls.buttons
        self._pressed |= self._announced

    def take(self) -> HandState:
        """Return the newest sample and forget the latched presses."""
        pressed, self._pressed = frozenset(self._pressed), set()
        reading = self.controller
        if reading is None:
            return HandState(time=self._time, connected=False, pressed=pressed)
        watch, tracked = self.watch, self._pose is not None
        controls = _without(reading.controls, self._muted)
        return HandState(
            time=self._time,
            pose=self._pose,
            linear_velocity=_believed(reading.linear_velocity, watch.max_speed) if tracked else None,
            angular_velocity=_believed(reading.angular_velocity, watch.max_turn_speed) if tracked else None,
            trigger=controls.trigger,
            squeeze=controls.squeeze,
            thumbstick=controls.thumbstick,
            buttons=controls.buttons,
            pressed=pressed,
            source=reading.identity.serial,
        )


def _held(controls: Controls) -> frozenset[str]:
    """Return the names of what is down, analog controls too."""
    analog = {"trigger": controls.trigger, "squeeze": controls.squeeze}
    return controls.buttons | {name for name, value in analog.items() if value >= AT_REST}


def _without(controls: Controls, muted: frozenset[str]) -> Controls:
    """Return the controls with some of them released."""
    if not muted:
        return controls
    return replace(
        controls,
        buttons=controls.buttons - muted,
        trigger=0.0 if "trigger" in muted else controls.trigger,
        squeeze=0.0 if "squeeze" in muted else controls.squeeze,
    )


def _believed(velocity: Array, limit: float) -> Array | None:
    """Return a velocity `(3,)`, None if it is not finite or beyond what a hand can do."""
    speed = float(np.linalg.norm(velocity))
    return velocity.copy() if speed <= limit else None
