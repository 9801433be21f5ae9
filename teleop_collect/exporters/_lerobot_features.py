"""How an episode's arrays are called and shaped in a LeRobot dataset, for both versions of its layout."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.dataset.exchange import Source, images_of, vectors_of
from bunraku.episode.episode import Episode
from bunraku.errors import BunrakuError
from bunraku.teleop_collect.exporters._encoder import description

STATE = "observation.state"
IMAGES = "observation.images"


def rows_of(episode: Episode, number: int, first: int, fps: float) -> dict[str, NDArray[Any]]:
    """Return the columns of an episode, `(T, n)` each; row t has what was seen before action t.

    Args:
        episode: The episode.
        number: Its number.
        first: Rows of all episodes before it.
        fps: Rows per second.
    """
    count = len(episode)
    vectors = {key: array[:-1] for key, array in vectors_of(episode).items()}
    state = vectors.pop("observation", None)
    if state is None and vectors:
        state = np.concatenate(list(vectors.values()), axis=1)
    done = np.zeros(count, dtype=bool)
    done[-1] = True
    frames = np.arange(count)
    named: dict[str, NDArray[Any]] = {} if state is None else {STATE: state.astype(np.float32)}
    for key, array in vectors.items():
        named[f"observation.{key.replace('/', '.')}"] = array.astype(np.float32)
    named |= {
        "action": np.asarray(episode.actions, dtype=np.float32),
        "next.reward": episode.rewards.astype(np.float32)[:, None],
        "next.done": done[:, None],
        "next.success": episode.success[:, None],
        "timestamp": (frames / fps).astype(np.float32)[:, None],
        "frame_index": frames[:, None],
        "episode_index": np.full((count, 1), number),
        "index": (first + frames)[:, None],
        "task_index": np.zeros((count, 1), dtype=np.int64),
    }
    return named


def features_of(
    episode: Episode, rows: dict[str, NDArray[Any]], fps: float, *, lossless: bool
) -> dict[str, Any]:
    """Return the `features` of `info.json`."""
    found: dict[str, Any] = {
        key: {"dtype": str(array.dtype), "shape": [array.shape[1]], "names": None}
        for key, array in rows.items()
    }
    for camera, images in images_of(episode).items():
        height, width = images.shape[1:3]
        found[f"{IMAGES}.{camera}"] = {
            "dtype": "video",
            "shape": [height, width, 3],
            "names": ["height", "width", "channels"],
            "info": description((width, height), fps, lossless=lossless),
        }
    return found


def whole_fps(source: Source) -> int:
    """Return the rows per second, which LeRobot keeps as a whole number.

    Raises:
        BunrakuError: They are none.
    """
    fps = source.fps
    if fps != round(fps):
        raise BunrakuError(
            f"LeRobot needs a whole number of rows per second, got {fps:g}; resample the file first"
        )
    return round(fps)


def check_same(features: dict[str, Any], other: dict[str, Any], name: str) -> None:
    """Refuse an episode with other features than those before it."""
    if features != other:
        keys = sorted(key for key in features.keys() | other.keys() if features.get(key) != other.get(key))
        raise BunrakuError(
            f"{name} differs from the episodes before it in {', '.join(keys)}; export it apart"
        )
