"""LeRobot datasets, v3.0 and v2.1, written with pyarrow and PyAV alone.

Row t has the observation before action t; the first row is that of the reset. Timestamps are k / fps, images
are videos with one frame per row, statistics are computed here in float64 over all rows.
"""

from __future__ import annotations

from pathlib import Path

from bunraku.dataset.exchange import Source
from bunraku.errors import MissingDependencyError


class LeRobot:
    """The exporter."""

    extra = "export"
    versions = ("3.0", "2.1")

    def export(self, source: Source, out: Path) -> None:
        """Write `meta`, `data` and `videos`."""
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise MissingDependencyError("pyarrow", "the export to LeRobot", self.extra) from error
        if source.options.version == "2.1":
            from bunraku.teleop_collect.exporters._lerobot_v21 import write

            write(source, out)
        else:
            from bunraku.teleop_collect.exporters._lerobot_v30 import write as write_newest

            write_newest(source, out)


EXPORTER = LeRobot()
