"""A session of collecting: what an operator does, and what is then in the file."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import bunraku  # noqa: F401 - registers the environments
from bunraku.device import DeviceState
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import DeviceError
from bunraku.geometry import Pose
from bunraku.teleop_collect.clocks import SimulatedClock
from bunraku.teleop_collect.session import Session, SessionOptions, Summary
from bunraku.teleop_collect.viewer.null import NullViewer
from tests.teleop_collect.fake_device import FakeDevice

ENV = "bunraku/PandaReach-v0"
KWARGS = {"control_mode": "ee_delta_pose", "gripper": True, "control_freq": 50.0}


class Operator(FakeDevice):
    """A device whose operator follows a script: a function of the number of reads in the episode."""

    def __init__(self, clock: SimulatedClock, script: Callable[[Operator, int], None]) -> None:
        super().__init__(clock)
        self._script, self.reads, self.episode = script, 0, 0

    def see(self, view: Any) -> None:
        if view.episode != self.episode:
            self.episode, self.reads = view.episode, 0
            self.trigger["right"] = 0.0
            self.buttons["right"] = frozenset()
        super().see(view)

    def read(self) -> DeviceState:
        self.reads += 1
        if self.reads == 3:
            self.trigger["right"] = 1.0  # begins the episode
        self._script(self, self.reads)
        return super().read()


def collect(
    path: Path, script: Callable[[Operator, int], None], said: list[str] | None = None, **options: Any
) -> Summary:
    clock = SimulatedClock()
    env = gymnasium.make(ENV, max_episode_steps=-1, disable_env_checker=True, **KWARGS)
    settings = {"env_id": ENV, "episodes": 2, "real_time": False, "max_seconds": 1.0, **options}
    with NullViewer() as viewer, EpisodeWriter(path, ENV, KWARGS) as writer:
        session = Session(
            env,
            Operator(clock, script),
            viewer,
            writer,
            SessionOptions(**settings),
            clock=clock,
            announce=(said if said is not None else []).append,
        )
        return session.run()


def press(button: str, at: int) -> Callable[[Operator, int], None]:
    def script(operator: Operator, reads: int) -> None:
        operator.buttons["right"] = frozenset({button}) if reads == at else frozenset()

    return script


def labels(path: Path) -> list[str]:
    with EpisodeFile(path) as file:
        return [file.label(name) for name in file.names()]


def test_the_b_button_ends_an_episode_as_a_success(tmp_path: Path) -> None:
    summary = collect(tmp_path / "a.hdf5", press("b", 20))
    assert (summary.episodes, summary.successes, summary.failures, summary.discarded) == (2, 2, 0, 0)
    assert labels(tmp_path / "a.hdf5") == ["success", "success"]
    with EpisodeFile(tmp_path / "a.hdf5") as file:
        episode = file.load(file.names()[0])
        assert len(episode) == 17  # from the engagement at the third read to the press
        assert episode.meta["seed"] == 0
        assert file.load(file.names()[1]).meta["seed"] == 1


def test_an_episode_that_nobody_ends_is_a_timeout_and_counts_as_a_failure(tmp_path: Path) -> None:
    summary = collect(tmp_path / "a.hdf5", lambda operator, reads: None)
    assert (summary.successes, summary.failures) == (0, 2)
    assert labels(tmp_path / "a.hdf5") == ["timeout", "timeout"]
    assert summary.frames == 100


def test_y_and_menu_discard_and_the_scene_after_a_discard_is_another(tmp_path: Path) -> None:
    def script(operator: Operator, reads: int) -> None:
        button = "menu" if operator.episode == 1 else "b"
        operator.buttons["right"] = frozenset({button}) if reads == 10 else frozenset()

    said: list[str] = []
    summary = collect(tmp_path / "a.hdf5", script, said)
    assert (summary.episodes, summary.discarded) == (2, 1)
    assert any("discarded" in line for line in said)
    with EpisodeFile(tmp_path / "a.hdf5") as file:
        assert [file.load(name).meta["seed"] for name in file.names()] == [1, 2]


def test_redo_takes_the_newest_episode_back_and_records_its_scene_again(tmp_path: Path) -> None:
    done = {"redo": False}

    def script(operator: Operator, reads: int) -> None:
        if operator.episode == 2 and reads == 2 and not done["redo"]:
            done["redo"] = True
            operator.commands.append("redo")
        if reads == 10:
            operator.commands.append("success" if done["redo"] or operator.episode > 1 else "failure")

    summary = collect(tmp_path / "a.hdf5", script)
    assert (summary.episodes, summary.successes, summary.failures, summary.discarded) == (2, 2, 0, 1)
    with EpisodeFile(tmp_path / "a.hdf5") as file:
        assert [file.load(name).meta["seed"] for name in file.names()] == [0, 1]


def test_quit_in_the_middle_keeps_what_was_driven(tmp_path: Path) -> None:
    def script(operator: Operator, reads: int) -> None:
        if reads == 30:
            operator.commands.append("quit")

    summary = collect(tmp_path / "a.hdf5", script, episodes=5)
    assert summary.interrupted
    assert labels(tmp_path / "a.hdf5") == ["unlabelled"]
    assert summary.episodes == 1


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), DeviceError("the controller was unplugged; plug it in")]
)
def test_ctrl_c_and_a_lost_device_keep_the_episode_so_far(tmp_path: Path, error: BaseException) -> None:
    def script(operator: Operator, reads: int) -> None:
        if operator.episode == 2 and reads == 25:
            raise error
        if reads == 15:
            operator.commands.append("success")

    def run() -> None:
        collect(tmp_path / "a.hdf5", script, episodes=5)

    # the second episode ends with success before read 25, so break in one that goes on
    def long_script(operator: Operator, reads: int) -> None:
        if operator.episode == 1 and reads == 15:
            operator.commands.append("success")
        if operator.episode == 2 and reads == 25:
            raise error

    if isinstance(error, KeyboardInterrupt):
        summary = collect(tmp_path / "a.hdf5", long_script, episodes=5)
        assert summary.interrupted
    else:
        with pytest.raises(DeviceError):
            collect(tmp_path / "a.hdf5", long_script, episodes=5)
    assert labels(tmp_path / "a.hdf5") == ["success", "unlabelled"]


def test_markers_buttons_and_targets_are_in_the_file_row_by_row(tmp_path: Path) -> None:
    def script(operator: Operator, reads: int) -> None:
        if reads == 10:
            operator.commands.append("marker")
        if reads > 5:
            pose = operator.pose["right"]
            assert pose is not None
            operator.pose["right"] = Pose(pose.pos + [0.002, 0.0, 0.0], pose.quat)

    collect(tmp_path / "a.hdf5", script, episodes=1)
    with EpisodeFile(tmp_path / "a.hdf5") as file:
        episode = file.load(file.names()[0])
    rows = len(episode)
    assert rows == 50
    for key in ("device/right", "target/right", "joints/right", "pose_age/right", "tick_us", "marker"):
        assert len(episode.streams[key]) == rows, key
    assert episode.streams["marker"].sum() == 1
    assert len(episode.states) == rows + 1
    assert all(len(values) == rows + 1 for values in episode.observations.values())
    assert np.isfinite(episode.streams["target/right"]).all()
    assert episode.streams["target/right"][-1, 0] - episode.streams["target/right"][0, 0] > 0.03
    assert np.allclose(np.diff(episode.sim_time), 0.02)
    assert (np.diff(episode.wall_time) >= 0).all()
    assert episode.meta["device"] == "fake"
    assert "mujoco" in episode.meta["versions"]
    assert episode.meta["mjcf"].startswith("<mujoco")


def test_a_second_session_goes_on_with_the_file_and_with_new_scenes(tmp_path: Path) -> None:
    collect(tmp_path / "a.hdf5", press("b", 10))
    collect(tmp_path / "a.hdf5", press("b", 10))
    with EpisodeFile(tmp_path / "a.hdf5") as file:
        assert [file.load(name).meta["seed"] for name in file.names()] == [0, 1, 2, 3]


def test_scenes_that_were_discarded_are_not_counted_when_a_second_session_goes_on(tmp_path: Path) -> None:
    def script(operator: Operator, reads: int) -> None:
        button = "menu" if operator.episode == 1 else "b"
        operator.buttons["right"] = frozenset({button}) if reads == 10 else frozenset()

    collect(tmp_path / "a.hdf5", script)
    collect(tmp_path / "a.hdf5", press("b", 10), episodes=1)
    with EpisodeFile(tmp_path / "a.hdf5") as file:
        assert [file.load(name).meta["seed"] for name in file.names()] == [1, 2, 3]


def test_saving_is_confirmed_in_the_hand(tmp_path: Path) -> None:
    pulses: list[Any] = []

    def script(operator: Operator, reads: int) -> None:
        pulses[:] = operator.pulses
        if reads == 10:
            operator.commands.append("success")

    collect(tmp_path / "a.hdf5", script)
    assert ("right", 0.9) in pulses


def test_ctrl_c_while_an_episode_is_saved_waits_until_it_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = EpisodeWriter.append

    def interrupted_append(writer: EpisodeWriter, episode: Any) -> str:
        name = append(writer, episode)
        signal.raise_signal(signal.SIGINT)
        return name

    monkeypatch.setattr(EpisodeWriter, "append", interrupted_append)
    said: list[str] = []
    summary = collect(tmp_path / "a.hdf5", press("b", at=20), said)
    assert summary.interrupted
    assert summary.episodes == len(labels(tmp_path / "a.hdf5")) == 1
    assert any(line.startswith("saved demo_0") for line in said)
