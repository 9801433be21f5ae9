"""Check a robot's motion before training on it: floating, sliding, penetration, jumps and use of limits.

Exit code 0 if a policy can be trained on it, 1 if not. With --repair what can be repaired is, into another file.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from bunraku.cli.main import EXIT_CHECK_FAILED, EXIT_OK, say
from bunraku.errors import BunrakuError


@dataclass(frozen=True)
class Args:
    """Options of `motion`."""

    action: Annotated[Literal["check"], tyro.conf.Positional]
    """What to do."""
    file: Annotated[Path, tyro.conf.Positional]
    """The motion file of a robot."""
    repair: Path | None = None
    """Write the repaired motion here and report on that."""
    force: bool = False
    """Overwrite it if it exists."""
    json: bool = False
    """Print one JSON object on stdout."""


def run(args: Args) -> int:
    """Check; return the exit code."""
    from bunraku import plugins
    from bunraku.motion import RobotMotion
    from bunraku.motion_check import check_motion, repair_motion

    motion = RobotMotion.load(args.file)
    robot = plugins.load(plugins.ROBOTS, motion.robot)
    if not motion.free_root:
        raise BunrakuError(f"{args.file} has a fixed root: nothing of it touches the floor")
    if args.repair is not None:
        motion = repair_motion(motion, robot)
        motion.save(args.repair, force=args.force)
    report = check_motion(motion, robot)
    for name, value in report.as_json().items():
        say(f"{name}: {value:.3g}" if isinstance(value, float) else f"{name}: {value}")
    if args.json:
        sys.stdout.write(json.dumps(report.as_json()) + "\n")
    return EXIT_OK if report.ok else EXIT_CHECK_FAILED
