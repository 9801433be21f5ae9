"""What the screw arm works on: a board with a hole, and in it a screw with a cross recess.

    workpiece.add_board(spec)          # a mocap body "board"; its origin is the hole's axis at z = 0
    workpiece.add_screw(spec, pitch)   # a mocap body "screw_place", and on it the screw's joints

Where the hole is and how the screw is turned at the start are poses of mocap bodies, hence part of the simulation's
state. The screw's chain: two stiff hinges `screw_tilt_x`, `screw_tilt_y` (the thread's play), then the slide
`screw_slide` coupled by an equality to the hinge `screw_turn`: down by `pitch` per positive turn.

The recess is four convex quadrants on a floor: the slots between them are the cross. Their walls lean outwards by
`WALL_ANGLE`, so that a turning blade pushes the bit out of the recess unless it is pressed in. A blade that transmits
the torque T at the distance r from the axis is pushed out with `T / r tan(WALL_ANGLE - atan(FRICTION))` in all.
"""

from __future__ import annotations

import mujoco
import numpy as np

from bunraku.screw import figures
from bunraku.screw.board import ring

BIT_BIT = 2
"""Collision bit of the blades and of what they touch; nothing else collides."""
RECESS_DEPTH = 0.005
"""From the screw's top to the recess's floor [m]; a blade is 6 mm high."""
WALL_ANGLE = float(np.radians(28.0))
"""How far the walls of the recess lean from the vertical [rad]."""
CLEARANCE = 0.00015
"""Between a blade and each wall at the floor [m]."""
FRICTION = 0.25
"""Sliding friction of blade and screw."""
BOARD_FRICTION = 0.4
HOLE_RADIUS = figures.SCREW_RADIUS + 0.0005
HOLE_HALF_WIDTH = 0.0205
"""Half the width of the board's square opening, which a ring makes look round [m]."""
TILT_STIFFNESS = 8.0
"""Of the screw's seat in its hole [N m/rad]."""
STOP = 0.002
"""Past its depth the screw meets a stop by this much more [m]."""
QUADRANTS = tuple(f"recess_{i}" for i in range(4))
SOLREF, SOLIMP = [0.004, 1.0], [0.95, 0.99, 0.0005, 0.5, 2.0]

_BOX, _CYLINDER, _MESH = (
    mujoco.mjtGeom.mjGEOM_BOX,
    mujoco.mjtGeom.mjGEOM_CYLINDER,
    mujoco.mjtGeom.mjGEOM_MESH,
)
_NEAR_EDGE = 0.10
"""From the hole's axis to the board's edge at the arm [m]: nearer than its middle, clear of the arm's base."""


def add_board(spec: mujoco.MjSpec, table_top: float) -> None:
    """Add the board: four boxes around a square opening, which touch blades, on feet.

    Args:
        spec: The scene.
        table_top: Height of the table that the feet stand on [m]; 0 is the board's lower side.
    """
    spec.add_material(name="board", rgba=[0.76, 0.57, 0.36, 1], specular=0.1)
    spec.add_material(name="hole", rgba=[0.20, 0.13, 0.08, 1], specular=0)
    body = spec.worldbody.add_body(name="board", mocap=True, pos=[*figures.SCREW_XY, 0])
    length, width, thickness = figures.BOARD_SIZE
    h, near, far = HOLE_HALF_WIDTH, -_NEAR_EDGE, length - _NEAR_EDGE
    z = figures.BOARD_TOP - thickness / 2
    for x0, x1, y0, y1 in (
        (near, -h, -width / 2, width / 2),
        (h, far, -width / 2, width / 2),
        (-h, h, -width / 2, -h),
        (-h, h, h, width / 2),
    ):
        body.add_geom(
            type=_BOX,
            size=[(x1 - x0) / 2, (y1 - y0) / 2, thickness / 2],
            pos=[(x0 + x1) / 2, (y0 + y1) / 2, z],
            material="board",
            contype=0,
            conaffinity=BIT_BIT,
            friction=[BOARD_FRICTION, 0.005, 0.0001],
            solref=SOLREF,
            solimp=SOLIMP,
        )
    for x in (near + 0.015, far - 0.015):
        for y in (-width / 2 + 0.015, width / 2 - 0.015):
            foot = {"size": [0.01, 0.01, -table_top / 2], "pos": [x, y, table_top / 2]}
            body.add_geom(type=_BOX, material="board", contype=0, conaffinity=0, **foot)
    mesh = spec.add_mesh(name="hole")
    vertices, faces = ring(HOLE_RADIUS, HOLE_HALF_WIDTH * 1.42, 0.0006)
    mesh.uservert, mesh.userface = vertices.ravel(), faces.ravel()
    mesh.smoothnormal = False
    body.add_geom(
        type=_MESH, meshname="hole", pos=[0, 0, figures.BOARD_TOP], material="hole", contype=0, conaffinity=0
    )


