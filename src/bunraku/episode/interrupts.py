"""Ctrl-C waits until a change of a file is complete; a closed terminal and SIGTERM end work as Ctrl-C does.

Python runs signal handlers between any two instructions, also in the functions through which HDF5 writes. An
exception there is taken for a failed write, or, while an object is being freed, swallowed.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDINGS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""What else than Ctrl-C asks a program to end; Windows has no SIGHUP."""

_SIGNALS = (signal.SIGINT, *_ENDINGS)


@contextmanager
def endings_interrupt() -> Iterator[None]:
    """Within this, SIGTERM and SIGHUP raise KeyboardInterrupt, where nobody else handles or ignores them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in _ENDINGS if signal.getsignal(number) == signal.SIG_DFL]
    for number in ours:
        signal.signal(number, signal.default_int_handler)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Hold back SIGINT, SIGTERM and SIGHUP where Python handles them, and deliver them at the end.

    Elsewhere than in the main thread nothing has to be done: handlers run only there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda number, frame: came.append((number, frame)))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
        for arrived, frame in came:
            held[signal.Signals(arrived)](arrived, frame)
