"""`bunraku dataset info` on 10,000 episodes, start of Python included, against the limit of 2 s."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np
from timing import Result, seconds

from bunraku.episode.format import INDEX_DTYPE
from bunraku.episode.repair import create_index, set_mask
from bunraku.episode.writer import EpisodeWriter

EPISODES = 10_000
ROWS = 5
LIMIT_S = 2.0


def run(repeats: int = 5) -> list[Result]:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.hdf5"
        _record(path)
        command = [sys.executable, "-m", "bunraku.cli.main", "dataset", "info", str(path), "--json"]

        def info() -> None:
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            assert json.loads(done.stdout)["steps"] == EPISODES * ROWS

        median = statistics.median(seconds(info) for _ in range(repeats))
    return [Result("dataset-info", median, LIMIT_S, LIMIT_S / median, "s", repeats, 1.0)]


def _record(path: Path) -> None:
    """Write episodes with plain h5py, which is quicker than one commit for each."""
    EpisodeWriter(path, "test/Many-v0", {"control_freq": 50}).close()
    names = [f"demo_{i}" for i in range(EPISODES)]
    with h5py.File(path, "r+") as h5:
        for name in names:
            group = h5["data"].create_group(name)
            group["actions"] = np.zeros((ROWS, 7), np.float32)
            group["states"] = np.zeros((ROWS, 10))
            group["obs/observation"] = np.zeros((ROWS, 20))
            group.attrs["num_samples"] = ROWS
        rows = np.zeros(EPISODES, INDEX_DTYPE)
        rows["demo"], rows["num_samples"], rows["label"] = np.arange(EPISODES), ROWS, b"success"
        del h5["index"]
        create_index(h5, rows)
        set_mask(h5["mask"], "success", [name.encode() for name in names])
        h5["data"].attrs["total"] = ROWS * EPISODES
