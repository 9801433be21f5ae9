"""One clip from file to file: read, retarget, ground, measure, write."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import to_matrix
from bunraku.motion import HumanMotion, RobotMotion
from bunraku.retarget.export import export_motion
from bunraku.retarget.generate.body import Person
from bunraku.retarget.load import load_motions
from bunraku.retarget.measure import measure
from bunraku.retarget.metrics import MotionReport
from bunraku.retarget.obstacles import Avoided, avoid_boxes
from bunraku.retarget.pipeline import Options, Retargeter
from bunraku.retarget.reading.content import ReadOptions


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
    boxes: tuple[tuple[float, ...], ...] = ()
    """Obstacles that arms and legs are led around (`bunraku.retarget.obstacles.read_boxes`)."""


@dataclass(frozen=True)
class Job:
    """One clip."""

    path: str
    """File, or `generator:...`."""
    clip: int
    """Which clip of the file."""
    out: Path
    """Where the robot motion goes."""


def run_job(
    job: Job,
    settings: JobSettings,
    force: bool = False,
    note: Callable[[dict[str, Any]], None] = lambda row: None,
) -> dict[str, Any]:
    """Retarget one clip and write it; return its figures.

    Args:
        job: The clip.
        settings: How.
        force: Replace an existing file.
        note: Called with the figures before the motion is written.

    Raises:
        BunrakuError: If the clip cannot be read or written.
    """
    human = load_motions(job.path, settings.reading)[job.clip]
    retargeter = _retargeter(settings.robot, settings.options)
    boxes = np.array(settings.boxes).reshape(-1, 10) if settings.boxes else None
    motion, report, avoided = retarget_human(retargeter, human, boxes)
    model = retargeter.robot.load(root="free" if motion.free_root else "fixed").compile()
    row = {
        "path": job.path,
        "clip": job.clip,
        "out": str(job.out),
        "robot": retargeter.robot.name,
        "source": human.source,
        "licence": human.licence,
        "notes": list(human.notes),
        **report.to_json(),
        **_obstacles(avoided),
    }
    note(row)
    export_motion(motion, model, settings.to, job.out, force=force)
    return row


def _obstacles(avoided: Avoided | None) -> dict[str, Any]:
    """Return what is reported of obstacles: frames of each limb that met one, and that could not get clear of it."""
    if avoided is None:
        return {}
    clearance = float(avoided.clearance)
    return {
        "obstacle_clearance_mm": 1e3 * clearance if np.isfinite(clearance) else None,
        "limbs_bent": dict(avoided.touched),
        "limbs_blocked": {limb: [list(run) for run in runs] for limb, runs in avoided.blocked.items()},
    }


def retarget_human(
    retargeter: Retargeter, human: HumanMotion, boxes: NDArray[np.float64] | None = None
) -> tuple[RobotMotion, MotionReport, Avoided | None]:
    """Return the robot's motion, its figures, and how it got around obstacles.

    Args:
        retargeter: What retargets.
        human: The person.
        boxes: Obstacles in the robot's world `(K, 10)`.
    """
    start = time.perf_counter()
    heads = None if human.head_quat is None else to_matrix(human.head_quat)
    result = retargeter.solve(human.joints, human.fps, heads)
    motion = retargeter.as_motion(result, human)
    avoided = None
    if boxes is not None:
        robot = retargeter.robot
        avoided = avoid_boxes(robot, motion.dof, motion.root_pos, motion.root_quat, boxes, motion.fps)
        qpos = np.concatenate([motion.qpos[:, : motion.qpos.shape[1] - robot.dof], avoided.dof], axis=1)
        motion = replace(motion, qpos=qpos, obstacles=boxes)
    seconds = time.perf_counter() - start
    return motion, measure(retargeter, human, result, motion, seconds), avoided


@lru_cache(maxsize=4)
def _retargeter(robot: str, options: Options) -> Retargeter:
    """Return the retargeter of a robot, warmed up so that times are those of the work; one per process."""
    retargeter = Retargeter(robot, options=options)
    standing = Person(2)
    retargeter.solve(standing.joints(), options.solve_fps)
    return retargeter
