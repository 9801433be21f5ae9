"""One simulation, or many of the same model, behind the same array names.

A task writes `sim.qpos[..., 3]` and works on both: `SingleSim` has arrays `(n,)`, `BatchSim` `(nsim, n)`. The
arrays are live views of the simulation's state. After `step` and `forward`, positions and velocities (and the
sensors made of them) are up to date in both, computed by the same calls, so that both give the same bits.

All episode state lives in MuJoCo's integration state (`mjSTATE_INTEGRATION`): a state row *is* the episode.
"""

from __future__ import annotations

from typing import Protocol, cast

import mujoco
import numpy as np
from mujoco import batch as mujoco_batch
from numpy.typing import NDArray

from bunraku.geometry import Array

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_VEL = int(mujoco.mjtStage.mjSTAGE_VEL)
_BAD = [
    int(mujoco.mjtWarning.mjWARN_BADQPOS),
    int(mujoco.mjtWarning.mjWARN_BADQVEL),
    int(mujoco.mjtWarning.mjWARN_BADQACC),
]


class Arrays(Protocol):
    """The arrays that a task reads and writes: of one simulation, of many, or of one among many."""

    model: mujoco.MjModel
    qpos: Array
    """`(..., nq)`"""
    qvel: Array
    """`(..., nv)`"""
    ctrl: Array
    """`(..., nu)`"""
    mocap_pos: Array
    """`(..., nmocap, 3)` [m]"""
    mocap_quat: Array
    """`(..., nmocap, 4)`"""
    userdata: Array
    """`(..., nuserdata)`: the task's and the controllers' memory."""
    sensordata: Array
    """`(..., nsensordata)`, read-only."""
    site_xpos: Array
    """`(..., nsite, 3)` [m], read-only."""
    xpos: Array
    """`(..., nbody, 3)` [m], read-only."""
    xquat: Array
    """`(..., nbody, 4)`, read-only."""
    xfrc_applied: Array
    """`(..., nbody, 6)`: force [N] and torque [N m] on each body, world."""

    def model_field(self, name: str) -> Array:
        """Return a field of the model, of each simulation its own: a live view to read and write.

        It is no part of the state: a task that writes one writes it anew, from what the state holds, when a state is
        set.
        """
        ...


class Sim(Arrays, Protocol):
    """A simulation, or many, that can be stepped."""

    shape: tuple[int, ...]
    """`()` for one simulation, `(nsim,)` for many."""

    def step(self, nstep: int, *, last: bool) -> None:
        """Advance by `nstep` substeps; with `last`, bring positions and velocities up to date afterwards."""
        ...


