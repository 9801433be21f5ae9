"""Retargeting of files against `pink` on the same robot, task table, targets and clips, in one run.

Pink tracks the clips frame by frame as the source document describes, without its limit on target steps, which would
make it lag. Ours searches over the clip. The bounded rows give both the same joint speed bound. Wrong branches are
limbs whose objective a search from 24 seeds beats by more than 0.02, frame by frame and without regard to continuity.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from retarget_clips import FPS, Clip, judge, load_clips
from retarget_peers import Pink
from timing import Result, in_turn, seconds

from bunraku.retarget.pipeline import Options, Retargeter
from bunraku.retarget.solver.clip import seed_points, solve_clip

Array = NDArray[np.float64]
TIMED = "mdm_throw_08"
SPEEDS = (8.88, 6.0)
"""Joint speed bounds [rad/s]."""
SEEDS, WRONG = 24, 0.02


def best_costs(retargeter: Retargeter, clip: Clip) -> Array:
    """Return the least objective of each frame and group that `SEEDS` restarts find `(T, G)`."""
    tree, engine, frames = retargeter.problem.tree, retargeter.engine, len(clip.joints)
    least: Array | None = None
    for point in seed_points(SEEDS, tree.n):
        x = np.tile(tree.lower + point * (tree.upper - tree.lower), (frames, 1))
        engine.sweep(
            x, clip.offsets, clip.rotations, 0, frames - 1, follow=False, substeps=40, target_step=0.05
        )
        costs = engine.costs(x, clip.offsets, clip.rotations)
        least = costs if least is None else np.minimum(least, costs)
    assert least is not None
    return least


def ratio(
    name: str, ours: float, peer: float, unit: str, required: float, details: dict[str, Any] | None = None
) -> Result:
    """Return the result of a figure that is measured once: less is better."""
    return Result(name, ours, peer, peer / max(ours, 1e-12), unit, 1, required, details or {})


def run(repeats: int = 7) -> list[Result]:
    """Run the benchmark."""
    retargeter = Retargeter("h1")
    problem, engine = retargeter.problem, retargeter.engine
    clips = load_clips(retargeter)
    timed = next(clip for clip in clips if clip.name == TIMED)
    pink = Pink(problem)
    versions = {"pink": version("pin-pink"), "frames": sum(len(clip.joints) for clip in clips)}
    results = [
        in_turn(
            "file mode, per frame",
            lambda: solve_clip(engine, timed.offsets, timed.rotations),
            lambda: pink.track(timed.offsets, timed.rotations),
            per=len(timed.joints),
            repeats=repeats,
            required=20.0,
            details=versions,
        ),
        in_turn(
            "file mode, per frame, all clips",
            lambda: [solve_clip(engine, clip.offsets, clip.rotations) for clip in clips],
            lambda: [pink.track(clip.offsets, clip.rotations) for clip in clips],
            per=versions["frames"],
            repeats=max(1, repeats // 3),
            required=20.0,
        ),
    ]
    solved = [solve_clip(engine, clip.offsets, clip.rotations) for clip in clips]
    tracked = [pink.track(clip.offsets, clip.rotations) for clip in clips]
    ours, theirs = judge(retargeter, clips, solved), judge(retargeter, clips, tracked)
    costs = [engine.costs(x, c.offsets, c.rotations) for c, x in zip(clips, solved, strict=True)]
    pinks = [engine.costs(x, c.offsets, c.rotations) for c, x in zip(clips, tracked, strict=True)]
    least = [np.minimum(best_costs(retargeter, c), cost) for c, cost in zip(clips, costs, strict=True)]
    wrong = [int(sum((x - b > WRONG).sum() for x, b in zip(xs, least, strict=True))) for xs in (costs, pinks)]
    both = {"ours": asdict(ours), "pink": asdict(theirs)}
    results += [
        ratio("file mode, mean error", ours.mean_mm, theirs.mean_mm, "mm", 1 / 0.92, both),
        ratio("file mode, joint jumps", ours.jumps, theirs.jumps, "jumps", 1.0),
        ratio("file mode, wrong branches", wrong[0], wrong[1], "limb-frames", 1.0),
    ]
    for speed in SPEEDS:
        bound = problem.step_bound(speed, FPS)
        bounded = [solve_clip(engine, c.offsets, c.rotations, bound=bound) for c in clips]
        # both begin at a first frame that nothing bounds
        limited = [Pink(problem, speed=speed).track(c.offsets, c.rotations, first_steps=60) for c in clips]
        mine, peer = judge(retargeter, clips, bounded), judge(retargeter, clips, limited)
        over = sum(int((np.abs(np.diff(x, axis=0)) * FPS > speed).sum()) for x in bounded)
        details = {"ours": asdict(mine), "pink": asdict(peer), "steps_over": over}
        name = f"at most {speed:g} rad/s, mean error"
        results.append(ratio(name, mine.mean_mm, peer.mean_mm, "mm", 1 / 0.76, details))
        results.append(
            ratio(f"at most {speed:g} rad/s, steps over", over, 0.0 if over else 1e-12, "steps", 1.0)
        )
    for name, options in (("default", Options()), ("as the source", Options.source())):
        pipeline = Retargeter("h1", options=options)
        pipeline.solve(timed.joints, FPS)
        times = sorted(seconds(lambda p=pipeline: p.solve(timed.joints, FPS)) for _ in range(3 * repeats))
        outside = 0
        for clip in clips:
            dof = pipeline.solve(clip.joints, FPS).dof
            outside += int(((dof < problem.tree.lower) | (dof > problem.tree.upper)).sum())
        took = 1e3 * times[len(times) // 2]
        details = {"violations_between_frames": outside, "min_ms": 1e3 * times[0], "max_ms": 1e3 * times[-1]}
        results.append(
            ratio(f"196 frames to 90 fps, {name}", took, 20.0, "ms", 1.0 if outside == 0 else np.inf, details)
        )
    return results
