"""Keys: their names, what each does, and where they come from.

One table serves the keyboard device, the viewers' shortcuts and the legend in the panel:

| keys                   | do                                                                               |
|------------------------|----------------------------------------------------------------------------------|
| w s                    | hand forward, back (x)                                                           |
| a d                    | hand left, right (y)                                                             |
| r f                    | hand up, down (z)                                                                |
| left right             | turn about the vertical                                                          |
| up down                | tip the nose up, down                                                            |
| q e                    | roll left, right                                                                 |
| space                  | trigger: hold to drive (in a terminal: once to drive, once more to let go)       |
| g                      | gripper closed, open                                                             |
| shift (with any above) | slow                                                                             |
| - =                    | slower, faster                                                                   |
| c                      | re-reference (button A)                                                          |
| tab                    | the other hand, where the keyboard serves two                                    |
| enter                  | start                                                                            |
| 1 2                    | success, failure                                                                 |
| 3 4 5                  | discard, redo last, marker                                                       |
| escape                 | quit                                                                             |

Letters are named in lower case; `KEY_NAMES` holds every name.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

COMMAND_KEYS: Mapping[str, str] = MappingProxyType(
    {
        "enter": "start",
        "1": "success",
        "2": "failure",
        "3": "discard",
        "4": "redo",
        "5": "marker",
        "escape": "quit",
    }
)
"""The command (of `bunraku.device.COMMANDS`) that each key gives."""

MOTION_KEYS: Mapping[str, tuple[int, float]] = MappingProxyType(
    {
        "w": (0, 1.0),
        "s": (0, -1.0),
        "a": (1, 1.0),
        "d": (1, -1.0),
        "r": (2, 1.0),
        "f": (2, -1.0),
        "e": (3, 1.0),
        "q": (3, -1.0),
        "down": (4, 1.0),
        "up": (4, -1.0),
        "left": (5, 1.0),
        "right": (5, -1.0),
    }
)
"""Axis (x, y, z, then rotation about x, y, z; x forward, y left, z up) and direction that each key moves."""

TRIGGER_KEY = "space"
GRIPPER_KEY = "g"
SLOW_KEY = "shift"
SLOWER_KEY = "minus"
FASTER_KEY = "equal"
REREFERENCE_KEY = "c"
HAND_KEY = "tab"

KEY_NAMES: tuple[str, ...] = (
    *MOTION_KEYS,
    *COMMAND_KEYS,
    TRIGGER_KEY,
    GRIPPER_KEY,
    SLOW_KEY,
    SLOWER_KEY,
    FASTER_KEY,
    REREFERENCE_KEY,
    HAND_KEY,
)
"""Names of all keys that mean something."""

LEGEND: tuple[tuple[str, str], ...] = (
    ("W S", "forward, back"),
    ("A D", "left, right"),
    ("R F", "up, down"),
    ("Arrows", "turn, tip"),
    ("Q E", "roll"),
    ("Space", "hold to drive"),
    ("G", "gripper"),
    ("Shift", "slow"),
    ("- =", "slower, faster"),
    ("C", "re-reference"),
)
"""What the panel says about the keys that move the hand."""


@runtime_checkable
class KeySource(Protocol):
    """Where key presses come from: our window or page, or the terminal; never a hook on the whole system."""

    has_key_up: bool
    """Whether `held` knows when a key is released; a terminal only guesses it from the key's repetition."""

    def held(self) -> frozenset[str]:
        """Return the names of the keys held down now."""
        ...

    def pressed(self) -> tuple[str, ...]:
        """Return the names of the keys that went down since the last call, oldest first.

        A source without key-up also reports each repetition of a key that is kept down.
        """
        ...


class HasKeys(Protocol):
    """What `ViewerKeys` needs of a viewer."""

    def keys(self) -> frozenset[str]:
        """Return the names of the keys held down now."""
        ...


class ViewerKeys:
    """The keys of a viewer's window or page.

    Command keys are left out: the viewer itself turns them into commands.
    """

    has_key_up: bool = True

    def __init__(self, viewer: HasKeys) -> None:
        """Watch the keys of `viewer`."""
        self._viewer = viewer
        self._before: frozenset[str] = frozenset()
        self._new: list[str] = []

    def held(self) -> frozenset[str]:
        """Return the names of the keys held down now."""
        now = self._viewer.keys() - COMMAND_KEYS.keys()
        self._new.extend(sorted(now - self._before))
        self._before = now
        return now

    def pressed(self) -> tuple[str, ...]:
        """Return the names of the keys that went down since the last call, oldest first."""
        self.held()
        new, self._new = tuple(self._new), []
        return new
