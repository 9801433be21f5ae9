"""Images of stored states: as many frames as rows, the right picture in each, and no black one unnoticed."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

from bunraku import video
from bunraku.episode import render as rendering
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.render import render
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError, MissingDependencyError, UnknownNameError
from bunraku.gl import make_renderer
from bunraku.video import count_frames, open_video
from tests.kernel.episode_samples import make_episode

XML = """
<mujoco>
  <worldbody>
    <light pos="0 -1 2"/>
    <camera name="front" pos="0 -1.5 0.3" xyaxes="1 0 0 0 0.2 1"/>
    <camera name="top" pos="0 0 2"/>
    <camera name="void" pos="0 0 9" xyaxes="1 0 0 0 -1 0"/>
    <geom type="plane" size="2 2 0.1" rgba="0.2 0.2 0.3 1"/>
    <body pos="0 0 0.1"><joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.1 0.1 0.1" rgba="0.9 0.1 0.1 1"/></body>
  </worldbody>
</mujoco>
"""
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
SIZE = (64, 48)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Two episodes in which a red box moves to the right; in the first it stands still for some rows."""
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    path = tmp_path / "demos.hdf5"
    with EpisodeWriter(path, "test/Slide-v0") as writer:
        for steps in (9, 6):
            states = np.empty((steps + 1, mujoco.mj_stateSize(model, STATE)))
            for row in range(steps + 1):
                data.qpos[0] = -0.5 + max(row - 3, 0) / steps
                mujoco.mj_getState(model, data, states[row], STATE)
            episode = make_episode(steps=steps)
            episode.states, episode.meta["mjcf"] = states, XML
            writer.append(episode)
    return path


def red_column(image: Any) -> float:
    """Return the mean column of the red pixels."""
    pixels = np.asarray(image, dtype=int)[..., :3]
    red = (pixels[..., 0] > 90) & (pixels[..., 0] > 1.6 * pixels[..., 1])
    return float(np.nonzero(red)[1].mean())


