"""Marks over the scene, as MuJoCo's decorative geoms: target ghost, goal, workspace box, unreachable mark.

The marks are a list of `Mark`s, which both viewers turn into MuJoCo's own structures with `Mark.fill`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from bunraku.geometry import Array, Pose, rotate, to_matrix
from bunraku.teleop_collect.viewer.status import ArmOverlay, Overlay

Rgba = tuple[float, float, float, float]

DRIVING: Rgba = (0.10, 0.65, 0.95, 0.45)
IDLE: Rgba = (0.60, 0.62, 0.66, 0.30)
PRECISION: Rgba = (0.65, 0.45, 0.95, 0.45)
UNREACHABLE: Rgba = (0.95, 0.12, 0.10, 0.60)
GOAL: Rgba = (0.15, 0.80, 0.30, 0.45)
BOX: Rgba = (0.55, 0.60, 0.70, 0.35)
AXES: tuple[Rgba, Rgba, Rgba] = ((0.90, 0.20, 0.20, 0.9), (0.25, 0.75, 0.25, 0.9), (0.25, 0.45, 0.95, 0.9))

_PALM_SIZE = (0.020, 0.050, 0.012)
_FINGER_SIZE = (0.008, 0.006, 0.022)
_FINGER_OPENING = 0.040
_CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_EDGES = [(a, b) for a in range(8) for b in range(a + 1, 8) if np.abs(_CORNERS[a] - _CORNERS[b]).sum() == 2.0]


@dataclass(frozen=True, slots=True)
class Mark:
    """One decorative geom."""

    kind: mujoco.mjtGeom
    size: Sequence[float]
    """Half sizes or radii, three numbers as MuJoCo has them for the kind [m]."""
    pose: Pose
    color: Rgba
    ends: tuple[Array, Array] | None = None
    """Both ends of a line, which then decide its pose and length."""

    def fill(self, geom: mujoco.MjvGeom) -> mujoco.MjvGeom:
        """Write this mark into one of MuJoCo's structures, and return that."""
        mujoco.mjv_initGeom(
            geom,
            int(self.kind),
            np.array(self.size, dtype=np.float64),
            np.asarray(self.pose.pos, dtype=np.float64),
            to_matrix(self.pose.quat).ravel(),
            np.array(self.color, dtype=np.float32),
        )
        geom.category = int(mujoco.mjtCatBit.mjCAT_DECOR)
        if self.ends is not None:
            mujoco.mjv_connector(geom, int(self.kind), self.size[0], *self.ends)
        return geom


def aim(camera: mujoco.MjvCamera, azimuth: float) -> None:
    """Set the first view: a table-top arm, right of the panel that covers the left of the picture.

    Args:
        camera: The camera to set.
        azimuth: Direction of the view about the vertical [deg]; 0 looks along +x.
    """
    left = np.array([-np.sin(np.radians(azimuth)), np.cos(np.radians(azimuth)), 0.0])
    camera.type = int(mujoco.mjtCamera.mjCAMERA_FREE)
    camera.lookat[:] = np.array([0.4, 0.0, 0.3]) + 0.15 * left
    camera.distance, camera.azimuth, camera.elevation = 1.8, azimuth, -25.0


def marks(overlay: Overlay) -> list[Mark]:
    """Return what draws an overlay."""
    out: list[Mark] = []
    for arm in overlay.arms.values():
        out.extend(_arm(arm))
    if overlay.workspace_center is not None and overlay.workspace_half_size is not None:
        out.extend(_box(overlay.workspace_center, overlay.workspace_half_size))
    return out


def _arm(arm: ArmOverlay) -> list[Mark]:
    color = _ghost_color(arm)
    out = _gripper(arm.target, color)
    out.extend(_axes(arm.target, 0.06))
    if np.linalg.norm(arm.target.pos - arm.tool.pos) > 0.005:
        out.append(_line(arm.tool.pos, arm.target.pos, 0.002, color))
    if arm.goal is not None:
        out.append(Mark(mujoco.mjtGeom.mjGEOM_SPHERE, (0.02, 0.02, 0.02), arm.goal, GOAL))
        out.extend(_axes(arm.goal, 0.05))
    if arm.unreachable:
        out.extend(_cross(arm.target))
    return out


def _ghost_color(arm: ArmOverlay) -> Rgba:
    if arm.unreachable:
        return UNREACHABLE
    if not arm.engaged:
        return IDLE
    return PRECISION if arm.precision else DRIVING


def _gripper(tool: Pose, color: Rgba) -> list[Mark]:
    """Return a hand that grips at `tool`: approach along z, fingers open along y."""
    box = mujoco.mjtGeom.mjGEOM_BOX
    palm = Pose(tool.apply((0.0, 0.0, -0.055)), tool.quat)
    out = [Mark(box, _PALM_SIZE, palm, color)]
    for side in (-1.0, 1.0):
        finger = Pose(tool.apply((0.0, side * _FINGER_OPENING, -0.021)), tool.quat)
        out.append(Mark(box, _FINGER_SIZE, finger, color))
    return out


def _axes(frame: Pose, length: float) -> list[Mark]:
    tips = rotate(frame.quat, length * np.eye(3))
    return [_line(frame.pos, frame.pos + tip, 0.002, color) for tip, color in zip(tips, AXES, strict=True)]


def _cross(frame: Pose) -> list[Mark]:
    """Return a red X about a point, upright and turned to both x and y so that it shows from all sides."""
    out = []
    for side in ((0.05, 0.0, 0.0), (0.0, 0.05, 0.0)):
        for sign in (-1.0, 1.0):
            tip = np.array(side) + np.array([0.0, 0.0, sign * 0.05])
            out.append(_line(frame.pos - tip, frame.pos + tip, 0.004, (*UNREACHABLE[:3], 1.0)))
    return out


def _box(center: Array, half_size: Array) -> list[Mark]:
    corners = np.asarray(center) + _CORNERS * np.asarray(half_size)
    return [_line(corners[a], corners[b], 0.0015, BOX) for a, b in _EDGES]


def _line(start: Array, end: Array, radius: float, color: Rgba) -> Mark:
    ends = (np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64))
    return Mark(mujoco.mjtGeom.mjGEOM_CAPSULE, (radius, radius, radius), Pose.identity(), color, ends)
