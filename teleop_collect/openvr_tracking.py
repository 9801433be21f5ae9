"""Decides whether a pose that SteamVR calls good is one.

Streamed headsets say "tracked" when they are not: a pose that stands still to the last bit while the
buttons go on working, a jump to the origin, a matrix that is no rotation. Such poses become None here,
because a hand that is said to be tracked drives an arm.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from bunraku.geometry import Array, Pose, angle_between, is_rotation

FROZEN_AFTER = 0.25
"""A tracker that has been moving and then repeats its position to the bit for this long is frozen [s]."""
LIVE_AFTER = 10
"""Number of different positions in a row, after which a controller is known not to repeat itself at rest."""
MAX_SPEED = 10.0
"""No hand moves faster [m/s]."""
MAX_TURN_SPEED = 100.0
"""No hand turns faster [rad/s]."""
SHORTEST_STEP = 1.0 / 90.0
"""Speeds are judged over at least this time [s]: headsets track at 60 to 90 Hz, however often one asks."""

Verdict = Literal["good", "untracked", "broken", "frozen", "too_fast"]


class TrackWatch:
    """The watch over the poses of one controller."""

    def __init__(
        self,
        frozen_after: float = FROZEN_AFTER,
        max_speed: float = MAX_SPEED,
        max_turn_speed: float = MAX_TURN_SPEED,
    ) -> None:
        """Set the limits [s, m/s, rad/s]."""
        self.frozen_after, self.max_speed, self.max_turn_speed = frozen_after, max_speed, max_turn_speed
        self.verdict: Verdict = "untracked"
        """On the last pose."""
        self.reset()

    def reset(self) -> None:
        """Forget everything: another controller."""
        self._good: Pose | None = None
        self._good_time = -np.inf
        self._lose()

    def judge(self, matrix: Array, tracked: bool, time: float) -> Pose | None:
        """Return the pose if it can be believed.

        Args:
            matrix: `(3, 4)` pose.
            tracked: Whether SteamVR says so.
            time: When it was read [s].
        """
        self.verdict = self._verdict(matrix, tracked, time)
        if self.verdict in ("untracked", "broken"):
            self._lose()
        return self._good if self.verdict == "good" else None

    def _lose(self) -> None:
        self._last: bytes = b""
        self._changed = 0.0
        self._changes = 0

    def _verdict(self, matrix: Array, tracked: bool, time: float) -> Verdict:
        if not tracked:
            return "untracked"
        if not (np.isfinite(matrix).all() and is_rotation(matrix[:, :3])):
            return "broken"
        if self._is_frozen(matrix[:, 3], time):
            return "frozen"
        pose = Pose.from_matrix(matrix)
        if self._good is not None and self._is_too_fast(self._good, pose, time - self._good_time):
            return "too_fast"
        self._good, self._good_time = pose, time
        return "good"

    def _is_frozen(self, pos: Array, time: float) -> bool:
        """Watch the position only: when cameras lose a controller, its gyroscope still turns it."""
        bits = pos.tobytes()
        if bits != self._last:
            self._last, self._changed = bits, time
            self._changes += 1
            return False
        # One that has never moved may be a simulated one; a real one that is tracked trembles.
        return self._changes > LIVE_AFTER and time - self._changed > self.frozen_after

    def _is_too_fast(self, before: Pose, after: Pose, dt: float) -> bool:
        dt = max(dt, SHORTEST_STEP)
        moved = float(np.linalg.norm(after.pos - before.pos))
        turned = float(angle_between(before.quat, after.quat))
        return moved > self.max_speed * dt or turned > self.max_turn_speed * dt
