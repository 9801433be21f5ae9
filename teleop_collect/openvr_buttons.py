"""The one table of buttons: what SteamVR's old input shows for each family of controllers.

| button     | touch (Pico, Quest, most others) | index (Valve Index)       | wand (Vive)        |
|------------|----------------------------------|---------------------------|--------------------|
| trigger    | bit 33, axis 1                   | bit 33, axis 1            | bit 33, axis 1     |
| squeeze    | bit 2 or 34, axis 2              | bit 34, axis 2            | bit 2              |
| thumbstick | bit 32, axis 0                   | bit 32 or 35, axis 0      |                    |
| trackpad   |                                  | (shown as the thumbstick) | bit 32, axis 0     |
| a, x       | bit 7 (x in the left hand)       | a: bit 2                  |                    |
| b, y       | bit 1 (y in the left hand)       | b: bit 1                  |                    |
| menu       | (not shown)                      | (not shown)               | bit 1              |
| system     | bit 0                            | bit 0                     | bit 0              |

Bits are EVRButtonId: 1 is ApplicationMenu, 2 Grip, 7 A, 32 to 36 the five axes. On an Index controller bit
2 is the A button, and its pad and stick share axis 0. Streamers for Pico show its controllers as
`oculus_touch`, SteamVR's own as `pico_controller`; both are of the touch family.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from bunraku.device import HandName

TRACKPAD_AXIS = 1
"""EVRControllerAxisType of a trackpad; 2 is a joystick."""


@dataclass(frozen=True, slots=True)
class Controls:
    """What is pressed on one controller."""

    buttons: frozenset[str] = frozenset()
    """Names of `bunraku.device.BUTTONS` that are down."""
    trigger: float = 0.0
    """0 to 1."""
    squeeze: float = 0.0
    """0 to 1."""
    thumbstick: tuple[float, float] = (0.0, 0.0)
    """Right and up, -1 to 1."""


RELEASED = Controls()


@dataclass(frozen=True, slots=True)
class ButtonLayout:
    """Where one family of controllers has its buttons."""

    bits: Mapping[int, str]
    """Bit: name of the button."""
    stick_axis: int | None = 0
    """Axis of thumbstick or trackpad."""
    trigger_axis: int | None = 1
    squeeze_axis: int | None = 2
    left_names: Mapping[str, str] = field(default_factory=dict)
    """Names that differ in the left hand."""

    def name(self, bit: int, hand: HandName) -> str | None:
        """Return the name of a bit's button in a hand, None if it means nothing here."""
        name = self.bits.get(bit)
        if name is None:
            return None
        return self.left_names.get(name, name) if hand == "left" else name

    def read(self, hand: HandName, pressed: int, axes: Sequence[tuple[float, float]]) -> Controls:
        """Return what is pressed.

        Args:
            hand: The hand that holds the controller.
            pressed: Bits that are down.
            axes: The five axes, each x and y.
        """
        names = {self.name(bit, hand) for bit in self.bits if pressed >> bit & 1}
        buttons = frozenset(name for name in names if name is not None)
        x, y = axes[self.stick_axis] if self.stick_axis is not None else (0.0, 0.0)
        return Controls(
            buttons,
            _analog(axes, self.trigger_axis, "trigger" in buttons),
            _analog(axes, self.squeeze_axis, "squeeze" in buttons),
            (_clip(x, -1.0), _clip(y, -1.0)),
        )


def _clip(value: float, low: float) -> float:
    """Return the value between `low` and 1, 0 for what is not a number."""
    return min(max(value, low), 1.0) if value == value else 0.0


def _analog(axes: Sequence[tuple[float, float]], axis: int | None, down: bool) -> float:
    """Return an axis 0 to 1; a button without an axis, or whose axis stays 0, is pressed fully."""
    value = _clip(axes[axis][0], 0.0) if axis is not None else 0.0
    return value if value > 0.0 else float(down)


TOUCH = ButtonLayout(
    {0: "system", 1: "b", 2: "squeeze", 7: "a", 32: "thumbstick", 33: "trigger", 34: "squeeze"},
    left_names={"a": "x", "b": "y"},
)
INDEX = ButtonLayout(
    {0: "system", 1: "b", 2: "a", 32: "thumbstick", 33: "trigger", 34: "squeeze", 35: "thumbstick"}
)
WAND = ButtonLayout(
    {0: "system", 1: "menu", 2: "squeeze", 32: "trackpad", 33: "trigger"},
    squeeze_axis=None,
)

LAYOUTS: Mapping[str, ButtonLayout] = MappingProxyType(
    {
        "oculus_touch": TOUCH,
        "pico_controller": TOUCH,
        "knuckles": INDEX,
        "vive_controller": WAND,
    }
)
"""Layout by the controller type that SteamVR tells."""


def layout_of(controller_type: str, axis0_type: int | None) -> ButtonLayout:
    """Return the layout of a controller.

    Args:
        controller_type: SteamVR's ControllerType property.
        axis0_type: SteamVR's type of axis 0, which decides for types that are not in the table: with a
            trackpad it is taken for a wand, else for the touch family.
    """
    known = LAYOUTS.get(controller_type)
    if known is not None:
        return known
    return WAND if axis0_type == TRACKPAD_AXIS else TOUCH


def axes_of(state: Any) -> list[tuple[float, float]]:
    """Return the five axes of a `VRControllerState_t`."""
    return [(float(axis.x), float(axis.y)) for axis in state.rAxis]
