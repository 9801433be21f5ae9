"""Processes that record are killed at random moments; no episode that they announced may be lost.

`BUNRAKU_KILLS` sets how many; `benchmarks/kill_test.py` runs 200 by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "kill_test.py"


def test_no_announced_episode_is_lost_when_the_recording_process_is_killed() -> None:
    kills = int(os.environ.get("BUNRAKU_KILLS", "25"))
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--kills", str(kills)], capture_output=True, text=True, check=False
    )
    counts = json.loads(done.stdout)
    assert (counts["lost"], counts["unreadable"]) == (0, 0), done.stderr
    assert counts["kills"] == kills
    assert counts["announced"] > kills
