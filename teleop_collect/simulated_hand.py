"""One hand of a simulated operator.

It does what a person does who sees a tool and a goal on a screen: look, react, squeeze the trigger, move the hand
along a minimum-jerk stroke (Flash and Hogan, 1985) by what separates the two, divided by the scale it is used to,
look again. The hand stays within a ball, and its wrist within a range; when there is no room left, it lets go, moves back
and takes hold again, turned the other way first if there is far to turn. It holds precision when the goal is near. If the tool does not follow a stroke, it lets go and takes hold anew; if that
does not help, it tries the other button.

It knows nothing but the two poses on the screen: no joint angles, no inverse kinematics, no clutch state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.geometry import Array, Pose, conjugate, from_rotvec, multiply, nlerp, to_rotvec

ROOM = 0.15
"""Radius of the ball that the hand stays in [m]."""
WRIST = 1.3
"""How far the wrist turns from where it is comfortable [rad]."""
MOST_TURN = 0.9
"""Largest turn of one stroke [rad]."""
REACTION = 0.2
"""Delay between seeing and doing [s]."""
NEAR = 0.03
"""Precision is held when the goal is nearer than this [m]."""
SPEED = 0.5
"""Mean speed of strokes [m/s]; a stroke also takes a constant time."""
STROKE_CONSTANT = 0.25
TURN_SPEED = 1.5
"""Mean turning speed of strokes [rad/s]."""
STILL = 0.003
"""A tool that moves (or turns) less than this seems to stand still [m, rad]."""
NOTICE = 0.25
"""How long it must stand still to be noticed in the middle of a stroke [s]."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the operator sees of one arm, some time ago."""

    tool: Pose
    goal: Pose
    turn: bool
    """Whether the goal's orientation counts."""
    tolerance: tuple[float, float] = (0.004, 0.03)
    """How near the goal the hand holds still: [m] and [rad]."""


@dataclass(slots=True)
class _Stroke:
    start: Pose
    end: Pose
    begin: float
    duration: float
    driving: bool
    tool_before: Pose
    expected: float
    """How far the tool should move [m] or turn [rad]."""

    def at(self, time: float) -> Pose:
        """Return the hand's pose on a minimum-jerk profile."""
        t = min(1.0, max(0.0, (time - self.begin) / self.duration))
        s = t * t * t * (10.0 + t * (6.0 * t - 15.0))
        return Pose(
            self.start.pos + s * (self.end.pos - self.start.pos), nlerp(self.start.quat, self.end.quat, s)
        )


