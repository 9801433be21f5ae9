"""`bunraku dataset merge`, `split`, `filter`, `trim`, `resample`, `relabel` and `delete`: each writes a new file."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from bunraku.cli.main import EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.errors import BunrakuError

Positional = tyro.conf.Positional


@dataclass(frozen=True, kw_only=True)
class _Output:
    out: Path
    """The new file."""
    force: bool = False
    """Replace an existing --out."""
    json: bool = False
    """Print one JSON object on stdout."""

    def _done(self, sentence: str, **more: Any) -> int:
        from bunraku.dataset.summary import summarise

        summary = summarise(self.out)
        say(f"{self.out}: {sentence}")
        if self.json:
            result = {"path": str(self.out), "episodes": summary.episodes, "steps": summary.steps, **more}
            sys.stdout.write(json.dumps(result) + "\n")
        return EXIT_OK


@dataclass(frozen=True, kw_only=True)
class Merge(_Output):
    """Put the episodes of several files of the same environment into one."""

    files: Annotated[tuple[Path, ...], Positional]
    """The demonstration files."""

    def run(self) -> int:
        """Merge."""
        from bunraku.dataset.edit import merge

        if len(self.files) < 2:
            raise BunrakuError(f"merge needs two files or more, got {len(self.files)}")
        total = sum(_count(file) for file in self.files)
        with Progress("merging", total, "episodes") as progress:
            count = merge(self.files, self.out, force=self.force, told=progress.advance)
        return self._done(f"{count} episodes of {len(self.files)} files")


@dataclass(frozen=True, kw_only=True)
class Split(_Output):
    """Divide the episodes at random, as filter lists `train` and `valid`, or into two files."""

    file: Annotated[Path, Positional]
    """The demonstration file."""
    ratio: float = 0.9
    """Share of the first part."""
    by: Literal["episode", "operator"] = "episode"
    """Whether the episodes or the operators are divided."""
    seed: int = 0
    """Seed of the draw."""
    valid_out: Path | None = None
    """Write the second part to this file, and only the first to --out."""

    def run(self) -> int:
        """Split."""
        from bunraku.dataset.edit import parts, select, split
        from bunraku.dataset.newfile import refuse_existing

        train, valid = parts(self.file, self.ratio, self.by, self.seed)
        more = {"train": len(train), "valid": len(valid)}
        with Progress("splitting", len(train) + len(valid), "episodes") as progress:
            if self.valid_out is None:
                split(self.file, train, valid, self.out, force=self.force, told=progress.advance)
                return self._done(f"{len(train)} episodes in the list train, {len(valid)} in valid", **more)
            if self.valid_out.absolute() == self.out.absolute():
                raise BunrakuError(f"--out and --valid-out are both {self.out}; give two names")
            refuse_existing(self.valid_out, [self.file], force=self.force)
            select(self.file, train, self.out, force=self.force, told=progress.advance)
            select(self.file, valid, self.valid_out, force=self.force, told=progress.advance)
        return self._done(
            f"{len(train)} episodes; {self.valid_out}: {len(valid)}", valid_path=str(self.valid_out), **more
        )


@dataclass(frozen=True, kw_only=True)
class Filter(_Output):
    """Keep the episodes for which a condition holds."""

    file: Annotated[Path, Positional]
    """The demonstration file."""
    where: str
    """The condition, such as 'success and jerk < 40'."""

    def run(self) -> int:
        """Filter."""
        from bunraku.dataset.edit import matching, select

        names = matching(self.file, self.where)
        with Progress("filtering", len(names), "episodes") as progress:
            select(self.file, names, self.out, force=self.force, told=progress.advance)
        return self._done(f"{len(names)} of {_count(self.file)} episodes")


@dataclass(frozen=True, kw_only=True)
class Trim(_Output):
    """Cut idle rows off the beginnings and ends of episodes."""

    file: Annotated[Path, Positional]
    """The demonstration file."""
    idle: bool = True
    """Rows in which no actuator's input changes are cut off."""
    keep: int = 0
    """Idle rows to leave at either end."""

    def run(self) -> int:
        """Trim."""
        from bunraku.dataset.edit import trim

        if not self.idle or self.keep < 0:
            raise BunrakuError("trim cuts idle rows: --idle is on, and --keep is 0 or more")
        with Progress("trimming", _count(self.file), "episodes") as progress:
            removed, idle = trim(self.file, self.out, keep=self.keep, force=self.force, told=progress.advance)
        if idle:
            say(f"idle throughout, left as they are: {', '.join(idle)}")
        return self._done(f"{removed} idle rows cut off", removed_rows=removed, idle_episodes=idle)


@dataclass(frozen=True, kw_only=True)
class Resample(_Output):
    """Write fewer rows per second."""

    file: Annotated[Path, Positional]
    """The demonstration file."""
    hz: float
    """The new rate: the old one divided by a whole number."""
    actions: str | None = None
    """What actions become: mean (speeds) or last (positions), one word per component if they differ; known by
    itself for environments of bunraku."""

    def run(self) -> int:
        """Resample."""
        from bunraku.dataset.edit import resample

        with Progress("resampling", _count(self.file), "episodes") as progress:
            every, left = resample(
                self.file, self.hz, self.out, actions=self.actions, force=self.force, told=progress.advance
            )
        say("another control rate does not replay bit for bit: verify will say so")
        return self._done(f"one row for every {every}; {left} rows left over at ends", left_over_rows=left)


@dataclass(frozen=True, kw_only=True)
class Relabel(_Output):
    """Give episodes another label."""

    file: Annotated[Path, Positional]
    """The demonstration file."""
    episodes: Annotated[tuple[str, ...], Positional]
    """Names of the episodes."""
    label: str
    """success, failure, timeout or unlabelled."""

    def run(self) -> int:
        """Relabel."""
        from bunraku.dataset.edit import relabel

        with Progress("copying", _count(self.file), "episodes") as progress:
            count = relabel(
                self.file, self.episodes, self.label, self.out, force=self.force, told=progress.advance
            )
        return self._done(f"{count} episodes have the label {self.label}", relabelled=count)


@dataclass(frozen=True, kw_only=True)
class Delete(_Output):
    """Leave episodes out."""

    file: Annotated[Path, Positional]
    """The demonstration file."""
    episodes: Annotated[tuple[str, ...], Positional]
    """Names of the episodes to leave out."""

    def run(self) -> int:
        """Copy the others."""
        from bunraku.dataset.edit import select, without

        names = without(self.file, self.episodes)
        with Progress("copying", len(names), "episodes") as progress:
            select(self.file, names, self.out, force=self.force, told=progress.advance)
        return self._done(f"{len(self.episodes)} episodes left out, {len(names)} kept")


def _count(path: Path) -> int:
    from bunraku.episode.reader import EpisodeFile

    with EpisodeFile(path) as file:
        return len(file)
