"""The face that every viewer shows to the control loop.

    with open_viewer("web") as viewer:
        print(viewer.url)
        while viewer.is_open():
            ...
            viewer.sync(model, data, overlay, status)    # about 30 times a second
            for command in viewer.commands():
                ...

A viewer only watches: nothing that is done in it changes the simulation, so that recordings stay exact.
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Literal, Protocol, Self, cast, runtime_checkable

from bunraku.errors import UnknownNameError
from bunraku.teleop_collect.viewer.status import Overlay, SessionStatus

if TYPE_CHECKING:
    import mujoco

ViewerKind = Literal["native", "web", "none"]
VIEWER_KINDS: tuple[ViewerKind, ...] = ("native", "web", "none")


@runtime_checkable
class SessionViewer(Protocol):
    """Shows a session. A context manager: it opens on entering and closes on leaving."""

    url: str
    """Address of the page, once open; empty for a window or no viewer."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None: ...

    def sync(
        self, model: mujoco.MjModel, data: mujoco.MjData, overlay: Overlay, status: SessionStatus
    ) -> None:
        """Show this state; called from the control thread, never waits for the viewer.

        Args:
            model: The model; a new object is sent to the viewer, changes inside a known one are not.
            data: The state, read before this returns.
            overlay: Marks in the scene.
            status: What the panel shows.
        """
        ...

    def commands(self) -> tuple[str, ...]:
        """Return the `bunraku.device.COMMANDS` given in the viewer since the last call, oldest first."""
        ...

    def keys(self) -> frozenset[str]:
        """Return the names (see `bunraku.teleop_collect.keys`) of the keys held down in the viewer now."""
        ...

    def is_open(self) -> bool:
        """Say whether the viewer runs: a closed window or a stopped server does not come back."""
        ...


def open_viewer(
    kind: str,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    title: str = "bunraku collect",
    azimuth: float = 35.0,
) -> SessionViewer:
    """Return a viewer of that kind, to be entered as a context manager.

    Args:
        kind: One of `VIEWER_KINDS`.
        host: Address that the web page is served on; only this machine can reach the default.
        port: Port of the web page, or 0 for the first free one from 8080.
        title: Title of the window or page.
        azimuth: Direction of the first view about the vertical [deg]; 0 looks along +x, 180 along -x.

    Raises:
        UnknownNameError: If there is no such kind.
    """
    if kind == "none":
        from bunraku.teleop_collect.viewer.null import NullViewer

        return NullViewer()
    if kind in ("native", "web"):
        from bunraku.teleop_collect.viewer.studio import StudioViewer

        studio_kind = cast(Literal["native", "web"], kind)
        return StudioViewer(studio_kind, host=host, port=port, title=title, azimuth=azimuth)
    raise UnknownNameError("viewer", kind, VIEWER_KINDS)
