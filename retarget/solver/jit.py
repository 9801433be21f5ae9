"""Compile a function with numba where numba is installed; otherwise leave it as Python.

`compiled` is used for loops that exist once. Whether numba is there is asked with `HAS_NUMBA`: the solver then
chooses between its compiled kernels and the MuJoCo path, and says so. Machine code is cached on disk next to the
module (or in the user's cache folder where that is read-only), so only the first call on a machine compiles.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Callable
from typing import Any, TypeVar

LOG = logging.getLogger("bunraku.retarget")

HAS_NUMBA = importlib.util.find_spec("numba") is not None
"""Whether numba can be imported."""

F = TypeVar("F", bound=Callable[..., Any])

_said: list[str] = []


def compiled(function: F) -> F:
    """Return `function` compiled by numba (without the GIL held, cached on disk), or itself without numba."""
    if not HAS_NUMBA:
        return function
    import numba

    jit: Callable[[F], F] = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
    return jit(function)


def say_once(key: str, message: str) -> None:
    """Log `message` the first time that `key` is seen in this process."""
    if key not in _said:
        _said.append(key)
        LOG.warning(message)


def announce_compilation() -> None:
    """Let numba's own event say, once, that machine code is being made (not when it comes from the cache)."""
    if not HAS_NUMBA or "listener" in _said:
        return
    _said.append("listener")
    from numba.core import event

    class Announcer(event.Listener):
        """Says once that the solver is being compiled."""

        def on_start(self, event: Any) -> None:
            say_once(
                "compile", "compiling the retargeting solver, once on this machine (about half a minute)"
            )

        def on_end(self, event: Any) -> None:
            """Nothing to say."""

    event.register("numba:compile", Announcer())
