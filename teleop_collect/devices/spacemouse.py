"""3Dconnexion SpaceMouse: a cap to push and twist, which moves a virtual hand.

    with SpaceMouse() as device:
        hand = device.read().hands["right"]

Pushing the cap forward, left, up moves the hand along +x, +y, +z; tilting it to the right turns the hand
about +x, forward about +y, and twisting it counter-clockwise (seen from above) about +z. One SpaceMouse is
the right hand (or the one named); of two, the one with the lower serial number is the left (`swap` exchanges
them).

| Input | Buttons by model | Does |
|---|---|---|
| cap | | moves the hand; drives while off its rest and 0.3 s after (`engage="deflect"`) |
| left button, short | LEFT, BTN_1 or MENU | command start; with `engage="toggle"`: drive or hold still |
| left button, long (0.8 s) | LEFT, BTN_1 or MENU | command failure |
| right button, short | RIGHT, BTN_2 or FIT | closes or opens the gripper (drives for 1 s meanwhile) |
| right button, long (0.8 s) | RIGHT, BTN_2 or FIT | command discard |
| both buttons | | command success |
| more buttons | BTN_3, BTN_4, ESC, ALT, CTRL | commands success, failure, discard, redo, marker |
| SHIFT, held | SHIFT | precision |

A model reached through the Universal Receiver reports its left and right buttons as MENU and FIT. Driving is
the trigger, the gripper is the squeeze, precision is the thumbstick button of `HandState`. An unplugged
SpaceMouse gives the event "disconnected", is looked for twice a second, and goes on from where the hand was.
One that falls silent while deflected (out of radio range) stops after half a second.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bunraku.device import HANDS, Clock, HandName
from bunraku.errors import BunrakuError, DeviceError, UnknownNameError
from bunraku.geometry import Array
from bunraku.teleop_collect.devices._gestures import Gestures
from bunraku.teleop_collect.devices._polled import REOPEN_PERIOD, HandInput, PolledDevice
from bunraku.teleop_collect.devices._spacemouse_hid import (
    Found,
    Library,
    find,
    load_library,
    not_found,
    open_mouse,
)
from bunraku.teleop_collect.virtual_hand import response

AXES: tuple[str, ...] = ("x", "y", "z", "roll", "pitch", "yaw")
"""Axes of the cap in the order of `SpaceMouse.axes`."""
PUSHES: dict[str, str] = {
    "x": "push the cap forward, away from you",
    "y": "push the cap to the left",
    "z": "pull the cap up",
    "roll": "tilt the cap to the right",
    "pitch": "tilt the cap forward",
    "yaw": "twist the cap counter-clockwise",
}
"""What an operator does to move each axis in its positive direction."""

LEFT_NAMES = frozenset({"LEFT", "BTN_1", "MENU"})
RIGHT_NAMES = frozenset({"RIGHT", "BTN_2", "FIT"})
KEY_COMMANDS: dict[str, str] = {
    "BTN_3": "success",
    "BTN_4": "failure",
    "ESC": "discard",
    "ALT": "redo",
    "CTRL": "marker",
}
GESTURE_COMMANDS: dict[str, str] = {"left_long": "failure", "right_long": "discard", "both": "success"}

ENGAGE_TAIL = 0.3
"""How long the hand stays engaged after the cap is back at rest [s]."""
GRIPPER_TAIL = 1.0
"""How long the hand is engaged after the gripper button, so that the fingers move [s]."""
SILENCE = 0.5
"""A deflected cap that is silent for so long counts as at rest [s]; a live one tells every 8 ms."""
REPORTS_AT_ONCE = 64
"""Most reports taken in one poll: the operating system keeps no more."""


@dataclass(frozen=True, slots=True)
class AxisCheck:
    """What came of asking an operator to push one axis."""

    asked: str
    """What the operator was asked to do."""
    seen: bool
    """Whether the cap moved at all."""
    axis: str | None
    """The axis that moved most, None if none did."""
    value: float
    """Its largest deflection, -1 to 1."""
    ok: bool
    """Whether the asked axis moved most, in its positive direction."""


@dataclass(slots=True)
class _Mouse:
    """One SpaceMouse: its library object, what it said last, and the state of its gestures."""

    found: Found
    device: Any
    axes: Array = field(default_factory=lambda: np.zeros(6))
    stamp: float = -1.0
    """The library's time of the last report; it changes with each."""
    heard: float = float("-inf")
    """When the last report came, on our clock [s]."""
    engaged_until: float = float("-inf")
    toggled: bool = False
    keys: frozenset[str] = frozenset()
    gestures: Gestures = field(default_factory=Gestures)


