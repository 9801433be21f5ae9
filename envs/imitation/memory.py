"""Names for the parts of `userdata`, where a task keeps what MuJoCo's state does not know.

memory = Memory({"frame": 0, "action": 28})       # 0: one number, no axis of its own
view = memory.views(sim.userdata)                 # live: view["frame"] (...), view["action"] (..., 28)
"""

from __future__ import annotations

from collections.abc import Mapping

from bunraku.geometry import Array


class Memory:
    """A layout of `userdata`."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        """Lay the parts one after another.

        Args:
            sizes: Name: how many numbers; 0 for one number without an axis.
        """
        self._parts: dict[str, int | slice] = {}
        self.size = 0
        for name, size in sizes.items():
            self._parts[name] = slice(self.size, self.size + size) if size else self.size
            self.size += size or 1

    def views(self, userdata: Array) -> dict[str, Array]:
        """Return live views of all parts of `userdata` `(..., size)`."""
        return {name: userdata[..., part] for name, part in self._parts.items()}
