"""Pictures of the demonstration: the scene, the ways of tip and bit as lines, and a line of status."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bunraku.geometry import Array
from bunraku.gl import make_renderer
from bunraku.screw import figures
from bunraku.screw.playback import Playback
from bunraku.screw.scene import BLADES, TIP
from bunraku.video import Frame

YELLOW, CYAN = (1.0, 0.85, 0.0, 1.0), (0.0, 0.9, 1.0, 1.0)
_BAR, _TEXT = (24, 27, 33), (245, 245, 245)
_LINE = int(mujoco.mjtGeom.mjGEOM_LINE)
_LINE_WIDTH = 3.0
"""Of a line, in pixels, at a height of 480."""
_SPACING = 0.0025
"""Where a line bends, its corners are at least so far apart [m]."""
_STRAIGHT = 1.0 - 1e-6
"""Cosine of the angle up to which a line counts as straight."""
_ZERO, _NO_TURN = np.zeros(3), np.eye(3).ravel()


def status_line(turn: float) -> str:
    """Return the status for a screw that has turned by `turn` [rad]."""
    turns, whole = turn / (2.0 * np.pi), figures.SCREW_TURN / (2.0 * np.pi)
    depth = 1000.0 * (figures.screw_height(0.0) - figures.screw_height(turn))
    return f"SCREW DRIVING turns {turns:.2f} / {whole:.1f} depth {depth:02.0f} / {1000 * figures.SCREW_SINK:.0f} mm"


def camera() -> mujoco.MjvCamera:
    """Return the source's view."""
    view = mujoco.MjvCamera()
    view.lookat[:] = (0.11, 0.04, 0.14)
    view.distance, view.azimuth, view.elevation = 0.98, 60.0, -30.0
    return view


class Trail:
    """A line through the places where a point has been."""

    def __init__(self, rgba: tuple[float, float, float, float]) -> None:
        """Begin without a corner."""
        self.points: list[Array] = []
        self._rgba = np.array(rgba, dtype=np.float32)

    def reach(self, point: Array) -> None:
        """Go on to `point` `(3,)` [m].

        The last corner moves along as long as the line is short or straight: fewer pieces, and no seams
        between them.
        """
        if len(self.points) > 1:
            last, way = self.points[-1] - self.points[-2], point - self.points[-1]
            straight = last @ way >= _STRAIGHT * np.linalg.norm(last) * np.linalg.norm(way)
            if straight or np.linalg.norm(last) < _SPACING:
                self.points.pop()
        self.points.append(point.copy())

    def draw(self, scene: mujoco.MjvScene, width: float) -> None:
        """Add the line to a scene.

        Args:
            scene: Where to.
            width: Width of the line [pixels].
        """
        for start, end in zip(self.points, self.points[1:], strict=False):
            geom = scene.geoms[scene.ngeom]
            mujoco.mjv_initGeom(geom, _LINE, _ZERO, _ZERO, _NO_TURN, self._rgba)
            mujoco.mjv_connector(geom, _LINE, width, start, end)
            scene.ngeom += 1


class Painter:
    """Paints the frames of a playback in their order."""

    def __init__(self, playback: Playback, size: tuple[int, int]) -> None:
        """Open GL.

        Args:
            playback: What to paint.
            size: Width and height [pixels].

        Raises:
            GraphicsError: There is no OpenGL.
        """
        self._playback = playback
        self._renderer = make_renderer(playback.model, *size)
        self._camera = camera()
        self._line_width = max(1.0, _LINE_WIDTH * size[1] / 480.0)
        self._tip, self._bit = Trail(YELLOW), Trail(CYAN)
        self._status = StatusBar(size[0], max(9, round(size[1] / 15)))

    def __enter__(self) -> Painter:
        """Return the painter."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release GL."""
        self._renderer.close()

    def plain(self) -> Frame:
        """Return the scene alone `(height, width, 3)`: what MuJoCo's renderer costs by itself."""
        self._renderer.update_scene(self._playback.data, self._camera)
        return self._renderer.render()

    def follow(self, frame: int) -> None:
        """Lead the lines to where tip and bit are in the frame that the playback shows now; leave none out."""
        self._tip.reach(self._playback.data.geom(TIP).xpos)
        if self._playback.frames[frame].stage == "turn":
            self._bit.reach(_edge(self._playback))

    def paint(self, frame: int) -> Frame:
        """Return the picture `(height, width, 3)` of the frame that the playback shows now."""
        self._renderer.update_scene(self._playback.data, self._camera)
        for trail in (self._tip, self._bit):
            trail.draw(self._renderer.scene, self._line_width)
        image = self._renderer.render()
        self._status.write(image, status_line(self._playback.frames[frame].turn))
        return image


class StatusBar:
    """A dark bar with light text at the top of a picture; words are drawn once and kept."""

    def __init__(self, width: int, height: int) -> None:
        """Choose the largest font with which the longest status fits into `width` by `height` [pixels]."""
        self._width, self._height = width, height
        longest = status_line(figures.SCREW_TURN)
        for points in range(max(1, round(0.7 * height)), 0, -1):
            self._font: Any = ImageFont.load_default(points)
            if self._font.getlength(longest) <= 0.94 * width:
                break
        self._empty = np.full((height, width, 3), _BAR, dtype=np.uint8)
        self._words: dict[str, tuple[Frame, float]] = {}
        """Pixels of each word, and how far the next one is [pixels]."""

    def write(self, image: Frame, text: str) -> None:
        """Put `text` on top of `image` `(height, width, 3)`."""
        bar = image[: self._height]
        bar[:] = self._empty[: len(bar)]
        x = 0.02 * self._width
        for word in text.split(" "):
            pixels, advance = self._draw(word)
            place = bar[:, round(x) : round(x) + pixels.shape[1]]
            place[:] = pixels[: place.shape[0], : place.shape[1]]
            x += advance

    def _draw(self, word: str) -> tuple[Frame, float]:
        if word not in self._words:
            width = int(self._font.getlength(word)) + 2
            box = Image.new("RGB", (width, self._height), _BAR)
            place = (0, self._height / 2.0)
            ImageDraw.Draw(box).text(place, word, font=self._font, fill=_TEXT, anchor="lm")
            self._words[word] = np.asarray(box), self._font.getlength(word + " ")
        return self._words[word]


def _edge(playback: Playback) -> Array:
    """Return the middle of the lower edge of the first blade's end `(3,)` [m]."""
    length, _, height = figures.BLADE_HALF_SIZE
    geom = playback.data.geom(BLADES[0])
    return np.asarray(geom.xpos + geom.xmat.reshape(3, 3) @ np.array([length, 0.0, -height]))
