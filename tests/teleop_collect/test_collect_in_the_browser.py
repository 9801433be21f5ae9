"""The command as someone without hardware uses it: `collect --device keyboard`, driven from its web page."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from bunraku.episode.reader import EpisodeFile
from tests.teleop_collect.chromium import PROGRAM, Chromium

WINDOW = (1000, 700)
PANEL_RIGHT = 370
START_BUTTON, SUCCESS_BUTTON = (187, 88), (100, 119)
PATIENCE_S = 120.0


class Collect:
    """The running command."""

    def __init__(self, folder: Path) -> None:
        code = "import sys; from bunraku.cli.main import main; sys.exit(main())"
        arguments = [
            "--device",
            "keyboard",
            "--viewer",
            "web",
            "--episodes",
            "1",
            "--out",
            "r.hdf5",
            "--json",
        ]
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                code,
                "collect",
                "--env",
                "PandaReach",
                "--max-seconds",
                "120",
                *arguments,
            ],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said.append(line)

    def url(self) -> str:
        """Wait for the address of the page."""
        give_up = time.monotonic() + PATIENCE_S
        while time.monotonic() < give_up:
            found = re.search(r"viewer: (http://\S+)", "".join(self.said))
            if found:
                return found[1]
            assert self.process.poll() is None, self.said
            time.sleep(0.1)
        raise AssertionError(f"no address was printed: {self.said}")


@pytest.fixture
def collect(tmp_path: Path) -> Iterator[Collect]:
    if PROGRAM is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed, and CI must not skip the viewer's test")
        pytest.skip("Chromium is not installed: apt-get install chromium")
    running = Collect(tmp_path)
    yield running
    running.process.kill()


def white(picture: np.ndarray) -> int:
    """Return how many pixels of the scene are the white of the Panda's shells."""
    scene = picture[:, PANEL_RIGHT:].astype(int)
    return int(((scene.min(axis=-1) > 150) & (np.ptp(scene, axis=-1) < 30)).sum())


def test_the_page_shows_the_panda_and_its_panel_begins_and_ends_an_episode(
    collect: Collect, tmp_path: Path
) -> None:
    with Chromium(tmp_path / "profile", WINDOW) as page:
        page.visit(collect.url())
        time.sleep(2.0)  # no picture can be taken while the page is being exchanged
        give_up = time.monotonic() + PATIENCE_S
        while white(page.screenshot(tmp_path / "page.png")) < 2000:
            assert time.monotonic() < give_up, "the page did not show the arm"
            time.sleep(0.5)
        for point in (START_BUTTON, SUCCESS_BUTTON):
            for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
                page.mouse(kind, point)
                time.sleep(1.5)
            if point is START_BUTTON:
                time.sleep(2.0)
                page.screenshot(tmp_path / "recording.png")
        out = collect.process.communicate(timeout=PATIENCE_S)[0]
    assert collect.process.returncode == 0, collect.said
    summary = json.loads(out)
    assert (summary["episodes"], summary["successes"]) == (1, 1)
    with EpisodeFile(tmp_path / "r.hdf5") as file:
        assert file.label(file.names()[0]) == "success"
