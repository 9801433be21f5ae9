"""The task table of the source document: which link follows which key point, and how strongly.

Hands and feet are what people look at, so they weigh most; elbows and knees only guide their limbs; the chest follows
in orientation alone, strongly, so that the trunk neither leans back nor chases an arm; the head mostly turns.
"""

from __future__ import annotations

from collections.abc import Mapping

from bunraku.errors import BunrakuError
from bunraku.retarget.solver.problem import FrameTask

WEIGHTS: Mapping[str, tuple[float, float]] = {
    "chest": (0.0, 50.0),
    "left_wrist": (10.0, 0.0),
    "right_wrist": (10.0, 0.0),
    "left_ankle": (10.0, 1.0),
    "right_ankle": (10.0, 1.0),
    "left_elbow": (5.0, 0.0),
    "right_elbow": (5.0, 0.0),
    "left_knee": (5.0, 0.0),
    "right_knee": (5.0, 0.0),
    "head": (1.0, 5.0),
}
"""Position weight [1/m] and orientation weight [1/rad] of each task."""

ANCHORS: Mapping[str, str] = {
    "elbow": "shoulder",
    "wrist": "shoulder",
    "knee": "hip",
    "ankle": "hip",
    "head": "neck",
}
"""Key point that each kind of task is measured from."""


def source_tasks(
    frames: Mapping[str, str], weights: Mapping[str, tuple[float, float]] | None = None
) -> list[FrameTask]:
    """Return the task table for a robot.

    Args:
        frames: Body or site of the robot for each key point (`HumanoidSpec.frames`); the chest is `spine3`. Tasks of
            key points that the robot does not have are left out.
        weights: Position and orientation weight of each task; the source's by default.

    Raises:
        BunrakuError: If a task's anchor is missing, or nothing is left.
    """
    tasks = []
    for name, (position, orientation) in (WEIGHTS if weights is None else weights).items():
        point = "spine3" if name == "chest" else name
        if point not in frames:
            continue
        side, _, part = name.rpartition("_")
        anchor = ANCHORS.get(part)
        if anchor is not None:
            anchor = f"{side}_{anchor}" if side else anchor
            if anchor not in frames:
                raise BunrakuError(
                    f"the robot has {name!r} but no {anchor!r}, which its targets are measured from"
                )
            anchor = frames[anchor]
        tasks.append(FrameTask(name, frames[point], position, orientation, anchor))
    if not tasks:
        raise BunrakuError(f"no frame of the robot is a known key point; got {', '.join(frames) or 'none'}")
    return tasks
