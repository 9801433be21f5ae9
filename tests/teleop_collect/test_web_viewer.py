"""The web page shows the arm, its panel and keys reach the control loop, and nobody else gets in."""

from __future__ import annotations

import os
import socket
import time
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest
import websocket
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.geometry import Pose
from bunraku.teleop_collect.viewer.base import SessionViewer, open_viewer
from bunraku.teleop_collect.viewer.status import ArmOverlay, HandStatus, Overlay, SessionStatus
from bunraku.teleop_collect.viewer.studio import StudioViewer
from tests.teleop_collect.chromium import PROGRAM, Chromium

WINDOW = (1000, 700)
PANEL_RIGHT = 370
START_BUTTON = (187, 88)
SUCCESS_BUTTON = (100, 119)
PATIENCE_S = 90.0
"""A software renderer on a shared machine draws a few frames a second and answers a click after seconds."""

ARM = """
<mujoco model="arm">
  <visual><headlight ambient="0.4 0.4 0.4" diffuse="0.6 0.6 0.6"/></visual>
  <default><geom type="capsule" rgba="0.95 0.45 0.05 1"/></default>
  <worldbody>
    <geom type="plane" size="2 2 0.1" rgba="0.5 0.52 0.55 1"/>
    <body pos="0 0 0.1">
      <joint axis="0 0 1"/>
      <geom fromto="0 0 0 0 0 0.3" size="0.05"/>
      <body pos="0 0 0.3">
        <joint axis="0 1 0"/>
        <geom fromto="0 0 0 0.3 0 0.1" size="0.045"/>
        <body pos="0.3 0 0.1">
          <joint axis="0 1 0"/>
          <geom fromto="0 0 0 0.25 0 -0.1" size="0.04"/>
          <site name="tool" pos="0.25 0 -0.1"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


class Loop:
    """A control loop that shows one still arm."""

    def __init__(self, viewer: SessionViewer) -> None:
        self.viewer = viewer
        self.model = mujoco.MjModel.from_xml_string(ARM)
        self.data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, self.data)
        self.commands: list[str] = []
        self._step = 0

    def sync(self) -> None:
        self._step += 1
        tool = Pose(self.data.site("tool").xpos.copy(), np.array([1.0, 0.0, 0.0, 0.0]))
        target = Pose(tool.pos + np.array([0.0, 0.1, 0.1]), np.array([0.0, 1.0, 0.0, 0.0]))
        goal = Pose(np.array([0.4, -0.25, 0.3]), tool.quat)
        arm = ArmOverlay(target, tool, goal, engaged=True)
        overlay = Overlay({"right": arm}, np.array([0.4, 0.0, 0.35]), np.array([0.3, 0.4, 0.3]))
        hand = HandStatus(True, True, 0.8, 0.1, frozenset({"trigger"}), 11.0)
        status = SessionStatus(
            "PandaReach", "keyboard", {"right": hand}, step=self._step, message="Hold Space"
        )
        self.viewer.sync(self.model, self.data, overlay, status)

    def run_until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not happened():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            self.sync()
            self.commands.extend(self.viewer.commands())
            time.sleep(1.0 / 30.0)

    def run(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.run_until(lambda: time.monotonic() > end, "time to pass")


@pytest.fixture(scope="module")
def viewer() -> Iterator[SessionViewer]:
    with open_viewer("web", title="test") as opened:
        yield opened


@pytest.fixture(scope="module")
def loop(viewer: SessionViewer) -> Loop:
    return Loop(viewer)


@pytest.fixture(scope="module")
def page(loop: Loop, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    """A browser that shows the arm and whose panel is there."""
    if PROGRAM is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed, and CI must not skip the viewer's test")
        pytest.skip("Chromium is not installed: apt-get install chromium")
    folder = tmp_path_factory.mktemp("page")
    with Chromium(folder / "profile", WINDOW) as browser:
        loop.sync()
        browser.visit(loop.viewer.url)

        def is_drawn() -> bool:
            loop.run(0.5)
            picture = browser.screenshot(folder / "page.png")
            return bool(orange(picture[:, PANEL_RIGHT:]).any() and panel_share(picture) > 0.5)

        loop.run_until(is_drawn, "the page to draw")
        yield browser


def orange(picture: NDArray[np.uint8]) -> NDArray[np.bool_]:
    red, green, blue = (picture[..., i].astype(int) for i in range(3))
    return (red > 120) & (red > 1.6 * green) & (green > 1.5 * blue)


def panel_share(picture: NDArray[np.uint8]) -> float:
    """Return how much of where the panel belongs is dark."""
    return float((picture[20:400, 20:350].max(axis=-1) < 60).mean())


def click(loop: Loop, page: Chromium, point: tuple[int, int], command: str) -> None:
    before = len(loop.commands)
    for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
        page.mouse(kind, point)
        loop.run(1.0)
    loop.run_until(lambda: command in loop.commands[before:], f"the button of {command}")
    assert loop.commands[before:] == [command]


def test_the_page_shows_the_arm_beside_the_panel(loop: Loop, page: Chromium, tmp_path: Path) -> None:
    picture = page.screenshot(tmp_path / "arm.png")
    scene = picture[:, PANEL_RIGHT:]
    assert orange(scene).sum() > 3000
    assert len(np.unique(scene.reshape(-1, 3), axis=0)) > 200
    assert panel_share(picture) > 0.5


def test_start_and_success_are_clicked_on_the_panel(loop: Loop, page: Chromium) -> None:
    click(loop, page, START_BUTTON, "start")
    click(loop, page, SUCCESS_BUTTON, "success")


def test_the_enter_key_starts_an_episode_and_presses_no_button(loop: Loop, page: Chromium) -> None:
    before = len(loop.commands)
    page.key("keyDown", "Enter")
    loop.run(0.5)
    page.key("keyUp", "Enter")
    loop.run_until(lambda: len(loop.commands) > before, "the Enter key")
    loop.run(1.0)
    assert loop.commands[before:] == ["start"]


def test_keys_held_on_the_page_are_known_until_they_are_released(loop: Loop, page: Chromium) -> None:
    page.key("keyDown", " ")
    page.key("keyDown", "w")
    loop.run_until(lambda: loop.viewer.keys() == {"space", "w"}, "both keys to be down")
    page.key("keyUp", "w")
    loop.run_until(lambda: loop.viewer.keys() == {"space"}, "one key to be up")
    page.key("keyUp", " ")
    loop.run_until(lambda: loop.viewer.keys() == frozenset(), "both keys to be up")


def test_a_page_that_goes_away_with_a_key_down_does_not_keep_it_down(loop: Loop, page: Chromium) -> None:
    page.key("keyDown", "w")
    loop.run_until(lambda: loop.viewer.keys() == {"w"}, "the key to be down")
    page.visit("about:blank")
    loop.run_until(lambda: not loop.viewer.keys(), "the key to count as released")
    loop.run(2.0)
    assert loop.viewer.keys() == frozenset()
    assert loop.viewer.is_open()


def test_only_this_machine_reaches_the_page(viewer: SessionViewer) -> None:
    address = urllib.parse.urlsplit(viewer.url)
    assert address.hostname == "127.0.0.1"
    assert address.port is not None
    socket.create_connection(("127.0.0.1", address.port), timeout=5.0).close()
    # Every address of 127/8 reaches a server on all interfaces, but not one that is bound to 127.0.0.1.
    with pytest.raises(OSError, match=r"refused|unreachable|assign|timed out"):
        socket.create_connection(("127.0.0.2", address.port), timeout=5.0)


@pytest.mark.parametrize(
    ("path", "origin"), [("state", "http://example.org"), ("ui", "https://example.org"), ("drop", None)]
)
def test_other_sites_and_model_files_are_refused(
    viewer: SessionViewer, path: str, origin: str | None
) -> None:
    url = viewer.url.replace("http:", "ws:") + path
    with pytest.raises(websocket.WebSocketBadStatusException, match="403"):
        websocket.create_connection(url, origin=origin, suppress_origin=origin is None, timeout=10.0)


def test_a_taken_port_is_named(viewer: SessionViewer) -> None:
    port = urllib.parse.urlsplit(viewer.url).port
    assert port is not None
    with pytest.raises(BunrakuError, match=f"port {port}"), open_viewer("web", port=port):
        pass


def test_a_viewer_that_dies_takes_nothing_with_it() -> None:
    with open_viewer("web") as viewer:
        assert isinstance(viewer, StudioViewer)
        loop = Loop(viewer)
        loop.sync()
        assert viewer._process is not None
        viewer._process.kill()
        loop.run_until(lambda: not viewer.is_open(), "the end of the viewer to be noticed")
        loop.sync()
        assert viewer.commands() == ()
        assert viewer.keys() == frozenset()


def test_leaving_ends_the_viewer_and_frees_its_port() -> None:
    with open_viewer("web") as viewer:
        assert isinstance(viewer, StudioViewer)
        process, url = viewer._process, viewer.url
    assert process is not None
    assert process.poll() is not None
    assert not viewer.is_open()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", urllib.parse.urlsplit(url).port or 0), timeout=5.0)


def test_without_a_display_the_native_viewer_says_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(BunrakuError, match="--viewer web"), open_viewer("native"):
        pass


def test_a_viewer_that_does_not_exist_gets_did_you_mean() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'web'"):
        open_viewer("wep")


def test_no_viewer_is_open_shows_nothing_and_gives_no_commands() -> None:
    with open_viewer("none") as viewer:
        Loop(viewer).sync()
        assert isinstance(viewer, SessionViewer)
        assert viewer.is_open()
        assert (viewer.url, viewer.commands(), viewer.keys()) == ("", (), frozenset())
    assert not viewer.is_open()
