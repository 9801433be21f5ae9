"""Drives a headless Chromium over the DevTools protocol, with real mouse and key events."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import websocket
from numpy.typing import NDArray
from PIL import Image

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

_FLAGS = (
    *("--headless", "--no-sandbox", "--no-first-run", "--disable-quic", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
    *("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"),
    *("--remote-debugging-port=0", "--remote-allow-origins=*"),
)
_KEY_CODES = {" ": ("Space", 32), "Enter": ("Enter", 13), "w": ("KeyW", 87)}
_START_S = 60.0


class Chromium:
    """One browser with one tab."""

    def __init__(self, profile: Path, size: tuple[int, int]) -> None:
        """Start a browser with a fresh profile folder and a window of that size."""
        if PROGRAM is None:
            raise FileNotFoundError("chromium")
        command = [PROGRAM, *_FLAGS, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}"]
        self._log = (profile.parent / "chromium.log").open("wb")
        self._process = subprocess.Popen([*command, "about:blank"], stdout=self._log, stderr=self._log)
        self._calls = 0
        try:
            url = _first_page(profile / "DevToolsActivePort")
            self._socket = websocket.create_connection(url, timeout=_START_S)
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._socket.close()
        self._stop()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result."""
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._calls:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result

    def visit(self, url: str) -> None:
        """Go to a page."""
        self.call("Page.navigate", url=url)

    def screenshot(self, path: Path) -> NDArray[np.uint8]:
        """Save what is on the screen, and return it as `(height, width, 3)`."""
        png = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        path.write_bytes(png)
        return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))

    def mouse(self, kind: str, point: tuple[float, float]) -> None:
        """Send a mouse event: "mouseMoved", "mousePressed" or "mouseReleased"."""
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self.call("Input.dispatchMouseEvent", type=kind, x=point[0], y=point[1], **button)

    def key(self, kind: str, key: str) -> None:
        """Send a key event: "keyDown" or "keyUp"."""
        code, number = _KEY_CODES[key]
        text = {"text": key} if kind == "keyDown" and len(key) == 1 else {}
        self.call(
            "Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=number, **text
        )

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


def _first_page(port_file: Path) -> str:
    """Wait for the browser and return the DevTools address of its first page."""
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline:
        if port_file.exists() and (lines := port_file.read_text().split()):
            with urllib.request.urlopen(f"http://127.0.0.1:{lines[0]}/json") as answer:
                for page in json.load(answer):
                    if page["type"] == "page":
                        return str(page["webSocketDebuggerUrl"])
        time.sleep(0.1)
    raise TimeoutError(f"chromium did not start within {_START_S} s")
