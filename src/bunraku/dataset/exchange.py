"""What an exporter is given, and what it must keep: every row of every episode, in order.

An exporter is one file in `bunraku.teleop_collect.exporters` (or an entry point of the group
`bunraku.exporters`) that binds `EXPORTER` to an object of `Exporter`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bunraku.dataset.newfile import cannot_write
from bunraku.episode.episode import Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.errors import BunrakuError

IMAGE_SUFFIX = "_image"
"""Observations of this ending are images of the camera before it."""


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What can be chosen; an exporter refuses what its format does not have."""

    cameras: tuple[str, ...] = ()
    """Cameras to render from the stored states, beside those whose images were recorded."""
    size: tuple[int, int] = (256, 256)
    """Width and height of rendered images [pixels]."""
    task: str = ""
    """What is done, in words, for policies that read language; the environment's id by default."""
    lossless: bool = False
    """Whether videos keep every bit of the images, at several times the size."""
    version: str = ""
    """Version of the format, its newest by default."""
    fields: dict[str, str] = field(default_factory=dict)
    """Further facts for the dataset's own description (author, code permalink, ...)."""


@dataclass(slots=True)
class Source:
    """The episodes to export: one in memory at a time, images included."""

    file: EpisodeFile
    """The file."""
    names: Sequence[str]
    """Names of the episodes, in the order of the export."""
    options: ExportOptions
    """What was chosen."""
    told: Callable[[], None] = lambda: None
    """Called after each episode."""
    frames: int = 0
    """Rows yielded so far."""

    def episodes(self) -> Iterator[tuple[str, Episode]]:
        """Yield name and episode; rendered images stand among its observations as `<camera>_image`.

        Raises:
            BunrakuError: A number is not finite, which every trainer would choke on.
        """
        with ExitStack() as stack:
            scene: Any = None
            for name in self.names:
                episode = self.file.load(name)
                _check_finite(episode, f"{name} of {self.file.path}")
                missing = [
                    c for c in self.options.cameras if f"{c}{IMAGE_SUFFIX}" not in episode.observations
                ]
                if missing:
                    if scene is None:
                        from bunraku.episode.render import EpisodeScene

                        scene = stack.enter_context(EpisodeScene(self.options.size))
                    for camera, images in scene.observed(episode, missing).items():
                        episode.observations[f"{camera}{IMAGE_SUFFIX}"] = images
                yield name, episode
                self.frames += len(episode)
                self.told()

    @property
    def fps(self) -> float:
        """Rows per second; raises BunrakuError where the file does not say."""
        return self.file.control_freq

    @property
    def task(self) -> str:
        """What is done, in words."""
        return self.options.task or self.file.env_id


class Exporter(Protocol):
    """Writes episodes in another project's format."""

    extra: str
    """The extra that brings what it needs."""
    versions: tuple[str, ...]
    """Versions of the format that it writes, newest first."""

    def export(self, source: Source, out: Path) -> None:
        """Write all episodes into the empty folder `out`."""
        ...


class NewFolder:
    """A folder that appears under its name only when it is complete."""

    def __init__(self, path: str | Path, *, force: bool = False) -> None:
        """Begin.

        Raises:
            BunrakuError: The folder exists and is not empty, or cannot be written.
        """
        self.path = Path(path)
        if self.path.is_file():
            raise BunrakuError(f"{self.path} is a file; give --out the name of a folder")
        if self.path.exists() and any(self.path.iterdir()) and not force:
            raise BunrakuError(
                f"{self.path} exists and is not empty; give another --out, or --force to replace it"
            )
        self._unfinished = self.path.absolute().with_name(f"{self.path.absolute().name}.{os.getpid()}.new")

    def __enter__(self) -> Path:
        """Return the folder to fill."""
        try:
            self._unfinished.mkdir(parents=True)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        return self._unfinished

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it its name, or leave nothing of it."""
        try:
            if kind is None:
                if self.path.exists():
                    shutil.rmtree(self.path)
                os.replace(self._unfinished, self.path)
        finally:
            shutil.rmtree(self._unfinished, ignore_errors=True)
        if isinstance(error, OSError):
            raise cannot_write(self.path, error) from error


def export(
    path: str | Path,
    exporter: Exporter,
    out: str | Path,
    options: ExportOptions,
    *,
    names: Sequence[str] | None = None,
    force: bool = False,
    told: Callable[[], None] = lambda: None,
) -> tuple[int, int]:
    """Export a file; return the numbers of episodes and frames.

    Raises:
        BunrakuError: There is nothing to export, or the format cannot hold it.
    """
    if options.version and options.version not in exporter.versions:
        raise BunrakuError(
            f"--version {options.version} is not written; known: {', '.join(exporter.versions)}"
        )
    with EpisodeFile(path) as file:
        chosen = list(file.names() if names is None else names)
        if not chosen:
            raise BunrakuError(f"{path} has no such episode, so there is nothing to export")
        source = Source(file, chosen, options, told)
        with NewFolder(out, force=force) as folder:
            exporter.export(source, folder)
    return len(chosen), source.frames


def images_of(episode: Episode) -> dict[str, NDArray[np.uint8]]:
    """Return the images `(T + 1, height, width, 3)` by camera."""
    return {
        key.removesuffix(IMAGE_SUFFIX): array
        for key, array in episode.observations.items()
        if array.dtype == np.uint8 and array.ndim == 4 and array.shape[-1] == 3
    }


def vectors_of(episode: Episode) -> dict[str, NDArray[Any]]:
    """Return the observations that are no images, `(T + 1, n)`."""
    return {
        key: array.reshape(len(array), -1)
        for key, array in episode.observations.items()
        if array.dtype != np.uint8 or array.ndim != 4
    }


def _check_finite(episode: Episode, where: str) -> None:
    arrays = {"actions": episode.actions, "rewards": episode.rewards, **episode.observations}
    for key, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise BunrakuError(
                f"{where} has a number in {key} that is not finite; validate the file, and delete it"
            )
