"""Where a motion collides with itself, checked by MuJoCo.

    collides = SelfCollision(ROBOT.load(root="fixed").compile())
    collides(dof)                     # (T,) bool
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.errors import UnknownNameError

Array = NDArray[np.float64]


class SelfCollision:
    """Checks joint angles for contacts between the robot's own bodies; the geometry is that of its model."""

    def __init__(
        self, model: mujoco.MjModel, joints: Sequence[str] | None = None, clearance: float = 0.0
    ) -> None:
        """Prepare a copy of the model.

        Args:
            model: The robot.
            joints: Order of the angles; that of the model's hinges by default.
            clearance: Bodies nearer than this collide [m]; negative allows that depth.
        """
        self._model = copy.copy(model)
        # contacts are found from this distance on
        self._model.geom_margin[:] = max(clearance, 0.0)
        self._model.geom_gap[:] = 0.0
        floor = self._model.geom_bodyid == 0
        self._model.geom_contype[floor] = self._model.geom_conaffinity[floor] = 0
        self._data = mujoco.MjData(self._model)
        hinge = int(mujoco.mjtJoint.mjJNT_HINGE)
        names = {
            self._model.joint(i).name: int(self._model.jnt_qposadr[i])
            for i in range(self._model.njnt)
            if int(self._model.jnt_type[i]) == hinge
        }
        for name in joints or ():
            if name not in names:
                raise UnknownNameError("joint of the model", name, names)
        columns = np.array([names[name] for name in joints or names])
        contiguous = len(columns) > 0 and (np.diff(columns) == 1).all()
        self._columns = slice(columns[0], columns[-1] + 1) if contiguous else columns
        self._clearance = clearance

    def __call__(self, dof: ArrayLike) -> NDArray[np.bool_]:
        """Return whether each frame `(T, n)` [rad] collides, `(T,)`."""
        dof = np.asarray(dof, dtype=np.float64)
        model, data = self._model, self._data
        qpos, columns = data.qpos, self._columns
        hit = np.zeros(len(dof), dtype=bool)
        for t, pose in enumerate(dof):
            qpos[columns] = pose
            mujoco.mj_kinematics(model, data)
            mujoco.mj_collision(model, data)
            if data.ncon:
                hit[t] = data.contact.dist.min() < self._clearance
        return hit
