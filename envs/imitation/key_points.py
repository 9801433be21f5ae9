"""The points of a robot that are compared with the reference: bodies and sites, by name, measured by sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from bunraku.geometry import Array, multiply, rotate
from bunraku.humanoid import HumanoidSpec
from bunraku.motion import RobotMotion
from bunraku.motion_bodies import rates, with_bodies

KEY_POINTS = (
    "pelvis",
    "spine3",
    *(f"{side}_{part}" for part in ("hip", "knee", "ankle") for side in ("left", "right")),
    *(f"{side}_{part}" for part in ("shoulder", "elbow", "wrist") for side in ("left", "right")),
    "head",
)
"""Names of the human's key points that robots follow."""
ANCHOR = KEY_POINTS.index("spine3")
"""The chest, which the other targets are relative to."""
END_EFFECTORS = tuple(
    KEY_POINTS.index(f"{side}_{part}") for part in ("ankle", "wrist") for side in ("left", "right")
)
"""Feet and hands."""
_SENSORS = (
    ("pos", mujoco.mjtSensor.mjSENS_FRAMEPOS, 3),
    ("quat", mujoco.mjtSensor.mjSENS_FRAMEQUAT, 4),
    ("lin", mujoco.mjtSensor.mjSENS_FRAMELINVEL, 3),
    ("ang", mujoco.mjtSensor.mjSENS_FRAMEANGVEL, 3),
)


@dataclass(frozen=True)
class BodyPoses:
    """Poses and velocities of the key points, world."""

    pos: Array
    """`(..., B, 3)` [m]"""
    quat: Array
    """`(..., B, 4)`"""
    lin: Array
    """`(..., B, 3)` [m/s]"""
    ang: Array
    """`(..., B, 3)` [rad/s]"""


def add_sensors(spec: mujoco.MjSpec, robot: HumanoidSpec) -> None:
    """Add sensors of the key points' poses and velocities, kind after kind, ahead of all other sensors."""
    bodies = {body.name for body in spec.bodies}
    for kind, sensor, _ in _SENSORS:
        for point in KEY_POINTS:
            name = robot.frames[point]
            of = mujoco.mjtObj.mjOBJ_XBODY if name in bodies else mujoco.mjtObj.mjOBJ_SITE
            spec.add_sensor(name=f"{kind}_{point}", type=sensor, objtype=of, objname=name)


def sensor_views(sensordata: Array) -> BodyPoses:
    """Return live views of the key points in `sensordata` `(..., nsensordata)` of a model with `add_sensors`."""
    views, start = {}, 0
    for kind, _, size in _SENSORS:
        end = start + size * len(KEY_POINTS)
        part = sensordata[..., start:end]
        views[kind] = part.reshape(*part.shape[:-1], len(KEY_POINTS), size)
        assert np.shares_memory(views[kind], sensordata)
        start = end
    return BodyPoses(**views)


def motion_key_points(motion: RobotMotion, robot: HumanoidSpec, model: mujoco.MjModel) -> BodyPoses:
    """Return the key points along a motion `(T, B, ...)`, by forward kinematics of its frames.

    Velocities are differences of these very poses.
    """
    names, offsets, turns = _places(robot, model)
    with_all = with_bodies(motion, model, sorted(set(names)))
    index = [with_all.body_names.index(name) for name in names]
    assert with_all.body_pos is not None
    assert with_all.body_quat is not None
    assert with_all.body_ang_vel is not None
    quat = with_all.body_quat[:, index]
    pos = with_all.body_pos[:, index] + rotate(quat, offsets)
    return BodyPoses(pos, multiply(quat, turns), rates(pos, motion.fps), with_all.body_ang_vel[:, index])


def _places(robot: HumanoidSpec, model: mujoco.MjModel) -> tuple[Sequence[str], Array, Array]:
    """Return for each key point its body, and its place in the frame of that body."""
    names: list[str] = []
    offsets, turns = np.zeros((len(KEY_POINTS), 3)), np.tile([1.0, 0.0, 0.0, 0.0], (len(KEY_POINTS), 1))
    for i, point in enumerate(KEY_POINTS):
        name = robot.frames[point]
        site = int(mujoco.mj_name2id(model, int(mujoco.mjtObj.mjOBJ_SITE), name))
        if int(mujoco.mj_name2id(model, int(mujoco.mjtObj.mjOBJ_BODY), name)) >= 0:
            names.append(name)
        else:
            names.append(model.body(int(model.site_bodyid[site])).name)
            offsets[i], turns[i] = model.site_pos[site], model.site_quat[site]
    return names, offsets, turns