class SingleSim:
    """One simulation on one `MjData`."""

    shape: tuple[int, ...] = ()

    def __init__(self, model: mujoco.MjModel) -> None:
        """Make the data of a model at its default state."""
        self.model = model
        self.data = mujoco.MjData(model)
        # the second half of a step that MuJoCo offers on its own is Euler's: Runge-Kutta has no halves
        self._halves = int(model.opt.integrator) != int(mujoco.mjtIntegrator.mjINT_RK4)
        self._ready = False
        self.forward()

    def __getattr__(self, name: str) -> Array:
        if name == "data":  # a sim under construction, or being copied
            raise AttributeError(name)
        array = getattr(self.data, name)
        setattr(self, name, array)
        return array

    def model_field(self, name: str) -> Array:
        """Return a field of the model."""
        return cast(Array, getattr(self.model, name))

    def step(self, nstep: int, *, last: bool) -> None:
        """Advance by `nstep` substeps; with `last`, bring positions and velocities up to date afterwards."""
        if self._ready and self._halves:
            # the last call left the first half of this substep done
            mujoco.mj_step2(self.model, self.data)
            nstep -= 1
        if nstep:
            mujoco.mj_step(self.model, self.data, nstep)
        self._ready = last
        if last:
            mujoco.mj_step1(self.model, self.data)

    def forward(self) -> None:
        """Bring positions, velocities and their sensors up to date with the state."""
        mujoco.mj_step1(self.model, self.data)
        self._ready = True

    @property
    def state(self) -> Array:
        """A copy `(D,)` of the integration state."""
        out = np.empty(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_getState(self.model, self.data, out, STATE)
        return out

    def set_state(self, state: Array) -> None:
        """Set the integration state `(D,)` and bring derived fields up to date."""
        mujoco.mj_setState(self.model, self.data, np.ascontiguousarray(state, dtype=np.float64), STATE)
        self.forward()

    def unstable(self) -> bool:
        """Say whether MuJoCo found the simulation unstable since the last call (it then resets silently)."""
        warning = self.data.warning
        if not any(warning[w].number for w in _BAD):
            return False
        for w in _BAD:
            warning[w].number = 0
        return True


class BatchSim:
    """`nsim` simulations on MuJoCo's thread pool."""

    def __init__(self, model: mujoco.MjModel, nsim: int, nthread: int = 0) -> None:
        """Make the simulations at the model's default state.

        Args:
            model: The model.
            nsim: Number of simulations.
            nthread: Number of threads, 0 for one per CPU.
        """
        self.model = model
        self.shape: tuple[int, ...] = (nsim,)
        # persistent: each simulation continues from the stages that `last` computed, which then cost nothing
        self.batch = mujoco_batch.Batch(model, nsim, nthread, persistent=True)
        self._bad_counts = self.batch.warning[:, _BAD[0] : _BAD[-1] + 1, 1]
        self.forward(None)

    def __getattr__(self, name: str) -> Array:
        # a derived field is copied out of every simulation at every call, so only those in use are bound
        array = self.batch.bind(name)
        setattr(self, name, array)
        return array

    def model_field(self, name: str) -> Array:
        """Return a field of the models `(nsim, ...)`, from the first call on one for each simulation."""
        return cast(Array, self.batch.expand(name))

    def step(self, nstep: int, *, last: bool) -> None:
        """Advance by `nstep` substeps; with `last`, bring positions and velocities up to date afterwards."""
        self.batch.step(nstep=nstep, stage=_VEL if last else 0)

    def play(self, controls: Array, nstep: int) -> None:
        """Advance by `nstep` substeps with each of `controls` `(ticks, nsim, nu)`, then as `step` with `last`."""
        held = np.repeat(np.swapaxes(controls[:-1], 0, 1), nstep, axis=1)
        self.batch.rollout(held.shape[1], held, record=())
        self.ctrl[...] = controls[-1]
        self.step(nstep, last=True)

    def forward(self, ids: NDArray[np.int64] | None) -> None:
        """Bring positions, velocities and their sensors of some simulations (None: all) up to date."""
        self.batch.forward(ids, stage=_VEL)

    @property
    def state(self) -> Array:
        """The integration states `(nsim, D)`: a live view."""
        return self.batch.state

    def row(self, index: int) -> Arrays:
        """Return the arrays of one simulation: live views."""
        return cast(Arrays, _Row(self, index))

    def unstable(self) -> NDArray[np.bool_]:
        """Return which simulations `(nsim,)` MuJoCo found unstable since the last call, as booleans."""
        counts = self._bad_counts
        if not counts.any():
            return np.zeros(self.shape, dtype=bool)
        hit: NDArray[np.bool_] = counts.any(axis=1)
        counts[...] = 0
        return hit


class _Row:
    """One simulation of a batch."""

    def __init__(self, sim: BatchSim, index: int) -> None:
        self.model = sim.model
        self._sim, self._index = sim, index

    def __getattr__(self, name: str) -> Array:
        array = getattr(self._sim, name)[self._index]
        setattr(self, name, array)
        return array

    def model_field(self, name: str) -> Array:
        """Return a field of this simulation's model."""
        return self._sim.model_field(name)[self._index]
