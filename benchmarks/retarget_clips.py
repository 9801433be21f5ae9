"""Real clips and their targets, the same for every solver of the retargeting benchmarks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError
from bunraku.retarget.pipeline import Options, Retargeter
from bunraku.retarget.stages.coordinates import rotate_axes

Array = NDArray[np.float64]
ENDS = ("left_wrist", "right_wrist", "left_ankle", "right_ankle", "head")
FPS = 20.0
JUMP = 0.5
"""A joint that moves farther between two frames jumps [rad]."""


@dataclass(frozen=True)
class Clip:
    """A clip with its targets for one robot."""

    name: str
    joints: Array
    """Key points `(T, 22, 3)`, Z up [m], 20 frames per second."""
    offsets: Array
    rotations: Array


def load_clips(retargeter: Retargeter) -> list[Clip]:
    """Return the clips of ../shared/motion/joints with the targets of a robot."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "motion" / "joints"
    files = sorted(folder.glob("*.npz"))
    if not files:
        raise BunrakuError(
            f"no clips in {folder}; put `.npz` files with joints (T, 22, 3), Y up, 20 fps there"
        )
    forward = Retargeter(retargeter.config, options=Options(search="forward"))
    clips = []
    for file in files:
        joints = rotate_axes(np.load(file)["joints"].astype(np.float64))
        result = forward.solve(joints, FPS)
        clips.append(Clip(file.stem, joints, result.offsets, result.rotations))
    return clips


@dataclass(frozen=True)
class Quality:
    """What solved joint angles are worth, over all clips."""

    mean_mm: float
    """Mean error of hands, feet and head [mm]."""
    worst_mm: float
    """Largest."""
    objective: float
    """Mean objective."""
    jumps: int
    """Joint steps over 0.5 rad."""
    largest_step: float
    """Largest joint step [rad]."""
    jerk: float
    """Root mean square of the third difference [rad/s^3]."""
    violations: int
    """Joint angles outside the limits by more than 1e-9 rad."""


def judge(retargeter: Retargeter, clips: list[Clip], solved: list[Array]) -> Quality:
    """Return the quality of joint angles `(T, n)` of each clip."""
    engine, problem = retargeter.engine, retargeter.problem
    rows = [problem.index(name) for name in ENDS]
    errors = [
        engine.errors(x, c.offsets, c.rotations)[:, rows, 0] for c, x in zip(clips, solved, strict=True)
    ]
    costs = [engine.costs(x, c.offsets, c.rotations).sum(axis=1) for c, x in zip(clips, solved, strict=True)]
    steps = [np.abs(np.diff(x, axis=0)) for x in solved]
    jerks = np.concatenate([np.diff(x, 3, axis=0) for x in solved]) * FPS**3
    lower, upper = problem.tree.lower - 1e-9, problem.tree.upper + 1e-9
    return Quality(
        mean_mm=1e3 * float(np.concatenate(errors).mean()),
        worst_mm=1e3 * float(np.concatenate(errors).max()),
        objective=float(np.concatenate(costs).mean()),
        jumps=int(sum((s > JUMP).sum() for s in steps)),
        largest_step=float(max(s.max() for s in steps)),
        jerk=float(np.sqrt((jerks**2).mean())),
        violations=int(sum(((x < lower) | (x > upper)).sum() for x in solved)),
    )