class SpaceMouse(PolledDevice):
    """One or two SpaceMice, each moving a virtual hand."""

    name = "spacemouse"

    def __init__(
        self,
        *,
        clock: Clock = time.perf_counter,
        seed: int = 0,
        hand: HandName = "right",
        swap: bool = False,
        engage: Literal["deflect", "toggle"] = "deflect",
        speed: float = 0.4,
        turn_speed: float = 1.2,
        deadband: float = 0.08,
        cubic: float = 0.6,
        invert: tuple[str, ...] = (),
        background: bool = True,
    ) -> None:
        """Take the options; hardware is touched on entering.

        Args:
            clock: Returns the time [s]. seed: Not used: nothing here is random. hand: The hand that a single
            SpaceMouse is. swap: Exchange left and right where there are two. engage: "deflect": drive while
            the cap is off its rest; "toggle": the left button starts and ends it. speed: Hand speed at full
            deflection [m/s]. turn_speed: Angular speed of the hand at full deflection [rad/s]. deadband:
            Deflection, of 1, that counts as rest. cubic: Share of the cubic term of the response, 0 (linear)
            to 1 (fine around rest). invert: Axes of `AXES` to turn round, for a model that disagrees (see
            `check_axes`). background: Read in a thread of its own; otherwise within `read()`.

        Raises:
            UnknownNameError: If an axis to invert, the hand or the way to engage is not known.
        """
        super().__init__(clock, background)
        for kind, given, known in (
            ("hand", hand, HANDS),
            ("way to engage", engage, ("deflect", "toggle")),
            *(("axis", axis, AXES) for axis in invert),
        ):
            if given not in known:
                raise UnknownNameError(kind, given, known)
        self._hand, self._swap, self._engage = hand, swap, engage
        self._speed = np.repeat([speed, turn_speed], 3)
        self._deadband, self._cubic = deadband, cubic
        self._signs = np.array([-1.0 if axis in invert else 1.0 for axis in AXES])
        self._library: Library | None = None
        self._mice: dict[HandName, _Mouse] = {}
        self._next_look = 0.0

    def axes(self, hand: HandName) -> Array:
        """Return the newest deflections `(6,)` of a hand's cap, in the order of `AXES`, -1 to 1."""
        with self._lock:
            return self._mice[hand].axes.copy()

    def check_axes(
        self,
        ask: Callable[[str], None],
        *,
        hand: HandName | None = None,
        seconds: float = 10.0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> dict[str, AxisCheck]:
        """Let the operator push each axis in turn; say whether it was seen, and with the right sign.

        An axis takes until its push was seen and released again, and at most a sixth of the time.

        Args:
            ask: Shows an operator what to do next.
            hand: The hand to check; the first one if None.
            seconds: Time for all six axes [s].
            sleep: Waits for a number of seconds.

        Returns:
            A result for each of `AXES`.
        """
        checked = next(iter(self._mice)) if hand is None else hand
        results: dict[str, AxisCheck] = {}
        for axis in AXES:
            ask(PUSHES[axis])
            peak = self._watch(checked, self._clock() + seconds / len(AXES), sleep)
            strongest = int(np.abs(peak).argmax())
            value = float(peak[strongest])
            seen = abs(value) > self._deadband
            name = AXES[strongest] if seen else None
            results[axis] = AxisCheck(PUSHES[axis], seen, name, value, name == axis and value > 0.0)
        return results

    def _watch(self, hand: HandName, until: float, sleep: Callable[[float], None]) -> Array:
        """Return the deflections `(6,)` at the strongest moment of one push, up to its release."""
        peak = np.zeros(6)
        while self._clock() < until:
            sleep(0.01)
            if not self._background:
                self.read()
            now = self.axes(hand)
            if np.abs(now).max() > np.abs(peak).max():
                peak = now
            if np.abs(peak).max() > 0.3 and np.abs(now).max() <= self._deadband:
                break
        return peak

    def _open(self) -> None:
        self._library = load_library()
        found = find(self._library)
        if not found:
            raise not_found(self._library)
        hands: tuple[HandName, ...] = (self._hand,) if len(found) == 1 else HANDS
        chosen = found[: len(hands)]
        try:
            for hand, one in zip(hands, reversed(chosen) if self._swap else chosen, strict=True):
                self._mice[hand] = _Mouse(one, open_mouse(self._library, one))
                self._inputs[hand] = HandInput(self._clock, one.source)
        except BunrakuError:
            self._close()
            raise

    def _close(self) -> None:
        for mouse in self._mice.values():
            if mouse.device is not None:
                mouse.device.close()
        self._mice.clear()
        self._inputs.clear()

    def _poll(self) -> None:
        assert self._library is not None
        for hand, mouse in self._mice.items():
            if mouse.device is None:
                continue
            try:
                self._take_reports(hand, mouse)
            except self._library.easyhid.HIDException:
                self._lose(hand, mouse)
                continue
            self._drive(hand, mouse)

    def _take_reports(self, hand: HandName, mouse: _Mouse) -> None:
        """Take every report that is waiting, so that no press is skipped; the axes are those of the last."""
        for _ in range(REPORTS_AT_ONCE):
            state = mouse.device.read()
            if state.t == mouse.stamp:
                break
            mouse.stamp, mouse.heard = state.t, self._clock()
            axes = np.array([getattr(state, axis) for axis in AXES])
            mouse.axes = np.clip(axes, -1.0, 1.0) * self._signs
            names = mouse.device.info.button_names
            self._take_buttons(
                hand, mouse, frozenset(n for n, down in zip(names, state.buttons, strict=True) if down)
            )
        self._take_gestures(hand, mouse)

    def _take_buttons(self, hand: HandName, mouse: _Mouse, keys: frozenset[str]) -> None:
        new, mouse.keys = keys - mouse.keys, keys
        self._commands += [KEY_COMMANDS[key] for key in KEY_COMMANDS if key in new]
        self._take_gestures(hand, mouse)

    def _take_gestures(self, hand: HandName, mouse: _Mouse) -> None:
        now = self._clock()
        for gesture in mouse.gestures.update(
            bool(mouse.keys & LEFT_NAMES), bool(mouse.keys & RIGHT_NAMES), now
        ):
            if gesture in GESTURE_COMMANDS:
                self._commands.append(GESTURE_COMMANDS[gesture])
            elif gesture == "right":
                grip = self._inputs[hand]
                grip.squeeze = 1.0 - grip.squeeze
                mouse.engaged_until = max(mouse.engaged_until, now + GRIPPER_TAIL)
            elif self._engage == "toggle":
                mouse.toggled = not mouse.toggled
            else:
                self._commands.append("start")

    def _drive(self, hand: HandName, mouse: _Mouse) -> None:
        """Move the hand as the cap commands, and hold the buttons that the cap and the keys mean."""
        now, target = self._clock(), self._inputs[hand]
        if now - mouse.heard > SILENCE:
            mouse.axes = np.zeros(6)
        twist = self._speed * response(mouse.axes, self._deadband, self._cubic)
        target.hand.move(twist[:3], twist[3:])
        if np.abs(mouse.axes).max() > self._deadband:
            mouse.engaged_until = max(mouse.engaged_until, now + ENGAGE_TAIL)
        engaged = mouse.toggled if self._engage == "toggle" else now < mouse.engaged_until
        target.trigger = float(engaged)
        held = {"trigger": engaged, "squeeze": target.squeeze > 0.5, "thumbstick": "SHIFT" in mouse.keys}
        target.hold(name for name, down in held.items() if down)

    def _lose(self, hand: HandName, mouse: _Mouse) -> None:
        mouse.device.close()
        mouse.device, mouse.axes, mouse.keys = None, np.zeros(6), frozenset()
        mouse.engaged_until, mouse.toggled = float("-inf"), False
        mouse.gestures.forget()
        self._inputs[hand].lose()
        self._events.append("disconnected")

    def _look(self) -> None:
        """Reopen what was unplugged: the same serial number first, then the same model, then any."""
        lost = [(hand, mouse) for hand, mouse in self._mice.items() if mouse.device is None]
        if not lost or self._library is None or self._clock() < self._next_look:
            return
        self._next_look = self._clock() + REOPEN_PERIOD
        for hand, mouse in lost:
            in_use = {other.found.path for other in self._mice.values() if other.device is not None}
            free = [found for found in find(self._library) if found.path not in in_use]
            best = _nearest(mouse.found, free)
            if best is None:
                continue
            try:
                device = open_mouse(self._library, best)
            except DeviceError:
                continue  # just plugged in: the system may not have granted access yet
            with self._lock:
                mouse.device, mouse.found, mouse.stamp = device, best, -1.0
                self._inputs[hand].regain(best.source)
                self._events.append("connected")


def _nearest(lost: Found, free: list[Found]) -> Found | None:
    """Return the device that is most likely the one that was lost."""
    return min(free, key=lambda f: (f.source != lost.source, f.model != lost.model), default=None)


DEVICE = SpaceMouse
