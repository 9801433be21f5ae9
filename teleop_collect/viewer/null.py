"""No viewer: for scripted runs and machines that nobody looks at."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from bunraku.teleop_collect.viewer.status import Overlay, SessionStatus

if TYPE_CHECKING:
    import mujoco


class NullViewer:
    """Shows nothing, gives no commands, and is always open while it is entered."""

    url: str = ""

    def __init__(self) -> None:
        """Make a closed viewer."""
        self._open = False

    def __enter__(self) -> Self:
        self._open = True
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._open = False

    def sync(
        self, model: mujoco.MjModel, data: mujoco.MjData, overlay: Overlay, status: SessionStatus
    ) -> None:
        """Do nothing."""

    def commands(self) -> tuple[str, ...]:
        """Return no commands."""
        return ()

    def keys(self) -> frozenset[str]:
        """Return no keys."""
        return frozenset()

    def is_open(self) -> bool:
        """Return whether it is entered."""
        return self._open
