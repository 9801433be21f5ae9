"""Videos for LeRobot: one frame per row at exactly k / fps, and a count of what was written."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, MissingDependencyError

GOP = 2
"""Frames from one key frame to the next: trainers jump to single frames."""
CRF = 18
"""Constant rate factor: about 40 dB on rendered images."""


class Encoder:
    """One mp4 under construction (H.264)."""

    def __init__(self, path: Path, size: tuple[int, int], fps: float, *, lossless: bool) -> None:
        """Begin.

        Args:
            path: The file.
            size: Width and height [pixels], even.
            fps: Frames per second.
            lossless: Whether every bit is kept, as RGB.

        Raises:
            MissingDependencyError: There is no PyAV.
            BunrakuError: The size is odd, or this PyAV has no H.264 encoder.
        """
        try:
            import av
        except ImportError as error:
            raise MissingDependencyError("PyAV", "the export of images", "export") from error
        width, height = size
        if (width % 2 or height % 2) and not lossless:
            raise BunrakuError(
                f"videos need an even width and height, got {width}x{height}; render even ones"
            )
        codec = "libx264rgb" if lossless else "libx264"
        if codec not in av.codecs_available:
            raise BunrakuError(f"this PyAV has no encoder {codec}; install PyAV's own wheel: pip install av")
        self._av = av
        path.parent.mkdir(parents=True, exist_ok=True)
        rate = Fraction(fps).limit_denominator(100_000)
        self._container = av.open(str(path), mode="w")
        self._stream: Any = self._container.add_stream(codec, rate=rate)
        self._stream.width, self._stream.height = width, height
        self._stream.pix_fmt = "rgb24" if lossless else "yuv420p"
        self._stream.time_base = 1 / rate
        self._stream.options = {
            "crf": "0" if lossless else str(CRF),
            "g": str(GOP),
            "preset": "veryfast",
            "bf": "0",
        }
        self._time_base = 1 / rate
        self.frames = 0
        self.bytes = 0

    def write(self, images: NDArray[np.uint8]) -> None:
        """Add images `(n, height, width, 3)`."""
        for image in images:
            frame = self._av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            frame.pts, frame.time_base = self.frames, self._time_base
            self._mux(frame)
            self.frames += 1

    def close(self) -> None:
        """Complete the file."""
        self._mux(None)
        self._container.close()

    def _mux(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self.bytes += packet.size
            self._container.mux(packet)


def description(size: tuple[int, int], fps: float, *, lossless: bool) -> dict[str, Any]:
    """Return what LeRobot's `info.json` says of a video."""
    width, height = size
    return {
        "video.height": height,
        "video.width": width,
        "video.codec": "h264",
        "video.pix_fmt": "gbrp" if lossless else "yuv420p",
        "video.is_depth_map": False,
        "video.fps": fps,
        "video.channels": 3,
        "has_audio": False,
    }
