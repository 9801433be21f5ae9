"""The native window: GLFW and MuJoCo's classic renderer, with a panel drawn by the same renderer.

MuJoCo Studio's own window is not used: with mujoco 4.0.0 it cannot be imported by Python 3.11, and where it
can, its renderer and its interface are two libraries that mix up each other's objects, so parts of the robot
are missing and it soon crashes. This window needs OpenGL and nothing else, on Linux and Windows.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import glfw
import mujoco

from bunraku.teleop_collect import keys
from bunraku.teleop_collect.viewer import link, scene
from bunraku.teleop_collect.viewer.native_panel import NativePanel
from bunraku.teleop_collect.viewer.status import Overlay, SessionStatus

_SIZE = (1280, 800)
_MAX_GEOMS = 2000

_GLFW_KEYS: dict[int, str] = {
    **{getattr(glfw, f"KEY_{char.upper()}"): char for char in "abcdefghijklmnopqrstuvwxyz0123456789"},
    glfw.KEY_SPACE: "space",
    glfw.KEY_ENTER: "enter",
    glfw.KEY_KP_ENTER: "enter",
    glfw.KEY_ESCAPE: "escape",
    glfw.KEY_TAB: "tab",
    glfw.KEY_MINUS: "minus",
    glfw.KEY_EQUAL: "equal",
    glfw.KEY_UP: "up",
    glfw.KEY_DOWN: "down",
    glfw.KEY_LEFT: "left",
    glfw.KEY_RIGHT: "right",
    glfw.KEY_LEFT_SHIFT: "shift",
    glfw.KEY_RIGHT_SHIFT: "shift",
}


class Inbox:
    """The newest of what the control process sent."""

    def __init__(self) -> None:
        """Start empty."""
        self._lock = threading.Lock()
        self._model: mujoco.MjModel | None = None
        self._scene: link.Scene | None = None
        self.ended = False

    def put(self, message: link.Model | link.Scene) -> None:
        """Keep a message, in the place of an older one of its kind."""
        with self._lock:
            if isinstance(message, link.Model):
                self._model, self._scene = message.model, None
            else:
                self._scene = message

    def end(self) -> None:
        """Note that nothing more will come."""
        self.ended = True

    def take(self) -> tuple[mujoco.MjModel | None, link.Scene | None]:
        """Return what came since the last call."""
        with self._lock:
            model, self._model = self._model, None
            newest, self._scene = self._scene, None
        return model, newest


class KeyWatch:
    """Which keys are down in the window."""

    def __init__(self, window: Any) -> None:
        """Watch the keys of a GLFW window, which reports them all as released when it loses the focus."""
        self.held: set[str] = set()
        self._pressed: list[str] = []
        glfw.set_key_callback(window, self._on_key)

    def take(self) -> list[str]:
        """Return the keys that went down since the last call."""
        pressed, self._pressed = self._pressed, []
        return pressed

    def _on_key(self, _window: Any, key: int, _scancode: int, action: int, _mods: int) -> None:
        name = _GLFW_KEYS.get(key)
        if name is None or action == glfw.REPEAT:
            return
        if action == glfw.PRESS:
            self.held.add(name)
            self._pressed.append(name)
        else:
            self.held.discard(name)


class Picture:
    """The scene of one model, drawn by MuJoCo's classic renderer into the current OpenGL context."""

    def __init__(self, model: mujoco.MjModel) -> None:
        """Upload a model."""
        self.model, self.data = model, mujoco.MjData(model)
        self.options = mujoco.MjvOption()
        self.scene = mujoco.MjvScene(model, maxgeom=_MAX_GEOMS)
        self.context = mujoco.MjrContext(model, int(mujoco.mjtFontScale.mjFONTSCALE_100))
        mujoco.mj_forward(model, self.data)

    def show(self, state: Any) -> None:
        """Take over a state."""
        mujoco.mj_setState(self.model, self.data, state, int(mujoco.mjtState.mjSTATE_INTEGRATION))
        mujoco.mj_forward(self.model, self.data)

    def draw(self, camera: mujoco.MjvCamera, overlay: Overlay, view: mujoco.MjrRect) -> None:
        """Draw the scene and the marks."""
        every = int(mujoco.mjtCatBit.mjCAT_ALL)
        mujoco.mjv_updateScene(self.model, self.data, self.options, None, camera, every, self.scene)
        for mark in scene.marks(overlay)[: self.scene.maxgeom - self.scene.ngeom]:
            mark.fill(self.scene.geoms[self.scene.ngeom])
            self.scene.ngeom += 1
        mujoco.mjr_render(view, self.scene, self.context)

    def free(self) -> None:
        """Give the graphics memory back."""
        self.context.free()


