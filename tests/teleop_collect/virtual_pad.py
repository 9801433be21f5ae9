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
    if not hasattr(sdl, "SDL_JoystickAttachVirtual"):
        return None
    sdl.SDL_JoystickOpen.restype = ctypes.c_void_p
    return sdl


class VirtualPad:
    """One virtual controller; axes and buttons are numbered as SDL's controllers are."""

    def __init__(
        self, sdl: ctypes.CDLL, kind: int = CONTROLLER, axes: int = 6, buttons: int = 15, hats: int = 0
    ) -> None:
        self._sdl = sdl
        self._index = sdl.SDL_JoystickAttachVirtual(kind, axes, buttons, hats)
        assert self._index >= 0
        self._handle = ctypes.c_void_p(sdl.SDL_JoystickOpen(self._index))
        self.plugged = True

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
