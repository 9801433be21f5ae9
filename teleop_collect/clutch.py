"""The clutch between a hand and a tool.

Hold the trigger and the tool follows the hand's motion since the moment of engaging, scaled; release it and the
tool stays. Engaging, releasing, taking a new reference and changing the scale never move the tool: each of them
re-anchors, which pairs the hand's pose of that moment with the target of that moment:

    target.pos  = anchor_tool.pos + scale * (hand.pos - anchor_hand.pos)
    target.quat = (hand.quat * anchor_hand.quat^-1) * anchor_tool.quat

Both are in world axes, so that turning the hand about the vertical turns the tool about the vertical, wherever the
operator stands and however the controller is held.
"""

from __future__ import annotations

from dataclasses import dataclass

from bunraku.geometry import Pose, conjugate, from_rotvec, multiply, normalize, to_rotvec

ENGAGE_AT, RELEASE_AT = 0.6, 0.4
"""Trigger values that engage and release: apart, so that a half-pressed trigger does not chatter."""
SCALE = 0.6
"""Tool motion per hand motion: half a metre of comfortable hand motion covers the arm's workspace."""
PRECISION = 0.2
"""Factor on motion and rotation while precision is held."""


@dataclass(frozen=True, slots=True)
class Grip:
    """What a hand does at one moment, besides its pose."""

    trigger: float = 0.0
    """0 to 1."""
    rereference: bool = False
    """A new reference was asked for since the last moment."""
    precision: bool = False
    """Precision is held."""


class Clutch:
    """The clutch of one hand."""

    def __init__(self, scale: float = SCALE, precision: float = PRECISION) -> None:
        """Set the scale, and the factor on it for precision.

        Raises:
            ValueError: If one of them is not positive.
        """
        if not scale > 0.0 or not precision > 0.0:
            raise ValueError(f"scale and precision must be positive, got {scale} and {precision}")
        self.scale, self.precision = scale, precision
        self.engaged = False
        self.engagements = 0
        """How often the hand has engaged."""
        self._armed = False  # the trigger has been seen released since the last disengaging
        self._fine = False
        self._anchor_hand = Pose.identity()
        self._anchor_tool = Pose.identity()

    def disengage(self) -> None:
        """Let go, for whatever reason; only a fresh press engages again."""
        self.engaged = False
        self._armed = False

    def wants_to_engage(self, grip: Grip) -> bool:
        """Say whether this moment engages: a fresh press of the trigger."""
        if grip.trigger <= RELEASE_AT:
            self._armed = True
        return not self.engaged and self._armed and grip.trigger >= ENGAGE_AT

    def engage(self, hand: Pose, target: Pose) -> None:
        """Engage at a hand pose, with the target where it is."""
        self.engaged = True
        self.engagements += 1
        self._anchor(hand, target)

    def rereference(self, hand: Pose, target: Pose) -> None:
        """Take a new reference without moving the target."""
        self._anchor(hand, target)

    def _anchor(self, hand: Pose, target: Pose) -> None:
        self._anchor_hand, self._anchor_tool = hand, target

    def drive(self, hand: Pose, grip: Grip, target: Pose) -> Pose:
        """Return the new target of an engaged hand.

        Args:
            hand: The (filtered) hand pose, in world axes.
            grip: What the hand does.
            target: The target so far; the hand re-anchors to it when the scale changes or on request.
        """
        if grip.trigger <= RELEASE_AT:
            self.disengage()
            self._armed = True
            return target
        if grip.rereference or grip.precision != self._fine:
            self._fine = grip.precision
            self._anchor(hand, target)
        return self._follow(hand)

    def _follow(self, hand: Pose) -> Pose:
        factor = self.precision if self._fine else 1.0
        turn = multiply(hand.quat, conjugate(self._anchor_hand.quat))
        if self._fine:
            turn = from_rotvec(factor * to_rotvec(turn))
        return Pose(
            self._anchor_tool.pos + self.scale * factor * (hand.pos - self._anchor_hand.pos),
            normalize(multiply(turn, self._anchor_tool.quat)),
        )
