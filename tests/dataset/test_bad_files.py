"""Files and disks that no command can do anything with: one clear line, nothing written, nothing lost."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from bunraku.dataset.edit import select
from bunraku.dataset.exchange import ExportOptions, export
from bunraku.dataset.importing import import_from
from bunraku.dataset.report import write_report
from bunraku.dataset.summary import summarise
from bunraku.dataset.validate import validate
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError, FileFormatError
from bunraku.plugins import EXPORTERS, IMPORTERS, load
from tests.kernel.episode_samples import ENV_ID, ENV_KWARGS, make_episode


def record(path: Path, count: int) -> Path:
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS) as writer:
        for seed in range(count):
            writer.append(make_episode(steps=3, seed=seed))
    return path


def test_a_file_of_the_future_is_refused_by_every_command(tmp_path: Path) -> None:
    path = record(tmp_path / "ünï cödé demos.hdf5", 1)
    with h5py.File(path, "r+") as h5:
        h5.attrs["bunraku_format"] = 99
    for command in (
        lambda: summarise(path),
        lambda: validate(path),
        lambda: write_report(path, tmp_path / "out"),
        lambda: select(path, ["demo_0"], tmp_path / "out.hdf5"),
        lambda: export(path, load(EXPORTERS, "robomimic"), tmp_path / "out", ExportOptions()),
    ):
        with pytest.raises(FileFormatError, match=r"version 99.*update bunraku"):
            command()
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_file_without_episodes_is_summed_up_and_not_exported(tmp_path: Path) -> None:
    path = record(tmp_path / "empty.hdf5", 0)
    assert summarise(path).episodes == 0
    assert [finding.severity for finding in validate(path)] == ["warning"]
    with pytest.raises(BunrakuError, match="no episode"):
        write_report(path, tmp_path / "out")
    with pytest.raises(BunrakuError, match="nothing to export"):
        export(path, load(EXPORTERS, "robomimic"), tmp_path / "out", ExportOptions())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["actions", "next_obs/observation"])
def test_a_header_that_claims_a_billion_rows_is_refused_and_not_allocated(name: str, tmp_path: Path) -> None:
    path = record(tmp_path / "demos.hdf5", 2)
    with h5py.File(path, "r+") as h5:
        group = h5["data/demo_0"]
        del group[name]
        group.create_dataset(name, shape=(10**9, 6), dtype="f8", chunks=(1000, 6))
        group.attrs["num_samples"] = 10**9
    with EpisodeFile(path) as file:
        with pytest.raises(FileFormatError, match="demo_0"):
            file.load("demo_0")
        assert len(file.load("demo_1")) == 3
    assert any(finding.where.startswith("/data/demo_0") for finding in validate(path))


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file size are POSIX")
def test_no_room_leaves_the_input_and_nothing_else(tmp_path: Path) -> None:
    path = record(tmp_path / "demos.hdf5", 20)
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    script = (
        "import resource, signal, sys; from bunraku.cli.main import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)); sys.exit(main(['dataset', *sys.argv[1:]]))"
    )
    for arguments in (
        ["filter", str(path), "--where", "success", "--out", str(tmp_path / "out.hdf5")],
        ["export", str(path), "--to", "lerobot", "--out", str(tmp_path / "out")],
    ):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stderr
        assert "bunraku: error:" in done.stderr
        assert "Traceback" not in done.stderr
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before


def test_a_file_that_is_being_recorded_is_not_read_or_replaced(tmp_path: Path) -> None:
    path, other = record(tmp_path / "demos.hdf5", 1), record(tmp_path / "other.hdf5", 1)
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS):
        for command in (
            lambda: summarise(path),
            lambda: select(other, ["demo_0"], path, force=True),
            lambda: EpisodeWriter(path, ENV_ID, ENV_KWARGS),
        ):
            with pytest.raises(BunrakuError, match="in use"):
                command()
    assert summarise(path).episodes == 1


def test_a_long_list_of_episodes_is_written_in_blocks_and_read_back_whole(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    path = record(tmp_path / "demos.hdf5", 120)
    export(path, load(EXPORTERS, "lerobot"), tmp_path / "out", ExportOptions())
    report = import_from(tmp_path / "out", "lerobot", load(IMPORTERS, "lerobot"), tmp_path / "back.hdf5")
    assert report.episodes == 120
    with EpisodeFile(tmp_path / "back.hdf5") as file:
        np.testing.assert_array_equal(file.load("demo_77").actions, make_episode(steps=3, seed=77).actions)
