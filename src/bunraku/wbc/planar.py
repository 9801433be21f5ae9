"""A planar humanoid's upper body: two hands, a strict task hierarchy, and what the lower priority wants.

Five joints `q = (trunk, right shoulder, right elbow, left shoulder, left elbow)` with unit-mass acceleration
dynamics in a stabilised shoulder frame: both shoulders are at `(0, TRUNK)`, and the trunk moves neither hand.
The right hand follows a path with strict priority; what is left to choose is the null-space command z:

    qdd = J# (a_ref - Jdot qd) + N z,     J# = J^T (J J^T)^-1,     N = 1 - J# J
    a_ref = pdd + 36 (p - p_R) + 12 (pd - J qd)

    cost = integral of 120 |p_L - p_L*|^2 + 3 |J_L qd|^2 + 20 q_T^2 + 0.03 |qd|^2 + 0.01 |z|^2

Left out on purpose: mass matrix, gravity, torque limits, contacts and balance; for those see
`bunraku.control.osc` and docs/whole_body_control.md.

Everything here is numpy on arrays with any leading axes. In this model only the right arm moves the right hand,
so J# is the inverse of its 2x2 block and N = diag(1, 0, 0, 1, 1); the collocation (`bunraku.wbc.collocation`)
uses the general formulas instead, so that each checks the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bunraku.geometry import Array

JOINTS = ("trunk", "right_shoulder", "right_elbow", "left_shoulder", "left_elbow")
TRUNK, UPPER_ARM, FOREARM = 0.60, 0.38, 0.30
"""Lengths [m]."""
LOWER: Array = np.array([-0.55, -1.8, 0.35, -2.2, -2.2])
"""Lower joint limits [rad]; that of the right elbow keeps its arm clear of the stretched posture."""
UPPER: Array = np.array([0.55, 1.2, 1.8, 2.2, 2.2])
"""Upper joint limits [rad]."""
SPEED = 3.0
"""Largest joint speed [rad/s]."""
COMMAND = 10.0
"""Largest component of the null-space command [rad/s^2]."""
START: Array = np.array([0.25, -0.45, 0.95, 0.60, -1.10])
"""Joint angles at the start [rad], at rest."""
NULL_SPACE: Array = np.array([1.0, 0.0, 0.0, 1.0, 1.0])
"""Diagonal of N."""
STIFFNESS, DAMPING = 36.0, 12.0
"""Feedback of the right hand [1/s^2, 1/s]."""
W_HAND, W_HAND_SPEED, W_TRUNK, W_SPEED, W_COMMAND = 120.0, 3.0, 20.0, 0.03, 0.01
"""Weights of the cost."""
for _constant in (LOWER, UPPER, START, NULL_SPACE):
    _constant.flags.writeable = False


class Arms(NamedTuple):
    """Sines and cosines of the arms' absolute angles, each `(..., 2)`: right, left."""

    cos1: Array
    sin1: Array
    cos12: Array
    sin12: Array


class Reference(NamedTuple):
    """What the right hand is asked for, each `(..., 2)`."""

    pos: Array
    """[m]"""
    vel: Array
    """[m/s]"""
    acc: Array
    """[m/s^2]"""


def arms(q: Array) -> Arms:
    """Return the sines and cosines at joint angles `(..., 5)`."""
    # contiguous, so that one and many take the same loop of numpy and give the same bits
    first = np.stack([q[..., 1], q[..., 3]], axis=-1)
    both = first + np.stack([q[..., 2], q[..., 4]], axis=-1)
    return Arms(np.cos(first), np.sin(first), np.cos(both), np.sin(both))


def hands(a: Arms) -> tuple[Array, Array]:
    """Return the positions `(..., 2)` of right and left hand [m]: x to the right, y up."""
    x = UPPER_ARM * a.cos1 + FOREARM * a.cos12
    y = TRUNK + UPPER_ARM * a.sin1 + FOREARM * a.sin12
    return np.stack([x[..., 0], y[..., 0]], axis=-1), np.stack([-x[..., 1], y[..., 1]], axis=-1)


def hand_velocities(a: Arms, qd: Array) -> tuple[Array, Array]:
    """Return the velocities `(..., 2)` of right and left hand [m/s] at joint speeds `(..., 5)`."""
    upper = UPPER_ARM * np.stack([qd[..., 1], qd[..., 3]], axis=-1)
    fore = FOREARM * np.stack([qd[..., 1] + qd[..., 2], qd[..., 3] + qd[..., 4]], axis=-1)
    x, y = -upper * a.sin1 - fore * a.sin12, upper * a.cos1 + fore * a.cos12
    return np.stack([x[..., 0], y[..., 0]], axis=-1), np.stack([-x[..., 1], y[..., 1]], axis=-1)


