"""CSV for robots: one line per frame, root position, root quaternion x, y, z, w, joint angles.

This is the layout of the retargeted LAFAN1 files for Unitree robots, which BeyondMimic's converter reads. The first
line, a comment, names the columns and the frame rate.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from bunraku.geometry import to_xyzw
from bunraku.motion import RobotMotion

ROOT = ("root_x", "root_y", "root_z", "root_qx", "root_qy", "root_qz", "root_qw")
"""Names of the first columns [m]."""


class CsvExporter:
    """Writes CSV."""

    suffix = ".csv"
    description = "root x y z, quaternion x y z w, joint angles; one line per frame"

    def write(self, motion: RobotMotion, model: mujoco.MjModel, path: Path) -> None:
        """Write one line per frame."""
        rows = np.concatenate([motion.root_pos, to_xyzw(motion.root_quat), motion.dof], axis=1)
        names = ",".join((*ROOT, *motion.joint_names))
        header = f"{names}\nfps={motion.fps:g} robot={motion.robot} source={' '.join(motion.source.split())}"
        np.savetxt(path, rows, delimiter=",", fmt="%.9g", header=header, comments="# ", encoding="utf-8")


EXPORTER = CsvExporter()