class Window:
    """One window: draws, and turns the mouse and the keys into views, keys and commands."""

    def __init__(self, options: link.Options, say: link.Say) -> None:
        """Open the window.

        Raises:
            OSError: If there is no display or no OpenGL.
        """
        self._say = say
        self._handle = _open(options.title)
        self._keys = KeyWatch(self._handle)
        self._picture: Picture | None = None
        self._camera = mujoco.MjvCamera()
        scene.aim(self._camera, options.azimuth)
        self._panel = NativePanel()
        self._overlay, self._status = Overlay(), SessionStatus(env_id="", device="")
        self._mouse: tuple[float, float] = glfw.get_cursor_pos(self._handle)
        self._reported = False
        glfw.set_cursor_pos_callback(self._handle, self._on_move)
        glfw.set_mouse_button_callback(self._handle, self._on_button)
        glfw.set_scroll_callback(self._handle, self._on_scroll)

    def run(self, inbox: Inbox) -> None:
        """Show what comes, until the window or the control process closes."""
        while not (inbox.ended or glfw.window_should_close(self._handle)):
            self._take(*inbox.take())
            self._draw()
            glfw.swap_buffers(self._handle)
            glfw.wait_events_timeout(1.0 / 60.0)
            self._report_keys()
        glfw.terminate()

    def _take(self, model: mujoco.MjModel | None, newest: link.Scene | None) -> None:
        if model is not None:
            if self._picture is not None:
                self._picture.free()
            self._picture = Picture(model)
        if newest is not None and self._picture is not None:
            self._picture.show(newest.state)
            self._overlay, self._status = newest.overlay, newest.status
            self._panel.update(newest.status)

    def _draw(self) -> None:
        if self._picture is None:
            return
        width, height = glfw.get_framebuffer_size(self._handle)
        if width == 0 or height == 0:  # minimised
            return
        view = mujoco.MjrRect(0, 0, width, height)
        self._picture.draw(self._camera, self._overlay, view)
        self._panel.draw(view, self._picture.context, self._pointer())

    def _report_keys(self) -> None:
        pressed = self._keys.take()
        if self._keys.held or pressed or self._reported:
            self._say(link.Keys(frozenset(self._keys.held), frozenset(pressed)))
        self._reported = bool(self._keys.held)
        for key in pressed:
            if key in keys.COMMAND_KEYS:
                self._say(link.Command(keys.COMMAND_KEYS[key]))

    def _pointer(self) -> tuple[float, float]:
        """Return the mouse's place in pixels of the picture, from the bottom left."""
        window_width, window_height = glfw.get_window_size(self._handle)
        width, height = glfw.get_framebuffer_size(self._handle)
        x, y = self._mouse
        return x * width / max(window_width, 1), height - y * height / max(window_height, 1)

    def _on_button(self, _window: Any, button: int, action: int, _mods: int) -> None:
        if button == glfw.MOUSE_BUTTON_LEFT and action == glfw.PRESS:
            command = self._panel.command_at(self._pointer())
            if command is not None:
                self._say(link.Command(command))

    def _on_move(self, window: Any, x: float, y: float) -> None:
        dx, dy = x - self._mouse[0], y - self._mouse[1]
        self._mouse = (x, y)
        if self._picture is None or self._panel.covers(self._pointer()):
            return
        motion = _camera_motion(window)
        if motion is not None:
            height = glfw.get_window_size(window)[1]
            self._move_camera(motion, dx / height, dy / height)

    def _on_scroll(self, _window: Any, _dx: float, dy: float) -> None:
        self._move_camera(mujoco.mjtMouse.mjMOUSE_ZOOM, 0.0, -0.05 * dy)

    def _move_camera(self, motion: mujoco.mjtMouse, dx: float, dy: float) -> None:
        if self._picture is not None:
            mujoco.mjv_moveCamera(self._picture.model, int(motion), dx, dy, self._camera)


def _camera_motion(window: Any) -> mujoco.mjtMouse | None:
    """Return how a drag with the buttons that are down now moves the camera."""
    if glfw.get_mouse_button(window, glfw.MOUSE_BUTTON_LEFT) == glfw.PRESS:
        return mujoco.mjtMouse.mjMOUSE_ROTATE_V
    if glfw.get_mouse_button(window, glfw.MOUSE_BUTTON_RIGHT) == glfw.PRESS:
        return mujoco.mjtMouse.mjMOUSE_MOVE_V
    if glfw.get_mouse_button(window, glfw.MOUSE_BUTTON_MIDDLE) == glfw.PRESS:
        return mujoco.mjtMouse.mjMOUSE_ZOOM
    return None


def _open(title: str) -> Any:
    """Return a new window whose OpenGL context is current.

    Raises:
        OSError: If there is no display or no OpenGL.
    """
    with contextlib.suppress(AttributeError):
        glfw.ERROR_REPORTING = "ignore"
    if not glfw.init():
        raise OSError("GLFW finds no display")
    glfw.window_hint(glfw.SAMPLES, 4)
    window = glfw.create_window(*_SIZE, title, None, None)
    if not window:
        raise OSError("GLFW cannot make a window with OpenGL; a graphics driver may be missing")
    glfw.make_context_current(window)
    glfw.swap_interval(1)
    return window


def run(options: link.Options, say: link.Say, listen: link.Listen) -> None:
    """Open the window and show what comes, until it or the control process closes.

    Raises:
        OSError: If there is no display or no OpenGL.
    """
    window = Window(options, say)
    inbox = Inbox()
    listen(inbox.put, inbox.end)
    say(link.Opened(""))
    window.run(inbox)
