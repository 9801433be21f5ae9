"""The two ways to run the solver, behind one set of calls: compiled, or MuJoCo with NumPy.

Both solve the same problem to the same joints; without numba the second is chosen and says that it is slow.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.errors import MissingDependencyError
from bunraku.retarget.solver.jit import HAS_NUMBA, announce_compilation, say_once
from bunraku.retarget.solver.problem import Problem

Array = NDArray[np.float64]


class Limb(NamedTuple):
    """A limb with the trunk that carries it, as a problem of its own."""

    engine: Engine
    """Its solver."""
    joints: NDArray[np.int64]
    """Its joints in the whole problem, the trunk's first."""
    own: NDArray[np.int64]
    """Those of `joints`, by their place there, that belong to the limb alone."""
    tasks: NDArray[np.int64]
    """Its tasks in the whole problem."""


class Engine(Protocol):
    """Passes over the frames of a clip; offsets are `(T, K, 3)`, rotations `(T, K, 3, 3)`, joint angles `(T, n)`."""

    problem: Problem

    def limb(self, group: int) -> Limb:
        """Return the solver of one limb."""
        ...

    def sweep(
        self,
        x: Array,
        offsets: Array,
        rotations: Array,
        first: int,
        last: int,
        *,
        follow: bool,
        substeps: int,
        target_step: float = np.inf,
        limit_gain: float = 0.9,
        bound: Array | None = None,
        pull: float = 0.0,
        two_sided: bool = False,
    ) -> None:
        """Solve the frames from `first` to `last` in place (see `sweeps.sweep`)."""
        ...

    def costs(self, x: Array, offsets: Array, rotations: Array) -> Array:
        """Return the objective of every frame and group `(T, G)`."""
        ...

    def errors(self, x: Array, offsets: Array, rotations: Array) -> Array:
        """Return position [m] and orientation [rad] error of every task `(T, K, 2)`."""
        ...


class CompiledEngine:
    """The numba kernels."""

    def __init__(self, problem: Problem) -> None:
        """Prepare for a problem."""
        announce_compilation()
        self.problem = problem
        self._unbound = np.full(problem.tree.n, np.inf)
        self._limbs: dict[int, Limb] = {}

    def limb(self, group: int) -> Limb:
        """Return the solver of one limb."""
        if group not in self._limbs:
            problem, joints, tasks = self.problem.limb(group)
            own = np.flatnonzero(self.problem.packed.joint_group[joints] == group)
            self._limbs[group] = Limb(CompiledEngine(problem), joints, own, tasks)
        return self._limbs[group]

    def sweep(
        self,
        x: Array,
        offsets: Array,
        rotations: Array,
        first: int,
        last: int,
        *,
        follow: bool,
        substeps: int,
        target_step: float = np.inf,
        limit_gain: float = 0.9,
        bound: Array | None = None,
        pull: float = 0.0,
        two_sided: bool = False,
    ) -> None:
        """Solve the frames from `first` to `last` in place."""
        from bunraku.retarget.solver.sweeps import sweep

        bound = self._unbound if bound is None else bound
        p = self.problem.packed
        sweep(
            p,
            x,
            offsets,
            rotations,
            first,
            last,
            follow,
            substeps,
            target_step,
            limit_gain,
            bound,
            pull,
            two_sided,
        )

    def costs(self, x: Array, offsets: Array, rotations: Array) -> Array:
        """Return the objective of every frame and group `(T, G)`."""
        from bunraku.retarget.solver.sweeps import costs

        return costs(self.problem.packed, x, offsets, rotations)

    def errors(self, x: Array, offsets: Array, rotations: Array) -> Array:
        """Return position [m] and orientation [rad] error of every task `(T, K, 2)`."""
        from bunraku.retarget.solver.sweeps import errors

        return errors(self.problem.packed, x, offsets, rotations)


def make_engine(
    problem: Problem, model: mujoco.MjModel, kind: Literal["auto", "compiled", "mujoco"] = "auto"
) -> Engine:
    """Return the engine: the compiled one where numba is installed.

    Args:
        problem: The robot with its task table.
        model: The robot's model.
        kind: Which engine; `auto` takes the compiled one if it can.

    Raises:
        MissingDependencyError: If the compiled engine is asked for and numba is not installed.
    """
    if kind == "compiled" and not HAS_NUMBA:
        raise MissingDependencyError("numba", "the compiled solver", "retarget")
    if kind == "mujoco" or not HAS_NUMBA:
        from bunraku.retarget.solver.mujoco_path import MujocoEngine

        if not HAS_NUMBA:
            say_once(
                "slow",
                "numba is not installed: retargeting runs in Python, with the same result but some 100 times slower;"
                " install it with: pip install 'bunraku[retarget]'",
            )
        return MujocoEngine(problem, model)
    return CompiledEngine(problem)
