"""Keys typed into the terminal that the program was started from.

    with TerminalKeys() as keys:
        keys.pressed()     # ('w', 'w', 'enter')
        keys.held()        # frozenset({'w'})

A terminal tells what was typed, never that a key was released. `held` therefore guesses: a key counts as down
for `HOLD_S` after it was typed or repeated. The terminal is put back as it was on leaving, also after an
error, and Ctrl-C works as always.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol, Self

from bunraku.errors import DeviceError

HOLD_S = 0.15
"""How long a typed key counts as down [s]: longer than the period of any keyboard's repetition."""
_ESCAPE_S = 0.05
"""How long an escape character may wait for the rest of an arrow key's sequence [s]."""

_CHARACTERS = {
    " ": "space",
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "-": "minus",
    "_": "minus",
    "=": "equal",
    "+": "equal",
}
_POSIX_ARROWS = {"A": "up", "B": "down", "C": "right", "D": "left"}
_WINDOWS_ARROWS = {"H": "up", "P": "down", "M": "right", "K": "left"}


class Typewriter(Protocol):
    """The system's side of a terminal."""

    def open(self) -> None:
        """Take characters one by one, without showing them."""
        ...

    def close(self) -> None:
        """Put the terminal back as it was."""
        ...

    def take(self) -> str:
        """Return what was typed since the last call; never waits."""
        ...


class TerminalKeys:
    """A `KeySource` on the terminal."""

    has_key_up: bool = False

    def __init__(
        self, clock: Callable[[], float] = time.perf_counter, typewriter: Typewriter | None = None
    ) -> None:
        """Prepare; the terminal is touched on entering.

        Args:
            clock: Returns the time [s].
            typewriter: Where characters come from; standard input by default.
        """
        self._clock = clock
        self._typewriter = typewriter
        self._decoder = KeyDecoder()
        self._seen: dict[str, float] = {}
        self._pressed: list[str] = []

    def __enter__(self) -> Self:
        """Take over the keyboard of the terminal.

        Raises:
            DeviceError: If standard input is not a terminal.
        """
        if self._typewriter is None:
            self._typewriter = _system_typewriter()
        self._typewriter.open()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        if self._typewriter is not None:
            self._typewriter.close()

    def held(self) -> frozenset[str]:
        """Return the names of the keys that were typed a moment ago."""
        now = self._poll()
        return frozenset(key for key, typed in self._seen.items() if now - typed < HOLD_S)

    def pressed(self) -> tuple[str, ...]:
        """Return the names of the keys typed since the last call, repetitions included, oldest first."""
        self._poll()
        pressed, self._pressed = tuple(self._pressed), []
        return pressed

    def _poll(self) -> float:
        now = self._clock()
        typed = self._typewriter.take() if self._typewriter is not None else ""
        for key, shift in self._decoder.decode(typed, now):
            self._seen[key] = now
            self._pressed.append(key)
            if shift:
                self._seen["shift"] = now
        return now


class KeyDecoder:
    """Turns a stream of characters into keys, whatever the pieces it comes in."""

    def __init__(self) -> None:
        """Start with nothing pending."""
        self._pending = ""
        self._since = 0.0

    def decode(self, text: str, now: float) -> list[tuple[str, bool]]:
        """Return the keys that `text` completes, each with whether Shift was held.

        Args:
            text: What was typed since the last call.
            now: The time [s]; a lone escape character becomes the Escape key when nothing follows it in time.
        """
        if text and not self._pending:
            self._since = now
        text, self._pending = self._pending + text, ""
        keys: list[tuple[str, bool]] = []
        while text:
            key, text = self._first(text, now)
            if key is not None:
                keys.append(key)
            elif self._pending:
                break
        return keys

    def _first(self, text: str, now: float) -> tuple[tuple[str, bool] | None, str]:
        """Return the first key of `text`, or None, and the rest."""
        head = text[0]
        if head == "\x1b":
            return self._escape(text, now)
        if head in "\x00\xe0":
            if len(text) == 1:
                self._pending = text
                return None, ""
            arrow = _WINDOWS_ARROWS.get(text[1])
            return (None if arrow is None else (arrow, False)), text[2:]
        if head in _CHARACTERS:
            return (_CHARACTERS[head], head in "_+"), text[1:]
        if head.isascii() and head.isalnum():
            return (head.lower(), head.isupper()), text[1:]
        return None, text[1:]

    def _escape(self, text: str, now: float) -> tuple[tuple[str, bool] | None, str]:
        if len(text) > 1 and text[1] not in "[O":
            return ("escape", False), text[1:]
        end = next((i for i, char in enumerate(text[2:], 2) if char.isalpha() or char == "~"), None)
        if end is not None:
            arrow = _POSIX_ARROWS.get(text[end])
            return (None if arrow is None else (arrow, text[2:end].endswith(";2"))), text[end + 1 :]
        if now - self._since < _ESCAPE_S:
            self._pending = text
            return None, ""
        return ("escape", False), text[2:]


def _system_typewriter() -> Typewriter:
    if sys.stdin is None or not sys.stdin.isatty():
        raise DeviceError(
            "the keyboard device reads the terminal, and standard input is not one; give it keys from "
            "--viewer web or --viewer native, or choose --device scripted"
        )
    if sys.platform == "win32":
        return _WindowsTypewriter()
    return PosixTypewriter(sys.stdin.fileno())


class _WindowsTypewriter:
    """The console of Windows, which hands out single characters without being told to."""

    def open(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""

    def take(self) -> str:
        """Return what was typed since the last call."""
        import msvcrt

        typed = ""
        while msvcrt.kbhit():  # type: ignore[attr-defined, unused-ignore]
            typed += msvcrt.getwch()  # type: ignore[attr-defined, unused-ignore]
        return typed


class PosixTypewriter:
    """A terminal of a POSIX system, in cbreak mode while it is open."""

    def __init__(self, fd: int) -> None:
        """Prepare to read the terminal behind the file descriptor `fd`."""
        self._fd = fd
        self._before: list[Any] | None = None

    def open(self) -> None:
        """Switch line editing and echo off, and make sure that they come back."""
        import atexit
        import termios
        import tty

        self._before = termios.tcgetattr(self._fd)
        tty.setcbreak(self._fd, termios.TCSANOW)
        atexit.register(self.close)

    def close(self) -> None:
        """Put the terminal back as it was."""
        import atexit
        import termios

        atexit.unregister(self.close)
        before, self._before = self._before, None
        if before is not None:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)

    def take(self) -> str:
        """Return what was typed since the last call."""
        import os
        import select

        if not select.select([self._fd], [], [], 0.0)[0]:
            return ""
        return os.read(self._fd, 1024).decode("ascii", "ignore")
