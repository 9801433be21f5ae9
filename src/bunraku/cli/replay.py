"""Show recorded episodes in the viewer, from the stored states, at the speed they were driven."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from bunraku.cli.main import EXIT_OK, say
from bunraku.errors import BunrakuError


@dataclass(frozen=True)
class Args:
    """Options of `replay`."""

    file: Annotated[Path, tyro.conf.Positional]
    """The demonstration file."""
    episode: tuple[str, ...] = ()
    """Episodes to show, by name; all by default."""
    speed: float = 1.0
    """Factor on the speed of playback."""
    viewer: Literal["native", "web"] | None = None
    """Where to show it. Default: a window where there is a display, else the web page."""
    host: str = "127.0.0.1"
    """Address that the web page is served on."""
    port: int = 0
    """Port of the web page; 0 takes a free one."""
    json: bool = False
    """Print one JSON object on stdout."""


def run(args: Args) -> int:
    """Show the episodes; return the exit code."""
    from bunraku.episode.reader import EpisodeFile
    from bunraku.gl import has_display
    from bunraku.teleop_collect.playback import play
    from bunraku.teleop_collect.viewer.base import open_viewer

    if not args.speed > 0.0:
        raise BunrakuError(f"--speed must be positive, got {args.speed}")
    kind = args.viewer or ("native" if has_display() else "web")
    shown = 0
    with EpisodeFile(args.file) as file:
        names = args.episode or tuple(file.names())
        if not names:
            raise BunrakuError(f"{args.file} holds no episode to show")
        with open_viewer(
            kind, host=args.host, port=args.port, title=f"bunraku replay {args.file.name}"
        ) as viewer:
            if viewer.url:
                say(f"viewer: {viewer.url}")
            for name in names:
                episode = file.load(name)
                say(f"{name}: {episode.label}, {len(episode)} steps")
                if not play(episode, file.env_id, viewer, args.speed):
                    break
                shown += 1
    if args.json:
        sys.stdout.write(json.dumps({"path": str(args.file), "episodes": shown}) + "\n")
    return EXIT_OK