@pytest.mark.parametrize("name", ["out.mp4", "out.gif", "out"])
def test_every_row_is_one_frame_and_shows_its_state(path: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "sub folder" / name
    seen: list[str] = []
    report = render(path, ["front"], SIZE, out, progress=seen.append)
    assert (report.frames, report.episodes, report.fps, report.paths) == (15, 2, 50.0, (str(out),))
    assert seen == ["demo_0", "demo_1"]
    assert count_frames(out) == 15
    assert sorted(entry.name for entry in out.parent.iterdir()) == [name]
    columns = [red_column(image) for image in frames(out)]
    assert np.ptp(columns[:4]) < 1.0
    assert np.all(np.diff(columns[3:9]) > 2.0)
    assert columns[9] == pytest.approx(columns[0], abs=1.0)


def frames(out: Path) -> list[Any]:
    if out.is_dir():
        return [np.asarray(Image.open(file)) for file in sorted(out.glob("*.png"))]
    if out.suffix == ".gif":
        with Image.open(out) as image:
            found = []
            for index in range(image.n_frames):
                image.seek(index)
                assert image.info["duration"] == 20
                found.append(np.asarray(image.convert("RGB")))
            return found
    import av

    with av.open(str(out)) as container:
        stream = container.streams.video[0]
        assert (float(stream.average_rate), stream.pix_fmt) == (50.0, "yuv420p")
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


def test_pngs_are_what_mujoco_renders_of_the_state(path: Path, tmp_path: Path) -> None:
    render(path, ["top"], SIZE, tmp_path / "out", names=["demo_1"])
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    renderer = make_renderer(model, *SIZE)
    with EpisodeFile(path) as file:
        states = file.load("demo_1").states
    for image, state in zip(frames(tmp_path / "out"), states[:-1], strict=True):
        mujoco.mj_setState(model, data, state, STATE)
        mujoco.mj_forward(model, data)
        renderer.update_scene(data, camera="top")
        np.testing.assert_array_equal(image, renderer.render())
    renderer.close()


def test_each_of_several_cameras_has_its_own_video(path: Path, tmp_path: Path) -> None:
    report = render(path, ["front", "top"], SIZE, tmp_path / "out.gif", names=["demo_1"], fps=10)
    assert [Path(p).name for p in report.paths] == ["out-front.gif", "out-top.gif"]
    assert [count_frames(Path(p)) for p in report.paths] == [6, 6]


def test_nothing_is_overwritten_without_force(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.gif"
    out.write_bytes(b"mine")
    with pytest.raises(BunrakuError, match="exists"):
        render(path, ["front"], SIZE, out)
    assert out.read_bytes() == b"mine"
    assert render(path, ["front"], SIZE, out, force=True).frames == 15


def test_a_blank_frame_is_named_and_no_video_is_left(path: Path, tmp_path: Path) -> None:
    with pytest.raises(BunrakuError, match="frame 0 of demo_0 from camera void is blank"):
        render(path, ["void"], SIZE, tmp_path / "out.gif")
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_a_lost_frame_is_noticed(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = video._Gif.write
    calls: list[int] = []

    def lossy(self: Any, image: Any) -> None:
        calls.append(1)
        if len(calls) != 7:
            write(self, image)

    monkeypatch.setattr(video._Gif, "write", lossy)
    with pytest.raises(BunrakuError, match="has 14 frames where 15 rows were rendered"):
        render(path, ["front"], SIZE, tmp_path / "out.gif")


@pytest.mark.parametrize(
    ("cameras", "size", "name", "kind", "said"),
    [
        (["fornt"], SIZE, "out.gif", UnknownNameError, "did you mean 'front'"),
        ([], SIZE, "out.gif", BunrakuError, "no camera"),
        (["front"], (63, 48), "out.mp4", BunrakuError, "even width and height, got 63x48"),
        (["front"], (0, 48), "out.gif", BunrakuError, "0x48"),
        (["front"], SIZE, "out.avi", BunrakuError, "neither .mp4 nor .gif"),
        (["front"], SIZE, "demos.hdf5/out.gif", BunrakuError, "cannot write"),
    ],
)
def test_wrong_input_is_said_in_one_line(
    path: Path, tmp_path: Path, cameras: list[str], size: tuple[int, int], name: str, kind: type, said: str
) -> None:
    with pytest.raises(kind) as error:
        render(path, cameras, size, tmp_path / name)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / name).exists()


def test_states_of_another_model_are_refused(path: Path, tmp_path: Path) -> None:
    with EpisodeFile(path) as file, EpisodeWriter(tmp_path / "b.hdf5", "test/Slide-v0") as writer:
        episode = file.load("demo_0")
        episode.states = episode.states[:, 1:]
        writer.append(episode)
        episode.meta["mjcf"] = ""
        writer.append(episode)
    with pytest.raises(BunrakuError, match="recorded with another MuJoCo"):
        render(tmp_path / "b.hdf5", ["front"], SIZE, tmp_path / "out.gif")
    with pytest.raises(BunrakuError, match="no recorded model"):
        render(tmp_path / "b.hdf5", ["front"], SIZE, tmp_path / "out.gif", names=["demo_1"])


def test_an_mp4_without_pyav_names_what_to_install(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = builtins.__import__

    def without_av(name: str, *rest: Any) -> Any:
        if name == "av":
            raise ImportError(name)
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_av)
    with pytest.raises(MissingDependencyError, match=r"bunraku\[video\]"):
        render(path, ["front"], SIZE, tmp_path / "out.mp4")


def test_an_mp4_is_written_by_the_other_encoder_where_h264_is_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video, "_H264", "absent")
    with open_video(tmp_path / "a.mp4", SIZE, 12.5) as opened:
        for level in range(7):
            opened.write(np.full((48, 64, 3), 20 * level, dtype=np.uint8))
    assert count_frames(tmp_path / "a.mp4") == 7


@pytest.mark.skipif(sys.platform != "linux", reason="MUJOCO_GL has these choices on Linux")
@pytest.mark.parametrize("backend", ["", "egl", "disable"])
def test_without_a_display_it_renders_or_names_the_system_package(
    path: Path, tmp_path: Path, backend: str
) -> None:
    environment = {
        k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MUJOCO_GL")
    }
    code = (
        "import sys; from bunraku.episode.render import render; from bunraku.errors import BunrakuError\n"
        "try: print(render(sys.argv[1], ['front'], (64, 48), sys.argv[2]).frames)\n"
        "except BunrakuError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(tmp_path / "out.gif")],
        env=environment | ({"MUJOCO_GL": backend} if backend else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    if backend == "disable":
        assert "libegl1 and libgl1-mesa-dri and set MUJOCO_GL=egl" in done.stdout
        assert len(done.stdout.splitlines()) == 1
    else:
        assert done.stdout == "15\n"


def test_the_control_rate_is_the_frame_rate(path: Path) -> None:
    with EpisodeFile(path) as file:
        assert rendering._rate(file, "demo_0") == 50.0
