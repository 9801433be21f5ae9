"""Finding the cycle of a gait, and closing it so that it can be repeated without a seam.

loop = find_loop(motion)
cycle = close_loop(motion, loop)
long = repeat(cycle, 10)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError
from bunraku.geometry import conjugate, from_rotvec, multiply, rotate, to_rotvec
from bunraku.motion import RobotMotion
from bunraku.motion_bodies import rates
from bunraku.retarget.tools.edit import place_root, take

Array = NDArray[np.float64]

SPEED_WEIGHT = 0.1
"""Time by which differences in speed count as differences in angle [s]."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A stretch of a motion whose end goes on like its beginning."""

    start: int
    """First frame."""
    stop: int
    """Frame that is most like the first one; the cycle has `stop - start` frames."""
    error: float
    """Root mean square of the difference in angle between the two [rad]."""


def find_loop(motion: RobotMotion, shortest: float = 0.5, longest: float | None = None) -> Loop:
    """Return the stretch whose two ends are most alike in angles, speeds, and height and lean of the root.

    Args:
        motion: A motion that repeats itself.
        shortest: Least time of a cycle [s].
        longest: Most time of a cycle [s]; the whole motion by default.

    Raises:
        BunrakuError: If the motion is shorter than the least time.
    """
    low = max(1, round(shortest * motion.fps))
    high = len(motion) - 1 if longest is None else min(len(motion) - 1, round(longest * motion.fps))
    if low > high:
        raise BunrakuError(f"a motion of {motion.duration:.2f} s holds no cycle of {shortest:g} s")
    pose = _pose(motion)
    speed = SPEED_WEIGHT * rates(pose, motion.fps)
    moving = np.sqrt((speed**2).mean(axis=1))
    best = Loop(0, low, np.inf)
    score = np.inf
    for period in range(low, high + 1):
        apart = ((pose[period:] - pose[:-period]) ** 2).mean(axis=1)
        apart += ((speed[period:] - speed[:-period]) ** 2).mean(axis=1)
        # where nothing moves any two frames are alike: such stretches are no cycle
        still = np.convolve(moving, np.ones(period + 1), mode="valid") < 0.5 * moving.mean() * (period + 1)
        apart[still] = np.inf
        first = int(apart.argmin())
        if apart[first] < score:
            score = float(apart[first])
            difference = float(np.sqrt(((pose[first + period] - pose[first]) ** 2).mean()))
            best = Loop(first, first + period, difference)
    if not np.isfinite(score):
        raise BunrakuError("the motion stands still, so it holds no cycle")
    return best


def close_loop(motion: RobotMotion, loop: Loop, blend: float = 0.3) -> RobotMotion:
    """Return the cycle, bent over its last `blend` seconds so that it ends where it begins.

    The way and the heading of the root are kept: they go on from cycle to cycle.
    """
    if not 0 <= loop.start < loop.stop < len(motion):
        raise BunrakuError(f"frames {loop.start} to {loop.stop} are not within a motion of {len(motion)}")
    cycle = take(motion, slice(loop.start, loop.stop + 1))
    frames = min(len(cycle) - 1, max(1, round(blend * motion.fps)))
    s = np.zeros(len(cycle))
    s[-frames - 1 :] = np.linspace(0.0, 1.0, frames + 1)
    weight = (s * s * s * (10.0 + s * (6.0 * s - 15.0)))[:, None]
    dof = cycle.dof + weight * (cycle.dof[0] - cycle.dof[-1])
    qpos = dof
    if motion.free_root:
        root = cycle.qpos[:, :7]
        wanted = place_root(root[:1], root[-1])[0]
        pos = root[:, :3] + weight * [0.0, 0.0, 1.0] * (root[0, 2] - root[-1, 2])
        lean = to_rotvec(multiply(wanted[3:], conjugate(root[-1, 3:])))
        qpos = np.concatenate([pos, multiply(from_rotvec(weight * lean), root[:, 3:]), dof], axis=1)
    empty = {
        "body_names": (),
        "body_pos": None,
        "body_quat": None,
        "body_lin_vel": None,
        "body_ang_vel": None,
    }
    return replace(cycle, qpos=qpos, human_points=None, **empty)  # type: ignore[arg-type]


def repeat(cycle: RobotMotion, times: int) -> RobotMotion:
    """Return a closed cycle repeated; its last frame is the first of the next round."""
    if times < 1:
        raise BunrakuError(f"a cycle is repeated at least once, got {times}")
    rounds = [cycle.qpos[:-1]] * times + [cycle.qpos[-1:]]
    if cycle.free_root:
        root = cycle.qpos[:, :7]
        rounds, at = [], root[0]
        for k in range(times):
            placed = place_root(root, at)
            at = placed[-1]
            whole = np.concatenate([placed, cycle.dof], axis=1)
            rounds.append(whole if k == times - 1 else whole[:-1])
    return RobotMotion(
        np.concatenate(rounds),
        cycle.joint_names,
        cycle.fps,
        cycle.robot,
        f"{cycle.source} (cycle repeated {times} times)",
        cycle.licence,
        cycle.base,
    )


def _pose(motion: RobotMotion) -> Array:
    """Return what makes two frames alike `(T, m)`: angles, height and lean of the root."""
    if not motion.free_root:
        return motion.dof
    up = rotate(conjugate(motion.root_quat), np.array([0.0, 0.0, 1.0]))
    return np.concatenate([motion.dof, motion.root_pos[:, 2:], up], axis=1)
