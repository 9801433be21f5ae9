"""Operational-space control of the Panda: its time per tick, and its tool's error against the position actuators'.

- `osc tick`: 99th percentile of one call for torques (dynamics, closed form, and the quadratic programs where a limit
  is met) in time of the processor, against the limit of 1 ms, while random actions drive the arm against its limits.
- `osc free`: root mean square error of the tool on a path in the air; the peer is `ee_delta_pose`, which is a little
  better here: it needs no acceleration of the target to be stiff.
- `osc wall`: the same error along a wall that the target is 3 cm inside, soft towards the wall.
- `osc wall force`: the mean force on it.
"""

from __future__ import annotations

import time
from typing import Any
from unittest import mock

import gymnasium
import mujoco
import numpy as np
from timing import Result

import bunraku  # noqa: F401 - registers the environments
from bunraku.envs.tasks import panda_reach
from bunraku.geometry import Array, Pose

LIMIT_US = 1000.0
WALL_X = 0.6
SOFT = (300.0, 3000.0, 3000.0, 200.0, 200.0, 200.0)


def make(mode: str, wall: bool = False, **options: Any) -> Any:
    """Return the environment, with a wall beyond `WALL_X` if asked for."""
    scene = panda_reach.table_scene

    def with_wall(*args: Any) -> mujoco.MjSpec:
        spec = scene(*args)
        spec.worldbody.add_geom(
            name="wall", type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.02, 0.4, 0.4], pos=[WALL_X + 0.02, 0.0, 0.4]
        )
        return spec

    with mock.patch.object(panda_reach, "table_scene", with_wall if wall else scene):
        env = gymnasium.make(
            "bunraku/PandaReach-v0",
            control_mode=mode,
            control_freq=50.0,
            max_episode_steps=-1,
            disable_env_checker=True,
            **options,
        ).unwrapped
    env.reset(seed=0, options={"qpos": panda_reach.ROBOT.home})
    return env


def track(env: Any, axes: list[int], centre: Array, seconds: float = 8.0) -> tuple[float, float]:
    """Follow a figure of eight in the y-z plane at a constant x; return error [m] along `axes` and force [N]."""
    arm = env.task.arms()[0]
    down = arm.target().quat
    errors, forces = [], []
    steps = round(50.0 * seconds)
    for k in range(steps):
        phase, ramp = 2.0 * np.pi * k / 200.0, min(1.0, k / 100.0)
        offset = np.array([0.0, 0.08 * np.sin(phase), 0.04 * np.sin(2.0 * phase)])
        start = arm.target().pos if k == 0 else start  # noqa: F821
        env.step(arm.action_towards(Pose((1.0 - ramp) * start + ramp * centre + offset * ramp, down), 1.0))
        if k >= steps // 2:
            errors.append((arm.tool().pos - arm.target().pos)[axes])
            forces.append(wall_force(env))
    return float(np.sqrt((np.array(errors) ** 2).sum(axis=1).mean())), float(np.mean(forces))


def wall_force(env: Any) -> float:
    """Return the normal force on the wall [N]."""
    total, buffer = 0.0, np.zeros(6)
    for i, contact in enumerate(env.data.contact):
        if "wall" in (env.model.geom(contact.geom1).name, env.model.geom(contact.geom2).name):
            mujoco.mj_contactForce(env.model, env.data, i, buffer)
            total += buffer[0]
    return total


def tick(repeats: int) -> Result:
    """Time the torques while random actions drive the arm against its limits."""
    rounds, share = [], []
    for repeat in range(repeats):
        env = make("osc")
        control = env.task.arms()[0].osc
        inner, times = control.torque, []

        def timed(
            *args: Any, inner: Any = inner, times: list[float] = times, control: Any = control
        ) -> Array:
            begin = time.thread_time_ns()
            torque = inner(*args)
            times.append(1e-3 * (time.thread_time_ns() - begin))
            share.append(bool(control.limited))
            return torque

        control.torque = timed
        rng = np.random.default_rng(repeat)
        for k in range(300):
            if k % 25 == 0:
                action = rng.choice([-1.0, 1.0], 6)
            env.step(action)
        rounds.append(times)
    p99 = float(np.median([np.percentile(times, 99) for times in rounds]))
    p50 = float(np.median([np.percentile(times, 50) for times in rounds]))
    details = {"p50_us": p50, "p99_us": p99, "share_at_a_limit": float(np.mean(share))}
    return Result("osc tick", p99, LIMIT_US, LIMIT_US / p99, "us", repeats, 1.0, details)


def run(repeats: int = 3) -> list[Result]:
    """Run the benchmark."""
    results = [tick(repeats)]
    free, wall = np.array([0.5, 0.0, 0.35]), np.array([WALL_X + 0.03, 0.0, 0.35])
    ours, _ = track(make("osc"), [0, 1, 2], free)
    peer, _ = track(make("ee_delta_pose"), [0, 1, 2], free)
    results.append(Result("osc free", 1e3 * ours, 1e3 * peer, peer / ours, "mm", 1, 0.5))
    ours, ours_force = track(make("osc", wall=True, stiffness=SOFT), [1, 2], wall)
    peer, peer_force = track(make("ee_delta_pose", wall=True), [1, 2], wall)
    results.append(Result("osc wall", 1e3 * ours, 1e3 * peer, peer / ours, "mm", 1, 2.0))
    results.append(Result("osc wall force", ours_force, peer_force, peer_force / ours_force, "N", 1, 5.0))
    return results
