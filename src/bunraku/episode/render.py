"""Images of recorded episodes, from any camera of the model and at any time after the recording.

    render("reach.hdf5", ["front", "wrist"], (256, 256), "reach.mp4")    # reach-front.mp4, reach-wrist.mp4

One frame per row: frame k of an episode shows `states[k]`, what was there before action k. All episodes
follow each other in one video; give one name to have one episode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from bunraku.episode.episode import Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.geometry import Array
from bunraku.gl import make_renderer
from bunraku.video import Frame, Video, count_frames, open_video

_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


@dataclass(frozen=True, slots=True)
class RenderReport:
    """What `render` wrote."""

    paths: tuple[str, ...]
    """One video or folder per camera."""
    frames: int
    """In each of them, counted by reading it back."""
    episodes: int
    """Episodes shown."""
    fps: float
    """Frames per second of playback."""


def render(
    path: str | Path,
    cameras: Sequence[str],
    size: tuple[int, int],
    out: str | Path,
    *,
    names: Sequence[str] | None = None,
    fps: float | None = None,
    force: bool = False,
    progress: Callable[[str], None] | None = None,
) -> RenderReport:
    """Render stored states to a video.

    Args:
        path: Demonstration file.
        cameras: Names of cameras of the recorded model; with several, each has its own video named after it.
        size: Width and height [pixels].
        out: `.mp4`, `.gif`, or a folder name without a suffix for PNG files.
        names: Episodes to show, all by default.
        fps: Playback rate, by default that of the recording.
        force: Replace what exists.
        progress: Called with each episode's name when it is done.

    Raises:
        GraphicsError: There is no OpenGL here.
        MissingDependencyError: An mp4 without PyAV.
        BunrakuError: A camera or episode is unknown, the output exists, a frame came out blank, or the
            number of frames is not that of the rows.
    """
    outs = output_paths(Path(out), cameras)
    for target in outs.values():
        if target.exists() and not force:
            raise BunrakuError(f"{target} exists; give another name, or --force to replace it")
    with EpisodeFile(path) as file, ExitStack() as stack:
        chosen = list(file.names() if names is None else names)
        if not chosen:
            raise BunrakuError(f"{path} holds no episode, so there is nothing to render")
        rate = _rate(file, chosen[0]) if fps is None else fps
        scene = stack.enter_context(EpisodeScene(size))
        videos = {c: stack.enter_context(open_video(target, size, rate)) for c, target in outs.items()}
        rows = 0
        for name in chosen:
            rows += _render_episode(scene, file.load(name), name, videos)
            if progress is not None:
                progress(name)
    for target in outs.values():
        found = count_frames(target)
        if found != rows:
            raise BunrakuError(
                f"{target} has {found} frames where {rows} rows were rendered; render it again"
            )
    return RenderReport(tuple(str(target) for target in outs.values()), rows, len(chosen), rate)


def output_paths(out: Path, cameras: Sequence[str]) -> dict[str, Path]:
    """Return where each camera's images go: `out` itself for one camera, named after them for several."""
    if not cameras:
        raise BunrakuError("no camera was given to render; give at least one")
    if len(cameras) == 1:
        return {cameras[0]: out}
    if not out.suffix:
        return {camera: out / camera for camera in cameras}
    return {camera: out.with_name(f"{out.stem}-{camera}{out.suffix}") for camera in cameras}


class EpisodeScene:
    """Renders states of episodes, keeping the model and the GL context while the model stays the same."""

    def __init__(self, size: tuple[int, int]) -> None:
        """Remember width and height [pixels]; GL is opened with the first model."""
        self._size, self._xml = size, ""
        self._model: mujoco.MjModel | None = None
        self._renderer: mujoco.Renderer | None = None

    def __enter__(self) -> EpisodeScene:
        """Return the scene."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release GL."""
        self.close()

    def close(self) -> None:
        """Release GL."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def images(
        self,
        episode: Episode,
        cameras: Sequence[str],
        *,
        last: bool = False,
        rows: Sequence[int] | None = None,
    ) -> Iterator[tuple[int, str, Frame]]:
        """Yield row, camera and image `(height, width, 3)` for each of the T rows and each camera.

        Args:
            episode: The episode.
            cameras: Names of cameras.
            last: Whether to go on to the state after the last action.
            rows: Rows to show instead of all; T is the state after the last action.
        """
        model, renderer = self._prepare(episode)
        known = self.cameras(episode)
        for camera in cameras:
            if camera not in known:
                raise UnknownNameError("camera", camera, known)
        width = mujoco.mj_stateSize(model, _STATE)
        if episode.states.shape[1] != width:
            raise BunrakuError(
                f"the states have {episode.states.shape[1]} numbers, the recorded model {width}; it was "
                "recorded with another MuJoCo, install that version"
            )
        data = mujoco.MjData(model)
        for row in range(len(episode) + last) if rows is None else rows:
            _show(model, data, episode.states[row])
            for camera in cameras:
                renderer.update_scene(data, camera=camera)
                yield row, camera, renderer.render()

    def cameras(self, episode: Episode) -> list[str]:
        """Return the names of the cameras of an episode's model."""
        model, _ = self._prepare(episode)
        return [model.camera(i).name for i in range(model.ncam)]

    def observed(self, episode: Episode, cameras: Sequence[str]) -> dict[str, Frame]:
        """Return images `(T + 1, height, width, 3)` by camera, one for each of the observations."""
        width, height = self._size
        out = {camera: np.empty((len(episode) + 1, height, width, 3), np.uint8) for camera in cameras}
        for row, camera, image in self.images(episode, cameras, last=True):
            out[camera][row] = image
        return out

    def _prepare(self, episode: Episode) -> tuple[mujoco.MjModel, mujoco.Renderer]:
        xml = episode.meta.get("mjcf", "")
        if self._model is None or self._renderer is None or xml != self._xml:
            self.close()
            self._model, self._xml = _model(xml), xml
            self._renderer = make_renderer(self._model, *self._size)
        return self._model, self._renderer


def _model(xml: str) -> mujoco.MjModel:
    if not xml:
        raise BunrakuError("the episode has no recorded model, so it cannot be rendered from its states")
    try:
        return mujoco.MjModel.from_xml_string(xml)
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise BunrakuError(
            f"the recorded model cannot be built here ({reason}); its mesh files may be elsewhere"
        ) from error


def _show(model: mujoco.MjModel, data: mujoco.MjData, state: Array) -> None:
    mujoco.mj_setState(model, data, np.ascontiguousarray(state), _STATE)
    mujoco.mj_forward(model, data)


def _render_episode(scene: EpisodeScene, episode: Episode, name: str, videos: dict[str, Video]) -> int:
    for row, camera, image in scene.images(episode, list(videos)):
        if int(image.max()) - int(image.min()) < 2:
            raise BunrakuError(
                f"frame {row} of {name} from camera {camera} is blank; the camera may look at nothing"
            )
        videos[camera].write(image)
    return len(episode)


def _rate(file: EpisodeFile, name: str) -> float:
    times = file.load(name).sim_time
    if len(times) > 1 and np.isfinite(times).all() and times[-1] > times[0]:
        return float(np.round((len(times) - 1) / (times[-1] - times[0]), 3))
    rate = file.info.get("control_freq", file.env_kwargs.get("control_freq"))
    if rate is None:
        raise BunrakuError(f"{file.path} does not say its control rate; give the frames per second")
    return float(rate)
