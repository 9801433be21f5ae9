"""Runs a policy in one simulation, episode after episode, for those who want to see it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import bunraku  # noqa: F401 - registers the environments
from bunraku.registration import env_id
from bunraku.video import open_video

Act = Callable[[Any], Any]


def make_env(
    env: str, env_kwargs: dict[str, Any], limit: int | None, **render: Any
) -> gymnasium.Env[Any, Any]:
    """Return one simulation of an environment, by short name or id, with a step limit (None: its own)."""
    steps = {} if limit is None else {"max_episode_steps": limit}
    full_id = env if "/" in env else env_id(env)
    return gymnasium.make(full_id, disable_env_checker=True, **steps, **env_kwargs, **render)


def run_episode(act: Act, env: gymnasium.Env[Any, Any], seed: int, each: Callable[[], bool]) -> bool | None:
    """Run one episode.

    Args:
        act: The policy: observations with a leading axis in, actions with one out.
        env: The environment.
        seed: Its seed.
        each: Called after the reset and after each step; False ends the episode.

    Returns:
        Whether it ended in success, or None if `each` ended it.
    """
    observation, info = env.reset(seed=seed)
    ended = False
    while each():
        if ended:
            return bool(info.get("is_success", False))
        batch = {key: np.asarray(value)[None] for key, value in observation.items()}
        action = np.asarray(act(batch), dtype=np.float32).reshape(env.action_space.shape or (-1,))
        observation, _, terminated, truncated, info = env.step(action)
        ended = terminated or truncated
    return None


def video_of(
    act: Act,
    env: str,
    env_kwargs: dict[str, Any],
    out: Path,
    *,
    episodes: int,
    seed: int,
    limit: int | None,
    camera: str = "front",
    size: tuple[int, int] = (480, 480),
    told: Callable[[], None] = lambda: None,
) -> tuple[int, int]:
    """Film episodes, one after another.

    Args:
        act: The policy.
        env: Short name or id.
        env_kwargs: Its options.
        out: `.mp4`, `.gif`, or a folder for PNG files.
        episodes: Number of episodes.
        seed: Seed of the first.
        limit: Steps of an episode; None for the environment's own limit.
        camera: Name of the camera.
        size: Width and height [pixels].
        told: Called after each episode.

    Returns:
        Frames written, and episodes that ended in success.
    """
    made = make_env(
        env, env_kwargs, limit, render_mode="rgb_array", camera=camera, width=size[0], height=size[1]
    )
    successes = 0
    try:
        made.reset(seed=seed)
        made.render()  # says at once where there is no OpenGL, before a file is begun
        with open_video(out, size, made.unwrapped.metadata["render_fps"]) as video:
            for i in range(episodes):

                def film() -> bool:
                    video.write(np.asarray(made.render()))
                    return True

                successes += bool(run_episode(act, made, seed + i, film))
                told()
            return video.frames, successes
    finally:
        made.close()
