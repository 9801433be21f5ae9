"""Controllers as SteamVR's old input shows them, written down independently of bunraku's own table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SYSTEM, APPLICATION_MENU, GRIP, A = 0, 1, 2, 7
AXIS0, AXIS1, AXIS2 = 32, 33, 34
TRACKPAD, JOYSTICK = 1, 2


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of controller."""

    type: str
    """Its controller type property."""
    model: str
    """Its model number property."""
    stick_type: int
    """Type of its axis 0."""
    bits: Mapping[str, tuple[int, ...]]
    """Bits that each button sets."""
    axes: Mapping[str, int]
    """The axis of each analog part."""


TOUCH_BITS = {
    **dict.fromkeys(("a", "x"), (A,)),
    **dict.fromkeys(("b", "y"), (APPLICATION_MENU,)),
    "trigger": (AXIS1,),
    "squeeze": (GRIP, AXIS2),
    "thumbstick": (AXIS0,),
    "system": (SYSTEM,),
}
TOUCH_AXES = {"thumbstick": 0, "trigger": 1, "squeeze": 2}

KINDS: dict[str, Kind] = {
    "touch": Kind("oculus_touch", "Oculus Quest2", JOYSTICK, TOUCH_BITS, TOUCH_AXES),
    "pico": Kind("pico_controller", "PICO 4", JOYSTICK, TOUCH_BITS, TOUCH_AXES),
    "index": Kind(
        "knuckles",
        "Knuckles",
        TRACKPAD,
        {
            "a": (GRIP,),
            "b": (APPLICATION_MENU,),
            "trigger": (AXIS1,),
            "squeeze": (AXIS2,),
            "thumbstick": (AXIS0,),
            "system": (SYSTEM,),
        },
        TOUCH_AXES,
    ),
    "wand": Kind(
        "vive_controller",
        "Vive Controller MV",
        TRACKPAD,
        {
            "menu": (APPLICATION_MENU,),
            "trigger": (AXIS1,),
            "squeeze": (GRIP,),
            "trackpad": (AXIS0,),
            "system": (SYSTEM,),
        },
        {"trackpad": 0, "trigger": 1},
    ),
}
