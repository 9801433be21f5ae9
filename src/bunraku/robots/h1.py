"""`h1`: bunraku's own small humanoid of 28 joints, 0.44 m and 4.0 kg. It is not Unitree's H1; that is `unitree_h1`.

Given are the bone lengths (thigh 0.0832, calf 0.1105, upper arm 0.07579, forearm 0.04739, neck to head 0.022487 m),
the joints and the names of the links that follow a human scaled by 0.2466. Ours are the rest, with these reasons:

- Trunk: neck 0.126 m and shoulders 0.106 m above the waist, the hips 0.025 m below, as in an SMPL skeleton at this
  scale, so that chest and head keep a human's proportions.
- Widths: hips 64 mm apart, so that soles 40 mm wide pass each other; shoulders 132 mm apart, so that hanging arms
  clear the hips.
- Joint limits: a human's range where a servo can give it. Rotation about y is positive: an arm or leg swings back,
  an elbow opens, a knee bends, the toes go down.
- Masses: 28 geared motors of 120, 80 and 45 g (2.2 kg), battery and computer (0.7 kg), links (1.1 kg).
- Motors: large (waist, hip roll and pitch, knee) 7 N m, a one-legged deep squat needs 4; medium (hip yaw, ankle,
  shoulder pitch and roll) 4 N m; small (the rest) 1.5 N m; all to 20 rad/s, twice what a human's kick asks for.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from bunraku.humanoid import Foot, HumanoidSpec, Root, free_root

if TYPE_CHECKING:
    import mujoco

_LARGE, _MEDIUM, _SMALL = 7.0, 4.0, 1.5
_SOLE = ((0.05, 0.02, -0.02), (0.05, -0.02, -0.02), (-0.03, -0.02, -0.02), (-0.03, 0.02, -0.02))
_ARM = ("shoulder_pitch", "shoulder_roll", "shoulder_yaw", "elbow", "wrist_yaw")
_LEG = ("hip_yaw", "hip_roll", "hip_pitch", "knee", "ankle_pitch", "ankle_roll")


def load(root: Root = "fixed") -> mujoco.MjSpec:
    """Return a fresh spec of the bare robot.

    Args:
        root: `fixed` holds the waist where it is when the robot stands straight on the floor z = 0; `free` adds the
            free joint `root`.
    """
    import mujoco

    text = files("bunraku.robots").joinpath("assets/h1.xml").read_text("utf-8")
    return free_root(mujoco.MjSpec.from_string(text), "waist", root)


ROBOT = HumanoidSpec(
    name="h1",
    joints=(
        *("chest_yaw", "chest_roll", "chest_pitch"),
        *(f"left_{joint}" for joint in _ARM),
        *(f"right_{joint}" for joint in _ARM),
        *("neck_yaw", "head_pitch", "head_roll"),
        *(f"left_{joint}" for joint in _LEG),
        *(f"right_{joint}" for joint in _LEG),
    ),
    root_body="waist",
    frames={
        "pelvis": "waist",
        "spine3": "chest",
        "neck": "neck_linkage",
        "head": "head",
        "left_shoulder": "left_upper_arm",
        "left_elbow": "left_force_arm",
        "left_wrist": "left_hand",
        "right_shoulder": "right_upper_arm",
        "right_elbow": "right_force_arm",
        "right_wrist": "right_hand",
        "left_hip": "left_thigh",
        "left_knee": "left_calf",
        "left_ankle": "left_foot",
        "left_foot": "left_toe",
        "right_hip": "right_thigh",
        "right_knee": "right_calf",
        "right_ankle": "right_foot",
        "right_foot": "right_toe",
    },
    human_scale=0.2466,
    feet=(Foot("left_foot", _SOLE), Foot("right_foot", _SOLE)),
    home=(
        *(0.0, 0.0, 0.0),
        *(0.0, 0.15, 0.0, -0.4, 0.0),
        *(0.0, -0.15, 0.0, -0.4, 0.0),
        *(0.0, 0.0, 0.0),
        *(0.0, 0.0, -0.25, 0.5, -0.25, 0.0),
        *(0.0, 0.0, -0.25, 0.5, -0.25, 0.0),
    ),
    home_height=0.23268,
    torque_limit=(
        *(_LARGE, _LARGE, _LARGE),
        *(_MEDIUM, _MEDIUM, _SMALL, _SMALL, _SMALL) * 2,
        *(_SMALL, _SMALL, _SMALL),
        *(_MEDIUM, _LARGE, _LARGE, _LARGE, _MEDIUM, _MEDIUM) * 2,
    ),
    speed_limit=(20.0,) * 28,
    load=load,
)
