"""A simulated operator's hand on a 3D mouse: it steers by how fast, not by where.

It looks at tool and goal with the delay of a person and deflects the cap in proportion to what separates them, each of
the six axes at once, which no hand on a cap can keep quite apart. What the cap then does is what a SpaceMouse's does:
dead band, response and a virtual hand that the deflection moves. There is no room to run out of, so nothing is
taken hold of anew.
"""

from __future__ import annotations

import numpy as np

from bunraku.geometry import Array, Pose, conjugate, multiply, to_rotvec
from bunraku.teleop_collect.simulated_hand import NEAR, REACTION, Seen
from bunraku.teleop_collect.virtual_hand import VirtualHand, response

GAIN = 1.5
"""Speed asked for per distance [1/s]: with a person's delay, twice as much begins to swing."""
MUSCLE = 0.08
"""Time constant of the fingers [s]."""
CROSSTALK = 0.05
"""Share of every axis that goes into each other one, at most."""
TREMOR = 0.01
"""Standard deviation of the deflection while the hand pushes, of 1."""
SPEED, TURN_SPEED = 0.4, 1.2
"""Of the virtual hand at full deflection [m/s], [rad/s]: those of the SpaceMouse."""
DEADBAND, CUBIC = 0.08, 0.6
"""Of the response: those of the SpaceMouse."""
TAIL = 0.3
"""How long it drives after the cap is at rest [s]."""

# what deflection gives which speed, both of 1, as a person has learned it: nothing is to be had below the dead band
_DEFLECTIONS = np.append(0.0, np.linspace(DEADBAND + 0.01, 1.0, 200))
_RESPONSES = response(_DEFLECTIONS, DEADBAND, CUBIC)


class SimulatedCap:
    """A hand on the cap of a 3D mouse, advanced sample by sample."""

    def __init__(self, scale: float, precision: float, noise: bool, rng: np.random.Generator) -> None:
        """Lay the hand on the cap.

        Args:
            scale: Tool motion per motion of the virtual hand that the operator is used to.
            precision: Factor on it while precision is held.
            noise: Whether fingers tremble and axes leak into each other.
            rng: Draws both.
        """
        self._scale, self._precision, self._rng, self._noise = scale, precision, rng, noise
        leak = CROSSTALK * rng.uniform(-1.0, 1.0, (6, 6)) if noise else np.zeros((6, 6))
        np.fill_diagonal(leak, 1.0)
        self._leak = leak
        self._now = 0.0
        self._hand = VirtualHand(lambda: self._now)
        self.begin_episode(0.0)

    def begin_episode(self, now: float) -> None:
        """Let go and look at the new scene."""
        self.precision = False
        """Whether the precision key is held."""
        self._deflection = np.zeros(6)
        self._wait_until = now + REACTION
        self._driven = -np.inf

    @property
    def pose(self) -> Pose:
        """Pose of the virtual hand; z up."""
        return self._hand.pose

    def driving(self, now: float) -> bool:
        """Say whether the cap drives: while it is off its rest and shortly after."""
        return now - self._driven < TAIL

    def advance(self, now: float, seen: Seen) -> None:
        """Push the cap as what is seen asks for, up to a time [s]."""
        wanted = self._wanted(seen) if now >= self._wait_until else np.zeros(6)
        factor = 1.0 - np.exp(-(now - self._now) / MUSCLE)
        self._deflection = self._deflection + factor * (wanted - self._deflection)
        pushed = np.clip(self._leak @ self._deflection, -1.0, 1.0)
        if self._noise and np.abs(pushed).max() > DEADBAND:
            pushed = np.clip(pushed + self._rng.normal(0.0, TREMOR, 6), -1.0, 1.0)
        self._now = now
        twist = np.repeat([SPEED, TURN_SPEED], 3) * response(pushed, DEADBAND, CUBIC)
        self._hand.move(twist[:3], twist[3:])
        if np.abs(pushed).max() > DEADBAND:
            self._driven = now

    def _wanted(self, seen: Seen) -> Array:
        """Return the deflections `(6,)` that what separates tool and goal asks for."""
        offset = seen.goal.pos - seen.tool.pos
        turn = to_rotvec(multiply(seen.goal.quat, conjugate(seen.tool.quat))) if seen.turn else np.zeros(3)
        distance, angle = float(np.linalg.norm(offset)), float(np.linalg.norm(turn))
        self.precision = distance < NEAR and angle < 0.3
        if distance < seen.tolerance[0]:
            offset = np.zeros(3)
        if angle < seen.tolerance[1]:
            turn = np.zeros(3)
        fine = self._precision if self.precision else 1.0
        speed = GAIN * np.concatenate([offset / (self._scale * fine * SPEED), turn / (fine * TURN_SPEED)])
        largest = float(np.abs(speed).max())
        if largest > 1.0:
            speed = speed / largest
        return np.sign(speed) * np.interp(np.abs(speed), _RESPONSES, _DEFLECTIONS)
