"""Poses and velocities of a robot's bodies along a motion, from forward kinematics of the very same frames.

    motion = with_bodies(motion, ROBOT.load(root="free").compile())

Velocities are central differences (one-sided at the ends); angular velocity is the logarithm of the rotation between
the neighbouring frames over the time between them, so that it has no leap where a rotation vector would wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.geometry import Array, conjugate, multiply, to_rotvec
from bunraku.motion import RobotMotion

_HINGES = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_FREE = int(mujoco.mjtJoint.mjJNT_FREE)


def with_bodies(
    motion: RobotMotion, model: mujoco.MjModel, bodies: Sequence[str] | None = None
) -> RobotMotion:
    """Return the motion with world poses and velocities of bodies.

    Args:
        motion: Joint angles, matched to the model by name.
        model: The robot; a free root in the motion needs one in the model.
        bodies: Bodies to add; all of the model's but the world by default.

    Raises:
        UnknownNameError: If a joint or body is not in the model.
    """
    names = [model.body(i).name for i in range(1, model.nbody)] if bodies is None else list(bodies)
    ids = [_body(model, name) for name in names]
    data = mujoco.MjData(model)
    pos, quat = np.empty((len(motion), len(ids), 3)), np.empty((len(motion), len(ids), 4))
    for t, q in enumerate(model_qpos(motion, model)):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        pos[t], quat[t] = data.xpos[ids], data.xquat[ids]
    return replace(
        motion,
        body_names=tuple(names),
        body_pos=pos,
        body_quat=quat,
        body_lin_vel=rates(pos, motion.fps),
        body_ang_vel=angular_velocity(quat, motion.fps),
    )


def model_qpos(motion: RobotMotion, model: mujoco.MjModel) -> Array:
    """Return the motion in the order of a model's `qpos` `(T, nq)`, joints matched by name.

    Joints of the model that the motion does not have (objects in the scene) stay where the model puts them.
    """
    qpos = np.tile(model.qpos0, (len(motion), 1))
    of_model = {model.joint(i).name: i for i in range(model.njnt)}
    for column, name in enumerate(motion.joint_names):
        if name not in of_model:
            raise UnknownNameError("joint of the model", name, of_model)
        joint = of_model[name]
        if int(model.jnt_type[joint]) not in _HINGES:
            raise BunrakuError(f"the joint {name!r} of the model is neither a hinge nor a slide")
        qpos[:, model.jnt_qposadr[joint]] = motion.dof[:, column]
    if motion.free_root:
        free = [i for i in range(model.njnt) if int(model.jnt_type[i]) == _FREE]
        if not free:
            raise BunrakuError(
                f"the motion moves the root of {motion.robot!r}, but the root of the model is fixed"
            )
        start = int(model.jnt_qposadr[free[0]])
        qpos[:, start : start + 7] = motion.qpos[:, :7]
    return qpos


def rates(values: ArrayLike, fps: float) -> Array:
    """Return the derivatives of samples `(T, ...)` over time: central differences, one-sided at the ends."""
    values = np.asarray(values, dtype=np.float64)
    if len(values) == 1:
        return np.zeros_like(values)
    return np.gradient(values, 1.0 / fps, axis=0)


def angular_velocity(quat: ArrayLike, fps: float) -> Array:
    """Return the angular velocity in the outer frame `(T, ..., 3)` [rad/s] of orientations `(T, ..., 4)`."""
    quat = np.asarray(quat, dtype=np.float64)
    if len(quat) == 1:
        return np.zeros((*quat.shape[:-1], 3))
    before = np.concatenate([quat[:1], quat[:-2], quat[-2:-1]])
    after = np.concatenate([quat[1:2], quat[2:], quat[-1:]])
    span = np.full(len(quat), 2.0 / fps)
    span[0] = span[-1] = 1.0 / fps
    turn = to_rotvec(multiply(after, conjugate(before)))
    return turn / span.reshape((-1,) + (1,) * (quat.ndim - 1))


def _body(model: mujoco.MjModel, name: str) -> int:
    index = int(mujoco.mj_name2id(model, int(mujoco.mjtObj.mjOBJ_BODY), name))
    if index < 0:
        raise UnknownNameError("body", name, [model.body(i).name for i in range(1, model.nbody)])
    return index
