"""Our vector environments with the face that stable-baselines3 expects, without Python per simulation in a step.

    envs = SB3VecEnv("PandaReach", {"reward_type": "dense"}, num_envs=64)
    PPO("MultiInputPolicy", envs).learn(40_000)

An ended episode starts anew in the same step; its last observation is in `infos[i]["terminal_observation"]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import VecEnv

import bunraku  # noqa: F401 - registers the environments
from bunraku.registration import env_id

Observation = NDArray[np.float32] | dict[str, NDArray[np.float32]]


class SB3VecEnv(VecEnv):
    """Many simulations of one task."""

    def __init__(
        self,
        env: str,
        env_kwargs: dict[str, Any] | None = None,
        *,
        num_envs: int = 64,
        max_episode_steps: int | None = None,
        nthread: int = 0,
    ) -> None:
        """Make the simulations.

        Args:
            env: Short name of the environment, such as `PandaReach`, or a full id.
            env_kwargs: Its options.
            num_envs: Number of simulations.
            max_episode_steps: Steps after which an episode ends; by default the environment's.
            nthread: Threads of the physics, 0 for one per CPU.
        """
        limit: dict[str, Any] = {} if max_episode_steps is None else {"max_episode_steps": max_episode_steps}
        self.envs = gymnasium.make_vec(
            env if "/" in env else env_id(env),
            num_envs=num_envs,
            vectorization_mode="vector_entry_point",
            autoreset_mode=AutoresetMode.SAME_STEP,
            nthread=nthread,
            **limit,
            **(env_kwargs or {}),
        )
        self.task: Any = self.envs.unwrapped.task  # type: ignore[attr-defined]
        single = self.envs.single_observation_space
        super().__init__(num_envs, _single_precision(single), self.envs.single_action_space)
        self._returns = np.zeros(num_envs)
        self._lengths = np.zeros(num_envs, dtype=np.int64)
        self._actions: NDArray[Any] = np.zeros(0)

    def reset(self) -> Any:
        """Start all episodes; return their observations."""
        seed = self._seeds[0]
        observation, _ = self.envs.reset(seed=seed)
        self._reset_seeds()
        self._returns[:], self._lengths[:] = 0.0, 0
        return _as_float32(observation)

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions of the next step."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Step; return observations, rewards, dones and infos."""
        observation, reward, terminated, truncated, info = self.envs.step(self._actions)
        done = terminated | truncated
        self._returns += reward
        self._lengths += 1
        infos: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]
        for i in np.flatnonzero(done):
            success = bool(info["final_info"]["is_success"][i])
            infos[i] = {
                "terminal_observation": _as_float32(info["final_obs"][i]),
                "TimeLimit.truncated": bool(truncated[i] and not terminated[i]),
                "is_success": success,
                "episode": {"r": float(self._returns[i]), "l": int(self._lengths[i]), "t": 0.0},
            }
        self._returns[done], self._lengths[done] = 0.0, 0
        return _as_float32(observation), reward.astype(np.float32), done, infos

    def close(self) -> None:
        """Release the simulations."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute, once per simulation asked for."""
        value = None if attr_name == "render_mode" else getattr(self.envs.unwrapped, attr_name)
        return [value for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refuse: the simulations share everything.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(f"{attr_name} cannot be set: give options when the environment is made")

    def env_method(self, method_name: str, *args: Any, indices: Any = None, **kwargs: Any) -> list[Any]:
        """Call a method once, for all; hindsight replay asks for `compute_reward` in this way."""
        result = getattr(self.envs.unwrapped, method_name)(*args, **kwargs)
        return [result for _ in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        """Say that nothing is wrapped."""
        return [False for _ in self._get_indices(indices)]

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Take the seed of the next reset; simulation i gets `seed + i`."""
        self._seeds = [None if seed is None else seed + i for i in range(self.num_envs)]
        return self._seeds

    def _get_indices(self, indices: Any) -> Iterable[int]:
        if indices is None:
            return range(self.num_envs)
        return [indices] if isinstance(indices, int) else indices


def _single_precision(space: spaces.Space[Any]) -> spaces.Space[Any]:
    if isinstance(space, spaces.Dict):
        return spaces.Dict({key: _single_precision(part) for key, part in space.items()})
    if isinstance(space, spaces.Box):
        return spaces.Box(space.low.astype(np.float32), space.high.astype(np.float32), dtype=np.float32)
    return space


def _as_float32(observation: Any) -> Any:
    if isinstance(observation, dict):
        return {key: np.asarray(array, dtype=np.float32) for key, array in observation.items()}
    return np.asarray(observation, dtype=np.float32)
