"""The whole demonstration: played, painted, checked and written to a folder.

result = demonstrate(Path("screw"), (640, 480))
result.report.gif_seconds, result.left_out
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bunraku.errors import BunrakuError, MissingDependencyError
from bunraku.screw import figures
from bunraku.screw.gif import FRAME_MS, Gif, read_gif
from bunraku.screw.measures import IK_TARGETS, Observer, elbow_height, ik_errors, targets
from bunraku.screw.picture import Painter
from bunraku.screw.playback import Playback
from bunraku.screw.plot import load_plot
from bunraku.screw.report import Report, compose
from bunraku.video import Frame, Video, count_frames, open_video

GIF, MP4, PLOT, REPORT = "screw.gif", "screw.mp4", "screw.png", "report.json"
TIMED_EVERY = 15
"""Of so many frames one is also rendered by the bare renderer, to compare times."""
_SAMPLES = (0, 70, 150, 250, 350, 449)
"""Frames whose colours make the GIF's palette."""


Made = TypeVar("Made")


@dataclass(frozen=True, slots=True)
class Demonstration:
    """What was written."""

    report: Report
    paths: tuple[Path, ...]
    """The files."""
    left_out: tuple[str, ...]
    """A sentence for each file that an uninstalled library would have written."""

    def as_json(self) -> dict[str, Any]:
        """Return the report, the files and what was left out."""
        files = {"paths": [str(path) for path in self.paths], "left_out": list(self.left_out)}
        return self.report.as_json() | files


def demonstrate(
    out: Path,
    size: tuple[int, int] = (640, 480),
    *,
    screw_xy: tuple[float, float] = figures.SCREW_XY,
    force: bool = False,
    progress: Callable[[], None] = lambda: None,
) -> Demonstration:
    """Play, paint, check and write the demonstration; files appear once all are complete.

    Args:
        out: Folder of the files; made if it is not there.
        size: Width and height of the pictures [pixels].
        screw_xy: Where the screw stands [m].
        force: Replace files that are there.
        progress: Called after each frame.

    Raises:
        ReachError: The arm cannot drive a screw there.
        BunrakuError: A file is there already, or the folder cannot be written.
        GraphicsError: There is no OpenGL.
    """
    began = time.perf_counter()
    for name in (GIF, MP4, PLOT, REPORT):
        if (out / name).exists() and not force:
            raise BunrakuError(f"{out / name} exists; give another folder, or --force to replace it")
    playback = Playback(screw_xy)
    gif = Gif(_samples(screw_xy, size))
    left_out: list[str] = []
    with _unfinished(out) as folder:
        video = _optional(lambda: open_video(folder / MP4, size, 1000.0 / FRAME_MS), MP4, left_out)
        draw = _optional(load_plot, PLOT, left_out)
        with video or nullcontext():
            observer, timings = _play(playback, size, gif, video, progress)
        gif.save(folder / GIF)
        if draw is not None:
            draw(observer.rows, folder / PLOT)
        report = compose(
            observer.rows,
            list(ik_errors(playback, targets(IK_TARGETS))),
            (elbow_height(playback, mirror=False), elbow_height(playback, mirror=True)),
            read_gif(folder / GIF),
            count_frames(folder / MP4) if video else None,
            timings,
            time.perf_counter() - began,
        )
        names = [GIF, *([MP4] if video else []), *([PLOT] if draw else []), REPORT]
        written = Demonstration(report, tuple(out / name for name in names), tuple(left_out))
        (folder / REPORT).write_text(json.dumps(written.as_json(), indent=2) + "\n", encoding="utf-8")
        for name in names:
            os.replace(folder / name, out / name)
    return written


def _play(
    playback: Playback,
    size: tuple[int, int],
    gif: Gif,
    video: Video | None,
    progress: Callable[[], None],
) -> tuple[Observer, list[tuple[float, float]]]:
    """Return the rows of all frames, and times [s] of some with ours and with the bare renderer."""
    observer, timings = Observer(playback), []
    with Painter(playback, size) as painter:
        for frame in range(len(playback)):
            start = time.perf_counter()
            playback.show(frame)
            painter.follow(frame)
            image = painter.paint(frame)
            painted = time.perf_counter()
            if frame % TIMED_EVERY == TIMED_EVERY // 2:
                painter.plain()
                timings.append((painted - start, time.perf_counter() - painted))
            observer.look()
            gif.write(image)
            if video is not None:
                video.write(image)
            progress()
    return observer, timings


def _samples(screw_xy: tuple[float, float], size: tuple[int, int]) -> list[Frame]:
    playback, images = Playback(screw_xy), []
    with Painter(playback, size) as painter:
        for frame in range(len(playback)):
            playback.show(frame)
            painter.follow(frame)
            if frame in _SAMPLES:
                images.append(painter.paint(frame))
    return images


@contextmanager
def _unfinished(out: Path) -> Iterator[Path]:
    """Make `out`, and in it a folder for files under construction; if that fails, leave nothing of both."""
    is_new = not out.exists()
    try:
        out.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix=".unfinished-", dir=out)
    except OSError as error:
        raise BunrakuError(
            f"cannot write to {out}: {error.strerror or error}; give another folder"
        ) from error
    try:
        with folder as name:
            yield Path(name)
    except BaseException:
        if is_new:
            out.rmdir()
        raise


def _optional(make: Callable[[], Made], file: str, left_out: list[str]) -> Made | None:
    """Return what `make` returns, or None, and why, if its library is not installed."""
    try:
        return make()
    except MissingDependencyError as error:
        left_out.append(f"{file} is not written: {error}")
        return None
