"""Game controllers that a test plugs in: SDL's own virtual joysticks, in the SDL that pygame has loaded."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

CONTROLLER, PLAIN = 1, 0
"""SDL's joystick types: a game controller has a mapping, an unknown joystick has none."""


def load_sdl() -> ctypes.CDLL | None:
    """Return the SDL library that pygame uses, None where it cannot be reached."""
    import pygame

    package = Path(pygame.__file__).parent
    places = [package / "SDL2.dll", *sorted((package.parent / "pygame.libs").glob("libSDL2-2*"))]
    found = [
        place for place in places if place.is_file() and (place.suffix == ".dll") == (sys.platform == "win32")
    ]
    if not found:
        return None
    sdl = ctypes.CDLL(str(found[0].resolve()))
    if not hasattr(sdl, "SDL_JoystickAttachVirtualEx"):
        return None
    sdl.SDL_JoystickOpen.restype = ctypes.c_void_p
    return sdl


RUMBLE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint16, ctypes.c_uint16)


class Description(ctypes.Structure):
    """SDL_VirtualJoystickDesc of SDL 2.24 and later."""

    _fields_ = (
        *((name, ctypes.c_uint16) for name in ("version", "type", "axes", "buttons", "hats")),
        *((name, ctypes.c_uint16) for name in ("vendor", "product", "padding")),
        *((name, ctypes.c_uint32) for name in ("button_mask", "axis_mask")),
        ("name", ctypes.c_char_p),
        *((name, ctypes.c_void_p) for name in ("userdata", "update", "player")),
        ("rumble", RUMBLE),
        *((name, ctypes.c_void_p) for name in ("rumble_triggers", "led", "effect")),
    )


class VirtualPad:
    """One virtual controller with motors; axes and buttons are numbered as SDL's controllers are."""

    def __init__(
        self, sdl: ctypes.CDLL, kind: int = CONTROLLER, axes: int = 6, buttons: int = 15, hats: int = 0
    ) -> None:
        self._sdl = sdl
        self.shaken: list[tuple[int, int]] = []
        """Strengths of the low and the high motor, 0 to 65535, in the order in which they were set."""
        self._description = Description(
            version=1, type=kind, axes=axes, buttons=buttons, hats=hats, rumble=RUMBLE(self._shake)
        )
        self._index = sdl.SDL_JoystickAttachVirtualEx(ctypes.byref(self._description))
        assert self._index >= 0
        self._handle = ctypes.c_void_p(sdl.SDL_JoystickOpen(self._index))
        self.plugged = True

    def _shake(self, userdata: int | None, low: int, high: int) -> int:
        self.shaken.append((low, high))
        return 0

    def axis(self, axis: int, value: float) -> None:
        raw = ctypes.c_int16(round(32767 * value))
        assert self._sdl.SDL_JoystickSetVirtualAxis(self._handle, axis, raw) == 0

    def button(self, button: int, down: bool = True) -> None:
        assert self._sdl.SDL_JoystickSetVirtualButton(self._handle, button, ctypes.c_uint8(down)) == 0

    def hat(self, direction: int) -> None:
        assert self._sdl.SDL_JoystickSetVirtualHat(self._handle, 0, ctypes.c_uint8(direction)) == 0

    def unplug(self) -> None:
        if self.plugged:
            self._sdl.SDL_JoystickClose(self._handle)
            assert self._sdl.SDL_JoystickDetachVirtual(self._index) == 0
            self.plugged = False
