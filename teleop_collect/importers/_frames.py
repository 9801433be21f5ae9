"""Frames of the videos of a LeRobot dataset, read forwards, each episode's at its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import FileFormatError, MissingDependencyError


class FrameReader:
    """Reads one camera's videos in turn; going forwards costs no seeking."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._path: Path | None = None
        self._container: Any = None
        self._frames: Iterator[Any] = iter(())
        self._time = -1.0

    def read(self, path: Path, begin: float, count: int, fps: float) -> NDArray[np.uint8]:
        """Return frames `(count, height, width, 3)` that are shown from `begin` [s] on.

        Raises:
            FileFormatError: A frame is not where the dataset says.
        """
        if path != self._path or begin < self._time - 0.5 / fps:
            self._open(path)
        out: NDArray[np.uint8] | None = None
        for row in range(count):
            frame = self._at(begin + row / fps, fps, path)
            image = frame.to_ndarray(format="rgb24")
            if out is None:
                out = np.empty((count, *image.shape), dtype=np.uint8)
            out[row] = image
        assert out is not None
        return out

    def close(self) -> None:
        """Close the video."""
        if self._container is not None:
            self._container.close()
            self._container = None

    def _open(self, path: Path) -> None:
        try:
            import av
        except ImportError as error:
            raise MissingDependencyError("PyAV", "the import of videos", "export") from error
        self.close()
        try:
            self._container = av.open(str(path))
            self._frames = self._container.decode(video=0)
        except (av.error.FFmpegError, IndexError) as error:
            raise FileFormatError(f"{path} is no video ({error}); take it from a copy") from error
        self._path, self._time = path, -1.0

    def _at(self, time: float, fps: float, path: Path) -> Any:
        for frame in self._frames:
            self._time = float(frame.time)
            if self._time > time - 0.5 / fps:
                if self._time > time + 0.5 / fps:
                    break
                return frame
        raise FileFormatError(
            f"{path} has no frame at {time:.4f} s, where the dataset says that there is one"
        )
