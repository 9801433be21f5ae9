"""Editing: nothing of an episode is lost, and the inputs stay as they are."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.dataset.edit import matching, merge, parts, relabel, resample, select, split, trim, without
from bunraku.dataset.rows import cut
from bunraku.dataset.where import Condition
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.verify import verify
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError, UnknownNameError
from tests.kernel.episode_samples import ENV_ID, ENV_KWARGS, INFO, assert_same, make_episode


def record(path: Path, count: int = 4, first_seed: int = 0, **kwargs: Any) -> Path:
    with EpisodeWriter(path, ENV_ID, kwargs.pop("env_kwargs", ENV_KWARGS), info=INFO) as writer:
        for seed in range(first_seed, first_seed + count):
            episode = make_episode(seed=seed, label=("success", "failure")[seed % 2], **kwargs)
            meta = {**episode.meta, "operator": f"person {seed % 3}", "quality": {"jerk": 10.0 * seed}}
            writer.append(dataclasses.replace(episode, meta=meta))
    return path


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three episodes of the simulated operator."""
    path = tmp_path_factory.mktemp("recorded") / "reach.hdf5"
    command = [
        sys.executable,
        "-m",
        "bunraku.cli.main",
        "collect",
        "--env",
        "PandaReach",
        "--device",
        "scripted",
    ]
    command += ["--viewer", "none", "--episodes", "3", "--out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


def loaded(path: Path) -> dict[str, Any]:
    with EpisodeFile(path) as file:
        return {name: file.load(name) for name in file.names()}


def test_a_merged_file_has_every_episode_with_its_seed_label_masks_and_streams(tmp_path: Path) -> None:
    first, second = record(tmp_path / "a.hdf5"), record(tmp_path / "b.hdf5", first_seed=10)
    with h5py.File(first, "r+") as h5:
        h5["mask/favourites"] = np.array([b"demo_1", b"demo_3"], dtype="S16")
    before = [hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)]
    assert merge([first, second], tmp_path / "ab.hdf5") == 8
    originals = list(loaded(first).values()) + list(loaded(second).values())
    merged = loaded(tmp_path / "ab.hdf5")
    assert list(merged) == [f"demo_{i}" for i in range(8)]
    for episode, original in zip(merged.values(), originals, strict=True):
        assert_same(episode, original)
        assert episode.meta == original.meta
    with EpisodeFile(tmp_path / "ab.hdf5") as file:
        assert file.masks["favourites"] == ["demo_1", "demo_3"]
        assert file.masks["success"] == ["demo_0", "demo_2", "demo_4", "demo_6"]
        assert len(file.index) == 8
    assert before == [hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)]


@pytest.mark.parametrize("changed", [{"control_freq": 10.0}, {"control_mode": "joint_pos"}])
def test_files_of_different_environments_are_not_merged(tmp_path: Path, changed: dict[str, Any]) -> None:
    first = record(tmp_path / "a.hdf5")
    second = record(tmp_path / "b.hdf5", env_kwargs={**ENV_KWARGS, **changed})
    with pytest.raises(BunrakuError, match=next(iter(changed))):
        merge([first, second], tmp_path / "ab.hdf5")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.hdf5", "b.hdf5"]


def test_an_output_replaces_a_file_only_by_force_and_never_an_input(tmp_path: Path) -> None:
    path, out = record(tmp_path / "a.hdf5"), tmp_path / "b.hdf5"
    out.write_text("precious")
    with pytest.raises(BunrakuError, match="exists"):
        select(path, ["demo_0"], out)
    assert out.read_text() == "precious"
    with pytest.raises(BunrakuError, match="cannot be the output"):
        select(path, ["demo_0"], path, force=True)
    select(path, ["demo_0"], out, force=True)
    assert list(loaded(out)) == ["demo_0"]


def test_split_makes_two_disjoint_lists_that_cover_everything(tmp_path: Path) -> None:
    path = record(tmp_path / "a.hdf5", count=10)
    train, valid = parts(path, 0.8, "episode", seed=3)
    assert (len(train), len(valid)) == (8, 2)
    split(path, train, valid, tmp_path / "s.hdf5")
    with EpisodeFile(tmp_path / "s.hdf5") as file:
        assert sorted(file.masks["train"] + file.masks["valid"]) == sorted(file.names())
        by_operator = parts(tmp_path / "s.hdf5", 0.5, "operator", seed=0)
        people = [{file.meta(name)["operator"] for name in part} for part in by_operator]
    assert not people[0] & people[1]


