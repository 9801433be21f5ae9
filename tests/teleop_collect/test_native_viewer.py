"""The native window shows the arm on a virtual screen, and its panel and keys reach the control loop."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import mujoco
import numpy as np
import pytest

from bunraku.geometry import Pose
from bunraku.teleop_collect.viewer.base import SessionViewer, open_viewer
from bunraku.teleop_collect.viewer.status import ArmOverlay, HandStatus, Overlay, SessionStatus

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Xvfb is for Linux"),
    pytest.mark.skipif(
        not (shutil.which("Xvfb") and shutil.which("xdotool")),
        reason="no virtual screen: apt-get install xvfb xdotool",
    ),
]

SCREEN = (1280, 800)
START_BUTTON = (175, 28)
SUCCESS_BUTTON = (90, 66)
PATIENCE_S = 60.0

ARM = """
<mujoco>
  <visual><headlight ambient="0.4 0.4 0.4" diffuse="0.6 0.6 0.6"/></visual>
  <worldbody>
    <geom type="plane" size="2 2 0.1" rgba="0.5 0.52 0.55 1"/>
    <body pos="0 0 0.1">
      <joint axis="0 0 1"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0.4" size="0.06" rgba="0.95 0.45 0.05 1"/>
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
        self.commands: list[str] = []

    def sync(self) -> None:
        tool = Pose(np.array([0.4, 0.0, 0.5]), np.array([0.0, 1.0, 0.0, 0.0]))
        target = Pose(tool.pos + np.array([0.1, 0.1, 0.0]), tool.quat)
        arm = ArmOverlay(target, tool, Pose(np.array([0.4, 0.3, 0.3]), tool.quat), unreachable=True)
        overlay = Overlay({"right": arm}, np.array([0.4, 0.0, 0.35]), np.array([0.3, 0.4, 0.3]))
        hands = {"right": HandStatus(tracked=True, pose_age_ms=11.0)}
        self.viewer.sync(self.model, self.data, overlay, SessionStatus("PandaReach", "keyboard", hands))

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
def screen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A virtual screen, as the folder of the file that holds its pixels."""
    folder = tmp_path_factory.mktemp("screen")
    size = f"{SCREEN[0]}x{SCREEN[1]}x24"
    command = ["Xvfb", "-displayfd", "1", "-screen", "0", size, "-fbdir", str(folder), "-nolisten", "tcp"]
    with (folder / "xvfb.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log)
    assert process.stdout is not None
    display = process.stdout.readline().decode().strip()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DISPLAY", f":{display}")
        patch.setenv("LIBGL_ALWAYS_SOFTWARE", "1")
        yield folder
    process.terminate()
    process.wait()


@pytest.fixture(scope="module")
def loop(screen: Path) -> Iterator[Loop]:
    with open_viewer("native") as viewer:
        assert viewer.url == ""
        loop = Loop(viewer)
        loop.run_until(lambda: bool(orange_pixels(screen) > 3000), "the arm to be drawn")
        yield loop


def pixels(screen: Path) -> np.ndarray:
    """Return the screen `(height, width, 3)`, from the end of its X window dump (blue, green, red, 0)."""
    count = SCREEN[0] * SCREEN[1] * 4
    dump = np.frombuffer((screen / "Xvfb_screen0").read_bytes()[-count:], np.uint8)
    return dump.reshape(SCREEN[1], SCREEN[0], 4)[..., 2::-1]


def orange_pixels(screen: Path) -> int:
    red, green, blue = (pixels(screen)[:, 360:, i].astype(int) for i in range(3))
    return int(((red > 120) & (red > 1.6 * green) & (green > 1.5 * blue)).sum())


def xdotool(*arguments: str) -> None:
    subprocess.run(["xdotool", *arguments], check=True, timeout=20)


def test_the_window_shows_the_arm_and_the_red_mark_of_an_unreachable_target(loop: Loop, screen: Path) -> None:
    loop.run(0.5)
    picture = pixels(screen).astype(int)
    red = (picture[..., 0] > 150) & (picture[..., 1] < 70) & (picture[..., 2] < 70)
    assert orange_pixels(screen) > 3000
    assert red.sum() > 100


def test_buttons_are_clicked_in_the_window(loop: Loop) -> None:
    for point, command in ((START_BUTTON, "start"), (SUCCESS_BUTTON, "success")):
        before = len(loop.commands)
        xdotool("mousemove", *map(str, point))
        loop.run(0.3)
        xdotool("click", "1")
        loop.run_until(lambda n=before: len(loop.commands) > n, f"the button of {command}")  # type: ignore[misc]
        assert loop.commands[before:] == [command]


def test_keys_are_known_while_they_are_held_and_shortcuts_give_commands(loop: Loop) -> None:
    before = len(loop.commands)
    xdotool("mousemove", "800", "400", "keydown", "w")
    loop.run_until(lambda: loop.viewer.keys() == {"w"}, "the key to be down")
    xdotool("keyup", "w")
    loop.run_until(lambda: not loop.viewer.keys(), "the key to be up")
    xdotool("key", "Return")
    loop.run_until(lambda: len(loop.commands) > before, "the Enter key")
    assert loop.commands[before:] == ["start"]


def test_dragging_turns_the_view_and_leaves_the_simulation_alone(loop: Loop, screen: Path) -> None:
    loop.run(0.5)
    before, state = pixels(screen).copy(), loop.data.qpos.copy()
    xdotool("mousemove", "800", "400", "mousedown", "1", "mousemove", "950", "400")
    loop.run(0.5)
    xdotool("mouseup", "1")
    loop.run(0.5)
    assert (pixels(screen) != before)[:, 360:].any(axis=-1).mean() > 0.1
    np.testing.assert_array_equal(loop.data.qpos, state)


def test_a_new_model_replaces_the_old_one(loop: Loop, screen: Path) -> None:
    blue = ARM.replace("0.95 0.45 0.05 1", "0.1 0.2 0.9 1")
    loop.model = mujoco.MjModel.from_xml_string(blue)
    loop.data = mujoco.MjData(loop.model)
    loop.run_until(lambda: orange_pixels(screen) < 500, "the orange arm to go")
    assert loop.viewer.is_open()
