"""What an input device tells, and the protocol that each device file implements.

A device knows no robot. It tells, per hand, where the hand is **in the device's own frame**, what is pressed, and
when that was so. Words are OpenXR's (`trigger`, `squeeze`, `thumbstick`, `a`, `menu`).

    with open_device("scripted") as device:
        state = device.read()              # the newest sample, never blocks
        right = state.hands["right"]
        if right.pose is not None:         # absent when not tracked
            print(right.pose.pos, right.trigger)
        device.rumble("right", strength=0.5, seconds=0.05)

Poses are newest-wins; presses and events are never lost: `HandState.pressed` and `DeviceState.events` hold
whatever happened since the last `read()`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Protocol, Self, runtime_checkable

import numpy as np

from bunraku.geometry import Array, Pose

HandName = Literal["left", "right"]
HANDS: tuple[HandName, HandName] = ("left", "right")

Clock = Callable[[], float]
"""Returns seconds since an arbitrary start, never running backwards: `time.perf_counter` or simulated time."""

BUTTONS: tuple[str, ...] = (
    "trigger",
    "squeeze",
    "thumbstick",
    "trackpad",
    "a",
    "b",
    "x",
    "y",
    "menu",
    "system",
)
"""Digital buttons in the order of their bits in a recorded file."""

EVENTS: tuple[str, ...] = (
    "connected",
    "disconnected",
    "role_changed",
    "recentred",
    "standby",
    "resumed",
    "dashboard_opened",
    "dashboard_closed",
    "quit",
)
"""What a device may report besides poses and buttons, in the order of their bits in a recorded file."""

COMMANDS: tuple[str, ...] = ("start", "success", "failure", "discard", "redo", "marker", "quit")
"""What an operator tells the recorder."""


@dataclass(frozen=True, slots=True)
class HandState:
    """One sample of one hand (or of the controller in it)."""

    time: float
    """When the pose was sampled, on the device's clock [s]."""
    pose: Pose | None = None
    """Pose in the device's frame, or None when it is not tracked (never a made-up or last pose)."""
    connected: bool = True
    """Whether there is a device for this hand."""
    linear_velocity: Array | None = None
    """`(3,)` [m/s], in the device's frame, when the device tells it."""
    angular_velocity: Array | None = None
    """`(3,)` [rad/s], in the device's frame, when the device tells it."""
    trigger: float = 0.0
    """Analog trigger, 0 (released) to 1."""
    squeeze: float = 0.0
    """Analog grip, 0 (released) to 1."""
    thumbstick: tuple[float, float] = (0.0, 0.0)
    """Thumbstick or trackpad, right and up, -1 to 1."""
    buttons: frozenset[str] = frozenset()
    """Names of `BUTTONS` held down now."""
    pressed: frozenset[str] = frozenset()
    """Names of `BUTTONS` that went down since the last `read()`, however short the press."""
    source: str = ""
    """Which physical device this is (serial number); a change of it while driving disengages."""

    def to_array(self) -> Array:
        """Return `(22,)` numbers for a file; see `HAND_ARRAY_FIELDS`."""
        out = np.zeros(len(HAND_ARRAY_FIELDS))
        out[0], out[1], out[2] = self.time, self.pose is not None, self.connected
        out[3:10] = np.nan if self.pose is None else self.pose.as_array()
        out[10:13] = np.nan if self.linear_velocity is None else self.linear_velocity
        out[13:16] = np.nan if self.angular_velocity is None else self.angular_velocity
        out[16], out[17] = self.trigger, self.squeeze
        out[18:20] = self.thumbstick
        out[20] = names_to_bits(self.buttons, BUTTONS)
        out[21] = names_to_bits(self.pressed, BUTTONS)
        return out

    @classmethod
    def from_array(cls, array: Array) -> HandState:
        """Return the sample that `to_array` wrote (without `source`)."""
        tracked, linear, angular = bool(array[1]), array[10:13], array[13:16]
        return cls(
            time=float(array[0]),
            pose=Pose.from_array(array[3:10]) if tracked else None,
            connected=bool(array[2]),
            linear_velocity=None if np.isnan(linear).any() else linear.copy(),
            angular_velocity=None if np.isnan(angular).any() else angular.copy(),
            trigger=float(array[16]),
            squeeze=float(array[17]),
            thumbstick=(float(array[18]), float(array[19])),
            buttons=bits_to_names(int(array[20]), BUTTONS),
            pressed=bits_to_names(int(array[21]), BUTTONS),
        )


