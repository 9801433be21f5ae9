"""Zarr in diffusion policy's replay-buffer layout (format 2, as its readers need).

`data/state`, `data/action`, `data/reward`, `data/<other observation>` and `data/<camera>` (uint8) hold the rows of
all episodes one after another; `meta/episode_ends` holds, for each episode, the row after its last.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bunraku.dataset.exchange import Source, images_of, vectors_of
from bunraku.episode.episode import Episode
from bunraku.errors import MissingDependencyError

_ROWS = 1024
"""Rows per chunk of numbers; images are stored one by one."""


class Zarr:
    """The exporter."""

    extra = "export"
    versions = ("2",)

    def export(self, source: Source, out: Path) -> None:
        """Write `replay_buffer.zarr`."""
        try:
            import zarr
        except ImportError as error:
            raise MissingDependencyError("zarr", "the export to zarr", self.extra) from error
        root = zarr.open_group(str(out / "replay_buffer.zarr"), mode="w", zarr_format=2)
        data, meta = root.create_group("data"), root.create_group("meta")
        ends: list[int] = []
        arrays: dict[str, Any] = {}
        rows = 0
        for _, episode in source.episodes():
            for key, array in _arrays(episode).items():
                if key not in arrays:
                    chunk = 1 if array.ndim == 4 else _ROWS
                    arrays[key] = data.create_array(
                        key, shape=(0, *array.shape[1:]), chunks=(chunk, *array.shape[1:]), dtype=array.dtype
                    )
                arrays[key].append(array)
            rows += len(episode)
            ends.append(rows)
        meta.create_array("episode_ends", data=np.array(ends, dtype=np.int64))
        root.attrs["env_id"] = source.file.env_id
        root.attrs["fps"] = source.fps


def _arrays(episode: Episode) -> dict[str, np.ndarray]:
    vectors = {key: array[:-1] for key, array in vectors_of(episode).items()}
    state = vectors.pop("observation", None)
    named = {} if state is None else {"state": state}
    named |= {"action": np.asarray(episode.actions, dtype=np.float32), "reward": episode.rewards}
    return named | vectors | {camera: images[:-1] for camera, images in images_of(episode).items()}


EXPORTER = Zarr()
