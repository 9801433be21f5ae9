"""The screw's thread: friction that grows with depth, a crossed start, a worn recess.

MuJoCo couples the screw's slide to its turn; what else a thread does is here. Its friction is Coulomb's, smoothed around
rest: the torque `tau(depth) w / max(|w|, w0)` against the speed w, with

    tau(depth) = factor * (FRICTION_START + FRICTION_GROWTH * depth / SCREW_SINK) [* CROSSED if crossed]

It is applied as a damping `tau / max(|w|, w0)` that every tick sets anew, so that it always takes energy out.
The thread catches when the screw has turned by `CATCH`. If the screw then leans by more than `CROSS_TILT`, it has caught
askew: it is crossed and soon jams. Turned back out, it can start anew. A bit that turns in the recess while it is pressed
on it, but does not take the screw along, wears the recess; `WEAR_LIMIT` of that and it is stripped.

`factor`, `crossed`, `caught` and `wear` stand in `userdata`.
"""

from __future__ import annotations

from math import pi

import numpy as np

from bunraku.geometry import Array
from bunraku.screw import figures
from bunraku.sim import Arrays, Sim

FRICTION_START, FRICTION_GROWTH = 0.05, 0.45
"""Torque of the thread's friction at the start, and what the whole depth adds [N m]."""
SMOOTHING = 0.2
"""Speed w0 below which the friction falls off [rad/s]."""
CROSSED = 12.0
"""Factor on the friction of a crossed thread."""
CATCH = 0.25 * 2 * pi
"""Turn at which the thread catches [rad]."""
RELEASE = 0.02 * 2 * pi
"""Turned back to this, a thread is free again [rad]."""
CROSS_TILT = 0.05
"""Lean of the screw at which the thread catches askew [rad]."""
WEAR_FORCE = 5.0
"""Slipping under less axial force does no harm [N]."""
WEAR_LIMIT = 20.0 * 4 * pi
"""Slip times axial force that strips the recess [rad N]: two turns under 20 N."""
SLIP_SPEED = 0.5
"""A bit that turns faster than the screw by this slips [rad/s]."""


class Thread:
    """The thread of the screw in one simulation or many."""

    userdata_size = 4

    def __init__(self, userdata_start: int) -> None:
        """Say where its part of `userdata` begins."""
        self._at = slice(userdata_start, userdata_start + self.userdata_size)

    def bind(self, sim: Sim) -> None:
        """Take the views that the thread needs."""
        model = sim.model
        at = {name: int(model.joint(name).qposadr[0]) for name in ("screw_slide", "screw_turn")}
        tilt = int(model.joint("screw_tilt_x").qposadr[0])
        self.depth = sim.qpos[..., at["screw_slide"]]
        """How far the screw is in `(...)` [m]."""
        self.turn = sim.qpos[..., at["screw_turn"]]
        """How far it has turned `(...)` [rad]."""
        self.speed = sim.qvel[..., int(model.joint("screw_turn").dofadr[0])]
        """How fast it turns `(...)` [rad/s]."""
        self._tilt = sim.qpos[..., tilt : tilt + 2]
        self._damping = sim.ctrl[..., int(model.actuator("thread_friction").id)]
        memory = sim.userdata[..., self._at]
        self._factor, self._crossed, self._caught, self.wear = (memory[..., i] for i in range(4))

    def reset(self, row: Arrays, factor: float, crossed: bool) -> None:
        """Start one simulation's thread with a factor on its friction, straight or crossed already."""
        row.userdata[self._at] = factor, crossed, crossed, 0.0
        damping = factor * FRICTION_START / SMOOTHING
        row.ctrl[int(row.model.actuator("thread_friction").id)] = damping

    @property
    def crossed(self) -> Array:
        """1 where the thread is crossed `(...)`."""
        return self._crossed

    @property
    def stripped(self) -> Array:
        """1 where the recess is stripped `(...)`."""
        return np.asarray(self.wear >= WEAR_LIMIT, dtype=np.float64)

    @property
    def caught(self) -> Array:
        """1 where the thread has caught `(...)`."""
        return self._caught

    def tick(self) -> None:
        """Set the friction for the next tick."""
        depth = np.maximum(self.depth, 0.0)
        torque = self._factor * (FRICTION_START + FRICTION_GROWTH / figures.SCREW_SINK * depth)
        torque = torque * (1.0 + (CROSSED - 1.0) * self._crossed)
        self._damping[...] = torque / np.maximum(np.abs(self.speed), SMOOTHING)

    def finish(self, axial: Array, bit_speed: Array, step: float) -> None:
        """Note what a control step has done.

        Args:
            axial: Mean axial force on the recess `(...)` [N].
            bit_speed: Speed of the bit `(...)` [rad/s].
            step: Time of the step [s].
        """
        tilt = self._tilt
        leaning = np.sqrt((tilt * tilt).sum(axis=-1)) > CROSS_TILT
        catching = (self._caught == 0.0) & (self.turn >= CATCH)
        free = self.turn < RELEASE
        self._crossed[...] = np.where(free, 0.0, np.where(catching & leaning, 1.0, self._crossed))
        self._caught[...] = np.where(free, 0.0, np.where(catching, 1.0, self._caught))
        slip = np.abs(bit_speed - self.speed)
        slipping = (slip > SLIP_SPEED) & (axial > WEAR_FORCE)
        self.wear[...] += np.where(slipping, slip * axial * step, 0.0)
