"""Kill a recording process at random moments, and count the announced episodes that are lost.

    python benchmarks/kill_test.py --kills 200

The child records episodes without a pause to one file, which each next child goes on with, and prints each
name once `append` has returned. The parent kills it (SIGKILL, or TerminateProcess on Windows), then opens
the file, compares every announced episode with what was recorded, and starts the next child. Prints one
JSON object.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bunraku.episode.episode import Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.writer import EpisodeWriter

ENV_ID = "test/Killed-v0"
EPISODES_PER_FILE = 400
"""A new file is begun after that many, which also kills processes that are making one."""


def make_episode(seed: int) -> Episode:
    """Return an episode of random length and numbers."""
    rng = np.random.default_rng(seed)
    steps = int(rng.integers(1, 120))
    return Episode(
        observations={"observation": rng.normal(size=(steps + 1, 20))},
        states=rng.normal(size=(steps + 1, 60)),
        actions=rng.normal(size=(steps, 7)),
        applied=rng.normal(size=(steps, 8)),
        rewards=rng.normal(size=steps),
        terminated=np.zeros(steps, dtype=bool),
        truncated=np.zeros(steps, dtype=bool),
        success=np.ones(steps, dtype=bool),
        sim_time=np.arange(steps) * 0.02,
        wall_time=np.arange(steps) * 0.02,
        streams={f"device/{name}": rng.normal(size=(steps, 7)) for name in ("left", "right", "head")},
        label=("success", "failure", "timeout")[seed % 3],
        meta={"seed": seed, "mjcf": "<mujoco/>" * 500},
    )


def child() -> None:
    """Record to the file whose name comes on standard input, and announce, until killed."""
    path = Path(sys.stdin.readline().rstrip("\n"))
    print("started", flush=True)
    with EpisodeWriter(path, ENV_ID) as writer:
        while True:
            seed = len(writer)
            writer.append(make_episode(seed))
            print(seed, flush=True)


def run(kills: int, seed: int, folder: Path) -> dict[str, int]:
    """Kill `kills` children; return the counts."""
    rng = random.Random(seed)
    counts = {"kills": 0, "files": 1, "announced": 0, "lost": 0, "unreadable": 0, "recovered": 0}
    silent = 0
    path, announced, ready = folder / "demos-0.hdf5", 0, _spawn()
    while counts["kills"] < kills:
        # The next one imports its libraries while this one is at work.
        process, ready = ready, _spawn()
        before = announced
        announced = max(announced, _kill(process, path, rng.uniform(0.0, 0.25)))
        silent = 1 if announced > before else silent + 1
        counts["kills"] += 1
        last = announced > EPISODES_PER_FILE or rng.random() < 0.1 or counts["kills"] == kills
        wanted = [k for k in range(announced) if last or k >= before or rng.random() < 0.1]
        if path.exists() or wanted:
            counts["lost"] += _lost(path, wanted, (announced, announced + silent), counts)
        if last:
            counts["announced"] += announced
            counts["files"] += 1
            path, announced = folder / f"demos-{counts['files']}.hdf5", 0
            silent = 0
    ready.kill()
    ready.communicate()
    return counts


def _spawn() -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--child"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _kill(process: subprocess.Popen[str], path: Path, after: float) -> int:
    """Let a child record for that long [s] and kill it; return how many episodes are announced in all."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{path}\n")
    process.stdin.flush()
    process.stdout.readline()
    time.sleep(after)
    process.kill()
    said, _ = process.communicate()
    return max((int(line) + 1 for line in said.split("\n")[:-1]), default=0)


def _lost(path: Path, wanted: list[int], possible: tuple[int, int], counts: dict[str, int]) -> int:
    """Return how many of the wanted episodes are not in the file as they were recorded.

    `possible` are the fewest and most episodes that may be there: those announced, and one more for each kill
    since, which may have come between saving and announcing.
    """
    try:
        with EpisodeFile(path) as file:
            load = file.load
            good = sum(load(f"demo_{k}").states.tobytes() == make_episode(k).states.tobytes() for k in wanted)
        with EpisodeWriter(path, ENV_ID) as writer:
            counts["recovered"] += writer.recovered is not None
            if not possible[0] <= len(writer) <= possible[1]:
                print(f"{path}: {len(writer)} episodes, {possible} possible", file=sys.stderr)
                return possible[0]
            return len(wanted) - good
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what this counts
        print(f"{path}: {error}", file=sys.stderr)
        counts["unreadable"] += 1
        return len(wanted)


def main() -> None:
    """Parse the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true")
    arguments = parser.parse_args()
    if arguments.child:
        child()
    with tempfile.TemporaryDirectory() as folder:
        counts = run(arguments.kills, arguments.seed, Path(folder))
    print(json.dumps(counts))
    sys.exit(bool(counts["lost"] or counts["unreadable"]))


if __name__ == "__main__":
    main()
