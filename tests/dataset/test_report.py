"""The report is one page that needs nothing else, shows what is in the file, and says what it cannot show."""

from __future__ import annotations

import dataclasses
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunraku.dataset import svg
from bunraku.dataset.outliers import outliers
from bunraku.dataset.report import write_report
from bunraku.episode import render as rendering
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError
from bunraku.gl import GraphicsError
from tests.kernel.episode_samples import ENV_ID, ENV_KWARGS, make_episode
from tests.teleop_collect.chromium import PROGRAM, Chromium

SAMPLE = Path(__file__).parents[2] / "datasets/reach_sample.hdf5"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the sample, whose second episode lost samples."""
    folder = tmp_path_factory.mktemp("report")
    with (
        EpisodeFile(SAMPLE) as file,
        EpisodeWriter(folder / "some <b>demos.hdf5", file.env_id, file.env_kwargs, info=file.info) as writer,
    ):
        for number, episode in enumerate(file):
            dropped = np.zeros(len(episode), dtype=np.int64)
            if number == 1:
                dropped[len(episode) // 2 :] = 3
            writer.append(dataclasses.replace(episode, streams={**episode.streams, "dropped/right": dropped}))
    write_report(folder / "some <b>demos.hdf5", folder / "out")
    return folder / "out"


def test_the_page_is_one_file_that_loads_nothing(report: Path) -> None:
    assert [path.name for path in report.iterdir()] == ["index.html"]
    text = (report / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", text)
    assert not re.search(r"https?://|@import|url\(", text)
    assert "some &lt;b&gt;demos" in text
    assert "<b>demos" not in text


@pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium")
def test_a_browser_shows_film_strips_plots_and_marks(report: Path, tmp_path: Path) -> None:
    pytest.importorskip("websocket")
    with EpisodeFile(SAMPLE) as file:
        rows = [int(count) for count in file.index["num_samples"]]
    with Chromium(tmp_path / "profile", (1200, 900)) as browser:
        browser.visit((report / "index.html").as_uri())

        def ask(expression: str) -> Any:
            found = browser.call("Runtime.evaluate", expression=expression, returnByValue=True)
            return found["result"].get("value")

        deadline = time.monotonic() + 60.0
        while ask("document.readyState") != "complete":
            assert time.monotonic() < deadline
            time.sleep(0.1)
        episodes = "[...document.querySelectorAll('details')]"
        assert ask(f"{episodes}.map(d => d.id)") == [f"demo_{i}" for i in range(4)]
        assert ask(f"{episodes}.map(d => d.querySelectorAll('.film img').length)") == [8] * 4
        assert ask("[...document.images].every(i => i.complete && i.naturalWidth == 160)")
        assert ask(f"{episodes}.map(d => d.querySelectorAll('svg').length)") == [6] * 4
        titles = ask(
            "[...document.querySelectorAll('#demo_0 .plots svg')].map(s => s.getAttribute('aria-label'))"
        )
        for word in ("joints", "tool target", "speed of the right hand", "jerk", "action"):
            assert any(word in title for title in titles)
        # where samples were lost, and only there
        assert ask(f"{episodes}.map(d => d.querySelectorAll('.mark').length)") == [0, 1, 0, 0]
        assert all(count >= 1 for count in ask(f"{episodes}.map(d => d.querySelectorAll('.on').length)"))
        assert (
            ask("performance.getEntriesByType('resource').filter(r => !r.name.startsWith('data:')).length")
            == 0
        )
        summaries = ask(f"{episodes}.map(d => d.querySelector('summary').innerText)")
        assert all(f"{count} rows" in text for count, text in zip(rows, summaries, strict=True))
        picture = browser.screenshot(tmp_path / "page.png")
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 100


def test_without_opengl_the_page_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def no_gl(*_: Any) -> Any:
        calls.append(1)
        raise GraphicsError("no driver")

    monkeypatch.setattr(rendering, "make_renderer", no_gl)
    written = write_report(SAMPLE, tmp_path / "out")
    assert not written.pictures
    assert "no driver" in written.note
    assert len(calls) == 1
    text = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert text.count("no pictures: cannot render: MuJoCo found no OpenGL") == 4
    assert "<img" not in text


def test_files_from_elsewhere_are_reported_and_long_ones_in_part(tmp_path: Path) -> None:
    path = tmp_path / "demos.hdf5"
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS) as writer:
        for seed in range(12):
            episode = make_episode(seed=seed)
            meta = {**episode.meta, "mjcf": "", "quality": {"jerk": 500.0 if seed == 7 else 50.0 + seed}}
            writer.append(dataclasses.replace(episode, streams={}, meta=meta))
    written = write_report(path, tmp_path / "out", limit=4)
    assert (written.episodes, written.shown) == (12, 4)
    assert list(written.outliers) == ["demo_7"]
    text = (tmp_path / "out/index.html").read_text(encoding="utf-8")
    assert re.findall(r'<details id="(\w+)"', text)[0] == "demo_0"
    assert 'id="demo_7" open' in text
    assert "no recorded model" in text
    with pytest.raises(BunrakuError, match="not empty"):
        write_report(path, tmp_path / "out")


def test_outliers_are_those_far_from_the_middle_of_the_others() -> None:
    facts = {f"demo_{i}": {"jerk": 50.0 + i, "seconds": 5.0, "dropped": 0} for i in range(9)}
    assert outliers(facts) == {}
    facts["demo_3"]["jerk"] = 300.0
    facts["demo_5"]["dropped"] = 40
    facts["demo_6"]["jerk"] = float("nan")
    found = outliers(facts)
    assert set(found) == {"demo_3", "demo_5"}
    assert found["demo_3"] == ["jerk 300 (median 54.5)"]
    assert outliers({name: facts[name] for name in ("demo_1", "demo_3", "demo_5")}) == {}


def test_a_plot_of_many_rows_keeps_its_peaks_and_its_gaps() -> None:
    curve = np.zeros(5000)
    curve[3123] = 9.0
    curve[1000:1010] = np.nan
    drawn = svg.lines(np.arange(5000.0), {"a": curve}, "plot", "m")
    pieces = re.findall(r'points="([^"]+)"', drawn)
    assert len(pieces) == 2
    heights = [float(point.split(",")[1]) for piece in pieces for point in piece.split()]
    assert len(heights) < 1000
    top = svg.TOP + (svg.HEIGHT - svg.TOP - svg.BOTTOM) * 0.04 / 1.08
    assert min(heights) == pytest.approx(top, abs=0.1)
    assert "not recorded" in svg.lines(np.arange(3.0), {"a": np.full(3, np.nan)}, "plot", "m")


def test_the_command_answers_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from bunraku.cli.main import main

    arguments = ["dataset", "report", str(SAMPLE), "--out", str(tmp_path / "out"), "--limit", "1", "--json"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["episodes"], report["shown"]) == (4, 1)
    assert Path(report["path"]).is_file()
    assert main([*arguments, "--force", "--camera", "nowhere"]) == 2
