"""The report of one retargeted clip, from what the pipeline returns and the robot's own model."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.humanoid import HumanoidSpec
from bunraku.motion import SMPL_JOINTS, HumanMotion, RobotMotion
from bunraku.motion_bodies import model_qpos
from bunraku.retarget import metrics
from bunraku.retarget.metrics import MotionReport, Spread
from bunraku.retarget.pipeline import Retargeted, Retargeter
from bunraku.retarget.root import resample_contact

Array = NDArray[np.float64]


def measure(
    retargeter: Retargeter, human: HumanMotion, result: Retargeted, motion: RobotMotion, seconds: float
) -> MotionReport:
    """Return the figures of a clip.

    All of them are of the motion as it is written. Errors of key points and orientations are those against the
    solver's targets, at the times of its frames.

    Args:
        retargeter: What retargeted it.
        human: The person.
        result: What the pipeline returned.
        motion: The motion that is written.
        seconds: Time that it took.
    """
    problem, robot = retargeter.problem, retargeter.robot
    names = [task.name for task in problem.tasks]
    weights = problem.packed.weights
    found = retargeter.engine.errors(_at_solver(retargeter, result, motion), result.offsets, result.rotations)
    errors = {name: _spread(1e3 * found[:, k, 0]) for k, name in enumerate(names) if weights[k, 0] > 0.0}
    turned = {name: _spread(found[:, k, 1]) for k, name in enumerate(names) if weights[k, 1] > 0.0}
    ends = metrics.pooled(errors, metrics.END_EFFECTORS)
    model = robot.load(root="free" if motion.free_root else "fixed").compile()
    soles, depths = _walk(model, robot, motion)
    ground: dict[str, float] = {}
    if motion.free_root:
        contact = _contact(human, motion)
        ground = {
            "foot_slide_cm_s": 100.0 * metrics.slide_speed(soles, contact, motion.fps),
            "penetration_mm": metrics.penetration(soles).mean,
            "penetration_max_mm": metrics.penetration(soles).max,
            "float_mm": metrics.floating(soles, contact).mean,
            "root_jerk": metrics.jerk_rms(motion.root_pos, motion.fps),
        }
    return MotionReport(
        frames_in=len(human),
        frames_out=len(motion),
        fps=motion.fps,
        ms_per_frame=1e3 * seconds / len(human),
        ee_mean_mm=ends.mean,
        ee_max_mm=ends.max,
        limit_violations=metrics.limit_violations(motion.dof, problem.tree.lower, problem.tree.upper),
        joint_jumps=metrics.joint_jumps(motion.dof, motion.fps),
        max_joint_speed=metrics.max_joint_speed(motion.dof, motion.fps),
        joint_jerk=metrics.jerk_rms(motion.dof, motion.fps),
        self_collision_share=metrics.self_collision_share(depths),
        key_points_mm=errors,
        chest_error=turned.get("chest"),
        head_error=turned.get("head"),
        degraded_frames=tuple(result.degraded),
        **ground,
    )


def _spread(values: Array) -> Spread:
    return Spread(float(values.mean()), float(values.max()))


def _at_solver(retargeter: Retargeter, result: Retargeted, motion: RobotMotion) -> Array:
    """Return the joint angles of a motion at the times of the solver's frames `(T, n)`."""
    times = np.arange(len(result.solved)) * motion.fps / retargeter.options.solve_fps
    frames = np.arange(len(motion))
    return np.ascontiguousarray(
        np.stack([np.interp(times, frames, column) for column in motion.dof.T], axis=1)
    )


def _contact(human: HumanMotion, motion: RobotMotion) -> NDArray[np.bool_]:
    """Return which foot of the person is on the ground at each frame of the robot `(M, 2)`."""
    toes = human.joints[:, [SMPL_JOINTS.index("left_foot"), SMPL_JOINTS.index("right_foot")]]
    contact = metrics.ground_contact(toes, human.fps)
    return resample_contact(contact, human.fps, motion.fps, len(motion))


def _walk(model: mujoco.MjModel, robot: HumanoidSpec, motion: RobotMotion) -> tuple[Array, Array]:
    """Return the corners of the soles `(M, 2, 4, 3)` and the depth of the deepest self-contact `(M,)` [m]."""
    data = mujoco.MjData(model)
    corners = np.array([foot.sole for foot in robot.feet])
    bodies = [model.body(foot.body).id for foot in robot.feet]
    soles, depths = np.empty((len(motion), 2, 4, 3)), np.zeros(len(motion))
    for t, q in enumerate(model_qpos(motion, model)):
        data.qpos[:] = q
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        if data.ncon:
            own = (model.geom_bodyid[data.contact.geom] > 0).all(axis=1)
            depths[t] = max(0.0, -float(data.contact.dist[own].min(initial=0.0)))
        for foot, body in enumerate(bodies):
            soles[t, foot] = corners[foot] @ data.xmat[body].reshape(3, 3).T + data.xpos[body]
    return soles, depths
