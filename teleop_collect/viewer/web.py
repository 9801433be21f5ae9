"""The web page: MuJoCo Studio's web viewer, with our panel and marks as its plugins.

The physics state goes to the browser, which draws it; this process needs no display and no graphics library.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import mujoco
from mujoco.studio import launch_thread, launch_web, messages, plugin, viewer_protocol
from mujoco.studio.dear_imgui import dear_imgui as imgui

from bunraku.rate import Rate
from bunraku.teleop_collect.viewer import link, scene
from bunraku.teleop_collect.viewer.page import Page
from bunraku.teleop_collect.viewer.panel import Panel, StatusSnapshot
from bunraku.teleop_collect.viewer.status import Overlay

_FRAMES_HZ = 30.0


@dataclass(frozen=True)
class OverlaySnapshot(messages.Snapshot):
    """The newest marks, on their way to the scene."""

    overlay: Overlay


class SceneMarks(plugin.ViewerPlugin):
    """Draws the marks and sets the first view."""

    def __init__(self, azimuth: float) -> None:
        """Make the plugin; `azimuth` is the direction of the first view [deg]."""
        self._azimuth = azimuth
        self._aimed = False

    @messages.handler
    def on_model(self, _: messages.PostModelEvent) -> None:
        """Aim the camera; keep the operator's view when a later model comes."""
        if not self._aimed:
            scene.aim(self.viewer.camera, self._azimuth)
            self._aimed = True

    @messages.handler
    def on_overlay(self, snapshot: OverlaySnapshot) -> None:
        """Replace the marks."""
        self.viewer.extra_geoms[:] = [mark.fill(mujoco.MjvGeom()) for mark in scene.marks(snapshot.overlay)]


class Pace(plugin.ViewerPlugin):
    """Slows the page's frames to the rate of the states, which spares the control loop's processor.

    The browser moves its camera by itself, and stays smooth.
    """

    def __init__(self) -> None:
        """Start at rest."""
        self._rate = Rate(_FRAMES_HZ)

    @messages.handler(priority=messages.Priority.CRITICAL)
    def on_update(self, _: messages.UpdateEvent) -> None:
        """Wait for the next frame."""
        self._rate.sleep()


class Announcer(plugin.ViewerPlugin):
    """Tells the control process that the page is there."""

    def __init__(self, say: link.Say, page: Page) -> None:
        """Make the plugin; `page` is where the viewer is served."""
        self._say, self._page = say, page

    @messages.handler(priority=messages.Priority.LIBRARY)
    def on_init(self, _: plugin.ViewerInitEvent) -> None:
        """Send the address, or fail if the page is not bound to the address that was asked for.

        Keyboard navigation is switched off, so that Space and Enter never press a button that has the focus.
        """
        if not self._page.bound:
            raise OSError("this version of mujoco serves its page on other addresses than the one asked for")
        io = imgui.GetIO()
        io.ConfigFlags = int(io.ConfigFlags) & ~int(imgui.ConfigFlags.NavEnableKeyboard)
        self._say(link.Opened(self._page.url))


def run(options: link.Options, say: link.Say, listen: link.Listen) -> None:
    """Serve the page until the control process goes.

    Raises:
        OSError: If the address cannot be bound, or mujoco has no web viewer here.
    """
    try:
        from mujoco.studio.web import headless_ui, web_server  # noqa: F401
    except ImportError as error:
        raise OSError("mujoco's wheel for this system comes without it (on Windows it does)") from error
    for handler in web_server.logger.handlers:
        handler.setLevel(logging.WARNING)
    page = Page(options.host, options.port)
    page.install()
    viewer_end, control_end = launch_thread.make_thread_endpoints()

    def take(message: Any) -> None:
        if isinstance(message, link.Model):
            control_end.send_to_viewer(messages.ModelEvent(model=message.model))
            return
        signature = int(mujoco.mjtState.mjSTATE_INTEGRATION)
        control_end.send_to_viewer(messages.StateSnapshot(state=message.state, state_sig=signature))
        control_end.send_to_viewer(OverlaySnapshot(message.overlay))
        control_end.send_to_viewer(StatusSnapshot(message.status))

    listen(take, lambda: control_end.send_to_viewer(messages.ExitEvent()))
    plugins = [Pace(), SceneMarks(options.azimuth), Panel(say, page.is_attended), Announcer(say, page)]
    launch_web.run_web_viewer(
        viewer_protocol.ViewerConfig(title=options.title, gfx="web"), viewer_end, plugins
    )
