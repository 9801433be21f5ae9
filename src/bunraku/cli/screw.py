"""Play an arm that drives a screw into a board, kinematically, and check it against MuJoCo's own places.

Writes screw.gif, screw.mp4, a plot (screw.png) and report.json. Exit code 1 if a figure is not as it must be.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from bunraku.cli.collect import parse_size
from bunraku.cli.main import EXIT_CHECK_FAILED, EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.screw.figures import FRAMES, SCREW_XY


@dataclass(frozen=True)
class Args:
    """Options of `screw`."""

    out: Path
    """Folder of the files that are written."""
    size: str = "640x480"
    """Size of the pictures, width x height; even for the mp4."""
    screw_xy: tuple[float, float] = SCREW_XY
    """Where the screw stands [m], the arm's base being at 0 0."""
    json: bool = False
    """Print one JSON object on stdout."""
    force: bool = False
    """Replace existing files."""


def run(args: Args) -> int:
    """Play the demonstration; return the exit code."""
    from bunraku.screw.demonstration import demonstrate

    size = parse_size(args.size)
    with Progress("rendering", FRAMES, "frames") as progress:
        written = demonstrate(
            args.out, size, screw_xy=args.screw_xy, force=args.force, progress=progress.advance
        )
    for line in written.report.table():
        say(line)
    for sentence in written.left_out:
        say(sentence)
    say("written: " + ", ".join(str(path) for path in written.paths))
    missed = written.report.missed()
    for sentence in missed:
        say(f"MISSED: {sentence}")
    if args.json:
        sys.stdout.write(json.dumps(written.as_json() | {"missed": missed}) + "\n")
    return EXIT_CHECK_FAILED if missed else EXIT_OK
