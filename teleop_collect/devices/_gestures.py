"""Short presses, long presses and both at once, told from two buttons.

A long press counts when it has lasted long enough, while the button is still down; a short one when it ends;
a press that became part of "both" counts as nothing else.
"""

from __future__ import annotations


class Gestures:
    """Watches a left and a right button."""

    def __init__(self, long_press: float = 0.8) -> None:
        """Start with both up.

        Args:
            long_press: How long a press lasts to be a long one [s].
        """
        self._long = long_press
        self._since: dict[str, float] = {}
        self._spent: set[str] = set()

    def update(self, left: bool, right: bool, now: float) -> list[str]:
        """Take the buttons as they are; return the gestures that were completed.

        Args:
            left: Whether the left button is down.
            right: Whether the right button is down.
            now: The time [s].

        Returns:
            Of "left", "right", "left_long", "right_long" and "both", in the order in which they happened.
        """
        done: list[str] = []
        for name, down in (("left", left), ("right", right)):
            if down:
                self._since.setdefault(name, now)
            elif name in self._since:
                del self._since[name]
                if name not in self._spent:
                    done.append(name)
                self._spent.discard(name)
        if len(self._since) == 2 and not self._spent:
            done.append("both")
            self._spent.update(self._since)
        for name, since in self._since.items():
            if name not in self._spent and now - since >= self._long:
                done.append(f"{name}_long")
                self._spent.add(name)
        return done

    def forget(self) -> None:
        """Take both buttons as up, without a gesture."""
        self._since.clear()
        self._spent.clear()
