"""Plays the demonstration: joint angles are written, MuJoCo computes where everything is.

    playback = Playback()
    for frame in range(len(playback)):
        playback.show(frame)     # playback.data is now that frame

This is no simulation: nothing is integrated. In each frame each joint of the arm goes towards the angle that
inverse kinematics asks for, by `figures.MAX_JOINT_STEP` at most; so show frames in their order.
"""

from __future__ import annotations

import mujoco
import numpy as np

from bunraku.control.yaw_pitch_pitch import solve
from bunraku.geometry import Array
from bunraku.screw import figures
from bunraku.screw.scene import ARM_JOINTS, LEVEL, SCREW_HEIGHT, SCREW_TURN, SPIN, scene
from bunraku.screw.timeline import timeline


class Playback:
    """The scene, and the arm on its way."""

    def __init__(self, screw_xy: tuple[float, float] = figures.SCREW_XY) -> None:
        """Solve all frames and build the scene; the arm waits at home.

        Args:
            screw_xy: Where the screw stands [m].

        Raises:
            ReachError: The arm cannot drive a screw there.
        """
        self.frames = timeline(screw_xy)
        """What each frame asks for."""
        self._wanted = solve([wanted.tip for wanted in self.frames], figures.ARM)
        self.model: mujoco.MjModel = scene(screw_xy).compile()
        self.data = mujoco.MjData(self.model)
        self._arm = [self._address(name) for name in ARM_JOINTS]
        self._level, self._spin = self._address(LEVEL), self._address(SPIN)
        self._height, self._turn = self._address(SCREW_HEIGHT), self._address(SCREW_TURN)
        self.pose(solve(figures.HOME, figures.ARM), 0.0)

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.frames)

    @property
    def arm(self) -> Array:
        """Angles `(3,)` of yaw, shoulder, elbow [rad]; a copy."""
        return self.data.qpos[self._arm].copy()

    def show(self, frame: int) -> None:
        """Bring `data` from the frame before to this one."""
        way = np.clip(self._wanted[frame] - self.arm, -figures.MAX_JOINT_STEP, figures.MAX_JOINT_STEP)
        self.pose(self.arm + way, self.frames[frame].turn)

    def pose(self, arm: Array, turn: float) -> None:
        """Write all joints and let MuJoCo compute the rest.

        Args:
            arm: Yaw, shoulder and elbow `(3,)` [rad].
            turn: Angle of the screw, and of the bit in the world [rad].
        """
        qpos = self.data.qpos
        yaw, shoulder, elbow = arm
        qpos[self._arm] = arm
        qpos[self._level] = -(shoulder + elbow)
        qpos[self._spin] = turn - yaw
        qpos[self._height] = figures.screw_height(turn)
        qpos[self._turn] = turn
        mujoco.mj_forward(self.model, self.data)

    def _address(self, joint: str) -> int:
        return int(self.model.joint(joint).qposadr[0])
