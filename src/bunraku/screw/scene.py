"""The scene of the demonstration: arm, driver, screw and board, to be posed frame by frame, not simulated.

    model = scene().compile()
    data.qpos[:] = ...    # yaw, shoulder, elbow, level, spin, then the screw's height and turn
    mujoco.mj_forward(model, data)

Nothing collides and nothing is driven. The driver hangs from the tip by a levelling joint, which keeps it
vertical, and a spinning joint, so that its place follows from the arm's joints alone. The hole goes through
board and table: below it there is no floor for the screw to sink into.
"""

from __future__ import annotations

import mujoco

from bunraku.screw import figures
from bunraku.screw.board import add_mesh, holed_board, ring

ARM_JOINTS = ("yaw", "shoulder", "elbow")
LEVEL, SPIN, SCREW_HEIGHT, SCREW_TURN = "level", "spin", "screw_height", "screw_turn"
TIP = "tip"
"""Sphere at the end of the forearm."""
BLADES = ("blade_a", "blade_b")
"""The bit's two crossed boxes."""
SCREW = "screw"
"""The screw's thick cylinder."""
RECESS = ("recess_a", "recess_b")
"""The marks of the cross recess."""
LINKS = ("upper", "fore")
"""Capsules of the two links."""
TABLE_TOP = figures.BOARD_TOP - figures.BOARD_SIZE[2]
"""Height of the table on which the board lies [m]."""

_HOLE_RADIUS = figures.SCREW_RADIUS + 0.0005
_MARKER_WIDTH, _MARKER_HEIGHT = 0.004, 0.0004
_LINK_RADIUS = 0.018
_RECESS_HALF_SIZE = (0.0175, 0.0045, 0.0004)
"""Longer and wider than the blades, to be seen around them; it stands a hair over the screw's top."""
_RECESS_PROUD = 0.0002
_TABLE = (-0.22, 0.50, -0.30, 0.36)
"""x and y from and to [m]."""
_OPENING = 0.05
"""Half the width of the table's opening below the hole [m]: hidden by the board."""

_BOX = mujoco.mjtGeom.mjGEOM_BOX
_CYLINDER = mujoco.mjtGeom.mjGEOM_CYLINDER
_CAPSULE = mujoco.mjtGeom.mjGEOM_CAPSULE
_SPHERE = mujoco.mjtGeom.mjGEOM_SPHERE
_HINGE, _SLIDE = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE
_PITCH_AXIS = [0.0, -1.0, 0.0]
_UP = [0.0, 0.0, 1.0]

_LOOK = """
<mujoco model="screw driving, kinematic">
  <compiler angle="radian" autolimits="true"/>
  <visual>
    <headlight ambient="0.35 0.35 0.37" diffuse="0.25 0.25 0.25" specular="0 0 0"/>
    <quality shadowsize="2048" offsamples="4"/>
    <map shadowclip="1.2" shadowscale="0.8" znear="0.02" zfar="20"/>
  </visual>
  <statistic center="0.11 0.04 0.14" extent="0.6"/>
  <asset>
    <texture name="sky" type="skybox" builtin="flat" rgb1="0.66 0.71 0.78" rgb2="0.66 0.71 0.78"
      width="16" height="96"/>
    <material name="table" rgba="0.40 0.43 0.47 1" specular="0.1"/>
    <material name="board" rgba="0.76 0.57 0.36 1" specular="0.1"/>
    <material name="hole" rgba="0.20 0.13 0.08 1" specular="0"/>
    <material name="arm" rgba="0.93 0.45 0.13 1" specular="0.4"/>
    <material name="arm_fore" rgba="0.88 0.89 0.91 1" specular="0.4"/>
    <material name="joint" rgba="0.20 0.22 0.26 1" specular="0.4"/>
    <material name="rod" rgba="0.15 0.35 0.75 1" specular="0.5"/>
    <material name="bit" rgba="0.82 0.13 0.12 1" specular="0.8"/>
    <material name="screw" rgba="0.68 0.70 0.74 1" specular="0.8"/>
    <material name="recess" rgba="0.08 0.08 0.10 1" specular="0"/>
  </asset>
  <worldbody>
    <light type="directional" pos="-0.3 -0.6 1.5" dir="0.25 0.45 -1" diffuse="0.6 0.6 0.58" castshadow="true"/>
    <light type="directional" pos="0.6 0.6 1.2" dir="-0.5 -0.4 -0.8" diffuse="0.2 0.2 0.24" castshadow="false"/>
  </worldbody>
</mujoco>
"""


def scene(screw_xy: tuple[float, float] = figures.SCREW_XY) -> mujoco.MjSpec:
    """Return a fresh spec of the scene.

    Args:
        screw_xy: Where the screw stands [m], and the middle of the board.
    """
    spec = mujoco.MjSpec.from_string(_LOOK)
    _add_table(spec, screw_xy)
    x, y = screw_xy
    middle = (x, y, figures.BOARD_TOP - figures.BOARD_SIZE[2] / 2.0)
    add_mesh(spec, "board", holed_board(figures.BOARD_SIZE, _HOLE_RADIUS), middle)
    marker = ring(_HOLE_RADIUS, _HOLE_RADIUS + _MARKER_WIDTH, _MARKER_HEIGHT)
    add_mesh(spec, "hole", marker, (x, y, figures.BOARD_TOP))
    _add_arm(spec)
    _add_screw(spec, screw_xy)
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 0, 0
    return spec


