"""The errors that bunraku raises for what a user can mend.

Every message says what was given, what was expected and what to do next. The command line prints the message
of a `BunrakuError` as one line on stderr and exits with code 2; anything else is a fault of ours and shows
its traceback with `--debug`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BunrakuError(Exception):
    """Base of the errors that a user can mend: wrong input or a lacking part of the environment."""


class UnknownNameError(BunrakuError, LookupError):
    """A name (of an environment, device, robot, option) that is not known."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        """Build the message from the kind of thing, the name given and the names that would have worked."""
        self.kind, self.name, self.known = kind, name, sorted(known)
        super().__init__(f"unknown {kind} {name!r}{did_you_mean(name, self.known)}")


class MissingDependencyError(BunrakuError, ImportError):
    """An optional library that is not installed."""

    def __init__(self, library: str, purpose: str, extra: str) -> None:
        """Name the library, what it is needed for, and the extra that brings it."""
        super().__init__(
            f"{library} is not installed, which {purpose} needs; install it with: pip install 'bunraku[{extra}]'"
        )


class DeviceError(BunrakuError):
    """An input device that cannot be opened or was lost."""


class FileFormatError(BunrakuError):
    """A file that is not what it should be: truncated, of another kind, or of a newer version."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return '; did you mean ...?' for the nearest known name, else the list of the known names.

    Args:
        name: The name given.
        known: The names that would have worked.

    Returns:
        The end of an error message.
    """
    known = list(known)
    lowered = {k.lower(): k for k in known}
    near = difflib.get_close_matches(name.lower(), list(lowered), n=1, cutoff=0.6)
    if near:
        return f"; did you mean {lowered[near[0]]!r}?"
    return f"; known: {', '.join(known)}" if known else ""
