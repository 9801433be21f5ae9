"""A hand that exists only in the computer: the integral of a velocity that an operator commands.

A SpaceMouse or a gamepad tells how fast to go, not where a hand is. Driven through a virtual hand they look
like a tracked controller, and share clutch, filter and inverse kinematics with it.

    hand = VirtualHand(time.perf_counter)
    while driving:
        hand.move(linear, angular)    # what the operator commands from now on
        hand.pose                     # where that has brought the hand

Axes are those of a "z_up" device frame: x forward, y left, z up; the angular velocity is about these fixed
axes, not about those of the hand. A commanded velocity holds until the next call, so `move` first advances
under the previous command and then takes the new one. One call never moves the hand by more than `max_step`
and `max_turn`: after a hiccup of the clock (a suspended laptop, a stalled thread) the hand falls short, it
does not leap.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from bunraku.geometry import Array, Pose, from_rotvec, multiply, normalize


class VirtualHand:
    """Integrates a commanded twist into a pose."""

    def __init__(self, clock: Callable[[], float], *, max_step: float = 0.02, max_turn: float = 0.1) -> None:
        """Start at rest at the origin of the operator's frame.

        Args:
            clock: Returns the time [s].
            max_step: Longest translation of one call [m].
            max_turn: Largest rotation of one call [rad].
        """
        self._clock = clock
        self._max_step, self._max_turn = max_step, max_turn
        self.time = clock()
        self.pose = Pose.identity()
        self.linear_velocity: Array = np.zeros(3)
        self.angular_velocity: Array = np.zeros(3)

    def move(self, linear: ArrayLike, angular: ArrayLike) -> Pose:
        """Advance to now under the previous command, then take this one; return the pose now.

        Args:
            linear: Velocity `(3,)` [m/s].
            angular: Angular velocity `(3,)` about the frame's axes [rad/s].
        """
        now = self._clock()
        elapsed = max(now - self.time, 0.0)
        step = _bounded(elapsed * self.linear_velocity, self._max_step)
        turn = _bounded(elapsed * self.angular_velocity, self._max_turn)
        self.pose = Pose(self.pose.pos + step, normalize(multiply(from_rotvec(turn), self.pose.quat)))
        self.time = now
        self.linear_velocity = np.array(linear, dtype=np.float64)
        self.angular_velocity = np.array(angular, dtype=np.float64)
        return self.pose

    def freeze(self) -> None:
        """Stop where the hand was last, without advancing: the device that commanded it is gone."""
        self.time = self._clock()
        self.linear_velocity, self.angular_velocity = np.zeros(3), np.zeros(3)


def response(deflection: ArrayLike, deadband: float, cubic: float) -> Array:
    """Shape deflections so that rest is silent, small ones are fine and full ones are full.

    With `s = (|d| - deadband) / (1 - deadband)` the result is `sign(d) ((1 - cubic) s + cubic s^3)`, and 0
    inside the deadband: continuous, and 1 at full deflection.

    Args:
        deflection: Values `(...)`, -1 to 1; larger ones count as 1.
        deadband: Deflection below which the result is 0.
        cubic: Share of the cubic term, 0 (linear) to 1.

    Returns:
        Values `(...)`, -1 to 1.
    """
    deflection = np.asarray(deflection, dtype=np.float64)
    size = np.clip((np.abs(deflection) - deadband) / (1.0 - deadband), 0.0, 1.0)
    return np.sign(deflection) * size * (1.0 - cubic + cubic * size * size)


def stick_response(stick: ArrayLike, deadband: float, cubic: float) -> Array:
    """Shape a two-axis stick `(2,)` by its distance from the centre, which keeps its direction."""
    stick = np.asarray(stick, dtype=np.float64)
    distance = float(np.linalg.norm(stick))
    if distance <= deadband:
        return np.zeros(2)
    return stick / distance * response(distance, deadband, cubic)


def _bounded(vector: Array, longest: float) -> Array:
    """Return the vector, shortened to `longest` if it is longer."""
    length = float(np.linalg.norm(vector))
    return vector if length <= longest else vector * (longest / length)
