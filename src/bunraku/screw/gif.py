"""A GIF with one palette for all frames, by Pillow; and what a reader finds in it.

One palette keeps what does not move the same from frame to frame, so that only what moves is stored; a palette
per frame makes the file five times as large. Pillow stores times in steps of 10 ms, and lets a frame that
equals the one before last longer instead of storing it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from bunraku.video import Frame

FRAME_MS = 33
"""What a frame is asked to last [ms]; it is stored as 30."""


@dataclass(frozen=True, slots=True)
class GifFacts:
    """What a reader finds in the file."""

    frames: int
    seconds: float
    last_seconds: float
    """How long the last frame lasts."""
    width: int
    height: int
    bytes: int


class Gif:
    """A GIF under construction; frames are kept with one byte per pixel until it is saved."""

    def __init__(self, samples: Sequence[Frame]) -> None:
        """Choose the palette.

        Args:
            samples: Frames `(height, width, 3)` that together have the colours of all.
        """
        mosaic = Image.fromarray(np.concatenate(samples, axis=0))
        # maximum coverage gives rare colours their place as well: thin lines keep theirs
        self._palette = mosaic.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        self._frames: list[Image.Image] = []

    def write(self, image: Frame) -> None:
        """Add a frame `(height, width, 3)`."""
        frame = Image.fromarray(image).quantize(palette=self._palette, dither=Image.Dither.NONE)
        self._frames.append(frame)

    def save(self, path: Path) -> None:
        """Write the file."""
        first, *others = self._frames
        # the format is given, so that the path may have any name
        first.save(path, format="GIF", save_all=True, append_images=others, duration=FRAME_MS, loop=0)


def read_gif(path: Path) -> GifFacts:
    """Return what a reader finds in the file."""
    with Image.open(path) as image:
        durations = []
        frames = int(getattr(image, "n_frames", 1))
        for frame in range(frames):
            image.seek(frame)
            durations.append(int(image.info.get("duration", 0)))
        width, height = image.size
    return GifFacts(
        frames, sum(durations) / 1000.0, durations[-1] / 1000.0, width, height, path.stat().st_size
    )
