"""Domain randomisation: what differs from episode to episode in a robot that is never quite its model.

What was drawn stands in `userdata`; the model's own numbers are written from there, so that a restored state brings
its model along.
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np

from bunraku.geometry import Array
from bunraku.sim import Arrays

FACTORS = ("friction", "mass", "strength", "latency")
"""What is drawn, in the order of `draw`."""
NOMINAL = np.array([1.0, 1.0, 1.0, 0.0])
"""The model as it is."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Lowest and highest of what is drawn uniformly."""

    friction: tuple[float, float] = (0.5, 1.5)
    """Factor on the soles' friction."""
    mass: tuple[float, float] = (0.8, 1.2)
    """Factor on mass and inertia of the trunk."""
    strength: tuple[float, float] = (0.85, 1.15)
    """Factor on all motors: stiffness, damping and torque limit."""
    latency: tuple[float, float] = (0.0, 0.02)
    """Time that a new target takes to arrive [s], at most one control step; whole substeps."""


def draw(rng: np.random.Generator, ranges: Ranges) -> Array:
    """Return factors of an episode `(4,)`, in the order of `FACTORS`."""
    low, high = np.array([getattr(ranges, name) for name in FACTORS]).T
    return low + (high - low) * rng.uniform(size=len(FACTORS))


class ModelChanges:
    """Writes factors into the models of simulations."""

    def __init__(self, model: mujoco.MjModel, soles: list[int], trunk: int) -> None:
        """Remember the model as it is.

        Args:
            model: The model.
            soles: Geoms whose friction changes.
            trunk: Body whose mass changes.
        """
        self._soles, self._trunk = soles, trunk
        self._friction = model.geom_friction[soles, 0].copy()
        self._mass = float(model.body_mass[trunk])
        self._inertia = model.body_inertia[trunk].copy()
        self._gain = model.actuator_gainprm[:, 0].copy()
        self._bias = model.actuator_biasprm[:, 1:3].copy()
        self._force = model.actuator_forcerange.copy()

    def write(self, sim: Arrays, factors: Array) -> None:
        """Write factors `(..., 4)` into the models of a simulation, or of many.

        The constants that MuJoCo derives from masses at compilation (they only tune the softness of constraints) stay.
        """
        friction, mass, strength = (factors[..., i] for i in range(3))
        sim.model_field("geom_friction")[..., self._soles, 0] = friction[..., None] * self._friction
        sim.model_field("body_mass")[..., self._trunk] = mass * self._mass
        sim.model_field("body_inertia")[..., self._trunk, :] = mass[..., None] * self._inertia
        sim.model_field("actuator_gainprm")[..., 0] = strength[..., None] * self._gain
        sim.model_field("actuator_biasprm")[..., 1:3] = strength[..., None, None] * self._bias
        sim.model_field("actuator_forcerange")[...] = strength[..., None, None] * self._force


def delayed_substeps(latency: Array, timestep: float) -> Array:
    """Return for how many substeps `(...)` of a control step the old target still holds."""
    return np.asarray(np.rint(latency / timestep))
