"""Franka Panda: seven joints and a parallel gripper.

Masses, inertias, joint ranges, speed and force limits are the published ones (Franka Control Interface
documentation; MuJoCo Menagerie, Apache-2.0); the geoms are primitives of ours.

Actuator gains are ours. The widely used set (stiffness 4500 to 2000, damping a tenth of it) lags 0.1 s behind
a moving target. Here the stiffness is kept and the damping is critical for each joint's inertia at home (M_jj
with armature, from `mj_fullM`): `kv = 2 sqrt(kp M_jj) - joint damping`. What lag is left, 0.02 to 0.04 s, is
fed forward (`RobotSpec.velocity_lag`), so that a target at constant speed is followed without lag.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from bunraku.robot import RobotSpec

if TYPE_CHECKING:
    import mujoco


def load() -> mujoco.MjSpec:
    """Return a fresh spec of the bare Panda, base at the origin, x forward."""
    import mujoco

    return mujoco.MjSpec.from_string(files("bunraku.robots").joinpath("assets/panda.xml").read_text("utf-8"))


ROBOT = RobotSpec(
    name="panda",
    joints=tuple(f"joint{i}" for i in range(1, 8)),
    base_body="link0",
    tool_site="tool",
    home=(0.0, -0.3, 0.0, -2.2, 0.0, 1.9, 0.785398),
    speed_limit=(2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61),
    stiffness=(4500.0, 4500.0, 3500.0, 3500.0, 2000.0, 2000.0, 2000.0),
    damping=(136.6, 187.1, 134.9, 123.3, 31.8, 34.1, 28.2),
    force_limit=(87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0),
    gripper_joints=("finger_joint1", "finger_joint2"),
    gripper_range=(0.0, 0.04),
    joint_damping=1.0,
    load=load,
)
