"""The imitation environment against raw `mujoco.batch` stepping of the same model, motion, substeps and threads."""

from __future__ import annotations

import gymnasium
import numpy as np
from mujoco import batch
from timing import Result, in_turn

import bunraku  # noqa: F401 - registers the environments

STEPS = 20


def run(repeats: int = 11) -> list[Result]:
    """Run the benchmark."""
    return [_case(robot, nsim, repeats) for robot in ("h1", "unitree_h1") for nsim in (64, 256)]


def _case(robot: str, nsim: int, repeats: int) -> Result:
    """Time everything that training uses: observations, rewards, terminations, and starts where episodes end."""
    envs = gymnasium.make_vec(
        "bunraku/H1Imitation-v0",
        num_envs=nsim,
        vectorization_mode="vector_entry_point",
        autoreset_mode="SameStep",
        robot=robot,
        start="adaptive",
    )
    envs.reset(seed=0)
    unwrapped = envs.unwrapped
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.3, 0.3, (STEPS, *envs.action_space.shape)).astype(np.float32)  # type: ignore[misc]
    for action in actions:  # into the midst of episodes, of which some end
        envs.step(action)
    start = unwrapped.state  # type: ignore[attr-defined]
    rates = unwrapped.task.rates  # type: ignore[attr-defined]
    substeps = rates.ticks * rates.substeps
    raw_batch = batch.Batch(unwrapped.task.model, nsim, 0, persistent=True)  # type: ignore[attr-defined]
    ended = 0

    def ours() -> None:
        nonlocal ended
        unwrapped.set_state(start)  # type: ignore[attr-defined]
        for action in actions:
            _, _, terminated, truncated, _ = envs.step(action)
            ended += int((terminated | truncated).sum())

    # raw stepping goes through the same motion, episode ends included: robots at rest would be cheaper to simulate
    unwrapped.set_state(start)  # type: ignore[attr-defined]
    controls, states = [], []
    for action in actions:
        _, _, terminated, truncated, _ = envs.step(action)
        controls.append(unwrapped.sim.ctrl.copy())  # type: ignore[attr-defined]
        rows = np.flatnonzero(terminated | truncated)
        states.append((rows, unwrapped.state[rows]))  # type: ignore[attr-defined]

    def raw() -> None:
        raw_batch.state[...] = start
        for control, (rows, fresh) in zip(controls, states, strict=True):
            raw_batch.ctrl[...] = control
            raw_batch.step(nstep=substeps)
            raw_batch.state[rows] = fresh

    result = in_turn(f"h1-env {robot} {nsim}", ours, raw, per=STEPS * nsim, repeats=repeats, required=0.77)
    result.details["episode_ends_per_step"] = ended / ((repeats + 1) * STEPS * nsim)
    result.details["control_steps_per_second"] = 1e6 / result.ours
    return result
