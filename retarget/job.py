"""One clip from file to file: read, retarget, ground, measure, write."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bunraku.geometry import to_matrix
from bunraku.motion import SMPL_JOINTS, HumanMotion, RobotMotion
from bunraku.retarget import metrics
from bunraku.retarget.export import export_motion
from bunraku.retarget.generate.body import Person
from bunraku.retarget.load import load_motions
from bunraku.retarget.measure import measure
from bunraku.retarget.metrics import MotionReport
from bunraku.retarget.pipeline import Options, Retargeted, Retargeter
from bunraku.retarget.reading.content import ReadOptions
from bunraku.retarget.root import ground_root, resample_contact


@dataclass(frozen=True)
class JobSettings:
    """What is the same for all clips of a run."""

    robot: str = "h1"
    """Name of a humanoid, or a robot file."""
    options: Options = field(default_factory=Options)
    """How to retarget."""
    reading: ReadOptions = field(default_factory=ReadOptions)
    """How to read the files."""
    to: str = "npz"
    """Format of the results."""


@dataclass(frozen=True)
class Job:
    """One clip."""

    path: str
    """File, or `generator:...`."""
    clip: int
    """Which clip of the file."""
    out: Path
    """Where the robot motion goes."""


def run_job(job: Job, settings: JobSettings, force: bool = False) -> dict[str, Any]:
    """Retarget one clip and write it; return its figures.

    Raises:
        BunrakuError: If the clip cannot be read or written.
    """
    human = load_motions(job.path, settings.reading)[job.clip]
    retargeter = _retargeter(settings.robot, settings.options)
    motion, report = retarget_human(retargeter, human)
    model = retargeter.robot.load(root="free" if motion.free_root else "fixed").compile()
    export_motion(motion, model, settings.to, job.out, force=force)
    return {
        "path": job.path,
        "clip": job.clip,
        "out": str(job.out),
        "robot": retargeter.robot.name,
        "source": human.source,
        "licence": human.licence,
        "notes": list(human.notes),
        **report.to_json(),
    }


def retarget_human(retargeter: Retargeter, human: HumanMotion) -> tuple[RobotMotion, MotionReport]:
    """Return the robot's motion and its figures; with a free root the feet are put on the floor."""
    start = time.perf_counter()
    heads = None if human.head_quat is None else to_matrix(human.head_quat)
    result = retargeter.solve(human.joints, human.fps, heads)
    motion = _motion(retargeter, human, result)
    seconds = time.perf_counter() - start
    return motion, measure(retargeter, human, result, motion, seconds)


def _motion(retargeter: Retargeter, human: HumanMotion, result: Retargeted) -> RobotMotion:
    robot, options = retargeter.robot, retargeter.options
    pose = np.concatenate([result.root_pos, result.root_quat], axis=1)
    steps = np.rint(np.arange(len(result.dof)) * options.solve_fps / result.fps).astype(np.int64)
    motion = RobotMotion(
        qpos=result.dof,
        joint_names=result.joint_names,
        fps=result.fps,
        robot=robot.name,
        source=human.source,
        licence=human.licence,
        base=pose[0],
        human_points=result.human_points,
        flags=result.flags[np.minimum(steps, len(result.flags) - 1)],
    )
    if options.root == "fixed":
        return motion
    toes = human.joints[:, [SMPL_JOINTS.index("left_foot"), SMPL_JOINTS.index("right_foot")]]
    contact = resample_contact(
        metrics.ground_contact(toes, human.fps), human.fps, result.fps, len(result.dof)
    )
    grounded = ground_root(robot, result.dof, result.root_pos, result.root_quat, contact, result.fps)
    qpos = np.concatenate([grounded.root_pos, grounded.root_quat, grounded.dof], axis=1)
    shift = grounded.root_pos - result.root_pos
    return replace(motion, qpos=qpos, base=None, human_points=result.human_points + shift[:, None])


@lru_cache(maxsize=4)
def _retargeter(robot: str, options: Options) -> Retargeter:
    """Return the retargeter of a robot, warmed up so that times are those of the work; one per process."""
    retargeter = Retargeter(robot, options=options)
    standing = Person(2)
    retargeter.solve(standing.joints(), options.solve_fps)
    return retargeter