def _add_table(spec: mujoco.MjSpec, hole_xy: tuple[float, float]) -> None:
    west, east, south, north = _TABLE
    left, right = hole_xy[0] - _OPENING, hole_xy[0] + _OPENING
    front, back = hole_xy[1] - _OPENING, hole_xy[1] + _OPENING
    slabs = [
        (west, left, south, north),
        (right, east, south, north),
        (left, right, south, front),
        (left, right, back, north),
    ]
    for x0, x1, y0, y1 in slabs:
        spec.worldbody.add_geom(
            type=_BOX,
            size=[(x1 - x0) / 2.0, (y1 - y0) / 2.0, 0.0125],
            pos=[(x0 + x1) / 2.0, (y0 + y1) / 2.0, TABLE_TOP - 0.0125],
            material="table",
        )


def _add_arm(spec: mujoco.MjSpec) -> None:
    arm = figures.ARM
    spec.worldbody.add_geom(
        type=_CYLINDER, size=[0.042, 0.016, 0.0], pos=[0.0, 0.0, TABLE_TOP + 0.016], material="joint"
    )
    turret = spec.worldbody.add_body(name="turret")
    turret.add_joint(name="yaw", type=_HINGE, axis=_UP, range=list(arm.yaw_range))
    turret.add_geom(type=_CYLINDER, size=[0.030, 0.014, 0.0], pos=[0.0, 0.0, 0.044], material="arm")
    upper = turret.add_body(name="upper", pos=[0.0, 0.0, arm.shoulder_height])
    upper.add_joint(name="shoulder", type=_HINGE, axis=_PITCH_AXIS, range=list(arm.shoulder_range))
    _add_link(upper, "upper", arm.upper, "arm")
    fore = upper.add_body(name="fore", pos=[arm.upper, 0.0, 0.0])
    fore.add_joint(name="elbow", type=_HINGE, axis=_PITCH_AXIS, range=list(arm.elbow_range))
    _add_link(fore, "fore", arm.fore, "arm_fore")
    tip = fore.add_body(name="tip", pos=[arm.fore, 0.0, 0.0])
    tip.add_geom(name=TIP, type=_SPHERE, size=[0.021, 0.0, 0.0], material="joint")
    wrist = tip.add_body(name="wrist")
    wrist.add_joint(name=LEVEL, type=_HINGE, axis=_PITCH_AXIS)
    wrist.add_geom(
        type=_CYLINDER, fromto=[0.0, -0.024, 0.0, 0.0, 0.024, 0.0], size=[0.012, 0.0, 0.0], material="arm"
    )
    _add_driver(wrist)


def _add_link(body: mujoco.MjsBody, name: str, length: float, material: str) -> None:
    body.add_geom(
        type=_CYLINDER, fromto=[0.0, -0.026, 0.0, 0.0, 0.026, 0.0], size=[0.025, 0.0, 0.0], material="joint"
    )
    body.add_geom(
        name=name,
        type=_CAPSULE,
        fromto=[0.0, 0.0, 0.0, length, 0.0, 0.0],
        size=[_LINK_RADIUS, 0.0, 0.0],
        material=material,
    )


def _add_driver(wrist: mujoco.MjsBody) -> None:
    driver = wrist.add_body(name="driver", pos=[0.0, 0.0, -figures.DRIVER_DROP])
    driver.add_joint(name=SPIN, type=_HINGE, axis=_UP)
    half = figures.DRIVER_LENGTH / 2.0
    driver.add_geom(
        name="rod",
        type=_CYLINDER,
        size=[figures.DRIVER_RADIUS, half, 0.0],
        pos=[0.0, 0.0, half],
        material="rod",
    )
    # what holds the rod: it ends short of the tip
    driver.add_geom(
        type=_CYLINDER,
        fromto=[0.0, 0.0, figures.DRIVER_LENGTH - 0.005, 0.0, 0.0, figures.DRIVER_DROP],
        size=[0.013, 0.0, 0.0],
        material="joint",
    )
    length, width, height = figures.BLADE_HALF_SIZE
    for name, size in zip(BLADES, ([length, width, height], [width, length, height]), strict=True):
        pos = [0.0, 0.0, height - figures.BLADE_DROP]
        driver.add_geom(name=name, type=_BOX, size=size, pos=pos, material="bit")


def _add_screw(spec: mujoco.MjSpec, xy: tuple[float, float]) -> None:
    body = spec.worldbody.add_body(name="screw", pos=[*xy, 0.0])
    body.add_joint(name=SCREW_HEIGHT, type=_SLIDE, axis=_UP)
    body.add_joint(name=SCREW_TURN, type=_HINGE, axis=_UP)
    half = figures.SCREW_HALF_HEIGHT
    body.add_geom(name=SCREW, type=_CYLINDER, size=[figures.SCREW_RADIUS, half, 0.0], material="screw")
    body.add_geom(
        name="screw_point",
        type=_CYLINDER,
        size=[figures.SCREW_POINT_RADIUS, figures.SCREW_POINT_HEIGHT / 2.0, 0.0],
        pos=[0.0, 0.0, -half - figures.SCREW_POINT_HEIGHT / 2.0],
        material="screw",
    )
    length, width, height = _RECESS_HALF_SIZE
    for name, size in zip(RECESS, ([length, width, height], [width, length, height]), strict=True):
        pos = [0.0, 0.0, half + _RECESS_PROUD - height]
        body.add_geom(name=name, type=_BOX, size=size, pos=pos, material="recess")
