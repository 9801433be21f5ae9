"""Saving episodes against plain h5py, with the same arrays, storage and durability.

Both sides have one open file, make one group per episode, store the same arrays and attributes in the same way
(contiguous, the states gzipped), then flush and synchronise. Ours may take 1.5 times as long for what it does beside
that: checks, the index, the filter lists, and the journal that keeps a file whole when the process is killed in
between, for which it synchronises twice.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from timing import Result, in_turn

from bunraku.episode.codec import dataset_names
from bunraku.episode.episode import Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.writer import EpisodeWriter

SAMPLE = Path(__file__).parents[1] / "datasets/reach_sample.hdf5"
EPISODES = 10
ROWS = (120, 1000)

Arrays = dict[str, tuple[np.ndarray, dict[str, Any]]]
"""Array and storage options by name."""


def run(repeats: int = 15) -> list[Result]:
    """Run the benchmark."""
    return [_case(rows, repeats) for rows in ROWS]


def _case(rows: int, repeats: int) -> Result:
    with EpisodeFile(SAMPLE) as file:
        episode = _repeated(file.load("demo_1"), rows)
    with tempfile.TemporaryDirectory() as folder, EpisodeWriter(Path(folder) / "ours.hdf5", "e") as writer:
        writer.append(episode)
        with h5py.File(Path(folder) / "peer.hdf5", "w") as peer:
            arrays, attributes = _content(writer.path)
            numbers = itertools.count()

            def ours() -> None:
                for _ in range(EPISODES):
                    writer.append(episode)

            def theirs() -> None:
                for _ in range(EPISODES):
                    _append(peer, f"data/demo_{next(numbers)}", arrays, attributes)

            result = in_turn(
                f"recorder {rows} rows",
                ours,
                theirs,
                per=EPISODES * rows,
                repeats=repeats,
                required=1 / 1.5,
                details={
                    "unit_of_work": "row",
                    "bytes_per_episode": sum(a.nbytes for a, _ in arrays.values()),
                },
            )
    return result


def _append(h5: h5py.File, name: str, arrays: Arrays, attributes: dict[str, Any]) -> None:
    group = h5.create_group(name)
    for key, (array, options) in arrays.items():
        group.create_dataset(key, data=array, **options)
    for key, value in attributes.items():
        group.attrs[key] = value
    h5.flush()
    os.fsync(h5.id.get_vfd_handle())


def _content(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Return every array that our file has for an episode, how it is stored there, and the attributes."""
    copy = path.with_name("copy.hdf5")
    shutil.copyfile(path, copy)
    found: Arrays = {}
    with h5py.File(copy) as h5:
        group = h5["data/demo_0"]
        for name in dataset_names(group):
            dataset = group[name]
            options: dict[str, Any] = {}
            if dataset.compression:
                options = {
                    "chunks": dataset.chunks,
                    "compression": "gzip",
                    "compression_opts": dataset.compression_opts,
                }
            found[name] = dataset[()], options
        return found, dict(group.attrs)


def _repeated(episode: Episode, rows: int) -> Episode:
    """Return an episode of `rows` rows made of an episode's own, over and over."""

    def again(array: np.ndarray, count: int) -> np.ndarray:
        return array[np.arange(count) % len(array)]

    fields = ("actions", "applied", "rewards", "terminated", "truncated", "success", "sim_time", "wall_time")
    return Episode(
        observations={key: again(array, rows + 1) for key, array in episode.observations.items()},
        states=again(episode.states, rows + 1),
        streams={key: again(array, rows) for key, array in episode.streams.items()},
        label=episode.label,
        meta=episode.meta,
        **{name: again(getattr(episode, name), rows) for name in fields},
    )
