"""Inverse kinematics: ours against `mink` with daqp, on the same continuous path, at no larger error.

Both start each pose from the last solution and iterate until the tool is within 0.01 mm and 0.05 degrees, five times at
most. The path has 1,000 poses, 2 mm and half a degree apart at most.
"""

from __future__ import annotations

from importlib.metadata import version

import daqp  # noqa: F401 - mink's solver
import mink
import mujoco
import numpy as np
from timing import Result, in_turn

from bunraku.control.kinematics import ArmKinematics, kinematic_model
from bunraku.control.solve import PoseSolver
from bunraku.geometry import Pose, from_rotvec, multiply
from bunraku.robots.panda import ROBOT

DISTANCE, ANGLE, ITERATIONS = 1e-5, np.deg2rad(0.05), 5
POSES = 1000


def path() -> list[Pose]:
    """Return a closed path through the workspace."""
    kinematics = ArmKinematics(ROBOT)
    kinematics.update(np.array(ROBOT.home))
    home = Pose(kinematics.pos.copy(), kinematics.quat.copy())
    poses = []
    for phase in np.linspace(0.0, 2.0 * np.pi, POSES):
        offset = [0.08 * np.sin(phase), 0.2 * np.sin(2 * phase), 0.1 * np.sin(3 * phase)]
        turn = 0.3 * np.array([np.sin(phase), np.sin(2 * phase), np.sin(phase)])
        poses.append(Pose(home.pos + offset, multiply(from_rotvec(turn), home.quat)))
    return poses


MODEL = kinematic_model(ROBOT)


def ours(poses: list[Pose]) -> tuple[float, float]:
    """Solve the path; return the largest errors [m], [rad]."""
    solver = PoseSolver(MODEL, ROBOT.dof)
    q = np.array(ROBOT.home)
    worst = [0.0, 0.0]
    for pose in poses:
        result = solver.solve(q, pose, ITERATIONS, DISTANCE, ANGLE)
        q = result.q
        worst = [max(worst[0], result.position_error), max(worst[1], result.rotation_error)]
    return worst[0], worst[1]


def peer(poses: list[Pose]) -> tuple[float, float]:
    """Solve the path with mink; return the largest errors [m], [rad]."""
    configuration = mink.Configuration(MODEL)
    configuration.update(np.array(ROBOT.home))
    task = mink.FrameTask("0_tool_frame", "body", position_cost=1.0, orientation_cost=1.0, lm_damping=1e-6)
    limits = [mink.ConfigurationLimit(MODEL)]
    worst = [0.0, 0.0]
    for pose in poses:
        task.set_target(mink.SE3(np.concatenate([pose.quat, pose.pos])))
        for _ in range(ITERATIONS):
            velocity = mink.solve_ik(configuration, [task], 1.0, "daqp", limits=limits)
            configuration.integrate_inplace(velocity, 1.0)
            error = task.compute_error(configuration)
            if np.linalg.norm(error[:3]) <= DISTANCE and np.linalg.norm(error[3:]) <= ANGLE:
                break
        worst = [
            max(worst[0], float(np.linalg.norm(error[:3]))),
            max(worst[1], float(np.linalg.norm(error[3:]))),
        ]
    return worst[0], worst[1]


def run(repeats: int = 5) -> list[Result]:
    """Run the benchmark."""
    poses = path()
    mine, theirs = ours(poses), peer(poses)
    details = {
        "ours_worst_mm": 1e3 * mine[0],
        "peer_worst_mm": 1e3 * theirs[0],
        "ours_worst_deg": float(np.rad2deg(mine[1])),
        "peer_worst_deg": float(np.rad2deg(theirs[1])),
        "mink": version("mink"),
        "mujoco": mujoco.__version__,
    }
    return [
        in_turn(
            "ik",
            lambda: ours(poses),
            lambda: peer(poses),
            per=POSES,
            repeats=repeats,
            required=5.0,
            details=details,
        )
    ]
