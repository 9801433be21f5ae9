"""What an environment's task is: one definition that serves one simulation and many.

A task builds its model, is bound to a simulation (`SingleSim` or `BatchSim`), and from then on reads and
writes the simulation's arrays with `...` indexing. It holds no episode state of its own: goals and obstacles
are mocap bodies, targets of controllers and counters stand in `userdata`, so that an episode is restored by
restoring the integration state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import gymnasium
import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.control.rates import Rates
from bunraku.device import HandName
from bunraku.geometry import Array, Pose
from bunraku.sim import Arrays, Sim


class DrivenArm(Protocol):
    """An arm of a task as an operator sees and drives it (one simulation)."""

    hand: HandName
    """The hand that drives it."""
    action_slice: slice
    """Where its part stands in the action."""
    has_gripper: bool
    """Whether the last component of its part opens (+1) and closes (-1) a gripper."""

    def tool(self) -> Pose:
        """Return the tool's pose, world."""
        ...

    def target(self) -> Pose:
        """Return the pose that the tool is being driven to, world."""
        ...

    def goal(self) -> Pose | None:
        """Return the pose that the task asks for, world, if it asks for one."""
        ...

    def workspace(self) -> tuple[Array, Array]:
        """Return centre and half size `(3,)` of the box that targets are kept in, world [m]."""
        ...

    def action_towards(self, world_tool: Pose, gripper: float) -> Array:
        """Return this arm's part of the action that drives the target towards a pose, as far as one step allows."""
        ...

    def tracking_error(self) -> tuple[float, float]:
        """Return how far the commanded joints leave the tool from its target: [m] and [rad]."""
        ...


class Task(Protocol):
    """One task. The class takes its options as keywords and builds the model.

    A task whose ticks depend on nothing that moves within a control step has `open_loop = True`: many simulations
    then go through all ticks of a step at once.
    """

    model: mujoco.MjModel
    mjcf: str
    """The model as XML, to store with recordings."""
    rates: Rates
    observation_space: gymnasium.Space[Any]
    """Of one simulation."""
    action_space: gymnasium.spaces.Box
    """Of one simulation."""

    def bind(self, sim: Sim) -> None:
        """Work on this simulation from now on."""
        ...

    def reset(self, row: Arrays, rng: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Write the initial state of one simulation."""
        ...

    def settle(self, row: Arrays) -> None:
        """Complete a reset after positions are up to date: targets start where the tools are."""
        ...

    def act(self, action: Array) -> None:
        """Take the action `(..., A)` of one control step, within the action space."""
        ...

    def tick(self, k: int) -> None:
        """Write `ctrl` for the k-th tick of the control step."""
        ...

    def observe(self) -> dict[str, NDArray[Any]]:
        """Return copies of the observations `(..., n)`."""
        ...

    def reward(self, observation: Mapping[str, NDArray[Any]], success: NDArray[np.bool_]) -> Array:
        """Return the reward `(...)`, given also what `success` said of the observation."""
        ...

    def success(self, observation: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return whether the task is done `(...)`."""
        ...

    def terminated(self, success: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether the episode ends `(...)`."""
        ...

    def arms(self) -> Sequence[DrivenArm]:
        """Return the arms that hands drive (one simulation only)."""
        ...