class SimulatedHand:
    """One hand, advanced sample by sample."""

    def __init__(self, home: Pose, scale: float, precision: float, rng: np.random.Generator) -> None:
        """Start at a comfortable pose.

        Args:
            home: Centre of the hand's room, world axes.
            scale: Tool motion per hand motion that the operator is used to.
            precision: Factor on it while precision is held.
            rng: Draws the variation of strokes.
        """
        self.home, self.scale, self.precision_factor = home, scale, precision
        self._rng = rng
        self.pose = home
        self.begin_episode(0.0)

    def begin_episode(self, now: float) -> None:
        """Let go and look at the new scene."""
        self.squeezing = False
        """Whether the hand squeezes what it takes for the drive button."""
        self.other_button = False
        """Whether it has come to believe that the other button drives."""
        self.precision = False
        """Whether it holds precision."""
        self._stroke: _Stroke | None = None
        self._wait_until = now + REACTION + self._rng.uniform(0.0, 0.1)
        self._failures = 0
        self._proven = False  # the tool has followed a stroke with this button
        self._done: _Stroke | None = None
        self._progress, self._progress_time = Pose.identity(), now

    def advance(self, now: float, seen: Seen) -> None:
        """Move to a time [s], given what is seen."""
        if self._stroke is not None:
            self.pose = self._stroke.at(now)
            if self._stands_still(now, seen):
                self._failed(now)
            elif now >= self._stroke.begin + self._stroke.duration:
                self._finish(now)
            return
        if now >= self._wait_until:
            self._decide(now, seen)

    def _finish(self, now: float) -> None:
        # let the tool arrive and the eye see it
        self._done, self._stroke = self._stroke, None
        self._wait_until = now + REACTION + 0.15

    def _decide(self, now: float, seen: Seen) -> None:
        if self._check_following(now, seen):
            return
        offset = seen.goal.pos - seen.tool.pos
        turn = self._turn(seen)
        distance, angle = float(np.linalg.norm(offset)), float(np.linalg.norm(turn))
        if distance < seen.tolerance[0] and angle < seen.tolerance[1]:
            self._wait_until = now + 0.1
            return
        if not self.squeezing:
            self.squeezing = True
            self._wait_until = now + 0.08 + self._rng.uniform(0.0, 0.05)
            return
        precision = distance < NEAR and angle < 0.3
        if precision != self.precision:
            self.precision = precision
            self._wait_until = now + 0.08
            return
        self._plan_stroke(now, seen, offset, turn)

    def _turn(self, seen: Seen) -> Array:
        if not seen.turn:
            return np.zeros(3)
        return to_rotvec(multiply(seen.goal.quat, conjugate(seen.tool.quat)))

    def _check_following(self, now: float, seen: Seen) -> bool:
        """After a stroke that should have moved the tool: if it did not, take hold anew, or try the other button."""
        stroke, self._done = self._done, None
        if stroke is None or not stroke.driving or stroke.expected < 0.004:
            return False
        if _moved(stroke.tool_before, seen.tool) > 0.2 * stroke.expected:
            self._failures, self._proven = 0, True
            return False
        self._failed(now)
        return True

    def _stands_still(self, now: float, seen: Seen) -> bool:
        """Say whether the eye has noticed, in the middle of a stroke, that the tool stands still."""
        stroke = self._stroke
        if stroke is None or not stroke.driving:
            return False
        if _moved(self._progress, seen.tool) > STILL:
            self._progress, self._progress_time = seen.tool, now
        watching = stroke.begin + REACTION + NOTICE < now < stroke.begin + 0.9 * stroke.duration
        return watching and stroke.expected > 0.02 and now - self._progress_time > NOTICE

    def _failed(self, now: float) -> None:
        """Take hold anew; if that did not help either and this button never did, try the other one."""
        self._stroke = self._done = None
        self._failures += 1
        if self._failures >= 2 and not self._proven:
            self.other_button = not self.other_button
            self._failures = 0
        self._let_go(now)

    def _let_go(self, now: float) -> None:
        self.squeezing = self.precision = False
        self._wait_until = now + 0.15 + self._rng.uniform(0.0, 0.05)

    def _plan_stroke(self, now: float, seen: Seen, offset: Array, turn: Array) -> None:
        factor = self.scale * (self.precision_factor if self.precision else 1.0)
        wanted = offset / factor
        turn_factor = self.precision_factor if self.precision else 1.0
        wanted_turn = np.clip(turn / turn_factor, -MOST_TURN, MOST_TURN)
        room = min(
            _room(self.pose.pos - self.home.pos, wanted, ROOM), _room(self._turned(), wanted_turn, WRIST)
        )
        if room < 0.3 and self._from_home() > 0.3 * ROOM:
            self._return(now, seen, turn / turn_factor)
            return
        share = min(1.0, room)
        # people undershoot and vary a little
        share *= 1.0 - abs(self._rng.normal(0.0, 0.03))
        end = Pose(self.pose.pos + share * wanted, multiply(from_rotvec(share * wanted_turn), self.pose.quat))
        length, angle = share * float(np.linalg.norm(wanted)), share * float(np.linalg.norm(wanted_turn))
        duration = STROKE_CONSTANT + max(length / SPEED, angle / TURN_SPEED)
        expected = max(length * factor, angle * turn_factor)
        self._stroke = _Stroke(self.pose, end, now, duration, True, seen.tool, expected)
        self._progress, self._progress_time = seen.tool, now

    def _turned(self) -> Array:
        """Return how the hand is turned from where it is comfortable `(3,)` [rad]."""
        return to_rotvec(multiply(self.pose.quat, conjugate(self.home.quat)))

    def _from_home(self) -> float:
        turned = float(np.linalg.norm(self._turned()))
        return max(float(np.linalg.norm(self.pose.pos - self.home.pos)), 0.1 * turned)

    def _return(self, now: float, seen: Seen, turn: Array) -> None:
        """Let go and bring the hand back to the middle of its room; who has far to turn winds up for it."""
        self.squeezing = self.precision = False
        far = float(np.linalg.norm(turn))
        back = -MOST_TURN * turn / far if far > MOST_TURN / 2 else np.zeros(3)
        home = Pose(self.home.pos, multiply(from_rotvec(back), self.home.quat))
        distance = float(np.linalg.norm(self.pose.pos - home.pos))
        angle = float(np.linalg.norm(to_rotvec(multiply(self.pose.quat, conjugate(home.quat)))))
        begin, duration = now + 0.1, STROKE_CONSTANT + max(distance / SPEED, angle / (2.0 * TURN_SPEED))
        self._stroke = _Stroke(self.pose, home, begin, duration, False, seen.tool, 0.0)


def _room(start: Array, wanted: Array, radius: float) -> float:
    """Return the share of a wanted motion `(3,)` from `start` after which it leaves a ball around 0."""
    a, b, c = float(wanted @ wanted), float(start @ wanted), float(start @ start) - radius * radius
    if a < 1e-12:
        return 1.0
    return float((-b + np.sqrt(max(0.0, b * b - a * c))) / a)


def _moved(before: Pose, after: Pose) -> float:
    """Return how far a tool has moved [m] or turned [rad], whichever is more."""
    turned = float(np.linalg.norm(to_rotvec(multiply(after.quat, conjugate(before.quat)))))
    return max(float(np.linalg.norm(after.pos - before.pos)), turned)
