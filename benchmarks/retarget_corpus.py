"""A folder of clips on two cores against one: rate, processor time and memory.

The clips are the real ones of ../shared/motion, copied until there are `CLIPS`. Both sides are the whole command from
reading to writing. On a machine that does other work, compare the processor times: the second core costs nothing else.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from timing import Result

from bunraku.errors import BunrakuError

CLIPS = 1000


def run(repeats: int = CLIPS) -> list[Result]:
    """Run the benchmark over `repeats` clips."""
    source = Path(__file__).resolve().parents[2] / "shared" / "motion" / "joints"
    files = sorted(source.glob("*.npz"))
    if not files:
        raise BunrakuError(
            f"no clips in {source}; put `.npz` files with joints (T, 22, 3), Y up, 20 fps there"
        )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        for k in range(repeats):
            shutil.copyfile(files[k % len(files)], folder / "in" / f"{k:05d}.npz")
        sides = {workers: _once(folder, workers) for workers in (1, 2)}
    one, two = sides[1], sides[2]
    details = {"one_core": one, "two_cores": two, "cores": os.cpu_count(), "load": os.getloadavg()}
    ours, peer = two["wall_s"], one["wall_s"]
    return [Result("folder on 2 cores, and on 1", ours, peer, peer / ours, "s", repeats, 1.8, details)]


def _once(folder: Path, workers: int) -> dict[str, float]:
    out = folder / f"out{workers}"
    command = [sys.executable, "-m", "bunraku.cli.main", "retarget", "in", "--out", str(out)]
    command += ["--workers", str(workers), "--json"]
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    rows = json.loads(done.stdout)["clips"]
    shutil.rmtree(out)
    return {
        "clips": len(rows),
        "wall_s": wall,
        "processor_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "largest_process_mb": after.ru_maxrss / 1024.0,
    }
