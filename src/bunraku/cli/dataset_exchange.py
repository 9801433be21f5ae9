"""`bunraku dataset export` and `import`: into and out of other projects' formats."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from bunraku.cli.main import EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.errors import BunrakuError


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write the demonstrations in another project's format: robomimic, lerobot, minari, zarr."""

    file: Annotated[Path, tyro.conf.Positional]
    """The demonstration file."""
    to: str
    """The format."""
    out: Path
    """The new folder."""
    mask: str | None = None
    """Only the episodes of this filter list, such as success."""
    camera: tuple[str, ...] = ()
    """Cameras to render from the stored states, beside those whose images were recorded."""
    size: str = "256x256"
    """Size of rendered images, width x height."""
    task: str = ""
    """What is done, in words; by default the environment's id."""
    lossless: bool = False
    """Keep every bit of the images in videos."""
    version: str = ""
    """Version of the format, by default the newest (lerobot: 3.0 or 2.1)."""
    author: str = ""
    """Author to name, where the format has a place for it."""
    force: bool = False
    """Replace an existing folder."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Export."""
        from bunraku.cli.collect import parse_size
        from bunraku.dataset.exchange import ExportOptions, export
        from bunraku.episode.reader import EpisodeFile
        from bunraku.plugins import EXPORTERS, load

        exporter = load(EXPORTERS, self.to)
        with EpisodeFile(self.file) as file:
            names = file.names(self.mask)
        if not names:
            raise BunrakuError(
                f"{self.file} has no episode{f' in {self.mask}' if self.mask else ''} to export"
            )
        options = ExportOptions(
            cameras=self.camera,
            size=parse_size(self.size),
            task=self.task,
            lossless=self.lossless,
            version=self.version,
            fields={"author": self.author} if self.author else {},
        )
        with Progress(f"exporting to {self.to}", len(names), "episodes") as progress:
            episodes, frames = export(
                self.file, exporter, self.out, options, names=names, force=self.force, told=progress.advance
            )
        say(f"{self.out}: {episodes} episodes, {frames} frames for {self.to}")
        if self.json:
            report = {"format": self.to, "path": str(self.out), "episodes": episodes, "frames": frames}
            sys.stdout.write(json.dumps(report) + "\n")
        return EXIT_OK


@dataclass(frozen=True, kw_only=True)
class Import:
    """Read another project's dataset into a file of ours: robomimic, lerobot, minari."""

    source: Annotated[Path, tyro.conf.Positional]
    """The folder, or a zip or tar archive of it."""
    from_: Annotated[str, tyro.conf.arg(name="from")]
    """The format."""
    out: Path
    """The new file."""
    env: str = ""
    """Id of the environment, where the dataset names another or none."""
    hz: float | None = None
    """Rows per second, where the dataset does not say."""
    force: bool = False
    """Replace an existing file."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Import."""
        from bunraku.dataset.importing import import_from
        from bunraku.plugins import IMPORTERS, load

        importer = load(IMPORTERS, self.from_)
        if self.hz is not None and self.hz <= 0.0:
            raise BunrakuError(f"--hz must be over 0, got {self.hz:g}")
        with Progress(f"importing from {self.from_}", 0, "episodes") as progress:
            report = import_from(
                self.source,
                self.from_,
                importer,
                self.out,
                env_id=self.env,
                hz=self.hz,
                force=self.force,
                told=progress.advance_of,
            )
        say(f"{self.out}: {report.episodes} episodes, {report.frames} frames from {self.from_}")
        say(f"not in {self.from_}: {'; '.join(report.missing)}")
        for note in report.notes:
            say(note)
        if self.json:
            sys.stdout.write(
                json.dumps({"format": self.from_, "path": str(self.out), **asdict(report)}) + "\n"
            )
        return EXIT_OK
