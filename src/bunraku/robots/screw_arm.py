"""Screw-driving arm: yaw and two pitches as in the kinematic demonstration, with what dynamics needs beside them.

Lengths and ranges are those of `bunraku.screw.figures`. The rest is ours: masses of aluminium links with geared
motors, the rotors' inertias, a levelling wrist that keeps the driver vertical, and a spindle that turns it. Gravity is
compensated.

Actuator gains are derived from each joint's inertia M_jj (with the rotor's) in the posture over the screw, from
`mj_fullM`: stiffness `M_jj w^2` and damping `2 M_jj w - joint damping`, which is critical, at w = 60 rad/s; the
spindle's at 100 rad/s. At 30 N of axial force the tip then gives way by a few millimetres, which is how the arm presses. The
lag of a moving target, `2 / w`, is fed forward (`RobotSpec.velocity_lag`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunraku.control import yaw_pitch_pitch
from bunraku.robot import RobotSpec
from bunraku.screw import figures

if TYPE_CHECKING:
    import mujoco

BLADES = ("blade_a", "blade_b")
"""Geoms of the bit's two crossed blades."""
TIP_DROP = figures.DRIVER_DROP + figures.BLADE_DROP
"""The bit's lowest point below the end of the forearm [m]."""
JOINT_DAMPING = 0.01
"""Passive damping of every joint [N m s/rad]."""
POSTURE_TIP = (0.20, 0.0, 0.15)
"""End of the forearm [m] in the posture that gains are derived for: over a screw in the middle of its places."""

_LOOK = """
<mujoco model="screw_arm">
  <compiler angle="radian" autolimits="true"/>
  <asset>
    <material name="arm" rgba="0.93 0.45 0.13 1" specular="0.4"/>
    <material name="arm_fore" rgba="0.88 0.89 0.91 1" specular="0.4"/>
    <material name="joint" rgba="0.20 0.22 0.26 1" specular="0.4"/>
    <material name="rod" rgba="0.15 0.35 0.75 1" specular="0.5"/>
    <material name="bit" rgba="0.82 0.13 0.12 1" specular="0.8"/>
  </asset>
</mujoco>
"""


def load() -> mujoco.MjSpec:
    """Return a fresh spec of the bare arm, base at the origin, x forward; only the bit's blades collide."""
    import mujoco

    arm = figures.ARM
    spec = mujoco.MjSpec.from_string(_LOOK)
    box, cylinder, capsule = (
        mujoco.mjtGeom.mjGEOM_BOX,
        mujoco.mjtGeom.mjGEOM_CYLINDER,
        mujoco.mjtGeom.mjGEOM_CAPSULE,
    )
    pitch = [0.0, -1.0, 0.0]
    base = spec.worldbody.add_body(name="base")
    base.add_geom(type=cylinder, size=[0.036, 0.028, 0], pos=[0, 0, -0.030], material="joint", mass=3.0)
    turret = base.add_body(name="turret")
    turret.add_joint(name="yaw", axis=[0, 0, 1], range=list(arm.yaw_range), armature=0.05)
    turret.add_geom(type=cylinder, size=[0.030, 0.030, 0], pos=[0, 0, 0.028], material="arm", mass=1.0)
    upper = turret.add_body(name="upper", pos=[0, 0, arm.shoulder_height])
    upper.add_joint(name="shoulder", axis=pitch, range=list(arm.shoulder_range), armature=0.05)
    fore = upper.add_body(name="fore", pos=[arm.upper, 0, 0])
    fore.add_joint(name="elbow", axis=pitch, range=list(arm.elbow_range), armature=0.03)
    for body, length, mass, material in ((upper, arm.upper, 1.2, "arm"), (fore, arm.fore, 0.7, "arm_fore")):
        ends = [0, -0.026, 0, 0, 0.026, 0]
        body.add_geom(type=cylinder, fromto=ends, size=[0.025, 0, 0], material="joint", mass=0.6)
        body.add_geom(
            type=capsule, fromto=[0, 0, 0, length, 0, 0], size=[0.018, 0, 0], material=material, mass=mass
        )
    wrist = fore.add_body(name="wrist", pos=[arm.fore, 0, 0])
    wrist.add_joint(name="level", axis=pitch, armature=0.01)
    wrist.add_geom(
        type=cylinder,
        fromto=[0, -0.024, 0, 0, 0.024, 0],
        size=[0.021, 0, 0],
        material="joint",
        mass=0.3,
    )
    collar = figures.DRIVER_LENGTH - figures.DRIVER_DROP
    wrist.add_geom(
        type=cylinder, fromto=[0, 0, 0, 0, 0, collar - 0.02], size=[0.013, 0, 0], material="joint", mass=0.15
    )
    driver = wrist.add_body(name="driver", pos=[0, 0, -figures.DRIVER_DROP])
    driver.add_joint(name="spin", axis=[0, 0, 1], armature=0.001)
    half = figures.DRIVER_LENGTH / 2
    driver.add_geom(
        type=cylinder, size=[figures.DRIVER_RADIUS, half, 0], pos=[0, 0, half], material="rod", mass=0.12
    )
    length, width, height = figures.BLADE_HALF_SIZE
    pos = [0, 0, height - figures.BLADE_DROP]
    for name, size in zip(BLADES, ([length, width, height], [width, length, height]), strict=True):
        driver.add_geom(name=name, type=box, size=size, pos=pos, material="bit", mass=0.015)
    driver.add_site(name="tool", pos=[0, 0, -figures.BLADE_DROP], quat=[0, 1, 0, 0])
    for body in spec.bodies[1:]:
        body.gravcomp = 1.0
    for geom in spec.geoms:
        if geom.name not in BLADES:
            geom.contype, geom.conaffinity = 0, 0
    for joint in spec.joints:
        joint.damping = [JOINT_DAMPING, 0, 0]
    return spec


def levelled(tip: tuple[float, float, float]) -> tuple[float, ...]:
    """Return the joint angles `(5,)` [rad] with the end of the forearm at `tip` [m] and the driver vertical."""
    yaw, shoulder, elbow = (float(angle) for angle in yaw_pitch_pitch.solve(tip, figures.ARM))
    return yaw, shoulder, elbow, -(shoulder + elbow), 0.0


ROBOT = RobotSpec(
    name="screw_arm",
    joints=("yaw", "shoulder", "elbow", "level", "spin"),
    base_body="base",
    tool_site="tool",
    home=levelled(figures.HOME),
    speed_limit=(3.0, 3.0, 3.0, 6.0, 12.0),
    stiffness=(304.8, 750.1, 405.2, 39.7, 10.1),
    damping=(10.15, 24.99, 13.50, 1.314, 0.192),
    force_limit=(40.0, 60.0, 40.0, 12.0, 2.0),
    gripper_joints=(),
    gripper_range=(0.0, 0.0),
    joint_damping=JOINT_DAMPING,
    load=load,
)
