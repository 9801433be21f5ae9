"""Cutting, mirroring, resampling and stringing together motions of people and robots.

Where a robot has a free root, the second clip is turned and moved on the floor so that it goes on where the first
one ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.geometry import conjugate, from_rotvec, multiply, nlerp, rotate, to_rotvec
from bunraku.motion import HumanMotion, RobotMotion
from bunraku.retarget.reading.axes import mirror_points
from bunraku.retarget.stages.upsample import frame_times
from bunraku.retarget.tools.interpolator import MotionInterpolator
from bunraku.retarget.tools.spline import Method, resample

Array = NDArray[np.float64]
Motion = TypeVar("Motion", HumanMotion, RobotMotion)
_PER_FRAME = ("body_pos", "body_quat", "body_lin_vel", "body_ang_vel", "human_points", "flags")
_BODIES = {"body_names": (), "body_pos": None, "body_quat": None, "body_lin_vel": None, "body_ang_vel": None}
_REFLECT = np.array([1.0, -1.0, 1.0])
_REFLECT_QUAT = np.array([1.0, -1.0, 1.0, -1.0])


def cut(motion: Motion, start: float, stop: float) -> Motion:
    """Return the frames from `start` to `stop` [s], both included to the nearest frame."""
    first, last = round(start * motion.fps), round(stop * motion.fps)
    if not 0 <= first <= last < len(motion):
        raise BunrakuError(f"cannot cut {start:g} s to {stop:g} s out of a motion of {motion.duration:.3f} s")
    return take(motion, slice(first, last + 1))


def take(motion: Motion, frames: slice) -> Motion:
    """Return some frames of a motion."""
    if isinstance(motion, HumanMotion):
        head = None if motion.head_quat is None else motion.head_quat[frames]
        return replace(motion, joints=motion.joints[frames], head_quat=head)
    arrays = {name: getattr(motion, name)[frames] for name in _PER_FRAME if getattr(motion, name) is not None}
    return replace(motion, qpos=motion.qpos[frames], **arrays)


def mirror_human(motion: HumanMotion) -> HumanMotion:
    """Return the motion seen in a mirror: left and right exchanged."""
    head = None if motion.head_quat is None else motion.head_quat * _REFLECT_QUAT
    return replace(
        motion, joints=mirror_points(motion.joints), head_quat=head, source=f"{motion.source} (mirrored)"
    )


def mirror_robot(motion: RobotMotion, model: mujoco.MjModel) -> RobotMotion:
    """Return the motion seen in a mirror, for a robot that is its own mirror image along y.

    Args:
        motion: The motion; body poses are left out of the result.
        model: The robot's model, whose joint axes tell the signs.
    """
    columns, signs = mirror_signs(model, motion.joint_names)
    dof = motion.dof[:, columns] * signs
    qpos = dof
    if motion.free_root:
        qpos = np.concatenate([motion.root_pos * _REFLECT, motion.root_quat * _REFLECT_QUAT, dof], axis=1)
    points = None if motion.human_points is None else mirror_points(motion.human_points)
    boxes = motion.obstacles
    if boxes is not None:
        boxes = np.concatenate([boxes[:, :3] * _REFLECT, boxes[:, 3:6], boxes[:, 6:] * _REFLECT_QUAT], axis=1)
    source = f"{motion.source} (mirrored)"
    return replace(motion, qpos=qpos, human_points=points, obstacles=boxes, source=source, **_BODIES)


def mirror_signs(model: mujoco.MjModel, joints: Sequence[str]) -> tuple[list[int], Array]:
    """Return for each joint the one that it exchanges its angle with, and the sign `(n,)`.

    Raises:
        BunrakuError: If a joint has no counterpart with a mirrored axis.
    """
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    columns, signs = [], []
    for name in joints:
        other = name.replace("left", "\0").replace("right", "left").replace("\0", "right")
        if other not in joints:
            raise UnknownNameError("counterpart of the joint " + name, other, joints)
        axis, there = data.xaxis[model.joint(name).id], data.xaxis[model.joint(other).id]
        # a rotation axis is an axial vector: in the mirror it keeps its y and turns the others about
        match = float(axis @ (there * [-1.0, 1.0, -1.0]))
        if abs(match) < 0.99:
            raise BunrakuError(
                f"the axes of {name!r} and {other!r} are no mirror images; the robot cannot be mirrored"
            )
        columns.append(list(joints).index(other))
        signs.append(np.sign(match))
    return columns, np.array(signs)


def resample_robot(motion: RobotMotion, fps: float, method: Method = "monotone") -> RobotMotion:
    """Return the motion at another frame rate; body poses are left out of the result."""
    if fps == motion.fps:
        return motion
    times = frame_times(len(motion), motion.fps, fps)
    left = np.minimum(times.astype(np.int64), max(len(motion) - 2, 0))
    right = np.minimum(left + 1, len(motion) - 1)
    qpos = resample(motion.dof, motion.fps, fps, method)
    if motion.free_root:
        root = resample(motion.root_pos, motion.fps, fps, method)
        qpos = np.concatenate(
            [root, nlerp(motion.root_quat[left], motion.root_quat[right], times - left), qpos], axis=1
        )
    arrays: dict[str, Array | NDArray[np.int64] | None] = {}
    if motion.human_points is not None:
        flat = motion.human_points.reshape(len(motion), -1)
        arrays["human_points"] = resample(flat, motion.fps, fps, "linear").reshape(len(times), -1, 3)
    if motion.flags is not None:
        arrays["flags"] = motion.flags[np.rint(times).astype(np.int64)]
    return replace(motion, qpos=qpos, fps=fps, **_BODIES, **arrays)  # type: ignore[arg-type]


def join_robot(
    first: RobotMotion, second: RobotMotion, tool: MotionInterpolator, seconds: float | None = None
) -> RobotMotion:
    """Return two motions of one robot with a transition in between; see `MotionInterpolator.join`."""
    if first.robot != second.robot or set(first.joint_names) != set(second.joint_names):
        raise BunrakuError(f"motions of {first.robot!r} and {second.robot!r} cannot be joined: other joints")
    if first.free_root != second.free_root:
        raise BunrakuError("a motion with a free root cannot be joined to one with a fixed root")
    first, second = (resample_robot(motion, tool.fps) for motion in (first, second))
    joined = tool.join(first.dof, second.select(first.joint_names), seconds)
    qpos = joined.dof
    if first.free_root:
        qpos = np.concatenate(
            [_join_roots(first, second, joined.stop - joined.start, tool.fps), qpos], axis=1
        )
    source = f"{first.source} + {second.source}"
    licence = first.licence if first.licence == second.licence else f"{first.licence}; {second.licence}"
    return RobotMotion(qpos, first.joint_names, tool.fps, first.robot, source, licence, first.base)


def concatenate(
    motions: Sequence[RobotMotion], tool: MotionInterpolator, seconds: float | None = None
) -> RobotMotion:
    """Return several motions of one robot, joined one after the other."""
    if not motions:
        raise BunrakuError("there is no motion to concatenate")
    out = resample_robot(motions[0], tool.fps)
    for motion in motions[1:]:
        out = join_robot(out, motion, tool, seconds)
    return out


def place_root(pose: Array, at: Array) -> Array:
    """Return root poses `(T, 7)` turned about the vertical and moved on the floor so that the first is at `at` `(7,)`.

    Height and lean are kept.
    """
    turn = _yaw(at[3:]) - _yaw(pose[0, 3:])
    quat = from_rotvec(np.array([0.0, 0.0, turn]))
    pos = rotate(quat, pose[:, :3] - pose[0, :3] * [1.0, 1.0, 0.0]) + at[:3] * [1.0, 1.0, 0.0]
    return np.concatenate([pos, multiply(quat, pose[:, 3:])], axis=1)


def _yaw(quat: Array) -> float:
    forward = rotate(quat, np.array([1.0, 0.0, 0.0]))
    return float(np.arctan2(forward[1], forward[0]))


def _join_roots(first: RobotMotion, second: RobotMotion, between: int, fps: float) -> Array:
    """Return the root poses of two motions with `between` frames in between `(M, 7)`."""
    before, after = first.qpos[:, :7], second.qpos[:, :7]
    last = before[-1]
    steps = between + 1
    speed_in = (before[-1, :3] - before[-2, :3]) * fps if len(before) > 1 else np.zeros(3)
    # the root goes on with the mean of both speeds while the joints change over
    after = place_root(after, last)
    speed_out = (after[1, :3] - after[0, :3]) * fps if len(after) > 1 else np.zeros(3)
    travel = 0.5 * (speed_in + speed_out) * (steps / fps)
    after[:, :2] += travel[:2]
    s = np.arange(1, steps)[:, None] / steps
    total = steps / fps
    rise = s * s * (3.0 - 2.0 * s)
    pos = last[:3] + rise * (after[0, :3] - last[:3])
    pos += total * (s * (1.0 - s) ** 2 * speed_in - s * s * (1.0 - s) * speed_out)
    turn = to_rotvec(multiply(after[0, 3:], conjugate(last[3:])))
    quat = multiply(from_rotvec(rise * turn), last[3:])
    return np.concatenate([before, np.concatenate([pos, quat], axis=1), after])
