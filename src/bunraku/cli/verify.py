"""Replay recorded actions in the recorded environment and compare every state, bit for bit.

Exit code 0 if every episode is reproduced exactly, 1 if one is not.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from bunraku.cli.main import EXIT_CHECK_FAILED, EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.errors import BunrakuError

if TYPE_CHECKING:
    from bunraku.episode.verify import EpisodeCheck


@dataclass(frozen=True)
class Args:
    """Options of `verify`."""

    file: Annotated[Path, tyro.conf.Positional]
    """The demonstration file."""
    start: str = "first"
    """Where replay starts: first, middle, or the number of a row."""
    episode: tuple[str, ...] = ()
    """Episodes to replay, by name; all by default."""
    processes: int | None = None
    """How many work at a time; by default one for a few episodes, all cores for many."""
    json: bool = False
    """Print one JSON object on stdout."""


def run(args: Args) -> int:
    """Verify; return the exit code."""
    from bunraku.episode.reader import EpisodeFile
    from bunraku.episode.verify import verify

    if args.start not in ("first", "middle") and not args.start.isdecimal():
        raise BunrakuError(f"--start is first, middle or the number of a row; got {args.start!r}")
    start: Any = int(args.start) if args.start.isdecimal() else args.start
    with EpisodeFile(args.file) as file:
        count = len(args.episode) or len(file)
    with Progress("verifying", count, "episodes") as progress:

        def done(check: EpisodeCheck) -> None:
            if not check.bit_exact:
                say(
                    f"{check.name}: first differs at step {check.first_divergence}, by {check.max_abs_error:.3g}"
                )
            progress.advance()

        report = verify(
            args.file, start=start, names=args.episode or None, progress=done, processes=args.processes
        )
    say(report.sentence)
    if args.json:
        sys.stdout.write(json.dumps(report.as_json()) + "\n")
    return EXIT_OK if report.ok else EXIT_CHECK_FAILED
