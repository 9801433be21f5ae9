"""What devices that are polled for a twist have in common: a reader thread, virtual hands, latched presses.

A subclass opens its hardware in `_open`, and lets go of it in `_close`. Every 4 ms it looks for a device that
was unplugged, in `_look`, and takes what the device tells, in `_poll` (under the lock). Whatever `_poll`
latches is handed out by exactly one `read()`.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from types import TracebackType
from typing import Literal, Self

import numpy as np

from bunraku.device import Clock, DeviceState, HandName, HandState, OperatorView
from bunraku.errors import DeviceError
from bunraku.geometry import Array
from bunraku.teleop_collect.virtual_hand import VirtualHand

POLL_PERIOD = 0.004
"""Time between polls [s]: half of the 8 ms between two reports of these devices."""
REOPEN_PERIOD = 0.5
"""Time between looks for an unplugged device [s]."""


class HandInput:
    """One virtual hand, and what is held and was pressed on the device that moves it."""

    def __init__(self, clock: Clock, source: str) -> None:
        self.hand = VirtualHand(clock)
        self.source = source
        self.connected = True
        self.trigger = 0.0
        self.squeeze = 0.0
        self.thumbstick = (0.0, 0.0)
        self._buttons: frozenset[str] = frozenset()
        self._pressed: set[str] = set()

    def hold(self, buttons: Iterable[str]) -> None:
        """Take which buttons are down now; those that were not are latched as pressed."""
        down = frozenset(buttons)
        self._pressed |= down - self._buttons
        self._buttons = down

    def press(self, button: str) -> None:
        """Latch a press of a button that is never held (the end of a gesture)."""
        self._pressed.add(button)

    def lose(self) -> None:
        """The device was unplugged: stop, let go of everything."""
        self.connected = False
        self.trigger, self.thumbstick, self._buttons = 0.0, (0.0, 0.0), frozenset()
        self.hand.freeze()

    def regain(self, source: str) -> None:
        """The device is back: go on from where the hand was left."""
        self.connected, self.source = True, source
        # The gripper is as it was left: closed is not pressed anew.
        self._buttons = frozenset({"squeeze"} if self.squeeze > 0.5 else ())
        self.hand.freeze()

    def take(self) -> HandState:
        """Return the newest sample and forget the latched presses."""
        pressed, self._pressed = frozenset(self._pressed), set()
        return HandState(
            time=self.hand.time,
            pose=self.hand.pose if self.connected else None,
            connected=self.connected,
            linear_velocity=self._velocity(self.hand.linear_velocity),
            angular_velocity=self._velocity(self.hand.angular_velocity),
            trigger=self.trigger,
            squeeze=self.squeeze,
            thumbstick=self.thumbstick,
            buttons=self._buttons,
            pressed=pressed,
            source=self.source,
        )

    def _velocity(self, velocity: Array) -> Array | None:
        return np.array(velocity) if self.connected else None


class PolledDevice(ABC):
    """Base of devices that move virtual hands."""

    name = ""
    frame: Literal["y_up", "z_up"] = "z_up"
    scripted = False

    def __init__(self, clock: Clock, background: bool) -> None:
        """Remember how to read; open nothing.

        Args:
            clock: Returns the time [s]. background: Poll in a thread of its own; otherwise once per `read()`,
            for tests and slow debugging.
        """
        self._clock, self._background = clock, background
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._inputs: dict[HandName, HandInput] = {}
        self._events: list[str] = []
        self._commands: list[str] = []

    def __enter__(self) -> Self:
        self._open()
        if self._background:
            self._stop.clear()
            self._thread = threading.Thread(target=self._run, name=f"bunraku-{self.name}", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._close()

    def read(self) -> DeviceState:
        """Return the newest sample of every hand; never blocks on the hardware.

        Raises:
            DeviceError: If the reader thread died (its traceback was shown).
        """
        if self._thread is not None and not self._thread.is_alive():
            raise DeviceError(
                f"the reader of {self.name} stopped (see the traceback above); open the device again"
            )
        if self._thread is None and self._inputs:
            self._turn()
        with self._lock:
            hands = {name: hand.take() for name, hand in self._inputs.items()}
            events, self._events = tuple(self._events), []
            commands, self._commands = tuple(self._commands), []
        return DeviceState(time=self._clock(), hands=hands, events=events, commands=commands)

    def rumble(self, hand: HandName, strength: float, seconds: float) -> None:  # noqa: B027 - most devices have no motors
        """Do nothing: a subclass with motors overrides this."""

    def see(self, view: OperatorView) -> None:  # noqa: B027 - only the simulated operator looks
        """Do nothing: a person looks at the screen."""

    def _run(self) -> None:
        while not self._stop.is_set():
            self._turn()
            # time.sleep is precise to a millisecond on Windows too; Event.wait is not.
            time.sleep(POLL_PERIOD)

    def _turn(self) -> None:
        self._look()
        with self._lock:
            self._poll()

    @abstractmethod
    def _open(self) -> None:
        """Open the device."""

    @abstractmethod
    def _look(self) -> None:
        """Look for an unplugged device, without the lock: that takes long, and `read()` must not wait."""

    @abstractmethod
    def _poll(self) -> None:
        """Take what the device has to say, with the lock held."""

    @abstractmethod
    def _close(self) -> None:
        """Close the device."""
