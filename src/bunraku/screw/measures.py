"""What is checked about the demonstration: every figure is read from places that MuJoCo computed.

The arm's own forward formula, with which its inverse agrees by construction, is not used here.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from bunraku.control.yaw_pitch_pitch import reachable, solve
from bunraku.geometry import Array
from bunraku.screw import figures
from bunraku.screw.playback import Playback
from bunraku.screw.scene import BLADES, LINKS, RECESS, SCREW, TIP

IK_TARGETS = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """What one frame shows."""

    gap: float
    """The bit's lowest point above the screw's top [m]; negative where it is inside."""
    turn: float
    """How far the screw has turned since the first frame [rad]."""
    depth: float
    """How far its middle has gone down since the first frame [m]."""
    top: float
    """Height of its top [m]."""
    bit_lag: float
    """Angle from the bit to the screw's recess [rad], of the quarter turns the nearest."""
    margin: float
    """Smallest distance of the arm's joints to their limits [rad]."""
    step: float
    """Largest way of a joint of the arm since the frame before [rad]."""
    lowest_link: float
    """Lowest point of the arm's two links [m]."""
    tilt: float
    """Angle of the driver to the vertical [rad]."""


class Observer:
    """Reads one row from each frame of a playback, in their order."""

    def __init__(self, playback: Playback) -> None:
        """Remember where the screw stands before the first frame."""
        self._playback = playback
        self._start_height = self._screw_height()
        self._angle, self._turn = self._recess_angle(), 0.0
        self._arm = playback.arm
        self.rows: list[Row] = []

    def look(self) -> Row:
        """Add the row of what the playback shows now, and return it."""
        data, model = self._playback.data, self._playback.model
        height, angle, arm = self._screw_height(), self._recess_angle(), self._playback.arm
        # the screw turns by less than half a turn from frame to frame
        self._turn += _wrap(angle - self._angle, np.pi)
        top = height + float(model.geom(SCREW).size[1])
        blade = data.geom(BLADES[0])
        low, high = figures.ARM.ranges.T
        row = Row(
            gap=min(lowest_point(model, data, name) for name in BLADES) - top,
            turn=self._turn,
            depth=self._start_height - height,
            top=top,
            bit_lag=_wrap(angle - _heading(blade.xmat), np.pi / 4.0),
            margin=float(np.minimum(arm - low, high - arm).min()),
            step=float(np.abs(arm - self._arm).max()),
            lowest_link=min(lowest_point(model, data, name) for name in LINKS),
            tilt=float(np.arctan2(np.hypot(blade.xmat[2], blade.xmat[5]), blade.xmat[8])),
        )
        self._angle, self._arm = angle, arm
        self.rows.append(row)
        return row

    def _screw_height(self) -> float:
        return float(self._playback.data.geom(SCREW).xpos[2])

    def _recess_angle(self) -> float:
        return _heading(self._playback.data.geom(RECESS[0]).xmat)


def lowest_point(model: mujoco.MjModel, data: mujoco.MjData, geom: str) -> float:
    """Return the height [m] of the lowest point of a box or a capsule, by its place in the world and its size."""
    where, size = data.geom(geom), model.geom(geom).size
    down = np.abs(where.xmat.reshape(3, 3)[2])
    kind = int(model.geom(geom).type[0])
    if kind == int(mujoco.mjtGeom.mjGEOM_BOX):
        return float(where.xpos[2] - down @ size)
    if kind == int(mujoco.mjtGeom.mjGEOM_CAPSULE):
        return float(where.xpos[2] - down[2] * size[1] - size[0])
    raise ValueError(f"the lowest point of {geom!r} is not known: it is neither a box nor a capsule")


def targets(count: int, seed: int = 0) -> Array:
    """Return tip positions `(count, 3)` [m], drawn evenly from what the arm reaches above the table."""
    rng = np.random.default_rng(seed)
    arm = figures.ARM
    far = arm.upper + arm.fore
    found = np.empty((0, 3))
    while len(found) < count:
        drawn = rng.uniform([-far, -far, 0.0], [far, far, arm.shoulder_height + far], (4 * count, 3))
        found = np.concatenate([found, drawn[reachable(drawn, arm)]])
    return found[:count]


def ik_errors(playback: Playback, world_tips: Array) -> Array:
    """Return how far MuJoCo puts the tip from each target `(n, 3)` that inverse kinematics solved `(n,)` [m].

    The playback is left in the last of these poses.
    """
    errors = []
    for world_tip, q in zip(world_tips, solve(world_tips, figures.ARM), strict=True):
        playback.pose(q, 0.0)
        errors.append(float(np.linalg.norm(playback.data.geom(TIP).xpos - world_tip)))
    return np.array(errors)


def elbow_height(playback: Playback, *, mirror: bool) -> float:
    """Return the elbow's height [m] with the bit on the screw before it turns, in one of the two solutions.

    The playback is left in that pose.
    """
    playback.pose(solve(playback.frames[figures.PRESS_END].tip, figures.ARM, mirror=mirror), 0.0)
    return float(playback.data.body("fore").xpos[2])


def _heading(xmat: Array) -> float:
    return float(np.arctan2(xmat[3], xmat[0]))


def _wrap(angle: float, half: float) -> float:
    """Return the angle in [-half, half) that differs by a multiple of `2 half` [rad]."""
    return float((angle + half) % (2.0 * half) - half)
