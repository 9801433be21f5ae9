"""Writing images to an mp4, a GIF or a folder of PNGs, one frame at a time, and counting what arrived.

with open_video(Path("reach.mp4"), (256, 256), fps=50) as video:
    video.write(image)                    # (height, width, 3) uint8
assert count_frames(Path("reach.mp4")) == 1
"""

from __future__ import annotations

import os
import shutil
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from PIL import GifImagePlugin, Image

from bunraku.errors import BunrakuError, MissingDependencyError

Frame = NDArray[np.uint8]
SUFFIXES = (".mp4", ".gif")
_H264, _FALLBACK = "libx264", "mpeg4"


class Sink(Protocol):
    """What takes the frames of one format."""

    def write(self, image: Frame) -> None:
        """Add a frame `(height, width, 3)`."""
        ...

    def close(self) -> None:
        """Complete the file."""
        ...


class Video:
    """A video under construction; it has its name only once it is complete."""

    def __init__(self, path: Path, sink: Sink, unfinished: Path) -> None:
        """Take a sink that writes to `unfinished`."""
        self.path, self._sink, self._unfinished = path, sink, unfinished
        self.frames = 0

    def write(self, image: Frame) -> None:
        """Add a frame `(height, width, 3)`."""
        self._sink.write(image)
        self.frames += 1

    def __enter__(self) -> Self:
        """Return the video."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give the file its name, or remove it if it was not completed."""
        try:
            self._sink.close()
            if kind is None:
                if self.path.is_dir():
                    shutil.rmtree(self.path)
                os.replace(self._unfinished, self.path)
        finally:
            if self._unfinished.is_dir():
                shutil.rmtree(self._unfinished)
            else:
                self._unfinished.unlink(missing_ok=True)


def open_video(path: Path, size: tuple[int, int], fps: float) -> Video:
    """Begin a video; what stands under that name is replaced when it is complete.

    Args:
        path: `.mp4`, `.gif`, or a folder name without a suffix for PNG files.
        size: Width and height [pixels].
        fps: Frames per second.

    Raises:
        MissingDependencyError: An mp4 without PyAV.
        BunrakuError: The suffix or the size does not do, or the folder cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix and suffix not in SUFFIXES:
        raise BunrakuError(f"{path} is neither {' nor '.join(SUFFIXES)} nor a folder name; rename it")
    unfinished = path.with_name(f"{path.stem}.unfinished{suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if suffix == ".mp4":
            return Video(path, _Mp4(unfinished, size, fps), unfinished)
        if suffix == ".gif":
            return Video(path, _Gif(unfinished, size, fps), unfinished)
        return Video(path, _Pngs(unfinished), unfinished)
    except OSError as error:
        raise BunrakuError(f"cannot write {path}: {error.strerror or error}; give another place") from error


def count_frames(path: Path) -> int:
    """Return the number of frames that a reader finds in a video or folder of PNGs."""
    if path.is_dir():
        return len(list(path.glob("*.png")))
    if path.suffix.lower() == ".gif":
        with Image.open(path) as image:
            return int(getattr(image, "n_frames", 1))
    with _av().open(str(path)) as container:
        return sum(1 for _ in container.decode(video=0))


class _Mp4:
    def __init__(self, path: Path, size: tuple[int, int], fps: float) -> None:
        width, height = size
        if width % 2 or height % 2:
            raise BunrakuError(f"an mp4 needs an even width and height, got {width}x{height}; give even ones")
        self._av = _av()
        self._container = self._av.open(str(path), mode="w")
        codec = _H264 if _H264 in self._av.codecs_available else _FALLBACK
        self._stream = self._container.add_stream(codec, rate=Fraction(fps).limit_denominator(1000))
        self._stream.width, self._stream.height, self._stream.pix_fmt = width, height, "yuv420p"
        if codec == _FALLBACK:
            self._stream.bit_rate = int(width * height * fps * 0.2)

    def write(self, image: Frame) -> None:
        self._mux(self._av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24"))

    def close(self) -> None:
        self._mux(None)
        self._container.close()

    def _mux(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)


class _Gif:
    """Pillow's `save` leaves out frames that equal the one before; this writes each."""

    def __init__(self, path: Path, size: tuple[int, int], fps: float) -> None:
        self._file: BinaryIO = open(path, "wb")  # noqa: SIM115
        # Hundredths of a second; viewers take less than two for ten.
        self._duration_ms = 10 * max(2, round(100 / fps))
        self._started = False

    def write(self, image: Frame) -> None:
        frame = Image.fromarray(image).quantize(256, dither=Image.Dither.NONE)
        if not self._started:
            for block in GifImagePlugin.getheader(frame, info={"loop": 0})[0]:
                self._file.write(block)
            self._started = True
        blocks = GifImagePlugin.getdata(frame, duration=self._duration_ms, include_color_table=True)
        for block in blocks:
            self._file.write(block)

    def close(self) -> None:
        if self._started:
            self._file.write(b";")
        self._file.close()


class _Pngs:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._count = folder, 0

    def write(self, image: Frame) -> None:
        Image.fromarray(image).save(self._folder / f"{self._count:06d}.png", compress_level=3)
        self._count += 1

    def close(self) -> None:
        """Nothing is open."""


def _av() -> Any:
    try:
        import av
    except ImportError as error:
        raise MissingDependencyError("PyAV", "mp4 video", "video") from error
    return av
