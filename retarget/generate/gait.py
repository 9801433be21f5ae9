"""Walking along a way: footprints at the way's own points, one foot always stands, the other swings over."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError
from bunraku.retarget.generate.body import SIDES, Person, smooth_step

Array = NDArray[np.float64]
Way = Callable[[Array], Array]
"""Phase of the whole way `(...)`, 0 to 1, to x [m], y [m] and heading [rad] `(..., 3)`."""

DOUBLE = 0.15
"""Share of a step in which both feet stand."""


def step_along(person: Person, way: Way, steps: int, *, lift: float, swing: float, phase: Array) -> None:
    """Let a person step along a way, in place.

    The k-th foot lands k / steps along the way; a last step brings the feet together. The pelvis is midway between
    the feet whenever both stand, with constant speed between the first and the last step.

    Args:
        person: Who walks; its frames cover the whole motion.
        way: Where to.
        steps: Number of steps before the closing one, at least 1.
        lift: Height of the swinging ankle over the standing one [m].
        swing: Amplitude of the arms [rad].
        phase: Progress of the whole motion at each frame `(N,)`, 0 to 1.
    """
    if steps < 1:
        raise BunrakuError(f"a walk has at least one step, got {steps}")
    progress = phase * (steps + 1)
    prints = {side: [_print(person, way, 0.0, side)] for side in SIDES}
    starts: dict[str, list[int]] = {side: [] for side in SIDES}
    for step in range(steps + 1):
        side = SIDES[step % 2]
        prints[side].append(_print(person, way, min(step + 1, steps) / steps, side))
        starts[side].append(step)
    for side in SIDES:
        place, air = _foot(progress, starts[side], prints[side])
        person.ankles[side] = np.column_stack([place[:, :2], person.ankle_height + lift * air])
        person.foot_yaw[side] = place[:, 2]
    begin, end = np.minimum(progress, 1.0), np.minimum(steps + 1 - progress, 1.0)
    travelled = np.where(
        progress < 1.0, 0.5 * begin**2, np.where(end < 1.0, steps - 0.5 * end**2, progress - 0.5)
    )
    where = way(travelled / steps)
    person.pelvis[:, :2], person.yaw = where[:, :2], where[:, 2]
    sway = np.sin(np.pi * (progress - 0.5)) * smooth_step(begin) * smooth_step(end)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        person.arm_swing[side] = sign * swing * sway
        person.elbow[side] = 0.25 + 0.3 * swing * smooth_step(begin) * smooth_step(end)
    person.trunk[:, 2] = 0.3 * swing * sway
    lower_to_reach(person)


def lower_to_reach(person: Person, share: float = 0.985) -> None:
    """Set the pelvis to one height, at which both ankles are always within `share` of the legs' length."""
    height = person.pelvis[:, 2].min()
    for side in SIDES:
        hip = person.stance(side)
        c, s = np.cos(person.yaw), np.sin(person.yaw)
        x = person.pelvis[:, 0] + c * hip[0] - s * hip[1]
        y = person.pelvis[:, 1] + s * hip[0] + c * hip[1]
        ankle = person.ankles[side]
        room = (share * person.leg) ** 2 - (ankle[:, 0] - x) ** 2 - (ankle[:, 1] - y) ** 2
        if room.min() <= (0.5 * person.leg) ** 2:
            raise BunrakuError(
                "the steps are too long for the legs; take a lower speed or angle, or a higher cadence"
            )
        drop = person.stand_height() - person.ankle_height - 0.985 * person.leg
        height = min(height, float((ankle[:, 2] + np.sqrt(room)).min() + drop))
    person.pelvis[:, 2] = height


def _print(person: Person, way: Way, phase: float, side: str) -> Array:
    """Return x, y and heading of a footprint beside the way."""
    x, y, yaw = way(np.array(phase))
    hip = person.stance(side)
    return np.array(
        [
            x + np.cos(yaw) * hip[0] - np.sin(yaw) * hip[1],
            y + np.sin(yaw) * hip[0] + np.cos(yaw) * hip[1],
            yaw,
        ]
    )


def _foot(progress: Array, starts: list[int], prints: list[Array]) -> tuple[Array, Array]:
    """Return place `(N, 3)` and relative height `(N,)` of a foot whose k-th swing begins at `starts[k]`."""
    place = np.tile(prints[0], (len(progress), 1))
    air = np.zeros(len(progress))
    for start, before, after in zip(starts, prints[:-1], prints[1:], strict=True):
        s = smooth_step((progress - start - 0.5 * DOUBLE) / (1.0 - DOUBLE))
        place = np.where((s > 0.0)[:, None], before + s[:, None] * (after - before), place)
        # the foot rises as soon as it moves
        air = np.where((s > 0.0) & (s < 1.0), np.sin(np.pi * s), air)
    return place, air
