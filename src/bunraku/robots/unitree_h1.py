"""`unitree_h1`: Unitree's H1 with 19 joints, 1.8 m and 52 kg. It is not bunraku's own small humanoid; that is `h1`.

Joints, masses, inertias, torque and speed limits are Unitree's published figures (BSD-3-Clause), damping and armature
those of MuJoCo Menagerie; the geoms are primitives of ours. It has one ankle joint per leg, no wrists and no neck, so
the forearm's end is its wrist and the head is part of the torso.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from bunraku.humanoid import Foot, HumanoidSpec, Root, free_root

if TYPE_CHECKING:
    import mujoco

_SOLE = ((0.175, 0.03, -0.07), (0.175, -0.03, -0.07), (-0.09, -0.03, -0.07), (-0.09, 0.03, -0.07))
_LEG = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle")
_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow")


def load(root: Root = "fixed") -> mujoco.MjSpec:
    """Return a fresh spec of the bare robot.

    Args:
        root: `fixed` holds the pelvis where it is when the robot stands straight on the floor z = 0; `free` adds the
            free joint `root`.
    """
    import mujoco

    text = files("bunraku.robots").joinpath("assets/unitree_h1.xml").read_text("utf-8")
    return free_root(mujoco.MjSpec.from_string(text), "pelvis", root)


ROBOT = HumanoidSpec(
    name="unitree_h1",
    joints=(
        *(f"left_{joint}_joint" for joint in _LEG),
        *(f"right_{joint}_joint" for joint in _LEG),
        "torso_joint",
        *(f"left_{joint}_joint" for joint in _ARM),
        *(f"right_{joint}_joint" for joint in _ARM),
    ),
    root_body="pelvis",
    frames={
        "pelvis": "pelvis",
        "spine3": "torso_link",
        "neck": "neck",
        "head": "head",
        "left_shoulder": "left_shoulder_roll_link",
        "left_elbow": "left_elbow_link",
        "left_wrist": "left_hand",
        "right_shoulder": "right_shoulder_roll_link",
        "right_elbow": "right_elbow_link",
        "right_wrist": "right_hand",
        "left_hip": "left_hip_pitch_link",
        "left_knee": "left_knee_link",
        "left_ankle": "left_ankle_link",
        "left_foot": "left_toe",
        "right_hip": "right_hip_pitch_link",
        "right_knee": "right_knee_link",
        "right_ankle": "right_ankle_link",
        "right_foot": "right_toe",
    },
    human_scale=0.95,
    feet=(Foot("left_ankle_link", _SOLE), Foot("right_ankle_link", _SOLE)),
    home=(
        *(0.0, 0.0, -0.26, 0.8, -0.54),
        *(0.0, 0.0, -0.26, 0.8, -0.54),
        0.0,
        *(0.0, 0.2, 0.0, 1.14),
        *(0.0, -0.2, 0.0, 1.14),
    ),
    home_height=0.97384,
    torque_limit=(*(200.0, 200.0, 200.0, 300.0, 40.0) * 2, 200.0, *(40.0, 40.0, 18.0, 18.0) * 2),
    speed_limit=(*(23.0, 23.0, 23.0, 14.0, 9.0) * 2, 23.0, *(9.0, 9.0, 20.0, 20.0) * 2),
    load=load,
)
