"""Minari's layout (0.5, HDF5): the folder of a dataset, or its `data` folder."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bunraku.dataset.archive import inside, refuse_outside
from bunraku.dataset.importing import Found, make_episode
from bunraku.episode.codec import dataset_names
from bunraku.episode.episode import Episode
from bunraku.episode.repair import HDF5_ERRORS
from bunraku.errors import FileFormatError

_MISSING = (
    "MuJoCo states and model",
    "applied inputs",
    "device streams",
    "wall time",
    "labels other than success",
)


class Minari:
    """The importer."""

    extra = "export"

    @contextmanager
    def open(self, folder: Path, hz: float | None) -> Iterator[Found]:
        """Open `main_data.hdf5` and `metadata.json`."""
        folder = folder if (folder / "metadata.json").exists() else folder / "data"
        described = _json(inside(folder, "metadata.json").read_text(encoding="utf-8"), folder)
        if described.get("data_format", "hdf5") != "hdf5":
            raise FileFormatError(f"{folder} is stored as {described['data_format']}; HDF5 can be imported")
        path = inside(folder, "main_data.hdf5")
        spec = _json(described.get("env_spec") or "{}", folder)
        kwargs = dict(spec.get("kwargs") or {})
        rate = kwargs.get("control_freq")
        fps = hz or (None if rate is None else float(rate))
        try:
            with h5py.File(path) as h5:
                count = sum(name.startswith("episode_") for name in h5)
                yield Found(
                    episodes=_episodes(h5, path, count, fps),
                    count=count,
                    env_id=str(spec.get("id") or ""),
                    env_kwargs=kwargs,
                    fps=fps,
                    missing=_MISSING,
                    notes=(f"author: {', '.join(described['author'])}",) if described.get("author") else (),
                )
        except OSError as error:
            if isinstance(error, FileNotFoundError) or error.errno is None:
                raise FileFormatError(f"{path} is damaged ({error}); take it from a copy") from error
            raise


def _json(text: str, folder: Path) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise FileFormatError(f"{folder}: metadata.json is damaged ({error}); take it from a copy") from error
    if not isinstance(found, dict):
        raise FileFormatError(f"{folder}: metadata.json holds no JSON object; take it from a copy")
    return found


def _episodes(h5: h5py.File, path: Path, count: int, fps: float | None) -> Iterator[tuple[str, Episode]]:
    for number in range(count):
        name = f"episode_{number}"
        try:
            group = h5[name]
            refuse_outside(group, path)
            yield name, _episode(group, path, fps)
        except HDF5_ERRORS as error:
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise FileFormatError(f"{name} of {path} is damaged ({reason}); take it from a copy") from error


def _episode(group: h5py.Group, path: Path, fps: float | None) -> Episode:
    if isinstance(group["actions"], h5py.Group):
        raise FileFormatError(f"{group.name} of {path} has actions of several parts; one array is imported")
    actions = group["actions"][()]
    actions = actions[:, None] if actions.ndim == 1 else actions
    rows = len(actions)
    observations = {
        key: _rows(group["observations" if key is None else f"observations/{key}"])
        for key in (
            dataset_names(group["observations"]) if isinstance(group["observations"], h5py.Group) else [None]
        )
    }
    named = {"observation" if key is None else key: array for key, array in observations.items()}
    for key, array in named.items():
        if len(array) != rows + 1:
            raise FileFormatError(f"{group.name}/{key} of {path} has {len(array)} rows for {rows} actions")
    success = np.zeros(rows, dtype=bool)
    for key in ("infos/success", "infos/is_success"):
        if key in group:
            success = np.asarray(group[key][()]).reshape(rows + 1, -1)[1:, 0].astype(bool)
            break
    meta = {"seed": int(group.attrs["seed"])} if "seed" in group.attrs else {}
    return make_episode(
        named,
        actions,
        fps,
        label="success" if success[-1] else "unlabelled",
        meta=meta,
        rewards=np.asarray(group["rewards"][()], dtype=np.float64),
        terminated=group["terminations"][()].astype(bool),
        truncated=group["truncations"][()].astype(bool),
        success=success,
    )


def _rows(dataset: h5py.Dataset) -> NDArray[Any]:
    """Return an observation's rows; images that are stored as JPEG, row by row, are decoded."""
    array = dataset[()]
    if array.dtype == object or (array.dtype == np.uint8 and array.ndim == 2 and _is_jpeg(array[0])):
        if not _is_jpeg(array[0]):
            return np.array([bytes(text).decode() for text in array])
        return np.stack([np.asarray(Image.open(io.BytesIO(bytes(row)))) for row in array])
    return array[:, None] if array.ndim == 1 else array


def _is_jpeg(row: Any) -> bool:
    return bytes(row[:2]) == b"\xff\xd8"


IMPORTER = Minari()
