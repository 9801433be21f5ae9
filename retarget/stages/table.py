"""Which human bone drives which task: builds the arrays of `targets.TargetTable` for a robot."""

from __future__ import annotations

import numpy as np

from bunraku.errors import BunrakuError
from bunraku.retarget.solver.problem import Problem
from bunraku.retarget.stages import calibration as h
from bunraku.retarget.stages.targets import TargetTable

LIMBS: tuple[tuple[tuple[int, int, str], ...], ...] = (
    ((h.LEFT_SHOULDER, h.LEFT_ELBOW, "left_elbow"), (h.LEFT_ELBOW, h.LEFT_WRIST, "left_wrist")),
    ((h.RIGHT_SHOULDER, h.RIGHT_ELBOW, "right_elbow"), (h.RIGHT_ELBOW, h.RIGHT_WRIST, "right_wrist")),
    ((h.LEFT_HIP, h.LEFT_KNEE, "left_knee"), (h.LEFT_KNEE, h.LEFT_ANKLE, "left_ankle")),
    ((h.RIGHT_HIP, h.RIGHT_KNEE, "right_knee"), (h.RIGHT_KNEE, h.RIGHT_ANKLE, "right_ankle")),
)
"""The chains of human bones from each anchor outwards, with the task that the end of each bone drives."""

FEET = (
    ("left_ankle", h.LEFT_KNEE, h.LEFT_ANKLE, h.LEFT_FOOT),
    ("right_ankle", h.RIGHT_KNEE, h.RIGHT_ANKLE, h.RIGHT_FOOT),
)


def target_table(problem: Problem, *, whole_pelvis: bool = False) -> TargetTable:
    """Return the table for a robot, bone lengths measured on the robot at rest.

    Args:
        problem: The robot with its task table; tasks are named as the human key points.
        whole_pelvis: Take out the whole rotation of the pelvis (free root), not the heading only (fixed waist).

    Raises:
        BunrakuError: If a limb has a task for its far bone but none for the near one.
    """
    names = [task.name for task in problem.tasks]
    rows: list[tuple[int, int, int, int]] = []
    lengths: list[float] = []
    for limb in LIMBS:
        after, before = -1, None
        for start, end, name in limb:
            if name not in names:
                if any(later in names for _, _, later in limb):
                    raise BunrakuError(
                        f"task table: {name!r} is missing; a limb needs a task for each of its bones"
                    )
                break
            task = names.index(name)
            here = problem.tree.locate(problem.rest, problem.frames[task])[0]
            if before is None:
                before = problem.tree.locate(problem.rest, problem.anchors[task])[0]
            rows.append((start, end, task, after))
            lengths.append(float(np.linalg.norm(here - before)))
            after, before = len(rows) - 1, here
    head = names.index("head") if "head" in names else -1
    head_rest, head_length = np.array([0.0, 0.0, 1.0]), 0.0
    if head >= 0:
        away = (
            problem.tree.locate(problem.rest, problem.frames[head])[0]
            - problem.tree.locate(problem.rest, problem.anchors[head])[0]
        )
        head_length = float(np.linalg.norm(away))
        if head_length > 1e-6:
            head_rest = away / head_length
    feet = [(names.index(name), *points) for name, *points in FEET if name in names]
    return TargetTable(
        bones=np.array(rows, dtype=np.int64).reshape(-1, 4),
        lengths=np.array(lengths),
        chest=names.index("chest") if "chest" in names else -1,
        head=head,
        head_rest=head_rest,
        head_length=head_length,
        feet=np.array(feet, dtype=np.int64).reshape(-1, 4),
        whole_pelvis=whole_pelvis,
    )
