"""Render recorded episodes to a video, from the stored states; one frame for every row."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from bunraku.cli.collect import parse_size
from bunraku.cli.main import EXIT_OK, say
from bunraku.cli.progress import Progress


@dataclass(frozen=True)
class Args:
    """Options of `render`."""

    file: Annotated[Path, tyro.conf.Positional]
    """The demonstration file."""
    camera: tuple[str, ...] = ("front",)
    """Cameras; with several, each has its own video named after it."""
    size: str = "256x256"
    """Size of the images, width x height."""
    out: Path = Path("video.mp4")
    """An .mp4, a .gif, or a folder for PNG files."""
    episode: tuple[str, ...] = ()
    """Episodes to show, by name; all by default."""
    fps: float | None = None
    """Frames per second of playback; by default real time."""
    json: bool = False
    """Print one JSON object on stdout."""
    force: bool = False
    """Replace an existing file."""


def run(args: Args) -> int:
    """Render; return the exit code."""
    from bunraku.episode.reader import EpisodeFile
    from bunraku.episode.render import render

    size = parse_size(args.size)
    with EpisodeFile(args.file) as file:
        count = len(args.episode) or len(file)
    with Progress("rendering", count, "episodes") as progress:
        report = render(
            args.file,
            args.camera,
            size,
            args.out,
            names=args.episode or None,
            fps=args.fps,
            force=args.force,
            progress=lambda name: progress.advance(),
        )
    say(
        f"{', '.join(report.paths)}: {report.frames} frames of {report.episodes} episodes at {report.fps:g} fps"
    )
    if args.json:
        sys.stdout.write(json.dumps(asdict(report)) + "\n")
    return EXIT_OK
