"""Registers the environments with Gymnasium, by name only: nothing of them is imported here."""

from __future__ import annotations

import gymnasium

ENVIRONMENTS: dict[str, tuple[str, int]] = {
    "PandaReach": ("panda_reach", 100),
    "DualPandaReach": ("dual_panda_reach", 200),
    "H1Imitation": ("h1_imitation", 500),
    "ScrewDriving": ("screw_driving", 400),
    "PlanarWholeBody": ("planar_whole_body", 250),
}
"""Short name: the task's file in `bunraku.envs.tasks`, and the default step limit of an episode."""


def env_id(short_name: str) -> str:
    """Return the Gymnasium id of an environment's short name: `PandaReach` is `bunraku/PandaReach-v0`."""
    return f"bunraku/{short_name}-v0"


def register_environments() -> None:
    """Register every environment of `ENVIRONMENTS`, for `gym.make` and `gym.make_vec`."""
    for short_name, (task, max_episode_steps) in ENVIRONMENTS.items():
        gymnasium.register(
            env_id(short_name),
            entry_point="bunraku.envs.single:TaskEnv",
            vector_entry_point="bunraku.envs.vector:TaskVectorEnv",
            kwargs={"task": task},
            max_episode_steps=max_episode_steps,
        )
