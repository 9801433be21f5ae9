"""Images of a simulation, off screen or in a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.geometry import Array
from bunraku.gl import has_display, make_renderer

Decorate = Callable[[Any, Array], None]


class CameraRenderer:
    """Renders one camera of a model; opens GL only when it first renders."""

    def __init__(
        self,
        model: mujoco.MjModel,
        camera: str,
        width: int,
        height: int,
        render_mode: str | None,
        decorate: Decorate | None = None,
    ) -> None:
        """Remember what to render.

        Args:
            model: The model.
            camera: Name of the camera.
            width: Width of the image [pixels].
            height: Height of the image [pixels].
            render_mode: `rgb_array`, `depth_array`, `human` or None.
            decorate: Adds shapes to every picture of a simulation: `decorate(scene, userdata)`.

        Raises:
            UnknownNameError: If the model has no such camera.
            ValueError: If the size is not positive.
        """
        cameras = [model.camera(i).name for i in range(model.ncam)]
        if camera not in cameras:
            raise UnknownNameError("camera", camera, cameras)
        if width < 1 or height < 1:
            raise ValueError(f"image size must be positive, got {width}x{height}")
        self._model, self._camera, self._size, self._mode = model, camera, (width, height), render_mode
        self._decorate = decorate
        self._renderer: mujoco.Renderer | None = None
        self._window: Any = None

    def render(self, data: mujoco.MjData) -> NDArray[Any] | None:
        """Return the image `(height, width, 3)` uint8, the depth `(height, width)` float32 [m], or None.

        Raises:
            GraphicsError: If no GL context can be made.
        """
        if self._mode is None:
            raise ValueError(
                "render() needs a render_mode; make the environment with render_mode='rgb_array'"
            )
        if self._mode == "human":
            self._show(data)
            return None
        if self._renderer is None:
            self._renderer = make_renderer(self._model, *self._size)
            if self._mode == "depth_array":
                self._renderer.enable_depth_rendering()
        self._renderer.update_scene(data, camera=self._camera)
        if self._decorate is not None:
            self._decorate(self._renderer.scene, data.userdata)
        return np.array(self._renderer.render())

    def _show(self, data: mujoco.MjData) -> None:
        if self._window is None:
            if not has_display():
                raise BunrakuError("render_mode='human' needs a display; use render_mode='rgb_array'")
            import mujoco.viewer

            # no side panels: changing the simulation in the window would break the episode
            self._window = mujoco.viewer.launch_passive(
                self._model, data, show_left_ui=False, show_right_ui=False
            )
        if self._window.is_running():
            if self._decorate is not None:
                with self._window.lock():
                    self._window.user_scn.ngeom = 0
                    self._decorate(self._window.user_scn, data.userdata)
            self._window.sync()

    def close(self) -> None:
        """Release the GL context and the window."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        if self._window is not None:
            self._window.close()
            self._window = None
