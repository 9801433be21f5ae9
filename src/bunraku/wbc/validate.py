"""Refuses a planar problem that cannot have a solution, and says which constraint fails and when."""

from __future__ import annotations

import numpy as np

from bunraku.errors import BunrakuError
from bunraku.geometry import Array
from bunraku.wbc.planar import FOREARM, JOINTS, TRUNK, UPPER_ARM, PlanarProblem

_SAMPLES = 1001


def validate(problem: PlanarProblem) -> None:
    """Check bounds, start and reach.

    Raises:
        BunrakuError: For the first constraint that cannot be met; the message names it and its time.
    """
    for name in ("duration", "speed", "command"):
        value = getattr(problem, name)
        if not (np.isfinite(value) and value > 0.0):
            raise BunrakuError(f"{name} must be positive, got {value:g}")
    for i, joint in enumerate(JOINTS):
        low, high, start = problem.lower[i], problem.upper[i], problem.start[i]
        if not low < high:
            raise BunrakuError(
                f"limits of {joint} are inconsistent: lower {low:g} rad is not below upper {high:g} rad"
            )
        if not low <= start <= high:
            raise BunrakuError(
                f"{joint} starts at {start:g} rad, outside its limits {low:g} to {high:g} rad, at t = 0 s"
            )
    _check_left(problem)
    _check_right(problem)


def _check_left(problem: PlanarProblem) -> None:
    goal = problem.left_goal
    if not np.isfinite(goal).all():
        raise BunrakuError(f"the left hand's target must be finite, got {goal.tolist()}")
    distance = float(np.hypot(goal[0], goal[1] - TRUNK))
    nearest, farthest = abs(UPPER_ARM - FOREARM), UPPER_ARM + FOREARM
    if not nearest <= distance <= farthest:
        raise BunrakuError(
            f"the left hand cannot reach its target {_point(goal)} m: it is {distance:.3f} m from the shoulder, the arm"
            f" reaches {nearest:.2f} to {farthest:.2f} m"
        )


def _check_right(problem: PlanarProblem) -> None:
    """The right hand's path fixes its arm: follow it in closed form, elbow bent the way it starts."""
    if not np.isfinite(problem.move).all():
        raise BunrakuError(f"the right hand's move must be finite, got {list(problem.move)}")
    times = np.linspace(0.0, problem.duration, _SAMPLES)
    wanted = problem.reference(times)
    offset = wanted.pos - np.array([0.0, TRUNK])
    distance = np.hypot(offset[:, 0], offset[:, 1])
    nearest, farthest = abs(UPPER_ARM - FOREARM), UPPER_ARM + FOREARM
    out = (distance < nearest) | (distance > farthest)
    if out.any():
        k = int(out.argmax())
        raise BunrakuError(
            f"the right hand cannot follow its path: at t = {times[k]:.3f} s it is asked to {_point(wanted.pos[k])} m,"
            f" {distance[k]:.3f} m from the shoulder, the arm reaches {nearest:.2f} to {farthest:.2f} m"
        )
    bend = np.sign(problem.start[2]) or 1.0
    cosine = (distance**2 - UPPER_ARM**2 - FOREARM**2) / (2.0 * UPPER_ARM * FOREARM)
    elbow = bend * np.arccos(np.minimum(np.maximum(cosine, -1.0), 1.0))
    shoulder = np.unwrap(
        np.arctan2(offset[:, 1], offset[:, 0])
        - np.arctan2(FOREARM * np.sin(elbow), UPPER_ARM + FOREARM * np.cos(elbow))
    )
    for i, angle in ((1, shoulder), (2, elbow)):
        _check_limit(problem, i, angle, times)
        rate = np.abs(np.gradient(angle, times))
        if (rate > problem.speed).any():
            k = int((rate > problem.speed).argmax())
            raise BunrakuError(
                f"the right hand's path needs {rate[k]:.2f} rad/s of {JOINTS[i]} at t = {times[k]:.3f} s, its speed"
                f" limit is {problem.speed:g} rad/s"
            )


def _check_limit(problem: PlanarProblem, joint: int, angle: Array, times: Array) -> None:
    low, high = problem.lower[joint], problem.upper[joint]
    slack = 1e-9  # the path starts at the start posture, which may stand at a limit
    out = (angle < low - slack) | (angle > high + slack)
    if out.any():
        k = int(out.argmax())
        raise BunrakuError(
            f"the right hand's path takes {JOINTS[joint]} to {angle[k]:.3f} rad at t = {times[k]:.3f} s, outside its"
            f" limits {low:g} to {high:g} rad"
        )


def _point(point: Array) -> str:
    return f"[{point[0]:.3f}, {point[1]:.3f}]"
