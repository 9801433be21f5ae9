"""`bunraku screw`: its figures against MuJoCo's distances and the files, its pictures, its refusals."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from bunraku.cli import main as cli
from bunraku.screw import demonstration, figures
from bunraku.screw import scene as scene_module
from bunraku.screw.board import holed_board
from bunraku.screw.measures import Observer, lowest_point
from bunraku.screw.picture import CYAN, YELLOW, Painter, StatusBar, Trail, status_line
from bunraku.screw.playback import Playback
from bunraku.screw.scene import ARM_JOINTS, BLADES, SCREW, TIP, scene
from bunraku.video import count_frames

SIZE = (96, 72)


@pytest.fixture(scope="module", autouse=True)
def _coarse_shadows() -> Iterator[None]:
    """Shadow maps take most of the time of a small picture where OpenGL runs on the CPU."""
    with pytest.MonkeyPatch.context() as patch:
        look = scene_module._LOOK
        assert look.count('shadowsize="2048"') == 1
        patch.setattr(scene_module, "_LOOK", look.replace('shadowsize="2048"', 'shadowsize="256"'))
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """All 450 frames, once, at a small size."""
    out = tmp_path_factory.mktemp("screw") / "made"
    written = demonstration.demonstrate(out, SIZE)
    return out, written.as_json() | {"missed": written.report.missed()}


def observe(playback: Playback) -> Observer:
    observer = Observer(playback)
    for frame in range(len(playback)):
        playback.show(frame)
        observer.look()
    return observer


def test_every_figure_of_the_source_is_reached(run: tuple[Path, dict[str, Any]]) -> None:
    _, found = run
    assert found["missed"] == []
    assert found["frames"] == 450
    assert found["ik_targets"] == 1000
    assert found["ik_max_error_m"] < 1e-9
    assert found["max_gap_m"] < 1e-6
    assert found["max_penetration_m"] < 1e-6
    assert (found["final_angle_deg"], found["sink_m"], found["final_top_m"]) == (900.0, 0.04, 0.003)
    assert found["bit_lag_deg"] < 1e-6
    assert found["max_tilt_deg"] < 1e-6
    assert found["elbow_m"] == pytest.approx(0.36, abs=5e-3)
    assert found["mirror_elbow_m"] == pytest.approx(-0.14, abs=5e-3)
    assert found["smallest_joint_margin_deg"] > 1.0
    assert found["lowest_link_m"] > 0.0


def test_the_report_says_what_another_reader_finds_in_the_files(run: tuple[Path, dict[str, Any]]) -> None:
    out, found = run
    assert json.loads((out / "report.json").read_text("utf-8")) == {
        k: v for k, v in found.items() if k != "missed"
    }
    data = (out / "screw.gif").read_bytes()
    assert (found["gif_width"], found["gif_height"], found["gif_bytes"]) == (*SIZE, len(data))
    delays = graphic_control_delays(data)
    assert len(delays) == found["gif_frames"]
    assert sum(delays) / 100.0 == pytest.approx(found["gif_seconds"])
    assert abs(found["gif_seconds"] - 13.59) <= 0.1
    # the 30 frames of the end, which are equal, are one
    assert delays[-1] == 99 == round(100.0 * found["gif_last_seconds"])
    assert count_frames(out / "screw.mp4") == 450
    with Image.open(out / "screw.png") as plot:
        assert plot.size[0] > 400
    assert sorted(p.name for p in out.iterdir()) == ["report.json", "screw.gif", "screw.mp4", "screw.png"]


def graphic_control_delays(data: bytes) -> list[int]:
    """The delays of all frames [0.01 s], read block by block as GIF89a defines them, not by Pillow."""
    at = 13 + (3 << ((data[10] & 7) + 1) if data[10] & 0x80 else 0)
    delays = []
    while data[at] != 0x3B:
        if data[at] == 0x21:
            if data[at + 1] == 0xF9:
                delays.append(int.from_bytes(data[at + 4 : at + 6], "little"))
            at += 2
        else:
            assert data[at] == 0x2C
            at += 11 + (3 << ((data[at + 9] & 7) + 1) if data[at + 9] & 0x80 else 0)
        while data[at]:
            at += 1 + data[at]
        at += 1
    return delays


def test_mujoco_measures_no_distance_between_bit_and_screw_while_it_turns() -> None:
    playback = Playback()
    geoms = [playback.model.geom(name).id for name in (*BLADES, SCREW)]
    for frame in range(figures.TURN_END + 1):
        playback.show(frame)
        if frame >= figures.PRESS_END and frame % 40 == 30:
            for blade in geoms[:2]:
                distance = mujoco.mj_geomDistance(playback.model, playback.data, blade, geoms[2], 1.0, None)
                assert distance == pytest.approx(0.0, abs=1e-9)


def test_the_frames_keep_to_the_sources_timeline() -> None:
    playback, tips = Playback(), {}
    np.testing.assert_allclose(playback.data.geom(TIP).xpos, (0.14, 0.0, 0.20), atol=1e-12)
    for frame in range(len(playback)):
        before = playback.arm
        playback.show(frame)
        assert np.abs(playback.arm - before).max() <= 0.07
        tips[frame] = playback.data.geom(TIP).xpos.copy()
    assert len(tips) == 450
    np.testing.assert_allclose(tips[0], (0.14, 0.0, 0.20), atol=1e-12)
    np.testing.assert_allclose(tips[70], (0.185, 0.0, 0.22), atol=1e-12)
    np.testing.assert_allclose(tips[110], (0.185, 0.0, 0.159), atol=1e-12)
    np.testing.assert_allclose(tips[350], (0.185, 0.0, 0.119), atol=1e-12)
    assert tips[420][2] == pytest.approx(0.22)
    np.testing.assert_array_equal(tips[420], tips[449])
    # it rises before it goes across, and turns at an even rate
    assert max(abs(tips[frame][0] - 0.14) for frame in range(20)) < 1e-12
    turns = [wanted.turn for wanted in playback.frames]
    np.testing.assert_allclose(np.diff(turns[110:351]), np.radians(900.0) / 240.0)


def test_the_model_has_the_sources_sizes() -> None:
    model = scene().compile()
    size = {name: model.geom(name).size.tolist() for name in (*BLADES, SCREW, "screw_point", "rod")}
    assert size["blade_a"] == [0.016, 0.003, 0.003]
    assert size["blade_b"] == [0.003, 0.016, 0.003]
    assert size[SCREW][:2] == [0.019, 0.023]
    assert size["screw_point"][:2] == [0.012, 0.007]
    assert size["rod"][:2] == [0.009, 0.05]
    assert [model.joint(name).axis.tolist() for name in ARM_JOINTS] == [[0, 0, 1], [0, -1, 0], [0, -1, 0]]
    ranges = [model.joint(name).range.tolist() for name in ARM_JOINTS]
    np.testing.assert_allclose(np.degrees([high for _, high in ranges]), [180.0, 120.0, 150.0], atol=0.01)
    assert [model.body(name).pos.tolist() for name in ("upper", "fore", "tip", "driver")] == [
        [0.0, 0.0, 0.06],
        [0.3, 0.0, 0.0],
        [0.3, 0.0, 0.0],
        [0.0, 0.0, -0.11],
    ]


def test_a_ray_down_the_middle_of_the_hole_meets_only_the_screw() -> None:
    model = scene().compile()
    data = mujoco.MjData(model)
    # the screw out of the way
    data.joint("screw_height").qpos[0] = 5.0
    mujoco.mj_forward(model, data)

    def first(x: float, y: float) -> str:
        geom = np.zeros(1, dtype=np.int32)
        mujoco.mj_ray(model, data, np.array([x, y, 0.03]), np.array([0.0, 0.0, -1.0]), None, 1, -1, geom)
        return "" if geom[0] < 0 else model.geom(int(geom[0])).name

    middle = figures.SCREW_XY
    # not along the edges of the mesh, which a ray may slip through
    for angle in 0.05 + np.linspace(0.0, 2.0 * np.pi, 12):
        x, y = middle + 0.0185 * np.array([np.cos(angle), np.sin(angle)])
        assert first(x, y) == ""
        x, y = middle + 0.03 * np.array([np.cos(angle), np.sin(angle)])
        assert first(x, y) == "board"


def test_the_boards_mesh_is_closed_and_has_the_volume_of_board_less_hole() -> None:
    vertices, faces = holed_board((0.26, 0.22, 0.02), 0.02)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    assert {tuple(edge) for edge in edges} == {(b, a) for a, b in edges}
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    volume = (a * np.cross(b, c)).sum() / 6.0
    assert volume == pytest.approx(0.26 * 0.22 * 0.02 - np.pi * 0.02**2 * 0.02, rel=1e-3)


def test_a_bit_taken_for_its_origin_is_found_to_be_6_mm_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    rests = figures.tip_height
    monkeypatch.setattr(figures, "tip_height", lambda theta: rests(theta) - figures.BLADE_DROP)
    rows = observe(Playback()).rows
    assert min(row.gap for row in rows[111:351]) == pytest.approx(-0.006, abs=1e-9)


def test_an_arm_too_slow_for_its_frames_is_found_to_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "MAX_JOINT_STEP", 0.001)
    rows = observe(Playback()).rows
    assert max(row.step for row in rows) <= 0.001 + 1e-15
    assert max(row.gap for row in rows[110:351]) > 1e-3


def test_the_lowest_point_is_that_of_the_corners() -> None:
    playback = Playback()
    playback.pose(np.array([0.4, 1.0, -2.0]), 0.7)
    data, model = playback.data, playback.model
    signs = np.stack(np.meshgrid(*[[-1, 1]] * 3), axis=-1).reshape(-1, 3)
    box = data.geom("blade_a")
    corners = box.xpos + (signs * model.geom("blade_a").size) @ box.xmat.reshape(3, 3).T
    assert lowest_point(model, data, "blade_a") == pytest.approx(corners[:, 2].min(), abs=1e-12)
    ends = [data.body("fore").xpos[2], data.body("tip").xpos[2]]
    assert lowest_point(model, data, "fore") == pytest.approx(min(ends) - 0.018, abs=1e-12)


@pytest.fixture(scope="module")
def pictures() -> dict[int, np.ndarray]:
    """Some frames, large enough to see the screw."""
    shown = (60, 109, 111, 115, 119, 123, 350, 440)
    playback, images = Playback(), {}
    with Painter(playback, (320, 240)) as painter:
        for frame in range(len(playback)):
            playback.show(frame)
            painter.follow(frame)
            if frame in shown:
                images[frame] = painter.paint(frame).astype(int)
    return images


def near(image: np.ndarray, rgba: tuple[float, ...], within: int = 60) -> int:
    """Count the pixels of about this colour."""
    return int((np.abs(image - 255.0 * np.array(rgba[:3])).max(axis=-1) < within).sum())


def test_the_pictures_show_the_tips_way_in_yellow_and_the_bits_in_cyan(
    pictures: dict[int, np.ndarray],
) -> None:
    assert near(pictures[60], CYAN) == near(pictures[109], CYAN) == 0
    assert near(pictures[440], CYAN) > 30
    assert near(pictures[440], YELLOW) > 30


def test_the_cross_and_the_bit_are_seen_to_turn(pictures: dict[int, np.ndarray]) -> None:
    # around the screw, before the helix hides it: each 15 degrees further looks different
    box = np.s_[130:160, 170:200]
    for one, other in ((111, 115), (115, 119), (119, 123)):
        changed = np.abs(pictures[one][box] - pictures[other][box]).max(axis=-1) > 40
        assert changed.sum() > 8


def test_the_status_line_reads_as_the_source_has_it(pictures: dict[int, np.ndarray]) -> None:
    assert status_line(0.0) == "SCREW DRIVING turns 0.00 / 2.5 depth 00 / 40 mm"
    assert status_line(np.radians(450.0)) == "SCREW DRIVING turns 1.25 / 2.5 depth 20 / 40 mm"
    assert status_line(np.radians(900.0)) == "SCREW DRIVING turns 2.50 / 2.5 depth 40 / 40 mm"
    bar = pictures[60][:16]
    light, dark = (bar.min(axis=-1) > 180), (bar.max(axis=-1) < 60)
    assert 100 < light.sum() < dark.sum()
    # the text ends within the picture
    assert not light[:, -6:].any()


def test_the_status_fits_into_any_width() -> None:
    for width, height in ((640, 32), (96, 9), (2000, 60)):
        image = np.full((height, width, 3), 128, dtype=np.uint8)
        StatusBar(width, height).write(image, status_line(figures.SCREW_TURN))
        light = image.min(axis=-1) > 180
        assert not light[:, round(0.99 * width) :].any()


def test_a_trail_has_corners_where_it_bends_and_none_where_it_is_straight() -> None:
    trail = Trail(YELLOW)
    for x in np.linspace(0.0, 0.1, 50):
        trail.reach(np.array([x, 0.0, 0.0]))
    for z in np.linspace(0.0, 0.1, 50)[1:]:
        trail.reach(np.array([0.1, 0.0, z]))
    for z in np.linspace(0.1, 0.05, 50)[1:]:
        trail.reach(np.array([0.1, 0.0, z]))
    corners = [[0, 0, 0], [0.1, 0, 0], [0.1, 0, 0.1], [0.1, 0, 0.05]]
    np.testing.assert_allclose(trail.points, corners, atol=0.0015)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--screw-xy", "0.14", "0"], r"cannot reach \(0.14, 0, 0.119\) m.*from 0.1553 to 0.6000 m"),
        (["--screw-xy", "0.6", "0.3"], "cannot reach.*from 0.1553 to 0.6000 m"),
        (["--size", "0x480"], "an image size is width x height"),
        (["--size", "65x48"], "even width and height, got 65x48"),
    ],
)
def test_wrong_options_are_refused_in_one_line_and_nothing_is_written(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert cli.main(["screw", "--out", str(out), "--json", *options]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("bunraku: error: ")
    assert re.search(message, printed.err)
    assert not out.exists()


def test_files_that_are_there_are_kept_without_force(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "report.json").write_text("mine")
    assert cli.main(["screw", "--out", str(tmp_path)]) == 2
    assert "report.json exists; give another folder, or --force" in capsys.readouterr().err
    assert [p.read_text() for p in tmp_path.iterdir()] == ["mine"]


def test_an_interrupted_run_leaves_nothing_half_written(tmp_path: Path) -> None:
    count = iter(range(20))

    def interrupt() -> None:
        if next(count) == 10:
            raise KeyboardInterrupt

    for out, left in ((tmp_path, True), (tmp_path / "new", False)):
        count = iter(range(20))
        with pytest.raises(KeyboardInterrupt):
            demonstration.demonstrate(out, (64, 48), progress=interrupt)
        assert out.exists() is left
    assert list(tmp_path.iterdir()) == []


def test_without_the_extras_the_command_says_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in ("av", "matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, module, None)
    assert cli.main(["screw", "--out", str(tmp_path), "--size", "64x48", "--json"]) == 0
    printed = capsys.readouterr()
    assert "screw.mp4 is not written: PyAV is not installed" in printed.err
    assert "pip install 'bunraku[video]'" in printed.err
    assert "screw.png is not written: Matplotlib is not installed" in printed.err
    assert "pip install 'bunraku[plots]'" in printed.err
    found = json.loads(printed.out)
    assert found["mp4_frames"] is None
    assert [Path(path).name for path in found["paths"]] == ["screw.gif", "report.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.json", "screw.gif"]
