"""Validation: each fault is found where it is, mended copies are sound, and no damage crashes a reader."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from bunraku.dataset.summary import summarise
from bunraku.dataset.validate import repair, validate
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError
from tests.kernel.episode_samples import ENV_ID, ENV_KWARGS, INFO, make_episode

MUTANTS = 2000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "demos with spaces é.hdf5"
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO) as writer:
        for seed in range(3):
            writer.append(make_episode(seed=seed))
    return path


def test_a_recorded_file_is_sound(path: Path) -> None:
    assert validate(path) == []


def nan_action(h5: h5py.File) -> None:
    h5["data/demo_1/actions"][4, 2] = np.nan


def wide_action(h5: h5py.File) -> None:
    h5["data/demo_1/actions"][4, 2] = 1.5


def short_array(h5: h5py.File) -> None:
    rewards = h5["data/demo_1/rewards"][:-1]
    del h5["data/demo_1/rewards"]
    h5["data/demo_1/rewards"] = rewards


def no_states(h5: h5py.File) -> None:
    del h5["data/demo_1/states"]


def no_count(h5: h5py.File) -> None:
    del h5["data/demo_1"].attrs["num_samples"]


def odd_label(h5: h5py.File) -> None:
    h5["data/demo_1"].attrs["label"] = "great"


def backwards(h5: h5py.File) -> None:
    h5["data/demo_1/sim_time"][3] = -1.0


def huge_claim(h5: h5py.File) -> None:
    del h5["data/demo_1/rewards"]
    h5["data/demo_1"].create_dataset("rewards", shape=(20, 10**9), dtype="f8", chunks=(1, 1000))


def half_written(h5: h5py.File) -> None:
    h5.create_group("data/demo_9")


@pytest.mark.parametrize(
    ("damage", "where"),
    [
        (nan_action, "/data/demo_1/actions"),
        (wide_action, "/data/demo_1/actions"),
        (short_array, "/data/demo_1/rewards"),
        (no_states, "/data/demo_1"),
        (no_count, "/data/demo_1"),
        (odd_label, "/data/demo_1"),
        (backwards, "/data/demo_1/sim_time"),
        (huge_claim, "/data/demo_1/rewards"),
        (half_written, "/data/demo_9"),
    ],
)
def test_a_damaged_episode_is_named_and_left_out_of_the_mended_copy(
    path: Path, damage: Callable[[h5py.File], None], where: str
) -> None:
    with h5py.File(path, "r+") as h5:
        damage(h5)
    found = [finding for finding in validate(path) if finding.severity == "error"]
    assert where in {finding.where for finding in found}, found
    mended = path.with_name("mended.hdf5")
    kept, left_out = repair(path, mended)
    bad = where.split("/")[2]
    assert (kept, left_out) == (3 if bad == "demo_9" else 2, [bad])
    assert [finding for finding in validate(mended) if finding.severity == "error"] == []


def stray(h5: h5py.File) -> None:
    h5.create_group("data/notes")


def wrong_total(h5: h5py.File) -> None:
    h5["data"].attrs["total"] = 7


def wrong_index(h5: h5py.File) -> None:
    rows = h5["index"][()]
    rows["num_samples"][0] += 1
    h5["index"][...] = rows


def ghost_in_mask(h5: h5py.File) -> None:
    h5["mask/train"] = np.array([b"demo_0", b"demo_8"], dtype="S16")


@pytest.mark.parametrize(
    ("damage", "where"),
    [(stray, "/data/notes"), (wrong_total, "/data"), (wrong_index, "/index"), (ghost_in_mask, "/mask/train")],
)
def test_what_is_derived_is_made_anew_with_all_episodes(
    path: Path, damage: Callable[[h5py.File], None], where: str
) -> None:
    with h5py.File(path, "r+") as h5:
        damage(h5)
    assert [finding.where for finding in validate(path)] == [where]
    mended = path.with_name("mended.hdf5")
    assert repair(path, mended) == (3, [])
    assert validate(mended) == []


def test_equal_beginnings_are_a_warning(path: Path) -> None:
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO) as writer:
        writer.append(make_episode(seed=1))
    (finding,) = validate(path)
    assert (finding.severity, finding.where) == ("warning", "/data/demo_3")
    assert "demo_1" in finding.what


def test_the_commands_answer_in_json_and_by_exit_code(path: Path) -> None:
    def bunraku(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "bunraku.cli.main", "dataset", *arguments]
        return subprocess.run(command, capture_output=True, text=True)

    info = json.loads(bunraku("info", str(path), "--json").stdout)
    assert {"episodes", "steps", "labels", "env_id", "control_freq", "cameras", "size_bytes"} <= set(info)
    assert (info["episodes"], info["steps"], info["labels"]) == (3, 60, {"success": 3})
    assert bunraku("validate", str(path), "--json").returncode == 0
    with h5py.File(path, "r+") as h5:
        nan_action(h5)
    result = bunraku("validate", str(path), "--json")
    assert result.returncode == 1
    assert json.loads(result.stdout)["errors"] == 1
    text = path.with_name("text.hdf5")
    text.write_text("not HDF5")
    for command in (["info"], ["validate"], ["trim", "--out", str(path.with_name("x.hdf5"))]):
        result = bunraku(command[0], str(text), *command[1:])
        assert result.returncode == 2
        assert len(result.stderr.splitlines()) == 1
        assert "text.hdf5" in result.stderr
    assert not path.with_name("x.hdf5").exists()


def test_a_summary_of_ten_thousand_episodes_opens_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.hdf5"
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO) as writer:
        for seed in range(3):
            writer.append(make_episode(seed=seed, steps=2))

    def opened(self: EpisodeFile, name: str) -> h5py.Group:
        raise AssertionError(f"{name} was opened")

    monkeypatch.setattr(EpisodeFile, "group", opened)
    summary = summarise(path)
    assert (summary.episodes, summary.steps, summary.devices) == (3, 6, {"scripted": 3})


def test_mutated_files_raise_nothing_but_our_own_errors(tmp_path: Path) -> None:
    path = tmp_path / "small.hdf5"
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO) as writer:
        for seed in range(2):
            writer.append(make_episode(seed=seed, steps=3))
    content = path.read_bytes()
    mutant = tmp_path / "mutant.hdf5"
    rng = np.random.default_rng(0)
    messages: list[str] = []
    for _ in range(MUTANTS):
        changed = bytearray(content)
        for _ in range(rng.integers(1, 8)):
            at = int(rng.integers(0, len(changed)))
            changed[at] = int(rng.integers(0, 256))
        if rng.random() < 0.1:
            del changed[int(rng.integers(1, len(changed))) :]
        mutant.write_bytes(changed)
        try:
            summarise(mutant)
            validate(mutant)
            with EpisodeFile(mutant) as file:
                for name in file.names():
                    file.load(name)
        except BunrakuError as error:
            messages.append(str(error))
    assert 0 < len(messages) < MUTANTS
    assert not [text for text in messages if "\n" in text]
