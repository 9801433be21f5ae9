"""A 28-joint humanoid in one string, for tests that must not depend on a shipped robot."""

from __future__ import annotations

import mujoco

from bunraku.retarget.solver.problem import FrameTask

THIGH, CALF, UPPER_ARM, FOREARM, HEAD = 0.0832, 0.1105, 0.07579, 0.04739, 0.0225


def body(name: str, pos: str, joints: list[tuple[str, str, float, float]], inner: str = "") -> str:
    """Return a body with hinges (name, axis, lower, upper)."""
    hinges = "".join(
        f'<joint name="{j}" axis="{axis}" range="{low} {high}"/>' for j, axis, low, high in joints
    )
    return f'<body name="{name}" pos="{pos}">{hinges}<geom size=".01" mass=".1"/>{inner}</body>'


def arm(side: str, sign: int) -> str:
    """Return one arm, hanging down at zero."""
    roll = (-0.35, 2.9) if sign > 0 else (-2.9, 0.35)
    hand = body(f"{side}_hand", f"0 0 {-FOREARM}", [(f"{side}_wrist_yaw", "0 0 1", -1.6, 1.6)])
    elbow = body(f"{side}_force_arm", f"0 0 {-UPPER_ARM}", [(f"{side}_elbow", "0 1 0", -2.3, 0.05)], hand)
    joints = [
        (f"{side}_shoulder_pitch", "0 1 0", -3.1, 1.6),
        (f"{side}_shoulder_roll", "1 0 0", *roll),
        (f"{side}_shoulder_yaw", "0 0 1", -1.9, 1.9),
    ]
    return body(f"{side}_upper_arm", f"0 {sign * 0.065} 0.07", joints, elbow)


def leg(side: str, sign: int) -> str:
    """Return one leg, straight at zero."""
    ankle = [(f"{side}_ankle_pitch", "0 1 0", -0.9, 0.7), (f"{side}_ankle_roll", "1 0 0", -0.5, 0.5)]
    calf = body(
        f"{side}_calf",
        f"0 0 {-THIGH}",
        [(f"{side}_knee", "0 1 0", 0.0, 2.4)],
        body(f"{side}_foot", f"0 0 {-CALF}", ankle),
    )
    joints = [
        (f"{side}_hip_yaw", "0 0 1", -1.0, 1.0),
        (f"{side}_hip_roll", "1 0 0", -0.7, 0.7),
        (f"{side}_hip_pitch", "0 1 0", -2.1, 1.2),
    ]
    return body(f"{side}_thigh", f"0 {sign * 0.03} -0.03", joints, calf)


def xml() -> str:
    """Return the MJCF."""
    head = body(
        "head", f"0 0 {HEAD}", [("head_pitch", "0 1 0", -0.6, 0.8), ("head_roll", "1 0 0", -0.5, 0.5)]
    )
    neck = body("neck_linkage", "0 0 0.1", [("neck_yaw", "0 0 1", -1.4, 1.4)], head)
    waist = [
        ("chest_yaw", "0 0 1", -1.2, 1.2),
        ("chest_roll", "1 0 0", -0.5, 0.5),
        ("chest_pitch", "0 1 0", -0.4, 1.0),
    ]
    chest = body("chest", "0 0 0.03", waist, arm("left", 1) + arm("right", -1) + neck)
    root = (
        f'<body name="waist" pos="0 0 0.3"><geom size=".02"/>{chest}{leg("left", 1)}{leg("right", -1)}</body>'
    )
    return f'<mujoco><compiler angle="radian"/><worldbody>{root}</worldbody></mujoco>'


def model() -> mujoco.MjModel:
    """Return the compiled model."""
    return mujoco.MjModel.from_xml_string(xml())


def tasks() -> list[FrameTask]:
    """Return the source's task table."""
    table = [FrameTask("chest", "chest", 0.0, 50.0)]
    for side in ("left", "right"):
        table += [
            FrameTask(f"{side}_wrist", f"{side}_hand", 10.0, 0.0, f"{side}_upper_arm"),
            FrameTask(f"{side}_ankle", f"{side}_foot", 10.0, 1.0, f"{side}_thigh"),
            FrameTask(f"{side}_elbow", f"{side}_force_arm", 5.0, 0.0, f"{side}_upper_arm"),
            FrameTask(f"{side}_knee", f"{side}_calf", 5.0, 0.0, f"{side}_thigh"),
        ]
    return [*table, FrameTask("head", "head", 1.0, 5.0, "neck_linkage")]