HAND_ARRAY_FIELDS: tuple[str, ...] = (
    *("time", "tracked", "connected", "px", "py", "pz", "qw", "qx", "qy", "qz"),
    *("vx", "vy", "vz", "wx", "wy", "wz", "trigger", "squeeze", "stick_x", "stick_y", "buttons", "pressed"),
)
"""Columns of `HandState.to_array`, as stored in demonstration files."""


@dataclass(frozen=True, slots=True)
class DeviceState:
    """The newest sample of a device: both hands, and what happened since the last read."""

    time: float
    """When `read()` was called, on the device's clock [s]."""
    hands: Mapping[HandName, HandState] = field(default_factory=dict)
    """The hands that the device serves; a hand that it never serves is absent."""
    events: tuple[str, ...] = ()
    """Names of `EVENTS` since the last read, oldest first."""
    commands: tuple[str, ...] = ()
    """Names of `COMMANDS` since the last read (keyboard, gamepad), oldest first."""


@dataclass(frozen=True, slots=True)
class OperatorView:
    """What an operator sees on the screen: where each tool is and where it should go, in world coordinates."""

    time: float
    """Clock time [s]."""
    tools: Mapping[HandName, Pose]
    """The tool that each hand drives."""
    goals: Mapping[HandName, Pose]
    """The goal of each hand's tool."""
    goal_has_orientation: bool = False
    """Whether the goal's orientation counts."""
    goal_tolerance: tuple[float, float] = (0.004, 0.03)
    """How near the goal a tool is brought: [m] and [rad]."""
    success: bool = False
    """Whether the task says that it is done."""
    episode: int = 0
    """Index of the episode; a new one means that the scene was reset."""


@runtime_checkable
class Device(Protocol):
    """A source of hand motion. A context manager: it is opened on entering and released on leaving.

    The constructor takes `clock` (a `Clock`) and `seed` (an int, for devices that draw random numbers) as
    keywords, and any options of its own with defaults; it must not touch hardware. `__enter__` raises
    `DeviceError` with a remedy when the device cannot be opened.
    """

    name: str
    """The device's name: that of its file."""
    frame: Literal["y_up", "z_up"]
    """Axes of the device's frame: "y_up" is OpenVR's (x right, y up, -z forward); "z_up" is x forward, y left."""
    scripted: bool
    """True if no person is behind it: it then runs on simulated time as fast as it can."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    def read(self) -> DeviceState:
        """Return the newest sample; never blocks, never queues."""
        ...

    def rumble(self, hand: HandName, strength: float, seconds: float) -> None:
        """Give a haptic pulse of strength 0 to 1; does nothing on a device without haptics."""
        ...

    def see(self, view: OperatorView) -> None:
        """Show the operator the scene; only simulated operators look."""
        ...


def names_to_bits(names: frozenset[str] | tuple[str, ...], order: tuple[str, ...]) -> int:
    """Return an integer with bit i set for each name `order[i]` in `names`."""
    return sum(1 << i for i, name in enumerate(order) if name in names)


def bits_to_names(bits: int, order: tuple[str, ...]) -> frozenset[str]:
    """Return the names whose bits are set; the inverse of `names_to_bits`."""
    return frozenset(name for i, name in enumerate(order) if bits >> i & 1)
