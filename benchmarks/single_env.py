"""The single environment against raw stepping of the same model, motion and substeps: joint and end-effector modes."""

from __future__ import annotations

import gymnasium
import mujoco
import numpy as np
from timing import Result, in_turn

import bunraku  # noqa: F401 - registers the environments

STEPS = 200


def run(repeats: int = 15) -> list[Result]:
    """Run the benchmark."""
    return [
        _mode(mode, required, repeats)
        for mode, required in (
            ("joint_delta", 0.75),
            ("joint_pos", 0.75),
            ("ee_delta_pos", 0.4),
            ("ee_delta_pose", 0.4),
        )
    ]


def _mode(mode: str, required: float, repeats: int) -> Result:
    env = gymnasium.make("bunraku/PandaReach-v0", control_mode=mode, max_episode_steps=-1)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    actions = rng.uniform(-0.3, 0.3, (STEPS, *env.action_space.shape)).astype(np.float32)  # type: ignore[misc]
    model = env.unwrapped.model  # type: ignore[attr-defined]
    data = mujoco.MjData(model)
    start = env.unwrapped.state  # type: ignore[attr-defined]
    rates = env.unwrapped.task.rates  # type: ignore[attr-defined]
    substeps = rates.ticks * rates.substeps

    def ours() -> None:
        env.unwrapped.set_state(start)  # type: ignore[attr-defined]
        for action in actions:
            env.step(action)

    # raw stepping goes through the same motion: an arm at rest would be cheaper to simulate than one that moves
    env.unwrapped.set_state(start)  # type: ignore[attr-defined]
    controls = []
    for action in actions:
        env.step(action)
        controls.append(env.unwrapped.data.ctrl.copy())  # type: ignore[attr-defined]

    def raw() -> None:
        mujoco.mj_setState(model, data, start, int(mujoco.mjtState.mjSTATE_INTEGRATION))
        for control in controls:
            data.ctrl[:] = control
            mujoco.mj_step(model, data, substeps)

    return in_turn(f"single-env {mode}", ours, raw, per=STEPS, repeats=repeats, required=required)
