"""A viewer seen from the control loop: a web page on MuJoCo Studio (`web`) or a window (`native`).

    with StudioViewer("web") as viewer:
        viewer.sync(model, data, overlay, status)

The viewer itself is another process (see `process`). `sync` copies the state and leaves it for a thread that
sends it; a state that has not gone when the next one comes is replaced by it, so the viewer always shows the
newest and the control loop never waits.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import IO, TYPE_CHECKING, Literal, Self

import numpy as np

from bunraku.errors import BunrakuError
from bunraku.teleop_collect.viewer import link
from bunraku.teleop_collect.viewer.status import Overlay, SessionStatus

if TYPE_CHECKING:
    import mujoco

_KEYS_LAST_S = 0.5
"""Keys that have not been confirmed for so long count as released: the page may be gone with a key down."""
_OPEN_S = 60.0
_CLOSE_S = 5.0


class StudioViewer:
    """A `SessionViewer` in a process of its own."""

    url: str = ""

    def __init__(
        self,
        kind: Literal["native", "web"],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        title: str = "bunraku collect",
        azimuth: float = 35.0,
    ) -> None:
        """Prepare a viewer; nothing starts before it is entered.

        Args:
            kind: "native" for a window, "web" for a page.
            host: Address that the page is served on.
            port: Port of the page, or 0 for the first free one from 8080.
            title: Title of the window or page.
            azimuth: Direction of the first view about the vertical [deg]; 0 looks along +x.
        """
        self._options = link.Options(kind, host, port, title, azimuth)
        self._process: subprocess.Popen[bytes] | None = None
        self._model: mujoco.MjModel | None = None
        self._new_model: mujoco.MjModel | None = None
        self._scene: link.Scene | None = None
        self._wake = threading.Condition()
        self._lock = threading.Lock()
        self._commands: list[str] = []
        self._held: frozenset[str] = frozenset()
        self._tapped: frozenset[str] = frozenset()
        self._held_at = 0.0
        self._running = False

    def __enter__(self) -> Self:
        """Start the viewer process and wait until the window or page is there.

        Raises:
            BunrakuError: If it cannot open.
        """
        if self._options.kind == "native" and not _has_display():
            raise BunrakuError(
                "the native viewer needs a display and DISPLAY is not set; use --viewer web, or --viewer none"
            )
        self._process = process = _start()
        answer = self._greet(process)
        if not isinstance(answer, link.Opened):
            self._stop(process)
            raise BunrakuError(self._explain(answer))
        self.url, self._running = answer.url, True
        threading.Thread(target=self._send, args=(process,), name="viewer-send", daemon=True).start()
        threading.Thread(target=self._receive, args=(process,), name="viewer-receive", daemon=True).start()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        process, self._process = self._process, None
        with self._wake:
            self._running = False
            self._wake.notify_all()
        if process is not None:
            self._stop(process)

    def sync(
        self, model: mujoco.MjModel, data: mujoco.MjData, overlay: Overlay, status: SessionStatus
    ) -> None:
        """Show this state; see `SessionViewer.sync`."""
        import mujoco

        if not self._running:
            return
        signature = int(mujoco.mjtState.mjSTATE_INTEGRATION)
        state = np.empty(mujoco.mj_stateSize(model, signature))
        mujoco.mj_getState(model, data, state, signature)
        with self._wake:
            if model is not self._model:
                self._model = self._new_model = model
            self._scene = link.Scene(state, overlay, status)
            self._wake.notify()

    def commands(self) -> tuple[str, ...]:
        """Return the commands given since the last call, oldest first."""
        with self._lock:
            given, self._commands = tuple(self._commands), []
        return given

    def keys(self) -> frozenset[str]:
        """Return the keys that are down, or were for a moment since the last call."""
        with self._lock:
            tapped, self._tapped = self._tapped, frozenset()
            fresh = time.monotonic() - self._held_at < _KEYS_LAST_S
            return tapped | self._held if fresh else frozenset()

    def is_open(self) -> bool:
        """Say whether the viewer process runs."""
        return self._running

    def _greet(self, process: subprocess.Popen[bytes]) -> object:
        """Send the options and return the first answer."""
        watchdog = threading.Timer(_OPEN_S, process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            link.send(_pipe(process.stdin), self._options)
            return link.receive(_pipe(process.stdout))
        except (EOFError, OSError):
            return link.Failed(f"its process ended with code {process.wait()}")
        finally:
            watchdog.cancel()

    def _explain(self, answer: object) -> str:
        reason = answer.reason if isinstance(answer, link.Failed) else f"it answered {answer!r}"
        other = "--viewer web" if self._options.kind == "native" else "--viewer native"
        return f"the {self._options.kind} viewer cannot open: {reason}; use {other}, or --viewer none"

    def _send(self, process: subprocess.Popen[bytes]) -> None:
        """Send what is newest, until the viewer closes; runs in a thread."""
        stream = _pipe(process.stdin)
        with suppress(OSError, ValueError):  # the viewer is gone, which `_receive` notices too
            while True:
                with self._wake:
                    self._wake.wait_for(lambda: self._scene is not None or not self._running)
                    if not self._running:
                        return
                    model, self._new_model = self._new_model, None
                    scene, self._scene = self._scene, None
                if model is not None:
                    link.send(stream, link.Model(model))
                link.send(stream, scene)

    def _receive(self, process: subprocess.Popen[bytes]) -> None:
        """Take in keys and commands, until the viewer closes; runs in a thread."""
        stream = _pipe(process.stdout)
        with suppress(EOFError):
            while True:
                message = link.receive(stream)
                with self._lock:
                    if isinstance(message, link.Command):
                        self._commands.append(message.name)
                    elif isinstance(message, link.Keys):
                        self._held, self._held_at = message.held, time.monotonic()
                        self._tapped |= message.pressed
        with self._wake:
            self._running = False
            self._wake.notify_all()

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        """End the viewer process: kindly by the end of its input, else by force."""
        with suppress(OSError):
            _pipe(process.stdin).close()
        try:
            process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise AssertionError("the process was started with both pipes")
    return stream


def _has_display() -> bool:
    if not sys.platform.startswith("linux"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _start() -> subprocess.Popen[bytes]:
    """Start the viewer process, out of reach of Ctrl-C and behind the control loop in priority."""
    command = [sys.executable, "-m", "bunraku.teleop_collect.viewer.process"]
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.BELOW_NORMAL_PRIORITY_CLASS
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, creationflags=flags)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