def right_jacobian(q: Array) -> Array:
    """Return the Jacobian of the right hand `(..., 2, 5)` [m/rad]."""
    a = arms(q)
    jac = np.zeros((*q.shape[:-1], 2, 5))
    jac[..., 0, 2], jac[..., 1, 2] = -FOREARM * a.sin12[..., 0], FOREARM * a.cos12[..., 0]
    jac[..., 0, 1] = jac[..., 0, 2] - UPPER_ARM * a.sin1[..., 0]
    jac[..., 1, 1] = jac[..., 1, 2] + UPPER_ARM * a.cos1[..., 0]
    return jac


@dataclass(frozen=True, slots=True)
class PlanarProblem:
    """The optimal control problem; the defaults are those of the teaching example that it reproduces."""

    duration: float = 2.5
    """Time horizon [s]."""
    start: tuple[float, ...] = tuple(START)
    """Joint angles at the start [rad], at rest."""
    move: tuple[float, float] = (0.04, 0.08)
    """Where the right hand goes, from where it starts [m]."""
    left_target: tuple[float, float] | None = None
    """Where the left hand is wanted [m]; None for the posture of `left_posture`."""
    left_posture: tuple[float, float] = (-0.45, 1.00)
    """Left shoulder and elbow that give the default target [rad]."""
    lower: tuple[float, ...] = tuple(LOWER)
    """Lower joint limits [rad]."""
    upper: tuple[float, ...] = tuple(UPPER)
    """Upper joint limits [rad]."""
    speed: float = SPEED
    """Largest joint speed [rad/s]."""
    command: float = COMMAND
    """Largest component of z [rad/s^2]."""

    @property
    def left_goal(self) -> Array:
        """Position wanted of the left hand `(2,)` [m]."""
        if self.left_target is not None:
            return np.array(self.left_target)
        posture = np.zeros(5)
        posture[3:] = self.left_posture
        return hands(arms(posture))[1]

    @property
    def right_start(self) -> Array:
        """Position of the right hand at the start `(2,)` [m]."""
        return hands(arms(np.array(self.start)))[0]

    def reference(self, time: Array) -> Reference:
        """Return what the right hand is asked for at times `(...)` [s]."""
        return reference(time, self.duration, self.right_start, np.array(self.move))

    def acceleration(self, time: Array, q: Array, qd: Array, z: Array) -> Array:
        """Return the joint accelerations `(..., 5)` [rad/s^2] of the closed loop."""
        return closed_loop(arms(q), qd, z, self.reference(time))

    def running_cost(self, q: Array, qd: Array, z: Array) -> Array:
        """Return the integrand of the cost `(...)`."""
        return running_cost(arms(q), q, qd, z, self.left_goal)


def reference(time: Array, duration: float, start: Array, move: Array) -> Reference:
    """Return a path of least jerk from rest to rest (a quintic), held at its end.

    Args:
        time: `(...)` [s].
        duration: [s].
        start: `(..., 2)` [m].
        move: `(2,)` [m].
    """
    tau = np.minimum(np.asarray(time) / duration, 1.0)[..., None]
    square = tau * tau
    h = square * tau * (10.0 - 15.0 * tau + 6.0 * square)
    hd = 30.0 * square * (1.0 - 2.0 * tau + square) / duration
    hdd = tau * (60.0 - 180.0 * tau + 120.0 * square) / (duration * duration)
    return Reference(start + move * h, move * hd, move * hdd)


def closed_loop(a: Arms, qd: Array, z: Array, wanted: Reference) -> Array:
    """Return the joint accelerations `(..., 5)`: the right hand as asked, z in its null space."""
    pos, vel = hands(a)[0], hand_velocities(a, qd)[0]
    acc = wanted.acc + STIFFNESS * (wanted.pos - pos) + DAMPING * (wanted.vel - vel)
    # Jdot qd: the hand's acceleration at constant joint speeds points at the joints' axes
    first, both = qd[..., 1] * qd[..., 1], (qd[..., 1] + qd[..., 2]) * (qd[..., 1] + qd[..., 2])
    c1, s1, c12, s12 = (part[..., 0] for part in a)
    ax = acc[..., 0] + UPPER_ARM * first * c1 + FOREARM * both * c12
    ay = acc[..., 1] + UPPER_ARM * first * s1 + FOREARM * both * s12
    j01, j11 = -FOREARM * s12, FOREARM * c12
    j00, j10 = j01 - UPPER_ARM * s1, j11 + UPPER_ARM * c1
    determinant = j00 * j11 - j01 * j10
    out = NULL_SPACE * z
    out[..., 1] += (j11 * ax - j01 * ay) / determinant
    out[..., 2] += (j00 * ay - j10 * ax) / determinant
    return out


def running_cost(a: Arms, q: Array, qd: Array, z: Array, left_goal: Array) -> Array:
    """Return the integrand of the cost `(...)`."""
    off = hands(a)[1] - left_goal
    vel = hand_velocities(a, qd)[1]
    return (
        W_HAND * (off * off).sum(axis=-1)
        + W_HAND_SPEED * (vel * vel).sum(axis=-1)
        + W_TRUNK * q[..., 0] * q[..., 0]
        + W_SPEED * (qd * qd).sum(axis=-1)
        + W_COMMAND * (z * z).sum(axis=-1)
    )
