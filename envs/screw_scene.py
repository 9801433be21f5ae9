"""The scene of screw driving: arm, board, screw, what is sensed of their contact, and cameras."""

from __future__ import annotations

import mujoco
import numpy as np

from bunraku.envs import screw_workpiece as workpiece
from bunraku.envs.scene import table_scene
from bunraku.envs.screw_control import PREFIX
from bunraku.geometry import Array, from_matrix
from bunraku.robots.screw_arm import BLADES, ROBOT, TIP_DROP

TABLE_TOP = -0.06
"""The board stands above the table, so that a driven screw can be seen below its surface [m]."""


def screw_scene(timestep: float, pitch: float) -> mujoco.MjSpec:
    """Return a spec of the scene.

    Args:
        timestep: Physics timestep [s].
        pitch: Way down of the screw per turn [m].
    """
    spec = table_scene(timestep)
    # friction of edges on walls holds the bit: a pyramid would let it creep
    spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
    spec.option.impratio = 10.0
    for geom in spec.geoms:
        geom.pos = [*geom.pos[:2], geom.pos[2] + TABLE_TOP]
        geom.contype, geom.conaffinity = 0, 0
    ROBOT.attach(spec, prefix=PREFIX, gripper=False)
    for name in BLADES:
        blade = spec.geom(PREFIX + name)
        blade.contype, blade.conaffinity = workpiece.BIT_BIT, 0
        blade.friction = [workpiece.FRICTION, 0.005, 0.0001]
        blade.solref, blade.solimp = workpiece.SOLREF, workpiece.SOLIMP
    workpiece.add_board(spec, TABLE_TOP)
    workpiece.add_screw(spec, pitch)
    _add_sensors(spec)
    _add_cameras(spec)
    return spec


def _add_sensors(spec: mujoco.MjSpec) -> None:
    """Add `bit_contact` (9: force, torque and place of the net contact) and `screw_top` (3: its middle)."""
    net_force = 3
    field = mujoco.mjtConDataField
    wanted = (field.mjCONDATA_FORCE, field.mjCONDATA_TORQUE, field.mjCONDATA_POS)
    spec.add_sensor(
        name="bit_contact",
        type=mujoco.mjtSensor.mjSENS_CONTACT,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        objname=PREFIX + "driver",
        intprm=[sum(1 << int(f) for f in wanted), net_force, 1],
    )
    spec.add_sensor(
        name="screw_top",
        type=mujoco.mjtSensor.mjSENS_FRAMEPOS,
        objtype=mujoco.mjtObj.mjOBJ_SITE,
        objname="screw_top",
    )


def _add_cameras(spec: mujoco.MjSpec) -> None:
    """Put nearer cameras in the place of the scene's, and one on the wrist that sees the bit."""
    for name, pos, target in (
        ("front", (0.72, -0.42, 0.42), (0.15, 0.0, 0.12)),
        ("side", (0.17, -0.75, 0.25), (0.15, 0.0, 0.14)),
    ):
        spec.delete(spec.camera(name))
        quat = _looking(np.array(pos), np.array(target))
        spec.worldbody.add_camera(name=name, pos=pos, quat=quat, fovy=45.0)
    eye = np.array([0.10, 0.0, -0.03])
    quat = _looking(eye, np.array([0.0, 0.0, -TIP_DROP]))
    spec.body(PREFIX + "wrist").add_camera(name="wrist", pos=eye, quat=quat, fovy=60.0)


def _looking(eye: Array, target: Array) -> Array:
    """Return the orientation `(4,)` of a camera at `eye` that looks at `target`, upright."""
    back = (eye - target) / np.linalg.norm(eye - target)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    return from_matrix(np.column_stack([right, np.cross(back, right), back]))
