"""Writing robot motion for others: `export_motion(motion, model, "beyondmimic", "walk.npz")`."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import mujoco

from bunraku import plugins
from bunraku.errors import BunrakuError
from bunraku.motion import RobotMotion


class MotionExporter(Protocol):
    """A format. One file in `bunraku.retarget.exporters` binds `EXPORTER` to one of these."""

    suffix: str
    """How its files' names end."""
    description: str
    """What reads it."""

    def write(self, motion: RobotMotion, model: mujoco.MjModel, path: Path) -> None:
        """Write the motion to a new file.

        Args:
            motion: What to write.
            model: The robot, with a free root if the motion has one.
            path: Where to.
        """
        ...


def export_motion(
    motion: RobotMotion, model: mujoco.MjModel, to: str, path: str | Path, *, force: bool = False
) -> Path:
    """Write a motion in one of the formats.

    Args:
        motion: What to write.
        model: The robot, with a free root if the motion has one.
        to: Name of the format.
        path: The file; its name ends as the format's files do.
        force: Replace an existing file.

    Raises:
        UnknownNameError: If there is no such format.
        BunrakuError: If the file exists, or cannot be written.
    """
    exporter: MotionExporter = plugins.load(plugins.MOTION_EXPORTERS, to)
    path = Path(path)
    if path.suffix != exporter.suffix:
        raise BunrakuError(f"files of the format {to!r} end in {exporter.suffix}, got {path}")
    if path.exists() and not force:
        raise BunrakuError(f"{path} exists; give another name, or --force to replace it")
    return _whole(path, lambda unfinished: exporter.write(motion, model, unfinished))


def _whole(path: Path, write: Callable[[Path], None]) -> Path:
    """Write all or nothing: the file has its name only once it is complete."""
    unfinished = path.with_name(f".{path.stem}.{os.getpid()}.unfinished{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(unfinished)
        os.replace(unfinished, path)
    except OSError as error:
        raise BunrakuError(f"cannot write {path}: {error.strerror or error}; give another place") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return path
