"""Whole-body control of standing humanoids: 99th percentile of one call, in time of the processor, against 3 ms.

Each is pushed (10 % of the weight of h1, 20 % of that of unitree_h1, for 0.1 s) while its hands follow targets.
"""

from __future__ import annotations

import time

import mujoco
import numpy as np
from timing import Result

from bunraku.control.standing import SIDES, StandingControl, stand, standing_model
from bunraku.humanoid import HumanoidSpec
from bunraku.robots.h1 import ROBOT as H1
from bunraku.robots.unitree_h1 import ROBOT as UNITREE_H1

LIMIT_US = 3000.0


def run(repeats: int = 3) -> list[Result]:
    """Run the benchmark."""
    return [_case(robot, share, repeats) for robot, share in ((H1, 0.1), (UNITREE_H1, 0.2))]


def _case(robot: HumanoidSpec, share: float, repeats: int) -> Result:
    model = standing_model(robot)
    rounds, worst = [], 0.0
    for repeat in range(repeats):
        times, error = _push(model, robot, share, 2.0 * np.pi * repeat / repeats)
        rounds.append(times)
        worst = max(worst, error)
    p99 = float(np.median([np.percentile(times, 99) for times in rounds]))
    p50 = float(np.median([np.percentile(times, 50) for times in rounds]))
    details = {"p50_us": p50, "p99_us": p99, "hand_error_after_2s_m": worst}
    return Result(f"standing {robot.name}", p99, LIMIT_US, LIMIT_US / p99, "us", repeats, 1.0, details)


def _push(
    model: mujoco.MjModel, robot: HumanoidSpec, share: float, heading: float
) -> tuple[list[float], float]:
    """Return the time of each call [us] and the hands' largest error two seconds after the push [m]."""
    data, control = stand(model, robot), StandingControl(model, robot)
    start = {side: control.hand(data, side) for side in SIDES}
    chest = control.chest
    weight = control.weight
    push = share * weight * np.array([np.cos(heading), np.sin(heading), 0.0])
    move = robot.home_height * np.array([0.1, 0.0, 0.12])
    times = []
    while data.time < 2.6:
        mujoco.mj_step1(model, data)
        data.xfrc_applied[chest, :3] = push if 0.5 <= data.time < 0.6 else 0.0
        wanted = {side: pos + min(1.0, data.time / 0.4) * move for side, pos in start.items()}
        begin = time.thread_time_ns()
        data.ctrl[:] = control.torque(data, wanted)
        times.append(1e-3 * (time.thread_time_ns() - begin))
        mujoco.mj_step2(model, data)
    return times, max(float(np.linalg.norm(control.hand(data, side) - wanted[side])) for side in SIDES)
