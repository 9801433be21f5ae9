"""Live retargeting (one forward sweep) against `pink` on the same robot, task table, targets and steps, in one run.

Both walk the targets at most 1 cm per step, as the source document does. The compiled solver must also have the joints
of the daqp reference of the same problem.
"""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
from retarget_clips import FPS, load_clips
from retarget_peers import Pink
from timing import Result, in_turn

from bunraku.retarget.pipeline import Options, Retargeter
from bunraku.retarget.solver.clip import track
from bunraku.retarget.solver.reference import ReferenceEngine

TIMED, CHECKED = "mdm_throw_08", 120


def run(repeats: int = 9) -> list[Result]:
    """Run the benchmark."""
    retargeter = Retargeter("h1")
    problem, engine = retargeter.problem, retargeter.engine
    clips = load_clips(retargeter)
    timed = next(clip for clip in clips if clip.name == TIMED)
    pink = Pink(problem)
    step = problem.settings.target_step
    frames = len(timed.joints)

    def peer() -> None:
        pink.track(timed.offsets, timed.rotations, target_step=step)

    def live(geometric_ankle: bool) -> Retargeter:
        return Retargeter("h1", options=Options(geometric_ankle=geometric_ankle))

    def stepped(retargeter: Retargeter) -> None:
        retargeter.reset()
        for frame in timed.joints:
            retargeter.step(frame)

    plain, whole = live(False), live(True)
    worst = 0.0
    reference = ReferenceEngine(problem, retargeter.model)
    for clip in clips:
        a = track(engine, clip.offsets[:CHECKED], clip.rotations[:CHECKED], 30)
        b = track(reference, clip.offsets[:CHECKED], clip.rotations[:CHECKED], 30)
        worst = max(worst, float(np.abs(a - b).max()))
    details = {"pink": version("pin-pink"), "fps": FPS}
    return [
        in_turn(
            "forward sweep, per frame",
            lambda: track(engine, timed.offsets, timed.rotations, 30),
            peer,
            per=frames,
            repeats=repeats,
            required=100.0,
            details=details,
        ),
        in_turn(
            "step(), key points to joints, per frame (pink: targets given)",
            lambda: stepped(whole),
            peer,
            per=frames,
            repeats=repeats,
            required=20.0,
        ),
        in_turn(
            "step() without the geometric ankle",
            lambda: stepped(plain),
            peer,
            per=frames,
            repeats=repeats,
            required=20.0,
        ),
        Result("equal to daqp", worst, 1e-9, 1e-9 / max(worst, 1e-18), "rad", 1, 1.0, {"clips": len(clips)}),
    ]
