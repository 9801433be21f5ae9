"""Game controller (Xbox, PlayStation and alike) through SDL, which moves a virtual hand.

    with Gamepad() as device:
        hand = device.read().hands["right"]

Buttons are named by their place on an Xbox controller; in brackets, where PlayStation's differ.

| Input | Does |
|---|---|
| right shoulder, held | drives (trigger) |
| left shoulder, held | precision (thumbstick button) |
| left stick | hand forward and back, left and right |
| right stick up, down | hand up, down; so do the right and left trigger |
| right stick left, right | hand turns counter-clockwise, clockwise, seen from above |
| directional pad up, down | hand pitches forward, back |
| directional pad right, left | hand rolls to the right, left |
| A (cross) | closes or opens the gripper (squeeze) |
| press on the right stick | new reference (button a) |
| Start (Options) | command start |
| B (circle) | command success |
| X (square) | command failure |
| Y (triangle) | command discard |
| Back (Share) | command redo |
| press on the left stick | command marker |
| guide (PS) | command quit |

The controller may be plugged in again at any time, and then goes on from where the hand was. It shakes for
`rumble` if it has motors.
"""

from __future__ import annotations

import contextlib
import time

import numpy as np

from bunraku.device import HANDS, Clock, HandName
from bunraku.errors import DeviceError, UnknownNameError
from bunraku.teleop_collect.devices._gamepad_sdl import Pad, PadSample, Sdl
from bunraku.teleop_collect.devices._polled import REOPEN_PERIOD, HandInput, PolledDevice
from bunraku.teleop_collect.virtual_hand import response, stick_response

BUTTON_COMMANDS: dict[str, str] = {
    "start": "start",
    "b": "success",
    "x": "failure",
    "y": "discard",
    "back": "redo",
    "left_stick": "marker",
    "guide": "quit",
}
HELD_BUTTONS: dict[str, str] = {
    "right_shoulder": "trigger",
    "left_shoulder": "thumbstick",
    "right_stick": "a",
}
"""Controller buttons that are held as a button of `HandState`."""


class Gamepad(PolledDevice):
    """One controller that moves one virtual hand."""

    name = "gamepad"

    def __init__(
        self,
        *,
        clock: Clock = time.perf_counter,
        seed: int = 0,
        hand: HandName = "right",
        speed: float = 0.3,
        turn_speed: float = 1.0,
        deadband: float = 0.12,
        cubic: float = 0.6,
        background: bool = True,
    ) -> None:
        """Take the options; hardware is touched on entering.

        Args:
            clock: Returns the time [s].
            seed: Not used: nothing here is random.
            hand: The hand that the controller is.
            speed: Hand speed at full deflection [m/s].
            turn_speed: Angular speed of the hand at full deflection [rad/s].
            deadband: Deflection, of 1, that counts as rest.
            cubic: Share of the cubic term of the response, 0 (linear) to 1 (fine around rest).
            background: Read in a thread of its own; otherwise within `read()`.

        Raises:
            UnknownNameError: If the hand is not known.
        """
        super().__init__(clock, background)
        if hand not in HANDS:
            raise UnknownNameError("hand", hand, HANDS)
        self._hand: HandName = hand
        self._speed, self._turn_speed = speed, turn_speed
        self._deadband, self._cubic = deadband, cubic
        self._sdl: Sdl | None = None
        self._pad: Pad | None = None
        self._down: frozenset[str] = frozenset()
        self._next_look = 0.0

    def rumble(self, hand: HandName, strength: float, seconds: float) -> None:
        """Shake the controller; does nothing for another hand, or without motors."""
        with self._lock:
            if self._pad is not None and self._sdl is not None and hand == self._hand:
                with contextlib.suppress(self._sdl.error):  # unplugged just now: the next poll tells
                    self._pad.rumble(float(np.clip(strength, 0.0, 1.0)), max(seconds, 0.0))

    def _open(self) -> None:
        self._sdl = Sdl()
        self._sdl.update()
        self._pad = self._sdl.first_pad()
        if self._pad is None:
            self._close()
            raise DeviceError(
                "no gamepad found; plug it in or pair it (on Linux, your user must be able to read "
                "/dev/input/event*: sudo usermod -aG input $USER, then log in again); --device keyboard or "
                "--device scripted needs no hardware"
            )
        self._inputs[self._hand] = HandInput(self._clock, self._pad.source)

    def _close(self) -> None:
        if self._pad is not None:
            self._pad.close()
        if self._sdl is not None:
            self._sdl.close()
        self._pad, self._sdl, self._down = None, None, frozenset()
        self._inputs.clear()

    def _poll(self) -> None:
        if self._pad is None or self._sdl is None:
            return
        try:
            sample = self._pad.sample() if self._pad.attached() else None
        except self._sdl.error:
            sample = None
        if sample is None:
            self._lose(self._pad)
        else:
            self._take(sample)

    def _take(self, sample: PadSample) -> None:
        target = self._inputs[self._hand]
        new, self._down = sample.buttons - self._down, sample.buttons
        self._commands += [BUTTON_COMMANDS[name] for name in BUTTON_COMMANDS if name in new]
        if "a" in new:
            target.squeeze = 1.0 - target.squeeze
        held = {meaning for name, meaning in HELD_BUTTONS.items() if name in sample.buttons}
        target.hold(held | ({"squeeze"} if target.squeeze > 0.5 else set()))
        target.trigger = float("trigger" in held)
        target.thumbstick = (float(sample.left[0]), float(sample.left[1]))
        twist = self._twist(sample)
        target.hand.move(self._speed * twist[:3], self._turn_speed * twist[3:])

    def _twist(self, sample: PadSample) -> np.ndarray:
        """Return the commanded twist `(6,)`, each part -1 to 1: x, y, z, roll, pitch, yaw."""
        left = stick_response(sample.left, self._deadband, self._cubic)
        right = stick_response(sample.right, self._deadband, self._cubic)
        down, up = response(np.array(sample.triggers), self._deadband, self._cubic)
        held = {name: float(name in sample.buttons) for name in ("up", "down", "left", "right")}
        rise = float(np.clip(right[1] + up - down, -1.0, 1.0))
        return np.array(
            [left[1], -left[0], rise, held["right"] - held["left"], held["up"] - held["down"], -right[0]]
        )

    def _lose(self, pad: Pad) -> None:
        pad.close()
        self._pad, self._down = None, frozenset()
        self._next_look = self._clock() + REOPEN_PERIOD
        self._inputs[self._hand].lose()
        self._events.append("disconnected")

    def _look(self) -> None:
        if self._sdl is None:
            return
        self._sdl.update()
        if self._pad is not None or self._clock() < self._next_look:
            return
        self._next_look = self._clock() + REOPEN_PERIOD
        with contextlib.suppress(self._sdl.error):  # just plugged in: access may not have been granted yet
            pad = self._sdl.first_pad()
            if pad is not None:
                with self._lock:
                    self._pad = pad
                    self._inputs[self._hand].regain(pad.source)
                    self._events.append("connected")


DEVICE = Gamepad
