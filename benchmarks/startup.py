"""What starting costs: `import bunraku` beside `import gymnasium`, and `collect --help`, in fresh processes."""

from __future__ import annotations

import statistics
import subprocess
import sys

from timing import Result, seconds

IMPORT_LIMIT, HELP_LIMIT = 0.1, 0.5


def run(repeats: int = 7) -> list[Result]:
    """Run the benchmark."""
    gym, ours, help_ = [], [], []
    for _ in range(repeats):
        gym.append(seconds(lambda: _python("-c", "import gymnasium")))
        ours.append(seconds(lambda: _python("-c", "import bunraku")))
        help_.append(
            seconds(lambda: _python("-c", "from bunraku.cli.main import main; main(['collect', '--help'])"))
        )
    added = max(1e-3, statistics.median(b - a for a, b in zip(gym, ours, strict=True)))
    shown = statistics.median(help_)
    return [
        Result("import added to gymnasium", added, IMPORT_LIMIT, IMPORT_LIMIT / added, "s", repeats, 1.0),
        Result("collect --help", shown, HELP_LIMIT, HELP_LIMIT / shown, "s", repeats, 1.0),
    ]


def _python(*arguments: str) -> None:
    # --help ends the process with 0 after printing
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
