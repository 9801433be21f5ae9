"""bunraku's own `.npz`: `qpos`, `dof`, root, bodies, names, source and licence (see `bunraku.motion.RobotMotion`)."""

from __future__ import annotations

from pathlib import Path

import mujoco

from bunraku.motion import RobotMotion
from bunraku.motion_bodies import with_bodies


class NpzExporter:
    """Writes our own files."""

    suffix = ".npz"
    description = "bunraku's motion file"

    def write(self, motion: RobotMotion, model: mujoco.MjModel, path: Path) -> None:
        """Write the motion with the poses and velocities of all bodies."""
        with_bodies(motion, model).save(path, force=True)


EXPORTER = NpzExporter()
