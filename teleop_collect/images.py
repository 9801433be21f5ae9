"""Images for an episode's observations, rendered from its states after it was driven.

So the control loop never waits for a renderer, and there is exactly one image for every observation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.episode.episode import Episode
from bunraku.errors import UnknownNameError
from bunraku.gl import make_renderer

_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


class EpisodeImages:
    """Renders some cameras of a model; opens GL on entering, so that a lack of it is found at once."""

    def __init__(self, model: mujoco.MjModel, cameras: Sequence[str], size: tuple[int, int]) -> None:
        """Check the cameras.

        Args:
            model: The model that is recorded.
            cameras: Names of cameras.
            size: Width and height [pixels].

        Raises:
            UnknownNameError: If the model has no such camera.
        """
        known = [model.camera(i).name for i in range(model.ncam)]
        for camera in cameras:
            if camera not in known:
                raise UnknownNameError("camera", camera, known)
        self._model, self._cameras, self._size = model, tuple(cameras), size
        self._data = mujoco.MjData(model)

    def __enter__(self) -> Self:
        """Open GL.

        Raises:
            GraphicsError: If there is none.
        """
        self._renderer = make_renderer(self._model, *self._size)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Release GL."""
        self._renderer.close()

    def __call__(self, episode: Episode) -> Mapping[str, NDArray[np.uint8]]:
        """Return `<camera>_image` arrays `(T + 1, height, width, 3)` of an episode."""
        width, height = self._size
        images = {
            f"{camera}_image": np.empty((len(episode.states), height, width, 3), dtype=np.uint8)
            for camera in self._cameras
        }
        for row, state in enumerate(episode.states):
            mujoco.mj_setState(self._model, self._data, state, _STATE)
            mujoco.mj_forward(self._model, self._data)
            for camera in self._cameras:
                self._renderer.update_scene(self._data, camera=camera)
                self._renderer.render(out=images[f"{camera}_image"][row])
        return images
