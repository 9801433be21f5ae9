"""A kill or a power cut at any moment: every prefix of what reached the disk is opened and compared.

Random kills (see test_episode_kill.py) meet the dangerous microseconds rarely; here each one is visited.
"""

from __future__ import annotations

import builtins
import io
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from bunraku.episode import journal
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.repair import recover
from bunraku.episode.writer import EpisodeWriter
from tests.kernel.episode_samples import ENV_ID, ENV_KWARGS, assert_same, make_episode

Operation = tuple[str, int, bytes]


class Disk:
    """Records what is written to the one file that `journal` opens, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.operations: list[Operation] = []
        monkeypatch.setattr(journal, "open", self.open, raising=False)
        monkeypatch.setattr(journal, "_sync", lambda _: self.operations.append(("sync", 0, b"")))

    def open(self, path: Any, mode: str, **options: Any) -> Any:
        disk = self

        class Recorded(io.FileIO):
            def write(self, data: Any) -> int:
                disk.operations.append(("write", self.tell(), bytes(data)))
                return super().write(data)

            def truncate(self, size: int | None = None) -> int:
                assert size is not None
                if size != io.FileIO.seek(self, 0, 2):
                    disk.operations.append(("truncate", size, b""))
                return super().truncate(size)

        return Recorded(path, mode) if mode == "r+b" else builtins.open(path, mode, **options)


def replayed(start: bytes, operations: list[Operation]) -> bytes:
    content = bytearray(start)
    for kind, offset, data in operations:
        if kind == "truncate":
            content[:] = content[:offset].ljust(offset, b"\0")
        elif kind == "write":
            if len(content) < offset:
                content.extend(bytes(offset - len(content)))
            content[offset : offset + len(data)] = data
    return bytes(content)


def record(disk: Disk, path: Path, count: int) -> tuple[bytes, list[tuple[int, list[int]]]]:
    """Save and discard episodes; return the file before that and, per announcement, position and seeds."""
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS) as writer:
        writer.append(make_episode(seed=0))
        start = path.read_bytes()
        disk.operations.clear()
        seeds, announced = [0], [(0, [0])]
        for seed in range(1, count):
            writer.append(make_episode(steps=3 + seed % 5, seed=seed, label=("success", "timeout")[seed % 2]))
            seeds = [*seeds, seed]
            announced.append((len(disk.operations), seeds))
            if seed % 4 == 0:
                writer.discard_last()
                seeds = seeds[:-1]
                announced.append((len(disk.operations), seeds))
    return start, announced


def check(path: Path, content: bytes, allowed: list[list[int]]) -> None:
    """Open and mend a file that may hold the episodes of one of several lists of seeds."""
    path.write_bytes(content)
    with EpisodeFile(path) as file:
        assert [file.meta(name)["seed"] for name in file.names()] in allowed
    report = recover(path)
    assert report.removed + report.completed + report.rebuilt == (), report.sentence
    with EpisodeFile(path) as file:
        names = file.names()
        seeds = [file.meta(name)["seed"] for name in names]
        assert seeds in allowed
        for name in {names[0], names[-1]}:
            assert file.load(name).meta["seed"] in seeds
    with h5py.File(path) as h5:
        assert h5["data"].attrs["total"] == sum(h5["index"]["num_samples"])


def test_a_kill_after_any_write_leaves_every_announced_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    start, announced = record(disk, tmp_path / "a.hdf5", 8)
    operations = list(disk.operations)
    assert sum(kind == "write" for kind, _, _ in operations) > 150
    for count in range(len(operations) + 1):
        past = [seeds for position, seeds in announced if position <= count]
        coming = [seeds for position, seeds in announced if position > count]
        # Either what was announced last, or the change that is under way.
        check(tmp_path / "b.hdf5", replayed(start, operations[:count]), [past[-1], *coming[:1]])


def test_a_power_cut_that_loses_any_unsynchronised_writes_leaves_every_announced_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    start, announced = record(disk, tmp_path / "a.hdf5", 8)
    operations = list(disk.operations)
    rng = np.random.default_rng(1)
    for _ in range(200):
        count = int(rng.integers(len(operations) + 1))
        synced = max((i for i in range(count) if operations[i][0] == "sync"), default=0)
        kept = [operation for operation in operations[synced:count] if rng.random() < 0.5]
        past = [seeds for position, seeds in announced if position <= count]
        coming = [seeds for position, seeds in announced if position > count]
        content = replayed(start, operations[:synced] + kept)
        check(tmp_path / "b.hdf5", content, [past[-1], *coming[:1]])


def test_what_hdf5_writes_is_what_it_reads_back_before_and_after_a_commit(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as h5:
        h5["first"] = np.arange(1000)
    mirror = bytearray(path.read_bytes())
    committed = bytes(mirror)
    with journal.AtomicFile(path) as file:
        for _ in range(300):
            offset, length = int(rng.integers(0, len(mirror) + 2000)), int(rng.integers(0, 9000))
            if offset < 96:
                continue
            data = rng.bytes(length)
            file.seek(offset)
            file.write(memoryview(data))
            if length:
                mirror.extend(bytes(max(0, offset + length - len(mirror))))
                mirror[offset : offset + length] = data
            if rng.random() < 0.1:
                file.commit()
                # the journal may still stand behind it
                assert path.read_bytes()[: len(mirror)] == bytes(mirror)
                committed = bytes(mirror)
            offset = int(rng.integers(0, len(mirror)))
            buffer = bytearray(int(rng.integers(1, 20000)))
            file.seek(offset)
            got = file.readinto(memoryview(buffer))
            assert bytes(buffer[:got]) == bytes(mirror[offset : offset + len(buffer)])
    assert path.read_bytes()[: len(committed)] == committed
    assert path.stat().st_size == len(committed)


def test_an_uncommitted_change_is_gone_after_closing(tmp_path: Path) -> None:
    path = tmp_path / "a.hdf5"
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS) as writer:
        writer.append(make_episode(seed=5))
    before = path.read_bytes()
    with journal.AtomicFile(path) as file:
        h5 = h5py.File(file, "r+")
        h5["data"].create_group("demo_1")["actions"] = np.zeros((900, 7))
        h5.flush()
        file.discard()
        h5.close()
    assert path.read_bytes() == before
    with EpisodeFile(path) as opened:
        assert_same(opened.load("demo_0"), make_episode(seed=5))
