"""Ankle pitch from the angle between shin and foot: geometry decides, whatever the solver made of the ankle."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from bunraku.retarget.solver.jit import compiled
from bunraku.retarget.stages.limits import MARGIN, bend

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled
def shin_foot_angle(knee: Array, ankle: Array, toe: Array) -> float:
    """Return the angle between shin and foot [rad] of points `(3,)`: 0 for toes in line with the shin, pointed down."""
    ax, ay, az = ankle[0] - knee[0], ankle[1] - knee[1], ankle[2] - knee[2]
    bx, by, bz = toe[0] - ankle[0], toe[1] - ankle[1], toe[2] - ankle[2]
    cx, cy, cz = ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx
    return math.atan2(math.sqrt(cx * cx + cy * cy + cz * cz), ax * bx + ay * by + az * bz)


@compiled
def set_ankles(dof: Array, joints: Array, ankles: Ints, flat: Array, limits: Array) -> None:
    """Overwrite ankle pitches in joint angles, bent smoothly into their limits.

    Joint angle zero is a flat foot under a vertical shin. A foot whose line from ankle to toe falls by `flat` has the
    angle `90 degrees - flat` to the shin there. The source measures against frame 0 instead, which is wrong by the
    whole bend of the ankle if a clip does not start standing (see `calibration.flat_foot_pitch`).

    Args:
        dof: Joint angles `(T, n)` [rad], in and out.
        joints: Key points `(T, 22, 3)` [m].
        ankles: `(F, 5)`: joint, sign (1 if positive angles turn the toes down, -1 else), knee, ankle and toe.
        flat: Fall of each flat foot `(F,)` [rad].
        limits: Lower and upper limit of each `(F, 2)`, of the joint times the sign [rad].
    """
    for f in range(ankles.shape[0]):
        joint, sign = ankles[f, 0], ankles[f, 1]
        for t in range(dof.shape[0]):
            angle = shin_foot_angle(joints[t, ankles[f, 2]], joints[t, ankles[f, 3]], joints[t, ankles[f, 4]])
            pitch = 0.5 * math.pi - flat[f] - angle
            dof[t, joint] = sign * bend(pitch, limits[f, 0], limits[f, 1], MARGIN)
