"""`bunraku dataset info`, `validate` and `report`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from bunraku.cli.main import EXIT_CHECK_FAILED, EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.errors import BunrakuError


@dataclass(frozen=True)
class Info:
    """Say what a file holds."""

    file: Annotated[Path, tyro.conf.Positional]
    """The demonstration file."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Print the summary."""
        from bunraku.dataset.summary import summarise

        summary = summarise(self.file)
        if self.json:
            sys.stdout.write(json.dumps(asdict(summary)) + "\n")
            return EXIT_OK

        def counts(of: dict[str, int]) -> str:
            return ", ".join(f"{key or '(none)'}: {count}" for key, count in of.items()) or "none"

        seconds = "unknown" if summary.seconds is None else f"{summary.seconds:.1f} s"
        kind = "plain robomimic" if summary.bunraku_format is None else f"bunraku {summary.bunraku_format}"
        lengths = f"{summary.steps} steps ({summary.shortest} to {summary.longest})"
        lines = {
            "file": f"{summary.path} ({summary.size_bytes / 1e6:.2f} MB, {kind})",
            "environment": f"{summary.env_id} {json.dumps(summary.env_kwargs)}",
            "episodes": f"{summary.episodes}, {lengths}, {seconds}",
            "rate": "unknown" if summary.control_freq is None else f"{summary.control_freq:g} Hz",
            "labels": counts(summary.labels),
            "devices": counts(summary.devices),
            "operators": counts(summary.operators),
            "cameras": ", ".join(summary.cameras) or "none",
            "filter lists": counts(summary.masks),
            "row shapes": ", ".join(f"{key} {shape}" for key, shape in summary.shapes.items()),
            "versions": ", ".join(f"{key} {value}" for key, value in summary.versions.items()) or "unknown",
        }
        for key, value in lines.items():
            sys.stdout.write(f"{key + ':':14s}{value}\n")
        return EXIT_OK


@dataclass(frozen=True)
class Validate:
    """Check a file; exit code 1 if something is wrong with it. With --repair, write a mended copy."""

    file: Annotated[Path, tyro.conf.Positional]
    """The demonstration file."""
    repair: bool = False
    """Write a mended copy to --out."""
    out: Path | None = None
    """The mended copy."""
    force: bool = False
    """Replace an existing --out."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Print the findings, and mend."""
        from bunraku.dataset.validate import repair, validate
        from bunraku.episode.reader import EpisodeFile

        if self.repair != (self.out is not None):
            raise BunrakuError("--repair and --out belong together: the mended copy is a new file")
        with EpisodeFile(self.file) as file:
            count = len(file)
        with Progress("checking", count, "episodes") as progress:
            found = validate(self.file, progress.advance)
        errors = sum(finding.severity == "error" for finding in found)
        for finding in found:
            say(finding.line)
        say(f"{self.file}: {count} episodes, {errors} errors, {len(found) - errors} warnings")
        report = {
            "path": str(self.file),
            "episodes": count,
            "ok": not errors,
            "errors": errors,
            "warnings": len(found) - errors,
            "findings": [asdict(finding) for finding in found],
        }
        if self.out is not None:
            with Progress("mending", count, "episodes") as progress:
                kept, left_out = repair(self.file, self.out, force=self.force, told=progress.advance)
            say(f"{self.out}: {kept} episodes" + (f"; left out: {', '.join(left_out)}" if left_out else ""))
            report |= {"repaired": str(self.out), "kept": kept, "left_out": left_out}
        if self.json:
            sys.stdout.write(json.dumps(report) + "\n")
        return EXIT_OK if self.out is not None or not errors else EXIT_CHECK_FAILED


@dataclass(frozen=True, kw_only=True)
class Report:
    """Write a page that shows what a file holds: pictures, plots, measures, outliers."""

    file: Annotated[Path, tyro.conf.Positional]
    """The demonstration file."""
    out: Path
    """The new folder."""
    camera: tuple[str, ...] = ()
    """Cameras to render where no images were recorded; the model's first by default."""
    limit: int = 100
    """Episodes with a section of their own."""
    force: bool = False
    """Replace an existing folder."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Write the page."""
        from bunraku.dataset.report import write_report
        from bunraku.episode.reader import EpisodeFile

        with EpisodeFile(self.file) as file:
            count = min(len(file), self.limit)
        with Progress("reporting", count, "episodes") as progress:
            written = write_report(
                self.file,
                self.out,
                cameras=self.camera,
                limit=self.limit,
                force=self.force,
                told=progress.advance,
            )
        say(
            f"{written.path}: {written.shown} of {written.episodes} episodes, {len(written.outliers)} stand out"
        )
        if written.note:
            say(f"no pictures: {written.note}")
        if self.json:
            sys.stdout.write(json.dumps(asdict(written)) + "\n")
        return EXIT_OK