def test_filter_and_relabel_and_delete_by_what_is_known_of_an_episode(tmp_path: Path) -> None:
    path = record(tmp_path / "a.hdf5", count=6)
    assert matching(path, "success and jerk < 40") == ["demo_0", "demo_2"]
    assert matching(path, "operator == 'person 1' or not 2 <= number") == ["demo_0", "demo_1", "demo_4"]
    assert without(path, ["demo_1", "demo_2"]) == ["demo_0", "demo_3", "demo_4", "demo_5"]
    relabel(path, ["demo_0"], "failure", tmp_path / "l.hdf5")
    with EpisodeFile(tmp_path / "l.hdf5") as file:
        assert file.masks["failure"] == ["demo_0", "demo_1", "demo_3", "demo_5"]
        assert file.label("demo_0") == "failure"
        assert not file.group("demo_0").attrs["success"]
    with pytest.raises(UnknownNameError, match="success"):
        relabel(path, ["demo_0"], "sucess", tmp_path / "x.hdf5")


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("success and", "cannot be read"),
        ("__import__('os').system('true')", "not allowed"),
        ("steps.real", "not allowed"),
        ("jerkk < 3", "did you mean 'jerk'"),
        ("label < 3", "cannot be answered"),
        ("'a' * 9999999", "only numbers"),
    ],
)
def test_a_condition_that_is_none_is_refused(tmp_path: Path, where: str, said: str) -> None:
    path = record(tmp_path / "a.hdf5", count=1)
    with pytest.raises(BunrakuError, match=said):
        matching(path, where)


