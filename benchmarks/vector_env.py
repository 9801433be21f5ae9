"""The vector environment against raw `mujoco.batch` stepping of the same model, motion, substeps and threads."""

from __future__ import annotations

import gymnasium
import numpy as np
from mujoco import batch
from timing import Result, in_turn

import bunraku  # noqa: F401 - registers the environments

STEPS = 20


def run(repeats: int = 11) -> list[Result]:
    """Run the benchmark."""
    modes = (("joint_delta", 0.9), ("joint_pos", 0.9), ("ee_delta_pos", 0.8), ("ee_delta_pose", 0.8))
    return [_case(mode, nsim, required, repeats) for mode, required in modes for nsim in (64, 256)]


def _case(mode: str, nsim: int, required: float, repeats: int) -> Result:
    envs = gymnasium.make_vec(
        "bunraku/PandaReach-v0",
        num_envs=nsim,
        vectorization_mode="vector_entry_point",
        control_mode=mode,
        max_episode_steps=None,
    )
    envs.reset(seed=0)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.3, 0.3, (STEPS, *envs.action_space.shape)).astype(np.float32)  # type: ignore[misc]
    start = envs.unwrapped.state  # type: ignore[attr-defined]
    rates = envs.unwrapped.task.rates  # type: ignore[attr-defined]
    substeps = rates.ticks * rates.substeps
    raw_batch = batch.Batch(envs.unwrapped.task.model, nsim, 0, persistent=True)  # type: ignore[attr-defined]

    def ours() -> None:
        envs.unwrapped.set_state(start)  # type: ignore[attr-defined]
        for action in actions:
            envs.step(action)

    # raw stepping goes through the same motion: arms at rest would be cheaper to simulate than arms that move
    envs.unwrapped.set_state(start)  # type: ignore[attr-defined]
    controls = []
    for action in actions:
        envs.step(action)
        controls.append(envs.unwrapped.sim.ctrl.copy())  # type: ignore[attr-defined]

    def raw() -> None:
        raw_batch.state[...] = start
        for control in controls:
            raw_batch.ctrl[...] = control
            raw_batch.step(nstep=substeps)

    return in_turn(
        f"vector-env {mode} {nsim}", ours, raw, per=STEPS * nsim, repeats=repeats, required=required
    )
