"""One simulation of a task as a Gymnasium environment."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.envs.cameras import CameraRenderer
from bunraku.geometry import Array
from bunraku.plugins import TASKS, load
from bunraku.sim import SingleSim
from bunraku.task import Task

RenderMode = Literal["human", "rgb_array", "depth_array"]


class TaskEnv(gymnasium.Env[dict[str, NDArray[Any]], NDArray[np.float32]]):
    """One simulation of a task, for `gymnasium.make`.

    All episode state lives in MuJoCo's integration state: `state` and `set_state` save and restore an episode
    at any step, bit for bit.
    """

    metadata = {"render_modes": ["human", "rgb_array", "depth_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self,
        task: str,
        *,
        render_mode: RenderMode | None = None,
        camera: str = "front",
        width: int = 480,
        height: int = 480,
        **options: Any,
    ) -> None:
        """Build the task.

        Args:
            task: Name of the task's file in `bunraku.envs.tasks`.
            render_mode: `rgb_array` and `depth_array` render off screen, `human` opens a window.
            camera: Name of the camera for `render`.
            width: Width of rendered images [pixels].
            height: Height of rendered images [pixels].
            **options: The task's options.

        Raises:
            ValueError: If an option or the render mode is not known.
        """
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(
                f"render_mode must be one of {self.metadata['render_modes']}, got {render_mode!r}"
            )
        self._made_with = {
            "task": task,
            "render_mode": render_mode,
            "camera": camera,
            "width": width,
            "height": height,
            **options,
        }
        self.task: Task = load(TASKS, task)(**options)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": round(self.task.rates.control_freq)}
        self.observation_space = self.task.observation_space
        self.action_space = self.task.action_space
        self.sim = SingleSim(self.task.model)
        self.task.bind(self.sim)
        self._initial = self.sim.state
        self._ticks, self._substeps = self.task.rates.ticks, self.task.rates.substeps
        decorate = getattr(self.task, "decorate", None)
        self._renderer = CameraRenderer(self.task.model, camera, width, height, render_mode, decorate)
        # only of a task that has something to note after a step, to tell beside success, ends of its own, or a model
        # that differs between episodes
        self._finish = getattr(self.task, "finish", None)
        self._report = getattr(self.task, "report", None)
        self._truncated = getattr(self.task, "truncated", None)
        self._restored = getattr(self.task, "restored", None)
        if hasattr(self.task, "compute_reward"):
            # only of a task with goals: trainers take an environment that has `compute_reward` for a goal environment
            self.compute_reward = self._compute_reward
            self.compute_terminated = self._compute_terminated
            self.compute_truncated = self._compute_truncated

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle as what it was made with, and the state of the episode: MuJoCo's views cannot be copied."""
        return _rebuilt, (self._made_with, self.state, self._np_random, self._np_random_seed, self.spec)

    @property
    def model(self) -> mujoco.MjModel:
        """The MuJoCo model."""
        return self.sim.model

    @property
    def data(self) -> mujoco.MjData:
        """The MuJoCo data."""
        return self.sim.data

    @property
    def state(self) -> Array:
        """A copy `(D,)` of the integration state: the whole state of the episode."""
        return self.sim.state

    def set_state(self, state: Array) -> None:
        """Set the integration state `(D,)`, as `state` gave it, and bring derived fields up to date."""
        self.sim.set_state(state)
        if self._restored is not None:
            self._restored()
            self.sim.forward()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Start an episode; see the task for `options`."""
        super().reset(seed=seed)
        self.sim.set_state(self._initial)
        self.task.reset(self.sim, self.np_random, options or {})
        self.sim.forward()
        self.task.settle(self.sim)
        observation = self.task.observe()
        if self.render_mode == "human":
            self.render()
        return observation, self._info(self.task.success(observation))

    def _info(self, success: Any) -> dict[str, Any]:
        """Return the infos: success, and what else the task reports."""
        report = self._report() if self._report is not None else {}
        return {"is_success": bool(success)} | {key: value[()] for key, value in report.items()}

    def step(self, action: NDArray[Any]) -> tuple[dict[str, NDArray[Any]], float, bool, bool, dict[str, Any]]:
        """Advance by one control step.

        Args:
            action: `(A,)`; components outside [-1, 1] are clipped.

        Raises:
            ValueError: If the action has another shape or is not finite.
        """
        clipped = np.asarray(action, dtype=np.float64)
        if clipped.shape != self.action_space.shape:
            raise ValueError(f"action must have shape {self.action_space.shape}, got {clipped.shape}")
        if not np.isfinite(clipped).all():
            raise ValueError(f"action must be finite, got {clipped.tolist()}")
        clipped = np.minimum(np.maximum(clipped, -1.0), 1.0)
        task, sim = self.task, self.sim
        task.act(clipped)
        for k in range(self._ticks):
            task.tick(k)
            sim.step(self._substeps, last=k == self._ticks - 1)
        if self._finish is not None:
            self._finish()
        observation = task.observe()
        success = task.success(observation)
        info = self._info(success)
        terminated = bool(task.terminated(success))
        if sim.unstable():
            info["unstable"] = True
            terminated = True
        if self.render_mode == "human":
            self.render()
        truncated = self._truncated is not None and bool(self._truncated())
        return observation, float(task.reward(observation, success)), terminated, truncated, info

    def render(self) -> NDArray[Any] | None:
        """Return an image of the camera, or show it, as `render_mode` says."""
        return self._renderer.render(self.data)

    def close(self) -> None:
        """Release the renderer and the window."""
        self._renderer.close()

    # The goal interface that hindsight replay uses; vectorised over leading axes.

    def _compute_reward(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return the reward `(...)` of goals `(..., G)`."""
        return self.task.compute_reward(np.asarray(achieved_goal), np.asarray(desired_goal))  # type: ignore[attr-defined]

    def _compute_terminated(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return whether the episode ends `(...)` at goals `(..., G)`."""
        reached = self.task.reached(np.asarray(achieved_goal), np.asarray(desired_goal))  # type: ignore[attr-defined]
        return self.task.terminated(reached)

    def _compute_truncated(self, achieved_goal: Array, desired_goal: Array, info: Any) -> Any:
        """Return whether the episode is cut off `(...)`: never, the step limit is Gymnasium's."""
        return np.zeros(np.shape(achieved_goal)[:-1], dtype=bool)[()]


def _rebuilt(
    made_with: dict[str, Any],
    state: Array,
    generator: np.random.Generator | None,
    seed: int | None,
    spec: Any,
) -> TaskEnv:
    env = TaskEnv(**made_with)
    env.set_state(state)
    env._np_random, env._np_random_seed, env.spec = generator, seed, spec
    return env
