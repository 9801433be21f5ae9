"""Decides, sample by sample, whether a hand's pose can be believed.

A controller reports poses that are wrong in many ways: not a number, not a rotation, a jump to the origin, a jump
across the room. Such a sample is dropped and the last good one stays in force. If the new place lasts, it is the
truth (the headset recentred, or a dropped frame was long): it is taken over, and the caller must take its
reference anew, so that nothing jumps and nothing waits for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bunraku.geometry import Pose, normalize

MAX_STEP = 0.05
"""A hand moves less than this between two samples of the tracker [m]."""
TRACKER_FREQ = 90.0
"""Rate of samples that `MAX_STEP` refers to [Hz]; a longer interval allows proportionally more, up to threefold."""
REBASE_AFTER = 0.25
"""A new place that lasts this long is believed [s]."""
UNIT_TOLERANCE = 0.01
"""How far the length of a quaternion may be from 1."""

Verdict = Literal["good", "rebased", "stale", "dropped", "untracked"]


@dataclass(frozen=True, slots=True)
class Guarded:
    """The verdict on a sample."""

    pose: Pose | None
    """The newest pose that can be believed, or None before the first."""
    time: float
    """When it was sampled [s]."""
    verdict: Verdict
    """`good`; `rebased`: believed again after a jump or a gap, take a new reference; `stale`: no new sample;
    `dropped`: the last good one stays; `untracked`: no pose was given."""


class PoseGuard:
    """The guard of one hand."""

    def __init__(self, max_step: float = MAX_STEP, rebase_after: float = REBASE_AFTER) -> None:
        """Set the largest step [m] and how long a new place must last [s]."""
        self.max_step, self.rebase_after = max_step, rebase_after
        self.dropped = 0
        """Number of samples dropped so far."""
        self._good: Pose | None = None
        self._time = -np.inf
        self._doubt: Pose | None = None
        self._doubt_since = 0.0
        self._doubt_time = -np.inf
        self._lost = False

    def reset(self) -> None:
        """Forget everything but the count: the next believable sample is a new start."""
        self._good, self._doubt, self._time, self._doubt_time = None, None, -np.inf, -np.inf
        self._lost = False

    def check(self, pose: Pose | None, time: float) -> Guarded:
        """Judge a sample.

        Args:
            pose: The pose given, or None when it is not tracked.
            time: When it was sampled [s].
        """
        if pose is None:
            self._lost = True
            return Guarded(self._good, self._time, "untracked")
        if time <= max(self._time, self._doubt_time):
            return Guarded(self._good, self._time, "stale")
        if not believable(pose):
            self.dropped += 1
            self._doubt_time = time
            return Guarded(self._good, self._time, "dropped")
        pose = Pose(pose.pos, normalize(pose.quat))
        if self._good is None:
            return self._accept(pose, time, "rebased")
        if self._step(self._good, pose) <= self._allowed(time - self._time):
            return self._accept(pose, time, "rebased" if self._lost else "good")
        return self._doubtful(pose, time)

    def _doubtful(self, pose: Pose, time: float) -> Guarded:
        """A step that is too long: believe it once the new place has lasted."""
        lasting = self._doubt is not None and self._step(self._doubt, pose) <= self._allowed(
            time - self._doubt_time
        )
        if not lasting:
            self._doubt_since = time
        self._doubt, self._doubt_time = pose, time
        if time - self._doubt_since >= self.rebase_after:
            return self._accept(pose, time, "rebased")
        self.dropped += 1
        return Guarded(self._good, self._time, "dropped")

    def _accept(self, pose: Pose, time: float, verdict: Verdict) -> Guarded:
        self._good, self._time, self._doubt, self._lost = pose, time, None, False
        return Guarded(pose, time, verdict)

    def _allowed(self, dt: float) -> float:
        return self.max_step * min(3.0, max(1.0, dt * TRACKER_FREQ))

    @staticmethod
    def _step(a: Pose, b: Pose) -> float:
        return float(np.linalg.norm(b.pos - a.pos))


def believable(pose: Pose) -> bool:
    """Say whether a pose is finite and its quaternion of unit length."""
    if not (np.isfinite(pose.pos).all() and np.isfinite(pose.quat).all()):
        return False
    return bool(abs(float(np.linalg.norm(pose.quat)) - 1.0) <= UNIT_TOLERANCE)
