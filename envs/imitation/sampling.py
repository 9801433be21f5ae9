"""Which frame an episode starts at: more often where policies fail.

Every clip is cut into bins of about a second. A failure adds to the bin it happened in, older failures fade, and a
start is drawn from a bin in proportion to its failures, and a little uniformly. Failures accumulate: two in one step
count as two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import UnknownNameError
from bunraku.geometry import Array

FADE = 0.005
"""Share of the old failures that each new one replaces."""
UNIFORM = 0.1
"""Weight of the uniform part; that of failures goes to 1."""


class AdaptiveSampler:
    """Draws start frames; its statistics belong to the environment, not to an episode."""

    def __init__(self, lengths: NDArray[np.int64], bin_frames: int) -> None:
        """Cut the clips.

        Args:
            lengths: Frames of each clip `(C,)`.
            bin_frames: About how many frames a bin has.
        """
        self.lengths = lengths
        self.bins = lengths // bin_frames + 1
        """Bins of each clip `(C,)`."""
        self.first = np.concatenate([[0], np.cumsum(self.bins)[:-1]])
        """Number of each clip's first bin `(C,)`."""
        self.failures: Array = np.zeros(int(self.bins.sum()))
        """Faded share of failures of each bin."""

    def bin_of(self, clip: NDArray[np.int64], frame: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the bins `(...)` of frames."""
        within = np.minimum(frame * self.bins[clip] // self.lengths[clip], self.bins[clip] - 1)
        return np.asarray(self.first[clip] + within)

    def record(self, clip: NDArray[np.int64], frame: NDArray[np.int64]) -> None:
        """Count failures at frames `(K,)` of clips `(K,)`."""
        if len(clip) == 0:
            return
        counts = np.bincount(self.bin_of(clip, frame), minlength=len(self.failures))
        keep = (1.0 - FADE) ** len(clip)
        self.failures = keep * self.failures + (1.0 - keep) / len(clip) * counts

    def probabilities(self) -> Array:
        """Return the probability of each bin."""
        share = self.failures + UNIFORM / len(self.failures)
        return share / share.sum()

    def draw(self, rng: np.random.Generator) -> tuple[int, int]:
        """Return a clip and a frame to start at."""
        chosen = int(rng.choice(len(self.failures), p=self.probabilities()))
        clip = int(np.searchsorted(self.first, chosen, side="right") - 1)
        place = (chosen - self.first[clip] + rng.uniform()) / self.bins[clip]
        return clip, int(place * (self.lengths[clip] - 1))

    def report(self) -> dict[str, float]:
        """Return what to log: entropy over that of uniform drawing, and the likeliest bin with its probability."""
        p = self.probabilities()
        entropy = float(-(p * np.log(p)).sum() / np.log(len(p))) if len(p) > 1 else 1.0
        return {"entropy": entropy, "top_probability": float(p.max()), "top_bin": float(p.argmax())}


def draw_uniform(lengths: NDArray[np.int64], rng: np.random.Generator) -> tuple[int, int]:
    """Return a clip and a frame of it, every frame of all clips (but the last of each) equally likely."""
    starts = np.maximum(lengths - 1, 1)
    place = int(rng.integers(int(starts.sum())))
    ends = np.cumsum(starts)
    clip = int(np.searchsorted(ends, place, side="right"))
    return clip, place - int(ends[clip] - starts[clip])


def chosen_start(
    names: Sequence[str], lengths: NDArray[np.int64], drawn: tuple[int, int], options: Mapping[str, Any]
) -> tuple[int, int]:
    """Return the clip and frame to start at: what was drawn, but for what the options `clip` and `frame` say."""
    clip, frame = drawn
    if "clip" in options:
        wanted = options["clip"]
        if isinstance(wanted, str):
            if wanted not in names:
                raise UnknownNameError("clip", wanted, names)
            wanted = names.index(wanted)
        if not 0 <= int(wanted) < len(names):
            raise ValueError(f"option 'clip' must be below {len(names)}, got {wanted!r}")
        clip, frame = int(wanted), min(frame, int(lengths[int(wanted)]) - 2)
    if "frame" in options:
        last = int(lengths[clip]) - 2
        if not 0 <= int(options["frame"]) <= last:
            raise ValueError(f"option 'frame' must be from 0 to {last}, got {options['frame']!r}")
        frame = int(options["frame"])
    return clip, frame
