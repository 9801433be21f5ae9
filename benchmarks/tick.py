"""A whole tick of teleoperation, from the device's sample to the end of the step, against the limit of 1 ms.

It has guard, frames, filter, clutch, action, inverse kinematics and physics; 50 Hz control, 250 Hz inverse
kinematics, a simulated hand with tremor and noise. The 99th percentile counts.
"""

from __future__ import annotations

import time

import gymnasium
import numpy as np
from timing import Result

import bunraku  # noqa: F401 - registers the environments
from bunraku.teleop_collect.clocks import SimulatedClock
from bunraku.teleop_collect.devices.scripted import Scripted
from bunraku.teleop_collect.wrapper import TeleopWrapper

LIMIT_US = 1000.0


def run(repeats: int = 3) -> list[Result]:
    """Run the benchmark."""
    return [_case(freq, repeats) for freq in (50.0, 200.0)]


def _case(control_freq: float, repeats: int) -> Result:
    env = gymnasium.make(
        "bunraku/PandaReach-v0",
        control_mode="ee_delta_pose",
        gripper=True,
        control_freq=control_freq,
        max_episode_steps=-1,
        disable_env_checker=True,
    )
    clock = SimulatedClock()
    rounds = []
    with Scripted(clock=clock, seed=0) as device:
        wrapped = TeleopWrapper(env, device, clock=clock)
        for repeat in range(repeats):
            wrapped.reset(seed=repeat)
            ticks = []
            for _ in range(1500):
                clock.advance(1.0 / control_freq)
                step = wrapped.step(None)[4]["teleop"]
                ticks.append(1e6 * (time.perf_counter() - step.started))
            rounds.append(ticks)
    p99 = float(np.median([np.percentile(ticks, 99) for ticks in rounds]))
    p50 = float(np.median([np.percentile(ticks, 50) for ticks in rounds]))
    return Result(
        f"tick {control_freq:g} Hz",
        p99,
        LIMIT_US,
        LIMIT_US / p99,
        "us",
        repeats,
        1.0,
        {"p50_us": p50, "p99_us": p99},
    )
