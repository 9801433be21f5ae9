"""Peak memory of dataset commands on 1,000 episodes against that on 10: within 20 %."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from timing import Result

from bunraku.dataset.newfile import NewFile
from bunraku.dataset.rows import cut
from bunraku.episode.reader import EpisodeFile

SAMPLE = Path(__file__).parents[1] / "datasets/reach_sample.hdf5"
FEW, MANY = 10, 1000
ROWS = 20
COMMANDS: dict[str, list[str]] = {
    "info": ["info", "{}"],
    "validate": ["validate", "{}"],
    "filter": ["filter", "{}", "--where", "steps > 0", "--out", "{}.out"],
    "export robomimic": ["export", "{}", "--to", "robomimic", "--out", "{}.robomimic"],
    "export lerobot": ["export", "{}", "--to", "lerobot", "--out", "{}.lerobot"],
}
MEASURE = """
import resource, sys
from bunraku.cli.main import main
code = main(["dataset", *sys.argv[1:]])
assert code == 0, code
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def run(repeats: int = 1) -> list[Result]:
    """Run the benchmark."""
    results = []
    with tempfile.TemporaryDirectory() as folder:
        paths = {count: _record(Path(folder) / f"{count}.hdf5", count) for count in (FEW, MANY)}
        for name, command in COMMANDS.items():
            peaks = {count: _peak_mb(command, path) for count, path in paths.items()}
            ratio = peaks[FEW] / peaks[MANY]
            results.append(
                Result(f"dataset-memory {name}", peaks[MANY], peaks[FEW], ratio, "MB", repeats, 1 / 1.2)
            )
    return results


def _record(path: Path, count: int) -> Path:
    with EpisodeFile(SAMPLE) as file, NewFile(path, file) as new:
        names = file.names()
        for number in range(count):
            name = names[number % len(names)]
            cut(file.group(name), new.begin(file, name), 0, ROWS)
    return path


def _peak_mb(command: list[str], path: Path) -> float:
    words = [word.format(path) for word in command]
    done = subprocess.run([sys.executable, "-c", MEASURE, *words], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1]) / 1024
