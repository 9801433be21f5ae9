"""Many simulations of a task as a Gymnasium vector environment, stepped on MuJoCo's thread pool.

    envs = gymnasium.make_vec("bunraku/PandaReach-v0", num_envs=256, vectorization_mode="vector_entry_point")

Simulation i, seeded with `seed + i`, gives the same bits as the single environment seeded with `seed + i`.
There is no Python per simulation in a step; a reset draws per simulation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from bunraku.envs.cameras import CameraRenderer
from bunraku.geometry import Array
from bunraku.plugins import TASKS, load
from bunraku.sim import BatchSim
from bunraku.task import Task

Observation = dict[str, NDArray[Any]]


class TaskVectorEnv(VectorEnv[Observation, NDArray[Any], NDArray[Any]]):
    """Many simulations of a task.

    A `mujoco.batch.Batch` can neither be pickled nor used after a fork with more than one thread, so it is
    made at the first reset, in the process that uses it.
    """

    def __init__(
        self,
        task: str,
        num_envs: int = 1,
        *,
        max_episode_steps: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        nthread: int = 0,
        render_mode: str | None = None,
        camera: str = "front",
        width: int = 480,
        height: int = 480,
        **options: Any,
    ) -> None:
        """Build the task.

        Args:
            task: Name of the task's file in `bunraku.envs.tasks`.
            num_envs: Number of simulations.
            max_episode_steps: Steps after which an episode is truncated; None for never.
            autoreset_mode: When an ended episode starts anew, as Gymnasium defines it: at the next step
                (default), in the same step (the last observation is then in `info["final_obs"]`), or never by
                itself.
            nthread: Number of threads, 0 for one per CPU.
            render_mode: `rgb_array` or `depth_array`: `render` returns one image per simulation.
            camera: Name of the camera.
            width: Width of images [pixels].
            height: Height of images [pixels].
            **options: The task's options.

        Raises:
            ValueError: If an option is not known or out of range.
        """
        if num_envs < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        if render_mode not in (None, "rgb_array", "depth_array"):
            raise ValueError(f"render_mode must be None, 'rgb_array' or 'depth_array', got {render_mode!r}")
        self._made_with = {
            "task": task,
            "num_envs": num_envs,
            "max_episode_steps": max_episode_steps,
            "autoreset_mode": autoreset_mode,
            "nthread": nthread,
            "render_mode": render_mode,
            "camera": camera,
            "width": width,
            "height": height,
            **options,
        }
        self.task: Task = load(TASKS, task)(**options)
        self.num_envs = num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.render_mode = render_mode
        self.metadata = {
            "render_modes": ["rgb_array", "depth_array"],
            "render_fps": round(self.task.rates.control_freq),
            "autoreset_mode": self.autoreset_mode,
        }
        self.single_observation_space = self.task.observation_space
        self.single_action_space = self.task.action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._limit, self._nthread = max_episode_steps, nthread
        # only of a task that has something to note after a step, to tell beside success, ends of its own, or a model
        # that differs between episodes
        self._finish = getattr(self.task, "finish", None)
        self._report = getattr(self.task, "report", dict)
        self._truncated = getattr(self.task, "truncated", None)
        self._restored = getattr(self.task, "restored", None)
        self._plays = getattr(self.task, "open_loop", False) and self.task.rates.ticks > 1
        decorate = getattr(self.task, "decorate", None)
        self._renderer = CameraRenderer(self.task.model, camera, width, height, render_mode, decorate)
        self._sim: BatchSim | None = None
        self._generators: list[np.random.Generator] = []
        self._elapsed = np.zeros(num_envs, dtype=np.int64)
        self._ended = np.zeros(num_envs, dtype=bool)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as what it was made with, and the states of the episodes: a batch cannot be copied."""
        running = None
        if self._sim is not None:
            running = self.state, self._generators, self._elapsed.copy(), self._ended.copy()
        return _rebuilt, (self._made_with, running, self.spec)

    @property
    def sim(self) -> BatchSim:
        """The simulations."""
        if self._sim is None:
            self._sim = BatchSim(self.task.model, self.num_envs, self._nthread)
            self._initial = self._sim.state[0].copy()
            self.task.bind(self._sim)
        return self._sim

    @property
    def state(self) -> Array:
        """A copy `(num_envs, D)` of the integration states."""
        return self.sim.state.copy()

    def set_state(self, states: Array) -> None:
        """Set the integration states `(num_envs, D)` and bring derived fields up to date."""
        self.sim.state[...] = states
        if self._restored is not None:
            self._restored()
        self.sim.forward(None)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start episodes.

        Args:
            seed: One seed (simulation i gets `seed + i`), one per simulation, or None to go on drawing.
            options: The task's options, for all simulations; `reset_mask` `(num_envs,)` resets, and seeds, only
                those, and the infos are theirs.
        """
        options = dict(options or {})
        mask = np.asarray(options.pop("reset_mask", np.ones(self.num_envs, dtype=bool)), dtype=bool)
        if mask.shape != (self.num_envs,):
            raise ValueError(f"reset_mask must have shape ({self.num_envs},), got {mask.shape}")
        self._seed(seed, mask)
        self._reset_rows(np.flatnonzero(mask), options)
        observation = self.task.observe()
        return observation, self._infos(self.task.success(observation), np.zeros_like(mask), mask.copy())

    def _seed(self, seed: int | Sequence[int | None] | None, mask: NDArray[np.bool_]) -> None:
        if seed is None and self._generators:
            return
        if seed is None or isinstance(seed, int | np.integer):
            first = seed
            seeds: list[int | None] = [
                None if first is None else int(first) + i for i in range(self.num_envs)
            ]
        else:
            seeds = list(seed)
            if len(seeds) != self.num_envs:
                raise ValueError(f"seed needs {self.num_envs} entries, got {len(seeds)}")
        old = self._generators
        self._generators = [
            old[i] if old and (s is None or not mask[i]) else seeding.np_random(s)[0]
            for i, s in enumerate(seeds)
        ]

    def _reset_rows(self, ids: NDArray[np.int64], options: dict[str, Any]) -> None:
        sim = self.sim
        sim.state[ids] = self._initial
        rows = [sim.row(i) for i in ids]
        for i, row in zip(ids, rows, strict=True):
            self.task.reset(row, self._generators[i], options)
        sim.forward(ids)
        for row in rows:
            self.task.settle(row)
        self._elapsed[ids] = 0
        self._ended[ids] = False

    def step(
        self, actions: NDArray[Any]
    ) -> tuple[Observation, Array, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Advance every simulation by one control step.

        Args:
            actions: `(num_envs, A)`; components outside [-1, 1] are clipped.

        Raises:
            ValueError: If the actions have another shape or are not finite.
        """
        clipped = np.asarray(actions, dtype=np.float64)
        if clipped.shape != self.action_space.shape:
            raise ValueError(f"actions must have shape {self.action_space.shape}, got {clipped.shape}")
        if not np.isfinite(clipped).all():
            raise ValueError(f"actions must be finite; that of simulation {_first_bad(clipped)} is not")
        clipped = np.minimum(np.maximum(clipped, -1.0), 1.0)
        restart = (
            self._ended if self.autoreset_mode is AutoresetMode.NEXT_STEP else np.zeros_like(self._ended)
        )
        restart = restart.copy()
        task, sim = self.task, self.sim
        task.act(clipped)
        self._advance()
        if self._finish is not None:
            self._finish()
        unstable = sim.unstable()
        self._elapsed += 1
        if restart.any():
            self._reset_rows(np.flatnonzero(restart), {})
        observation = task.observe()
        success = task.success(observation)
        reward = np.asarray(task.reward(observation, success), dtype=np.float64)
        terminated = (task.terminated(success) | unstable) & ~restart
        truncated = np.zeros_like(terminated) if self._limit is None else self._elapsed >= self._limit
        if self._truncated is not None:
            truncated |= self._truncated() & ~restart
        reward[restart] = 0.0
        unstable &= ~restart
        self._ended = terminated | truncated
        final: dict[str, Any] = {}
        if self.autoreset_mode is AutoresetMode.SAME_STEP and self._ended.any():
            final = self._final(observation, success, unstable)
            unstable &= ~self._ended
            self._reset_rows(np.flatnonzero(self._ended), {})
            # what is not final is of the episodes that began: observations and infos
            observation = task.observe()
            success = task.success(observation)
        everywhere = np.ones(self.num_envs, dtype=bool)
        return observation, reward, terminated, truncated, final | self._infos(success, unstable, everywhere)

    def _advance(self) -> None:
        """Go through the ticks of a control step."""
        task, sim, rates = self.task, self.sim, self.task.rates
        if self._plays:
            # ticks that do not look at the motion are computed in a row, while their data stay in the processor's
            # cache, and the simulations are handed to the threads once for all of them
            controls = np.empty((rates.ticks, *sim.ctrl.shape))
            for k in range(rates.ticks):
                task.tick(k)
                controls[k] = sim.ctrl
            sim.play(controls, rates.substeps)
            return
        for k in range(rates.ticks):
            task.tick(k)
            sim.step(rates.substeps, last=k == rates.ticks - 1)

    def _final(
        self, observation: Observation, success: NDArray[np.bool_], unstable: NDArray[np.bool_]
    ) -> dict[str, Any]:
        """Return the last observations and infos of ended episodes, as Gymnasium's vector environments do."""
        ended = self._ended.copy()
        final = np.full(self.num_envs, None, dtype=object)
        for i in np.flatnonzero(ended):
            final[i] = {key: value[i].copy() for key, value in observation.items()}
        return {
            "final_obs": final,
            "_final_obs": ended,
            "final_info": self._infos(success, unstable & ended, ended.copy()),
            "_final_info": ended.copy(),
        }

    def _infos(
        self, success: NDArray[np.bool_], unstable: NDArray[np.bool_], where: NDArray[np.bool_]
    ) -> dict[str, Any]:
        """Return the infos of the simulations at `where`; `unstable` is there only if one is, as in `TaskEnv`."""
        infos: dict[str, Any] = {}
        for key, values in {"is_success": success, **self._report()}.items():
            infos[key] = np.where(where, values, np.zeros((), dtype=values.dtype))
            infos[f"_{key}"] = where.copy()
        return infos | ({"unstable": unstable, "_unstable": unstable.copy()} if unstable.any() else {})

    def render(self) -> tuple[Any, ...]:
        """Return one image of the camera per simulation."""
        batch = self.sim.batch
        return tuple(self._renderer.render(batch.get_data(i)) for i in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Release the renderer."""
        self._renderer.close()

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return the reward `(...)` of goals `(..., G)`."""
        return self.task.compute_reward(np.asarray(achieved_goal), np.asarray(desired_goal))  # type: ignore[attr-defined]


def _rebuilt(made_with: dict[str, Any], running: tuple[Any, ...] | None, spec: Any) -> TaskVectorEnv:
    envs = TaskVectorEnv(**made_with)
    envs.spec = spec
    if running is not None:
        envs.set_state(running[0])
        envs._generators, envs._elapsed, envs._ended = running[1:]
    return envs


def _first_bad(actions: Array) -> int:
    return int(np.flatnonzero(~np.isfinite(actions).all(axis=1))[0])