def add_screw(spec: mujoco.MjSpec, pitch: float) -> None:
    """Add the screw at its start, with its helical joint and the actuator that is its thread's friction.

    Args:
        spec: The scene.
        pitch: Way down per turn [m].
    """
    spec.add_material(name="screw", rgba=[0.68, 0.70, 0.74, 1], specular=0.8)
    spec.add_material(name="recess", rgba=[0.55, 0.57, 0.62, 1], specular=0.6)
    place = spec.worldbody.add_body(name="screw_place", mocap=True, pos=[*figures.SCREW_XY, 0])
    guide = place.add_body(name="screw_guide", mass=0.02, inertia=[1e-5] * 3, explicitinertial=True)
    for axis, name in (([1, 0, 0], "screw_tilt_x"), ([0, 1, 0], "screw_tilt_y")):
        guide.add_joint(
            name=name,
            axis=axis,
            stiffness=[TILT_STIFFNESS, 0, 0],
            damping=[0.06, 0, 0],
            armature=2e-4,
            range=[-0.2, 0.2],
        )
    screw = guide.add_body(name="screw", pos=[0, 0, figures.SCREW_START_HEIGHT])
    travel = figures.SCREW_SINK + STOP
    screw.add_joint(name="screw_slide", type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0, 0, -1])
    screw.add_joint(
        name="screw_turn",
        axis=[0, 0, 1],
        range=[0, travel / pitch * 2 * np.pi],
        armature=1e-4,
        frictionloss=STATIC_FRICTION,
        solref_friction=[0.004, 1],
        solimp_friction=[0.99, 0.999, 0.001, 0.5, 2],
    )
    _add_screw_geoms(screw)
    add_recess(spec, screw)
    top = figures.SCREW_HALF_HEIGHT
    screw.add_site(name="screw_top", pos=[0, 0, top], size=[0.001] * 3, group=4)
    # through a tendon: MuJoCo weighs a tendon's constraint by its true inertia, a joint coupling's by the sum of both
    # joints', which mixes metres and radians and would leave the thread soft by millimetres
    thread = spec.add_tendon(name="thread", group=5)
    thread.wrap_joint("screw_slide", 1.0)
    thread.wrap_joint("screw_turn", -pitch / (2 * np.pi))
    spec.add_equality(
        name="thread",
        type=mujoco.mjtEq.mjEQ_TENDON,
        name1="thread",
        objtype=mujoco.mjtObj.mjOBJ_TENDON,
        solref=SOLREF,
        solimp=[0.99, 0.998, 0.0005, 0.5, 2.0],
    )
    # force = -ctrl * speed: `ctrl` is a damping, which the implicit integrator takes at the end of the step
    spec.add_actuator(
        name="thread_friction",
        target="screw_turn",
        trntype=mujoco.mjtTrn.mjTRN_JOINT,
        gaintype=mujoco.mjtGain.mjGAIN_AFFINE,
        gainprm=[0, 0, -1] + [0] * 7,
        biastype=mujoco.mjtBias.mjBIAS_NONE,
    )


STATIC_FRICTION = 0.1
"""Torque that the screw withstands at rest, whatever its depth [N m]."""


def _add_screw_geoms(screw: mujoco.MjsBody) -> None:
    half, bottom = figures.SCREW_HALF_HEIGHT, -figures.SCREW_HALF_HEIGHT
    floor = half - RECESS_DEPTH
    free = {"contype": 0, "conaffinity": 0, "material": "screw"}
    screw.add_geom(
        type=_CYLINDER,
        size=[figures.SCREW_RADIUS, (floor - bottom) / 2, 0],
        pos=[0, 0, (floor + bottom) / 2],
        mass=0.35,
        **free,
    )
    screw.add_geom(
        type=_CYLINDER,
        size=[figures.SCREW_POINT_RADIUS, figures.SCREW_POINT_HEIGHT / 2, 0],
        pos=[0, 0, bottom - figures.SCREW_POINT_HEIGHT / 2],
        mass=0.05,
        **free,
    )
    # the floor as a box, whose contacts with the blades' boxes are exact
    screw.add_geom(
        name="recess_floor",
        type=_BOX,
        size=[0.0134, 0.0134, 0.004],
        pos=[0, 0, floor - 0.004],
        mass=0,
        group=4,
        contype=0,
        conaffinity=BIT_BIT,
        friction=[FRICTION, 0.005, 0.0001],
        solref=SOLREF,
        solimp=SOLIMP,
    )


def quadrant() -> np.ndarray:
    """Return the corners `(n, 3)` [m] of the recess's quadrant in +x, +y, its origin at the middle of the floor."""
    corners = []
    for z in (0.0, RECESS_DEPTH):
        near = figures.BLADE_HALF_SIZE[1] + CLEARANCE + z * np.tan(WALL_ANGLE)
        far = np.sqrt(figures.SCREW_RADIUS**2 - near**2)
        first = np.arctan2(near, far)
        corners.append((near, near, z))
        for angle in np.linspace(first, np.pi / 2 - first, 6):
            corners.append((figures.SCREW_RADIUS * np.cos(angle), figures.SCREW_RADIUS * np.sin(angle), z))
    return np.array(corners)


def add_recess(spec: mujoco.MjSpec, screw: mujoco.MjsBody) -> None:
    """Add the four quadrants of the cross recess to the screw."""
    mesh = spec.add_mesh(name="quadrant")
    mesh.uservert = quadrant().ravel()
    mesh.smoothnormal = False
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
    for i, name in enumerate(QUADRANTS):
        angle = i * np.pi / 2
        screw.add_geom(
            name=name,
            type=_MESH,
            meshname="quadrant",
            pos=[0, 0, figures.SCREW_HALF_HEIGHT - RECESS_DEPTH],
            quat=[np.cos(angle / 2), 0, 0, np.sin(angle / 2)],
            material="recess",
            mass=0.003,
            contype=0,
            conaffinity=BIT_BIT,
            friction=[FRICTION, 0.005, 0.0001],
            solref=SOLREF,
            solimp=SOLIMP,
        )