@given(st.integers(-50, 50), st.integers(-50, 50), st.sampled_from(["<", "<=", "==", "!=", ">", ">="]))
def test_a_condition_agrees_with_python(a: int, b: int, op: str) -> None:
    text = f"x {op} {b} or x + 1 {op} {b} - 2"
    assert Condition(text)({"x": a}) == eval(text, {"x": a})


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_cut_keeps_every_row_between_its_ends(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    steps = data.draw(st.integers(2, 9))
    first = data.draw(st.integers(0, steps - 1))
    stop = data.draw(st.integers(first + 1, steps))
    folder = tmp_path_factory.mktemp("cut")
    with EpisodeWriter(folder / "a.hdf5", ENV_ID, ENV_KWARGS, info=INFO) as writer:
        writer.append(make_episode(steps=steps, seed=1))
    with EpisodeFile(folder / "a.hdf5") as file, h5py.File(folder / "b.hdf5", "w") as h5:
        episode = file.load("demo_0")
        target = h5.create_group("demo_0")
        cut(file.group("demo_0"), target, first, stop)
        np.testing.assert_array_equal(target["actions"][()], episode.actions[first:stop])
        states = np.concatenate([target["states"][()], target["final_state"][()][None]])
        np.testing.assert_array_equal(states, episode.states[first : stop + 1])
        for key, array in episode.observations.items():
            np.testing.assert_array_equal(target[f"next_obs/{key}"][()], array[first + 1 : stop + 1])
        for key, array in episode.streams.items():
            np.testing.assert_array_equal(target[f"streams/{key}"][()], array[first:stop])
        assert target["dones"][stop - first - 1] == 1


def test_trimmed_episodes_lose_only_idle_rows_and_replay_bit_for_bit(recorded: Path, tmp_path: Path) -> None:
    removed, idle = trim(recorded, tmp_path / "t.hdf5")
    assert removed > 0
    assert idle == []
    report = verify(tmp_path / "t.hdf5")
    assert report.ok, report.sentence
    for before, after in zip(loaded(recorded).values(), loaded(tmp_path / "t.hdf5").values(), strict=True):
        note = after.meta["trimmed"]
        cut_off = np.concatenate([before.applied[: note["first_row"]], before.applied[note["stop_row"] :]])
        assert len(cut_off) == len(before) - len(after)
        assert after.meta["seed"] == before.meta["seed"]
        assert after.meta["quality"]["seconds"] < before.meta["quality"]["seconds"] or not len(cut_off)


def test_resampled_actions_move_the_target_as_far(recorded: Path, tmp_path: Path) -> None:
    every, _ = resample(recorded, 25.0, tmp_path / "r.hdf5")
    assert every == 2
    with EpisodeFile(tmp_path / "r.hdf5") as file:
        assert file.env_kwargs["control_freq"] == 25.0
    for before, after in zip(loaded(recorded).values(), loaded(tmp_path / "r.hdf5").values(), strict=True):
        kept = 2 * len(after)
        np.testing.assert_allclose(
            2.0 * after.actions[:, :6].sum(axis=0), before.actions[:kept, :6].sum(axis=0), atol=1e-4
        )
        np.testing.assert_array_equal(after.actions[:, 6], before.actions[1:kept:2, 6])  # the gripper
        np.testing.assert_array_equal(after.states[:-1], before.states[:kept:2])
        np.testing.assert_array_equal(
            after.observations["achieved_goal"][-1], before.observations["achieved_goal"][kept]
        )
        assert after.streams["marker"].sum() <= before.streams["marker"].sum()
    with pytest.raises(BunrakuError, match="possible: 50, 25"):
        resample(recorded, 30.0, tmp_path / "x.hdf5")


def test_a_plain_robomimic_file_can_be_edited(tmp_path: Path) -> None:
    path = tmp_path / "plain.hdf5"
    with h5py.File(path, "w") as h5:
        h5["mask/train"] = np.array([b"demo_3", b"demo_7"], dtype="S8")
        data = h5.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "type": 1, "env_kwargs": {}})
        data.attrs["total"] = 9
        for number in (3, 5, 7):
            group = data.create_group(f"demo_{number}")
            group.attrs["num_samples"] = 3
            group.attrs["camera_info"] = "{}"
            group["actions"] = np.full((3, 2), number, dtype=np.float32) / 10
            group["obs/eef"] = np.ones((3, 4))
            for key in ("rewards", "dones"):
                group[key] = np.zeros(3)
            group["states"] = np.zeros((3, 6))
    assert select(path, ["demo_3", "demo_7"], tmp_path / "out.hdf5") == 2
    with h5py.File(tmp_path / "out.hdf5") as h5:
        assert list(h5["data"]) == ["demo_0", "demo_1"]
        assert h5["data/demo_1/actions"][0, 0] == np.float32(0.7)
        assert h5["data/demo_1"].attrs["camera_info"] == "{}"
        assert list(h5["mask/train"][()]) == [b"demo_0", b"demo_1"]
        assert h5["data"].attrs["total"] == 6
        assert "bunraku_format" not in h5.attrs


def test_a_kill_in_the_middle_leaves_the_inputs_and_nothing_under_the_new_name(tmp_path: Path) -> None:
    path = record(tmp_path / "a.hdf5", count=30, steps=400)
    before = path.read_bytes()
    out = tmp_path / "b.hdf5"
    script = (
        "import os, sys, signal\nfrom bunraku.dataset.edit import merge\n"
        "done = 0\n"
        "def told():\n    global done\n    done += 1\n    if done == 40: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"merge([{str(path)!r}, {str(path)!r}], {str(out)!r}, told=told)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True)
    if os.name == "posix":
        assert result.returncode == -signal.SIGKILL
    assert not out.exists()
    assert path.read_bytes() == before
    assert merge([path, path], out) == 60


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    path = record(tmp_path / "a.hdf5", count=5)

    def told() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        merge([path, path], tmp_path / "b.hdf5", told=told)
    assert [p.name for p in tmp_path.iterdir()] == ["a.hdf5"]


def test_editing_does_not_hold_the_file_in_memory(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    steps = 20_000
    path = record(tmp_path / "a.hdf5", count=2, steps=steps)
    script = (
        "import resource, sys\nfrom bunraku.dataset.edit import merge\n"
        f"path, out, count = {str(path)!r}, sys.argv[1], int(sys.argv[2])\n"
        "merge([path] * count, out)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
    )
    peaks = []
    for count in (2, 8):
        command = [sys.executable, "-c", script, str(tmp_path / f"{count}.hdf5"), str(count)]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    assert peaks[1] < 1.2 * peaks[0]
