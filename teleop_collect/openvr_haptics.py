"""Haptic pulses: a rumble is a pulse every tick, because SteamVR's old call gives one short pulse."""

from __future__ import annotations

from dataclasses import dataclass

from bunraku.device import HandName

LONGEST_PULSE = 3999
"""Longest pulse that makes a difference [us]; its length acts as the strength."""
SHORTEST_GAP = 0.005
"""SteamVR ignores a pulse that comes sooner after the one before [s]."""


@dataclass(slots=True)
class _Rumble:
    microseconds: int
    until: float
    begun: bool = False


class Haptics:
    """The rumbles that are under way. Not thread-safe: the device has the lock."""

    def __init__(self) -> None:
        """Start with none."""
        self._rumbles: dict[HandName, _Rumble] = {}
        self._last: dict[HandName, float] = {}

    def request(self, hand: HandName, strength: float, until: float) -> None:
        """Begin a rumble, in place of the one that the hand has.

        Args:
            hand: The hand.
            strength: 0 to 1.
            until: When it ends, on the device's clock [s]; it has one pulse at least.
        """
        microseconds = round(LONGEST_PULSE * min(max(strength, 0.0), 1.0)) if strength == strength else 0
        if microseconds > 0:
            self._rumbles[hand] = _Rumble(microseconds, until)
        else:
            self._rumbles.pop(hand, None)

    def due(self, hand: HandName, now: float, wall: float) -> int | None:
        """Return the length of the pulse to give now [us], None for none.

        Args:
            hand: The hand.
            now: Time on the device's clock [s].
            wall: Real time [s]: the controller's motor does not wait for a simulated clock.
        """
        rumble = self._rumbles.get(hand)
        if rumble is None or wall - self._last.get(hand, float("-inf")) < SHORTEST_GAP:
            return None
        if rumble.begun and now >= rumble.until:
            del self._rumbles[hand]
            return None
        rumble.begun = True
        return rumble.microseconds

    def given(self, hand: HandName, wall: float) -> None:
        """Tell that a pulse was given, by a call that returned at a real time [s]."""
        self._last[hand] = wall

    def drop(self, hand: HandName) -> None:
        """Forget the rumble of a hand that has no controller."""
        self._rumbles.pop(hand, None)
