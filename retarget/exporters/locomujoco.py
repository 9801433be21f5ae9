"""Trajectory `.npz` of LocoMuJoCo 1.0: states, bodies and sites of the MuJoCo model, with the model's own structure.

Its reader refuses keys that it does not know, so source and licence have no place in it, and its `metadata` would
need pickling: the file holds plain arrays only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from bunraku.motion import RobotMotion
from bunraku.motion_bodies import model_qpos

_STREAMS = ("xpos", "xquat", "cvel", "subtree_com", "site_xpos", "site_xmat")


class LocoMujocoExporter:
    """Writes LocoMuJoCo trajectories."""

    suffix = ".npz"
    description = "LocoMuJoCo 1.0 trajectory"

    def write(self, motion: RobotMotion, model: mujoco.MjModel, path: Path) -> None:
        """Write the motion as one trajectory."""
        qpos = model_qpos(motion, model)
        qvel = velocities(model, qpos, motion.fps)
        data = mujoco.MjData(model)
        streams: dict[str, list[Any]] = {
            n: [] for n in ("xpos", "xquat", "cvel", "subtree_com", "site_xpos", "site_xmat")
        }
        for q, v in zip(qpos, qvel, strict=True):
            data.qpos[:], data.qvel[:] = q, v
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_comVel(model, data)
            for name, rows in streams.items():
                rows.append(getattr(data, name).copy())
        names = {
            "joint_names": [model.joint(i).name for i in range(model.njnt)],
            "body_names": [model.body(i).name for i in range(model.nbody)],
            "site_names": [model.site(i).name for i in range(model.nsite)],
        }
        structure = (
            "jnt_type",
            "body_rootid",
            "body_weldid",
            "body_mocapid",
            "body_pos",
            "body_quat",
            "body_ipos",
        )
        structure += ("body_iquat", "site_bodyid", "site_pos", "site_quat")
        np.savez(
            path,
            allow_pickle=False,
            **{name: np.array(values, dtype=str) for name, values in names.items()},
            frequency=np.array(motion.fps),
            **{name: np.array(getattr(model, name)) for name in structure},
            **{name: np.array(getattr(model, name)) for name in ("njnt", "nbody", "nsite")},
            qpos=qpos,
            qvel=qvel,
            **{name: np.array(rows) for name, rows in streams.items()},
            split_points=np.array([0, len(qpos)]),
        )


def velocities(model: mujoco.MjModel, qpos: np.ndarray, fps: float) -> np.ndarray:
    """Return MuJoCo's generalised velocities `(T, nv)` of positions `(T, nq)`: central differences, one-sided at ends.

    The rotation of a free joint is MuJoCo's, in the body's own frame.
    """
    qvel = np.zeros((len(qpos), model.nv))
    for t in range(len(qpos)):
        before, after = max(t - 1, 0), min(t + 1, len(qpos) - 1)
        if after > before:
            mujoco.mj_differentiatePos(model, qvel[t], (after - before) / fps, qpos[before], qpos[after])
    return qvel


EXPORTER = LocoMujocoExporter()
