"""Motion `.npz` of BeyondMimic and mjlab: joints and bodies at 50 fps.

Their readers take `fps`, `joint_pos`, `joint_vel`, `body_pos_w`, `body_quat_w` (w, x, y, z), `body_lin_vel_w` and
`body_ang_vel_w`, and match joints and bodies by position: those of the MuJoCo model, depth first. `joint_names`,
`body_names`, `robot`, `source` and `licence` are added, so that a reader can match by name instead.
"""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from bunraku.motion import RobotMotion
from bunraku.motion_bodies import rates, with_bodies
from bunraku.retarget.tools.edit import resample_robot

FPS = 50.0
"""Control rate of both, and so their motions' frame rate."""


class BeyondMimicExporter:
    """Writes BeyondMimic's motion files."""

    suffix = ".npz"
    description = "BeyondMimic and mjlab motion tracking, 50 fps"

    def write(self, motion: RobotMotion, model: mujoco.MjModel, path: Path) -> None:
        """Write the motion at 50 fps, velocities and bodies from these very frames."""
        motion = with_bodies(resample_robot(motion, FPS), model)
        assert motion.body_pos is not None  # just computed
        assert motion.body_quat is not None
        assert motion.body_lin_vel is not None
        assert motion.body_ang_vel is not None
        np.savez(
            path,
            fps=np.array([motion.fps]),
            joint_pos=motion.dof.astype(np.float32),
            joint_vel=rates(motion.dof, motion.fps).astype(np.float32),
            body_pos_w=motion.body_pos.astype(np.float32),
            body_quat_w=motion.body_quat.astype(np.float32),
            body_lin_vel_w=motion.body_lin_vel.astype(np.float32),
            body_ang_vel_w=motion.body_ang_vel.astype(np.float32),
            joint_names=np.array(motion.joint_names),
            body_names=np.array(motion.body_names),
            robot=motion.robot,
            source=motion.source,
            licence=motion.licence,
        )


EXPORTER = BeyondMimicExporter()
