"""The reference as a ghost: a translucent copy of the robot, added to a picture and nowhere else."""

from __future__ import annotations

from typing import Any

import mujoco

from bunraku.geometry import Array

COLOUR = (0.25, 0.75, 1.0, 0.35)


class Ghost:
    """Draws a robot at given joint positions."""

    def __init__(self, model: mujoco.MjModel) -> None:
        """Prepare for a model; the ghost has the shapes that move in it.

        Args:
            model: The model whose robot is drawn.
        """
        self._model, self._data = model, mujoco.MjData(model)
        self._option, self._perturb = mujoco.MjvOption(), mujoco.MjvPerturb()

    def draw(self, scene: Any, qpos: Array) -> None:
        """Add the robot at `qpos` `(nq,)` to an `MjvScene`."""
        self._data.qpos[:] = qpos
        mujoco.mj_kinematics(self._model, self._data)
        before = scene.ngeom
        moving = int(mujoco.mjtCatBit.mjCAT_DYNAMIC)
        mujoco.mjv_addGeoms(self._model, self._data, self._option, self._perturb, moving, scene)
        for geom in scene.geoms[before : scene.ngeom]:
            geom.matid = -1
            geom.rgba[:] = COLOUR
            geom.transparent = 1
