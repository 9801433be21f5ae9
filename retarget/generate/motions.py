"""The motions that can be generated: walk, turn, squat, wave, reach, kick."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError
from bunraku.geometry import from_rotvec, rotate
from bunraku.motion import SMPL_JOINTS
from bunraku.retarget.generate.body import SIDES, Person, smooth_step, two_bones
from bunraku.retarget.generate.gait import step_along

Array = NDArray[np.float64]

REST = 0.5
"""Stand still for this long before and after [s]."""


def _phase(person: Person, fps: float) -> tuple[Array, float]:
    """Return the progress of the motion between the rests `(N,)`, 0 to 1, and its time [s]."""
    seconds = (person.frames - 1) / fps - 2.0 * REST
    if seconds <= 0.0:
        raise BunrakuError(
            f"a generated motion lasts more than {2.0 * REST:g} s, for it begins and ends standing"
        )
    return np.clip((np.arange(person.frames) / fps - REST) / seconds, 0.0, 1.0), seconds


def walk(person: Person, fps: float, speed: float = 0.8, cadence: float = 1.8, lift: float = 0.07) -> Array:
    """Walk straight ahead.

    Args:
        person: Who.
        fps: Frames per second.
        speed: Mean speed [m/s].
        cadence: Steps per second.
        lift: How high the swinging foot is lifted [m].
    """
    phase, seconds = _phase(person, fps)
    steps = max(1, round(cadence * seconds) - 1)
    distance = speed * seconds

    def way(s: Array) -> Array:
        s = np.asarray(s, dtype=np.float64)
        return np.stack([distance * s, 0.0 * s, 0.0 * s], axis=-1)

    step_along(person, way, steps, lift=lift, swing=0.45 * min(1.0, speed), phase=phase)
    return person.joints()


def turn(person: Person, fps: float, angle: float = 180.0, cadence: float = 1.8, lift: float = 0.05) -> Array:
    """Turn on the spot, stepping.

    Args:
        person: Who.
        fps: Frames per second.
        angle: By how much [deg]; positive to the left.
        cadence: Steps per second.
        lift: How high the feet are lifted [m].
    """
    phase, seconds = _phase(person, fps)
    steps = max(1, round(cadence * seconds) - 1)

    def way(s: Array) -> Array:
        s = np.asarray(s, dtype=np.float64)
        return np.stack([0.0 * s, 0.0 * s, np.radians(angle) * s], axis=-1)

    step_along(person, way, steps, lift=lift, swing=0.1, phase=phase)
    return person.joints()


def squat(person: Person, fps: float, depth: float = 0.3, repeats: int = 2) -> Array:
    """Bend the knees and rise, arms forward for balance.

    Args:
        person: Who.
        fps: Frames per second.
        depth: How far the pelvis goes down [m].
        repeats: How often.
    """
    phase, _ = _phase(person, fps)
    low = 0.5 - 0.5 * np.cos(2.0 * np.pi * repeats * phase)
    person.pelvis[:, 2] -= depth * low
    person.pelvis[:, 0] -= 0.15 * depth * low
    person.trunk[:, 1] = 1.6 * depth * low
    for side in SIDES:
        person.arm_swing[side] = -1.4 * low
        person.elbow[side] = 0.25 - 0.15 * low
    return person.joints()


def wave(person: Person, fps: float, frequency: float = 1.5, side: str = "right") -> Array:
    """Raise a hand and wave.

    Args:
        person: Who.
        fps: Frames per second.
        frequency: Waves per second.
        side: `left` or `right`.
    """
    _side(side)
    phase, seconds = _phase(person, fps)
    raised = smooth_step(phase / 0.2) * smooth_step((1.0 - phase) / 0.2)
    person.arm_spread[side] = 0.15 + 1.35 * raised
    person.elbow[side] = 0.25 + 1.35 * raised
    person.forearm_turn[side] = raised * (1.4 + 0.35 * np.sin(2.0 * np.pi * frequency * seconds * phase))
    person.head[:, 2] = (0.3 if side == "left" else -0.3) * raised
    return person.joints()


def reach(
    person: Person, fps: float, x: float = 0.4, y: float = -0.15, z: float = 1.3, side: str = "right"
) -> Array:
    """Reach for a point and come back.

    Args:
        person: Who.
        fps: Frames per second.
        x: Point in front of the person [m].
        y: To the left [m].
        z: Over the floor [m].
        side: `left` or `right`.
    """
    _side(side)
    phase, _ = _phase(person, fps)
    there = smooth_step(phase / 0.4) * smooth_step((1.0 - phase) / 0.4)
    person.trunk[:, 1] = 0.15 * there
    points = person.joints()
    shoulder, elbow, wrist = (SMPL_JOINTS.index(f"{side}_{part}") for part in ("shoulder", "elbow", "wrist"))
    bones = [float(np.linalg.norm(person.offsets[joint])) for joint in (elbow, wrist)]
    # the hand goes along an arc about the shoulder: turned and lengthened at once, so that it never leaves reach
    start, goal = points[:, wrist] - points[:, shoulder], np.array([x, y, z]) - points[:, shoulder]
    length = np.linalg.norm(start, axis=1) * (1.0 - there) + np.linalg.norm(goal, axis=1) * there
    a = start / np.linalg.norm(start, axis=1, keepdims=True)
    b = goal / np.linalg.norm(goal, axis=1, keepdims=True)
    axis = np.cross(a, b)
    sine = np.linalg.norm(axis, axis=1, keepdims=True)
    angle = np.arctan2(sine[:, 0], (a * b).sum(axis=1))
    direction = rotate(from_rotvec(axis / np.maximum(sine, 1e-9) * (there * angle)[:, None]), a)
    hand = points[:, shoulder] + direction * length[:, None]
    down = np.tile([-0.3, 0.6 if side == "left" else -0.6, -1.0], (person.frames, 1))
    # where the arm hangs, the elbow of the relaxed stand; blended by direction, the bones keep their lengths
    hanging = points[:, elbow] - points[:, shoulder]
    bend = (
        hanging / np.linalg.norm(hanging, axis=1, keepdims=True) * (1.0 - there[:, None])
        + down * there[:, None]
    )
    points[:, elbow] = two_bones(points[:, shoulder], hand, bones[0], bones[1], bend)
    points[:, wrist] = hand
    return points


def kick(person: Person, fps: float, height: float = 0.45, side: str = "right") -> Array:
    """Shift the weight, swing a leg back and kick forward.

    Args:
        person: Who.
        fps: Frames per second.
        height: How high the foot gets [m].
        side: Kicking foot, `left` or `right`.
    """
    _side(side)
    phase, _ = _phase(person, fps)
    sign = 1.0 if side == "right" else -1.0
    shift = smooth_step(phase / 0.25) * smooth_step((1.0 - phase) / 0.25)
    person.pelvis[:, 1] += sign * 0.06 * person.size * shift
    person.pelvis[:, 2] -= 0.03 * person.size * shift
    back = smooth_step((phase - 0.2) / 0.2) * smooth_step((0.5 - phase) / 0.15)
    forth = smooth_step((phase - 0.4) / 0.15) * smooth_step((0.85 - phase) / 0.25)
    foot = person.ankles[side]
    foot[:, 0] += (-0.25 * back + 0.45 * forth) * person.size
    foot[:, 2] += 0.12 * person.size * back + height * forth
    person.foot_pitch[side] = 0.5 * back - 0.3 * forth
    person.trunk[:, 1] = -0.12 * forth + 0.1 * back
    for arm in SIDES:
        with_leg = 1.0 if arm == side else -1.0
        person.arm_swing[arm] = with_leg * (0.5 * forth - 0.3 * back)
        person.arm_spread[arm] = 0.15 + 0.35 * shift
    return person.joints()


def _side(side: str) -> None:
    if side not in SIDES:
        raise BunrakuError(f"side is 'left' or 'right', got {side!r}")


MOTIONS: dict[str, Callable[..., Array]] = {
    "walk": walk,
    "turn": turn,
    "squat": squat,
    "wave": wave,
    "reach": reach,
    "kick": kick,
}
"""The motions by name."""
