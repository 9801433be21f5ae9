"""One step of inverse kinematics from either backend's poses and Jacobians is pink's, in pink's own formulation.

pink writes a task's error as the logarithm of the pose between frame and target, in the frame's own axes. That is
formed here from a backend's pose and Jacobian, with the derivative of the logarithm from finite differences, and the
box QP of the solver without numba finds the step.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm, logm

from bunraku.retarget.kinematics.base import Kinematics
from bunraku.retarget.kinematics.mujoco_backend import MujocoKinematics
from bunraku.retarget.solver.mujoco_path import box_qp
from bunraku.retarget.solver.source_table import source_tasks
from bunraku.robots.h1 import ROBOT

pink = pytest.importorskip("pink", reason="the comparison needs the package pin-pink")
pin = pytest.importorskip("pinocchio", reason="the comparison needs the package pin")

TASKS = source_tasks(ROBOT.frames)
DAMPING, POSTURE, DT = 1e-3, 0.1, 0.05


def pose(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Return a homogeneous matrix `(4, 4)`."""
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = rotation, position
    return matrix


def log6(matrix: np.ndarray) -> np.ndarray:
    """Return the twist of a pose, linear part first `(6,)`."""
    twist = np.real(logm(matrix))
    return np.array([*twist[:3, 3], twist[2, 1], twist[0, 2], twist[1, 0]])


def exp6(twist: np.ndarray) -> np.ndarray:
    """Return the pose of a twist `(6,)`."""
    x, y, z = twist[3:]
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]], twist[:3]
    return expm(matrix)


def step(kinematics: Kinematics, q: np.ndarray, targets: list[np.ndarray]) -> np.ndarray:
    """Return the joint step `(n,)` from `q` towards target poses, in pink's formulation."""
    kinematics.update(q)
    n = len(q)
    hessian = np.eye(n) * (DAMPING + POSTURE**2)
    gradient = POSTURE**2 * (q - np.array(ROBOT.home))
    for task, target in zip(TASKS, targets, strict=True):
        position, rotation = kinematics.pose(task.body)
        frame = pose(rotation, position)
        away = np.linalg.inv(frame) @ target
        error = log6(away)
        moved = [(exp6(-1e-5 * d) @ away, exp6(1e-5 * d) @ away) for d in np.eye(6)]
        columns = [(log6(there) - log6(back)) / 2e-5 for there, back in moved]
        world = kinematics.jacobian(task.body)
        body = np.concatenate([rotation.T @ world[:3], rotation.T @ world[3:]])
        jacobian = np.array(columns).T @ body
        weight = np.array([task.position] * 3 + [task.orientation] * 3) ** 2
        hessian += jacobian.T @ (weight[:, None] * jacobian)
        gradient += jacobian.T @ (weight * error)
    low, high = 0.5 * (kinematics.lower - q), 0.5 * (kinematics.upper - q)
    return box_qp(hessian, gradient, low, high, np.zeros(n, dtype=np.int8))


def pinks_step(q: np.ndarray, targets: list[np.ndarray]) -> np.ndarray:
    """Return the step of pink itself, on a Pinocchio model of the same tree."""
    from bunraku.retarget.solver.tree import Tree

    tree = Tree.from_model(ROBOT.load(root="fixed").compile(), ROBOT.root_body)
    model, ids = pin.Model(), []
    for i in range(tree.n):
        joint = model.addJoint(
            ids[tree.parent[i]] if tree.parent[i] >= 0 else 0,
            pin.JointModelRevoluteUnaligned(tree.axis[i]),
            pin.SE3(tree.rotation[i], tree.offset[i]),
            tree.joints[i],
            np.array([1e3]),
            np.array([1e3]),
            tree.lower[i : i + 1],
            tree.upper[i : i + 1],
        )
        ids.append(joint)
    tasks = []
    base = BASE
    for k, (task, target) in enumerate(zip(TASKS, targets, strict=True)):
        frame = tree.frame(task.body)
        model.addFrame(
            pin.Frame(f"t{k}", ids[frame.link], pin.SE3(frame.rot, frame.pos), pin.FrameType.OP_FRAME)
        )
        mine = pink.tasks.FrameTask(f"t{k}", task.position, task.orientation)
        local = np.linalg.inv(base) @ target
        mine.set_target(pin.SE3(local[:3, :3], local[:3, 3]))
        tasks.append(mine)
    posture = pink.tasks.PostureTask(cost=POSTURE)
    posture.set_target(np.array(ROBOT.home))
    configuration = pink.Configuration(model, model.createData(), q)
    limits = [pink.limits.ConfigurationLimit(model, 0.5)]
    velocity = pink.solve_ik(
        configuration,
        [*tasks, posture],
        DT,
        solver="daqp",
        damping=DAMPING,
        limits=limits,
        safety_break=False,
    )
    return velocity * DT


def backend(name: str) -> Kinematics:
    if name == "mujoco":
        return MujocoKinematics(ROBOT)
    from bunraku.retarget.kinematics.pinocchio_backend import PinocchioKinematics

    return PinocchioKinematics(ROBOT)


def root_pose() -> np.ndarray:
    kinematics = MujocoKinematics(ROBOT)
    kinematics.update(np.array(ROBOT.home))
    position, rotation = kinematics.pose(ROBOT.root_body)
    return pose(rotation, position)


BASE = root_pose()


@pytest.mark.parametrize("name", ["mujoco", "pinocchio"])
@pytest.mark.parametrize("seed", range(2))
def test_a_step_is_pinks(name, seed):
    kinematics, rng = backend(name), np.random.default_rng(seed)
    share = rng.uniform(0.02, 0.98, (2, len(kinematics.joints)))
    q, goal = kinematics.lower + share * (kinematics.upper - kinematics.lower)
    goal = q + 0.4 * (goal - q)
    kinematics.update(goal)
    targets = [pose(*kinematics.pose(task.body)[::-1]) for task in TASKS]
    ours, theirs = step(kinematics, q, targets), pinks_step(q, targets)
    assert np.abs(theirs).max() > 0.05
    np.testing.assert_allclose(ours, theirs, atol=1e-6)
