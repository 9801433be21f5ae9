"""A CSV per episode: the target and the joint solution of every frame, for debugging with any spreadsheet."""

from __future__ import annotations

import csv
from pathlib import Path

from bunraku.episode.episode import Episode
from bunraku.errors import BunrakuError
from bunraku.teleop_collect.recorder import csv_rows


class TraceWriter:
    """Writes one file per episode into a folder."""

    def __init__(self, folder: Path, force: bool) -> None:
        """Make the folder.

        Raises:
            BunrakuError: If it cannot be made, or already holds traces and `force` is not set.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BunrakuError(f"cannot make the folder {folder} for traces: {error.strerror}") from error
        if not force and any(folder.glob("episode_*.csv")):
            raise BunrakuError(
                f"{folder} already holds traces; give another folder, or --force to replace them"
            )
        self._folder, self._count = folder, 0

    def __call__(self, episode: Episode) -> None:
        """Write the trace of an episode."""
        header, rows = csv_rows(episode)
        path = self._folder / f"episode_{self._count:04d}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(header)
            writer.writerows(rows)
        self._count += 1
