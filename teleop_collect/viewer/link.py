"""What goes over the pipes between the control process and the viewer process.

Each message is one pickled object; both ends are this package, started by one another. The newest `Scene` is
all that counts, so the sender overwrites one that has not gone yet; nothing else is ever dropped.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bunraku.teleop_collect.viewer.status import Overlay, SessionStatus

if TYPE_CHECKING:
    import mujoco


Listen = Callable[[Callable[[Any], None], Callable[[], None]], None]
"""Starts a thread that hands each message to the first function, and at last calls the second."""
Say = Callable[[object], None]
"""Sends one message to the control process."""


@dataclass(frozen=True, slots=True)
class Options:
    """To the viewer process, first: how to open."""

    kind: Literal["native", "web"]
    host: str
    port: int
    title: str
    azimuth: float


@dataclass(frozen=True, slots=True)
class Model:
    """To the viewer process: the model that the following states belong to."""

    model: mujoco.MjModel


@dataclass(frozen=True, slots=True)
class Scene:
    """To the viewer process: the newest state, marks and numbers."""

    state: NDArray[np.float64]
    overlay: Overlay
    status: SessionStatus


@dataclass(frozen=True, slots=True)
class Opened:
    """From the viewer process: the window or page is there."""

    url: str


@dataclass(frozen=True, slots=True)
class Failed:
    """From the viewer process: it cannot open, in one line."""

    reason: str


@dataclass(frozen=True, slots=True)
class Keys:
    """From the viewer process: the keys that are down, and those that went down since the last message."""

    held: frozenset[str]
    pressed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Command:
    """From the viewer process: a button or a shortcut gave this command."""

    name: str


def send(stream: IO[bytes], message: object) -> None:
    """Write one message; waits while the pipe is full."""
    stream.write(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Wait for one message and return it.

    Raises:
        EOFError: If the other end is gone.
    """
    try:
        return pickle.load(stream)
    except (OSError, ValueError, pickle.UnpicklingError) as error:
        raise EOFError("the other end of the pipe is gone") from error
