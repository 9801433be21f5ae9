"""Joining two clips with a collision check, against the 0.8 ms that the source document states for it.

All pairs of real clips, each retargeted, are joined end to start at 90 fps. Times are processor time of the joining
thread, since a stated figure cannot be slowed down with ours on a busy machine. Transitions are checked again with a
plain loop over MuJoCo's contacts.
"""

from __future__ import annotations

import itertools
import statistics
import time

import mujoco
import numpy as np
from numpy.typing import NDArray
from retarget_clips import FPS, load_clips
from timing import Result

from bunraku.errors import BunrakuError
from bunraku.retarget.pipeline import Retargeter
from bunraku.retarget.tools.interpolator import MotionInterpolator
from bunraku.retarget.tools.self_collision import SelfCollision

Array = NDArray[np.float64]
STATED_US = 800.0


def run(repeats: int = 5) -> list[Result]:
    """Run the benchmark."""
    retargeter = Retargeter("h1")
    model, robot = retargeter.model, retargeter.robot
    lower, upper = model.jnt_range.T
    collides = SelfCollision(model, robot.joints)
    tool = MotionInterpolator(90.0, lower=lower, upper=upper, home=np.array(robot.home), collides=collides)
    clips = [retargeter.solve(clip.joints, FPS).dof for clip in load_clips(retargeter)]
    pairs = [
        (first, second)
        for first, second in itertools.permutations(clips, 2)
        if not collides(np.stack([first[-1], second[0]])).any()
    ]
    times, frames, detours, colliding, refused = [], [], 0, 0, 0
    for first, second in pairs:
        try:
            joined = tool.join(first, second)
        except BunrakuError:
            refused += 1
            continue
        rounds = []
        for _ in range(repeats):
            begin = time.thread_time()
            tool.join(first, second)
            rounds.append(time.thread_time() - begin)
        times.append(1e6 * statistics.median(rounds))
        frames.append(joined.stop - joined.start)
        detours += joined.tries > 1
        colliding += _colliding(model, joined.dof[joined.start : joined.stop])
    if not times:
        raise BunrakuError("no two clips could be joined")
    details = {
        "pairs": len(pairs),
        "refused": refused,
        "detours": detours,
        "frames": statistics.mean(frames),
        "mean_us": statistics.mean(times),
        "worst_us": max(times),
        "colliding_frames": colliding,
    }
    ours = statistics.median(times)
    clear = Result("colliding frames", colliding, 0.0, 1.0 if colliding == 0 else 0.0, "frames", 1, 1.0)
    return [Result("join", ours, STATED_US, STATED_US / ours, "us", repeats, 1.0, details), clear]


def _colliding(model: mujoco.MjModel, dof: Array) -> int:
    data, count = mujoco.MjData(model), 0
    for q in dof:
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        count += any(contact.dist < 0.0 for contact in data.contact)
    return count
