"""Game controllers as SDL sees them, through pygame: found, read and rumbled without a window.

Only SDL's controller part is started, never its video part, so that a viewer in the same process keeps its
own. Controllers that SDL has a mapping for are read by the names of their buttons (A is the lower one,
whatever is printed on it); others by index, in the order of Linux's xpad driver. A mapping for such a one can
be given in the environment variable SDL_GAMECONTROLLERCONFIG.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bunraku.errors import MissingDependencyError
from bunraku.geometry import Array

SDL_HINTS: dict[str, str] = {
    "PYGAME_HIDE_SUPPORT_PROMPT": "1",  # or importing pygame writes to stdout
    "SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS": "1",  # the window in front is the viewer's, not ours
    "SDL_JOYSTICK_THREAD": "1",  # Windows: notice plugging without a window's message loop
    "SDL_NO_SIGNAL_HANDLERS": "1",  # or SDL takes SIGTERM for itself and the process cannot be ended
}
BUTTONS: tuple[str, ...] = (
    *("a", "b", "x", "y", "back", "guide", "start", "left_stick", "right_stick"),
    *("left_shoulder", "right_shoulder", "up", "down", "left", "right"),
)
"""Buttons in the order of SDL's controller buttons."""
XPAD_BUTTONS: tuple[str, ...] = (
    *("a", "b", "x", "y", "left_shoulder", "right_shoulder", "back", "start", "guide"),
    *("left_stick", "right_stick"),
)
"""Buttons in the order of joystick indices of Linux's xpad driver."""


@dataclass(frozen=True, slots=True)
class PadSample:
    """What a controller tells at one instant."""

    left: Array
    """Left stick `(2,)`, right and up, -1 to 1."""
    right: Array
    """Right stick `(2,)`, right and up, -1 to 1."""
    triggers: tuple[float, float]
    """Left and right trigger, 0 (released) to 1."""
    buttons: frozenset[str]
    """Names of `BUTTONS` that are down."""


class Pad(Protocol):
    """One open controller."""

    source: str
    """Which controller this is."""

    def attached(self) -> bool:
        """Say whether it is still plugged in."""
        ...

    def sample(self) -> PadSample:
        """Return what it tells now."""
        ...

    def rumble(self, strength: float, seconds: float) -> None:
        """Shake it, if it can."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class MappedPad:
    """A controller that SDL has a mapping for."""

    def __init__(self, controller: Any) -> None:
        """Take an open `pygame._sdl2.controller.Controller`."""
        self._controller = controller
        joystick = controller.as_joystick()
        self.source = f"{controller.name}:{joystick.get_guid()}:{joystick.get_instance_id()}"

    def attached(self) -> bool:
        """Say whether it is still plugged in."""
        return bool(self._controller.attached())

    def sample(self) -> PadSample:
        """Return what it tells now."""
        axes = [_unit(self._controller.get_axis(axis)) for axis in range(6)]
        down = frozenset(name for i, name in enumerate(BUTTONS) if self._controller.get_button(i))
        return PadSample(
            np.array([axes[0], -axes[1]]), np.array([axes[2], -axes[3]]), (axes[4], axes[5]), down
        )

    def rumble(self, strength: float, seconds: float) -> None:
        """Shake it, if it can."""
        self._controller.rumble(strength, strength, int(1e3 * seconds))

    def close(self) -> None:
        """Let go of it."""
        self._controller.quit()


class IndexedPad:
    """A joystick without a mapping, read by index."""

    def __init__(self, joystick: Any, is_gone: Callable[[int], bool]) -> None:
        """Take an open joystick.

        Args:
            joystick: A `pygame.joystick.Joystick`.
            is_gone: Says whether the joystick of an instance id was unplugged.
        """
        self._joystick, self._is_gone = joystick, is_gone
        self._id: int = joystick.get_instance_id()
        self.source = f"{joystick.get_name()}:{joystick.get_guid()}:{self._id}"

    def attached(self) -> bool:
        """Say whether it is still plugged in."""
        return not self._is_gone(self._id)

    def sample(self) -> PadSample:
        """Return what it tells now."""
        stick = self._joystick
        count = stick.get_numaxes()
        axes = [stick.get_axis(i) for i in range(count)] + [0.0] * 6
        # xpad: left x, y, trigger, right x, y, trigger; with fewer axes no trigger is analog.
        has_triggers = count >= 6
        right = axes[3:5] if has_triggers else axes[2:4]
        triggers = (0.5 + 0.5 * axes[2], 0.5 + 0.5 * axes[5]) if has_triggers else (0.0, 0.0)
        count = min(len(XPAD_BUTTONS), stick.get_numbuttons())
        down = {name for i, name in enumerate(XPAD_BUTTONS[:count]) if stick.get_button(i)}
        across, upward = stick.get_hat(0) if stick.get_numhats() else (0, 0)
        for name, pressed in (
            *(("left", across < 0), ("right", across > 0)),
            *(("down", upward < 0), ("up", upward > 0)),
        ):
            if pressed:
                down.add(name)
        return PadSample(
            np.array([axes[0], -axes[1]]), np.array([right[0], -right[1]]), triggers, frozenset(down)
        )

    def rumble(self, strength: float, seconds: float) -> None:
        """Shake it, if it can."""
        self._joystick.rumble(strength, strength, int(1e3 * seconds))

    def close(self) -> None:
        """Let go of it."""
        self._joystick.quit()


class Sdl:
    """SDL's controllers."""

    def __init__(self) -> None:
        """Start SDL's controller part.

        Raises:
            MissingDependencyError: If pygame is not installed.
        """
        for hint, value in SDL_HINTS.items():
            os.environ.setdefault(hint, value)
        try:
            self._pygame = importlib.import_module("pygame")
            self._controller = importlib.import_module("pygame._sdl2.controller")
        except ModuleNotFoundError as error:
            raise MissingDependencyError("pygame", "a gamepad", "gamepad") from error
        self.error: type[Exception] = self._pygame.error
        self._started_here = not self._controller.get_init()
        self._controller.init()

    def update(self) -> None:
        """Let SDL look at the hardware."""
        self._controller.update()

    def first_pad(self) -> Pad | None:
        """Open the first controller; one with a mapping is preferred. None if there is none."""
        joystick = self._pygame.joystick
        indices = range(joystick.get_count())
        for index in indices:
            if self._controller.is_controller(index):
                return MappedPad(self._controller.Controller(index))
        return IndexedPad(joystick.Joystick(0), self._is_gone) if indices else None

    def close(self) -> None:
        """Stop SDL's controller part, unless the program around us had started it."""
        if self._started_here:
            self._controller.quit()

    def _is_gone(self, instance: int) -> bool:
        joystick = self._pygame.joystick
        present = (joystick.Joystick(i).get_instance_id() for i in range(joystick.get_count()))
        return instance not in present


def _unit(value: int) -> float:
    """Return SDL's axis value, -32768 to 32767, as -1 to 1."""
    return max(value / 32767.0, -1.0)
