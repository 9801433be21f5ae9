"""The keyboard: keys move a virtual hand.

    with Keyboard(keys=ViewerKeys(viewer)) as device:      # or Keyboard(): the terminal
        state = device.read()

`bunraku.teleop_collect.keys` has the table of the keys. Where key releases are known (a window or page), the
hand drives while Space is held. A terminal does not know them: there Space is pressed once to drive and once
more to let go, and a motion key acts for a moment after it was typed or repeated, so the hand stops when the
fingers leave the keys.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from types import TracebackType
from typing import Literal, Self

import numpy as np

from bunraku.device import Clock, DeviceState, HandName, HandState, OperatorView
from bunraku.geometry import Array
from bunraku.teleop_collect import keys as table
from bunraku.teleop_collect.keys import KeySource
from bunraku.teleop_collect.virtual_hand import VirtualHand

SPEEDS: tuple[float, ...] = (0.05, 0.1, 0.2, 0.4)
"""Speeds of the hand [m/s]."""
TURN_RATIO = 4.0
"""Angular over linear speed [rad/m]: at 0.2 m/s the hand turns with 0.8 rad/s."""
SLOW_RATIO = 0.25
"""Speed while Shift is held, relative to the speed without it."""
REPEAT_S = 0.7
"""In a terminal a key that comes again within this time counts as the repetition of one that is kept down [s].

It covers the delay before a keyboard begins to repeat: 0.66 s under X11, 0.5 s on Windows.
"""


class Keyboard:
    """Moves one virtual hand at a time by keys, from our own window, page or terminal."""

    name = "keyboard"
    frame: Literal["y_up", "z_up"] = "z_up"
    scripted = False

    def __init__(
        self,
        *,
        clock: Clock = time.perf_counter,
        seed: int = 0,
        keys: KeySource | None = None,
        hands: tuple[HandName, ...] = ("right",),
    ) -> None:
        """Prepare; nothing is opened before the device is entered.

        Args:
            clock: Returns the time [s].
            seed: Not used: nothing is random here.
            keys: Where keys come from; the terminal by default.
            hands: The hands that it serves; Tab goes from one to the next.
        """
        self._clock, self._keys = clock, keys
        self._order = hands
        self._stack = ExitStack()
        self._source: KeySource | None = keys
        self._hands: dict[HandName, VirtualHand] = {}
        self._buttons: dict[HandName, frozenset[str]] = {}
        self._driving = False
        self._closed: dict[HandName, bool] = dict.fromkeys(hands, False)
        self._active = hands[0]
        self._speed = SPEEDS.index(0.2)
        self._typed: dict[str, float] = {}

    def __enter__(self) -> Self:
        """Take over the terminal, unless keys come from elsewhere.

        Raises:
            DeviceError: If keys are to come from the terminal and there is none.
        """
        if self._keys is None:
            from bunraku.teleop_collect.terminal_keys import TerminalKeys

            self._source = self._stack.enter_context(TerminalKeys(self._clock))
        self._hands = {name: VirtualHand(self._clock, max_step=0.04, max_turn=0.16) for name in self._order}
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._stack.close()

    def read(self) -> DeviceState:
        """Return where the keys have brought the hands by now; never blocks."""
        source = self._source
        if source is None:
            raise RuntimeError("the keyboard is read before it is entered")
        now = self._clock()
        held, pressed = source.held(), self._strokes(source, now)
        self._switch(pressed)
        if source.has_key_up:
            self._driving = table.TRIGGER_KEY in held
        elif table.TRIGGER_KEY in pressed:
            self._driving = not self._driving
        hands = {name: self._move(name, held, pressed, now) for name in self._hands}
        commands = tuple(table.COMMAND_KEYS[key] for key in pressed if key in table.COMMAND_KEYS)
        return DeviceState(time=now, hands=hands, commands=commands)

    def rumble(self, hand: HandName, strength: float, seconds: float) -> None:
        """Do nothing: a keyboard does not rumble."""

    def see(self, view: OperatorView) -> None:
        """Do nothing: a person looks at the screen."""

    def _strokes(self, source: KeySource, now: float) -> list[str]:
        """Return the new key presses, without the repetitions that a terminal reports of keys kept down."""
        strokes = []
        for key in source.pressed():
            is_repetition = not source.has_key_up and now - self._typed.get(key, -REPEAT_S) < REPEAT_S
            if not is_repetition or key in (table.SLOWER_KEY, table.FASTER_KEY):
                strokes.append(key)
            self._typed[key] = now
        return strokes

    def _switch(self, pressed: list[str]) -> None:
        """Act on the keys that switch something."""
        for key in pressed:
            if key == table.GRIPPER_KEY:
                self._closed[self._active] = not self._closed[self._active]
            elif key == table.HAND_KEY and len(self._order) > 1:
                self._active = self._order[(self._order.index(self._active) + 1) % len(self._order)]
                self._driving = False
            elif key in (table.SLOWER_KEY, table.FASTER_KEY):
                step = 1 if key == table.FASTER_KEY else -1
                self._speed = min(max(self._speed + step, 0), len(SPEEDS) - 1)

    def _move(self, name: HandName, held: frozenset[str], pressed: list[str], now: float) -> HandState:
        """Advance one hand and return its sample."""
        hand, is_active = self._hands[name], name == self._active
        twist = self._twist(held) if is_active else np.zeros(6)
        pose = hand.move(twist[:3], twist[3:])
        drives = is_active and self._driving
        rereferences = is_active and table.REREFERENCE_KEY in pressed
        down = {"trigger": drives, "squeeze": self._closed[name], "a": rereferences}
        buttons = frozenset(button for button, is_down in down.items() if is_down)
        fresh, self._buttons[name] = buttons - self._buttons.get(name, frozenset()), buttons
        return HandState(
            time=now,
            pose=pose,
            linear_velocity=twist[:3],
            angular_velocity=twist[3:],
            trigger=float(drives),
            squeeze=float(self._closed[name]),
            buttons=buttons,
            pressed=fresh,
            source="keyboard",
        )

    def _twist(self, held: frozenset[str]) -> Array:
        """Return the commanded velocity `(6,)`: linear [m/s], angular [rad/s]."""
        direction = np.zeros(6)
        for key in held & table.MOTION_KEYS.keys():
            axis, sign = table.MOTION_KEYS[key]
            direction[axis] += sign
        for part in (direction[:3], direction[3:]):
            part /= max(float(np.linalg.norm(part)), 1.0)
        speed = SPEEDS[self._speed] * (SLOW_RATIO if table.SLOW_KEY in held else 1.0)
        direction[3:] *= TURN_RATIO
        return speed * direction


DEVICE = Keyboard
