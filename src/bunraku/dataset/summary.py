"""What a demonstration file holds, from its index: no episode is opened."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bunraku.episode.reader import EpisodeFile


@dataclass(frozen=True, slots=True)
class Summary:
    """A file in numbers."""

    path: str
    """The file."""
    bunraku_format: int | None
    """Version of the format, None for a plain robomimic file."""
    env_id: str
    """Gymnasium id of the environment."""
    env_kwargs: dict[str, Any]
    """Its arguments."""
    control_freq: float | None
    """Rows per simulated second [Hz], if known."""
    cameras: list[str]
    """Cameras whose images were recorded."""
    episodes: int
    """Number of episodes."""
    steps: int
    """Rows of all of them."""
    seconds: float | None
    """Simulated time of all of them [s], if known."""
    shortest: int
    """Rows of the shortest."""
    longest: int
    """Rows of the longest."""
    labels: dict[str, int]
    """Episodes by label."""
    devices: dict[str, int]
    """Episodes by device."""
    operators: dict[str, int]
    """Episodes by operator."""
    masks: dict[str, int]
    """Size of each filter list."""
    shapes: dict[str, str]
    """Shape of one row of `actions` and of each observation."""
    versions: dict[str, str]
    """Library versions when the file was begun."""
    size_bytes: int
    """Size of the file."""


def summarise(path: str | Path) -> Summary:
    """Sum up a file.

    Raises:
        FileFormatError: It is not a demonstration file, or damaged.
    """
    with EpisodeFile(path) as file:
        index, info = file.index, file.info
        lengths = index["num_samples"]
        seconds = float(index["sim_seconds"].sum()) if len(index) else 0.0
        return Summary(
            path=str(path),
            bunraku_format=file.format_version,
            env_id=file.env_id,
            env_kwargs=file.env_kwargs,
            control_freq=info.get("control_freq", file.env_kwargs.get("control_freq")),
            cameras=[str(camera) for camera in info.get("cameras", [])],
            episodes=len(index),
            steps=int(lengths.sum()),
            seconds=seconds if np.isfinite(seconds) else None,
            shortest=int(lengths.min(initial=np.iinfo(np.int64).max)) if len(index) else 0,
            longest=int(lengths.max(initial=0)),
            labels=_counts(index["label"]),
            devices=_counts(index["device"]),
            operators=_counts(index["operator"]),
            masks={key: len(names) for key, names in file.masks.items()},
            shapes=file.signature,
            versions=file.versions,
            size_bytes=Path(path).stat().st_size,
        )


def _counts(column: np.ndarray) -> dict[str, int]:
    return dict(Counter(bytes(value).decode(errors="replace") for value in column))
