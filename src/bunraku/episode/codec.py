"""An episode to and from its HDF5 group. `format.py` has the names, `writer.py` and `reader.py` the files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from bunraku.episode.episode import LABELS, Episode
from bunraku.episode.format import (
    CHUNK_BYTES,
    COMPRESS_IMAGES_FROM,
    COMPRESS_STATES_FROM,
    NEXT_OBS,
    OBS,
    STREAMS,
    to_json,
)
from bunraku.errors import BunrakuError, FileFormatError

_ROW_ARRAYS: dict[str, type | None] = {
    "actions": None,
    "applied": np.float64,
    "rewards": np.float64,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "success": np.bool_,
    "sim_time": np.float64,
    "wall_time": np.float64,
}
"""Fields of `Episode` that are datasets of T rows under their own names, with their dtype."""

_WITH_PARENTS = h5py.h5p.create(h5py.h5p.LINK_CREATE)
_WITH_PARENTS.set_create_intermediate_group(True)
_WITH_PARENTS.set_char_encoding(h5py.h5t.CSET_UTF8)
_PLAIN = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
_PLAIN.set_obj_track_times(False)


def check_episode(episode: Episode) -> None:
    """Refuse what would not come back as it is.

    Raises:
        BunrakuError: Names the array and what is wrong with it.
    """
    rows = len(episode)
    if rows == 0:
        raise BunrakuError("the episode has no step, so there is nothing to save; discard it")
    if episode.label not in LABELS:
        raise BunrakuError(f"label {episode.label!r} is unknown; one of {', '.join(LABELS)} is needed")
    lengths = {name: (len(getattr(episode, name)), rows) for name in _ROW_ARRAYS}
    lengths["states"] = (len(episode.states), rows + 1)
    lengths |= {f"{OBS}/{key}": (len(array), rows + 1) for key, array in episode.observations.items()}
    lengths |= {f"{STREAMS}/{key}": (len(array), rows) for key, array in episode.streams.items()}
    for name, (got, expected) in lengths.items():
        if got != expected:
            raise BunrakuError(f"{name} has {got} rows where {rows} actions need {expected}")
    for names in (episode.observations, episode.streams):
        _check_names(names)


def write_episode(group: h5py.Group, episode: Episode) -> None:
    """Fill an empty group with a checked episode; `num_samples`, the sign that it is complete, comes last."""
    for name, dtype in _ROW_ARRAYS.items():
        _put(group, name, np.asarray(getattr(episode, name), dtype=dtype))
    states = np.asarray(episode.states, dtype=np.float64)
    _put(group, "states", states[:-1])
    _put(group, "final_state", states[-1])
    _put(group, "dones", done_flags(episode))
    for key, array in episode.observations.items():
        _put(group, f"{OBS}/{key}", np.asarray(array)[:-1])
        _put(group, f"{NEXT_OBS}/{key}", np.asarray(array)[1:])
    for key, array in episode.streams.items():
        _put(group, f"{STREAMS}/{key}", np.asarray(array))
    meta = dict(episode.meta)
    group.attrs["model_file"] = str(meta.pop("mjcf", ""))
    group.attrs["meta"] = to_json(meta)
    seed = meta.get("seed")
    if isinstance(seed, int | np.integer) and -(2**63) <= seed < 2**63:
        group.attrs["seed"] = np.int64(seed)
    group.attrs["label"] = episode.label
    group.attrs["success"] = bool(episode.label == "success")
    group.attrs["num_samples"] = len(episode)


def read_episode(group: h5py.Group, path: str, file_bytes: int) -> Episode:
    """Return the episode of a group, also of a plain robomimic one.

    What a plain file lacks is filled (states without columns, times NaN, flags False, the last observation
    repeated) and listed in `meta["missing"]`.

    Args:
        group: `/data/demo_<i>`.
        path: Of the file, for messages.
        file_bytes: Size of the file: a dataset that claims to be far larger is refused, not allocated.
    """
    reader = _GroupReader(group, path, file_bytes)
    rows = reader.rows
    states = reader.rows_of("states", np.zeros((rows, 0)))
    final = reader.array("final_state", states[-1])[None]
    if final.shape[1:] != states.shape[1:]:
        raise reader.error(f"final_state has shape {final.shape[1:]}, states have rows of {states.shape[1:]}")
    dones = reader.rows_of("dones", np.zeros(rows)).reshape(rows, -1)[:, 0].astype(bool)
    defaults: dict[str, NDArray[Any]] = {
        "applied": np.zeros((rows, 0)),
        "rewards": np.zeros(rows),
        "terminated": dones,
        "truncated": np.zeros(rows, dtype=bool),
        "success": np.zeros(rows, dtype=bool),
        "sim_time": np.full(rows, np.nan),
        "wall_time": np.full(rows, np.nan),
    }
    arrays = {name: reader.rows_of(name, defaults.get(name)) for name in _ROW_ARRAYS}
    meta = meta_of(group, path)
    observations, streams = reader.observations(), reader.tree(STREAMS)
    if reader.missing:
        meta["missing"] = sorted(reader.missing)
    return Episode(
        observations=observations,
        states=np.concatenate([states, final]),
        streams=streams,
        label=str(group.attrs.get("label", "unlabelled")),
        meta=meta,
        **arrays,
    )


def done_flags(episode: Episode) -> NDArray[np.int64]:
    """Return robomimic's `dones` `(T,)`: 1 where the task is solved and at the last row."""
    dones = np.asarray(episode.success, dtype=np.int64).copy()
    dones[-1] = 1
    return dones


class _GroupReader:
    """Checked access to one demonstration group."""

    def __init__(self, group: h5py.Group, path: str, file_bytes: int) -> None:
        self._group, self._path, self._file_bytes = group, path, file_bytes
        self.missing: set[str] = set()
        if "actions" not in group:
            raise self.error("it has no actions")
        self.rows = int(group.attrs["num_samples"]) if "num_samples" in group.attrs else len(group["actions"])
        if self.rows < 1:
            raise self.error("it has no rows")

    def error(self, what: str) -> FileFormatError:
        return _damaged(self._group, self._path, what)

    def rows_of(self, name: str, default: NDArray[Any] | None = None) -> NDArray[Any]:
        array = self.array(name, default)
        if array.ndim == 0 or len(array) != self.rows:
            raise self.error(f"{name} has shape {array.shape} where num_samples is {self.rows}")
        return array

    def array(self, name: str, default: NDArray[Any] | None = None) -> NDArray[Any]:
        if name not in self._group:
            if default is None:
                raise self.error(f"{name} is missing")
            self.missing.add(name)
            return default
        dataset = self._group[name]
        if not isinstance(dataset, h5py.Dataset):
            raise self.error(f"{name} is a group where an array belongs")
        self._check_size(name, dataset)
        return self._plain(dataset, ...)

    def tree(self, name: str) -> dict[str, NDArray[Any]]:
        if name not in self._group:
            return {}
        return {key: self.rows_of(f"{name}/{key}") for key in dataset_names(self._group[name])}

    def observations(self) -> dict[str, NDArray[Any]]:
        before = (
            {key: f"{OBS}/{key}" for key in dataset_names(self._group[OBS])} if OBS in self._group else {}
        )
        if before and not (NEXT_OBS in self._group and len(self._group[NEXT_OBS])):
            self.missing.add(NEXT_OBS)
        joined = {}
        for key, name in before.items():
            array, after = self.rows_of(name), self._group.get(f"{NEXT_OBS}/{key}")
            if after is None:
                joined[key] = np.concatenate([array, array[-1:]])
            else:
                self._check_next(key, after, array)
                # of next_obs only the last row is read: all others are in obs
                joined[key] = np.concatenate([array, self._plain(after, slice(-1, None))])
        return joined

    def _check_next(self, key: str, after: Any, array: NDArray[Any]) -> None:
        if not isinstance(after, h5py.Dataset) or after.shape[:1] != (self.rows,):
            shape = getattr(after, "shape", "none")
            raise self.error(f"{NEXT_OBS}/{key} has shape {shape} where num_samples is {self.rows}")
        if after.shape[1:] != array.shape[1:]:
            raise self.error(f"{NEXT_OBS}/{key} has rows of {after.shape[1:]}, {OBS}/{key} {array.shape[1:]}")
        self._check_size(f"{NEXT_OBS}/{key}", after)

    def _check_size(self, name: str, dataset: h5py.Dataset) -> None:
        # gzip shrinks by a factor of about 1,030 at most.
        if dataset.nbytes > max(1 << 26, 1100 * self._file_bytes):
            raise self.error(f"{name} claims to hold {dataset.nbytes} bytes in a file of {self._file_bytes}")

    @staticmethod
    def _plain(dataset: h5py.Dataset, rows: Any) -> NDArray[Any]:
        if h5py.check_string_dtype(dataset.dtype) is not None:
            return np.asarray(dataset.asstr()[rows]).astype(np.str_)
        return np.asarray(dataset[rows])


def meta_of(group: h5py.Group, path: str) -> dict[str, Any]:
    """Return an episode's `meta` from the attributes of its group."""
    attrs = group.attrs
    meta = json.loads(attrs["meta"]) if "meta" in attrs else {}
    if not isinstance(meta, dict):
        raise _damaged(group, path, "its attribute meta is not a JSON object")
    if attrs.get("model_file"):
        meta["mjcf"] = str(attrs["model_file"])
    if "seed" in attrs:
        meta.setdefault("seed", int(attrs["seed"]))
    return meta


def dataset_names(group: h5py.Group, prefix: str = "") -> Iterator[str]:
    """Yield the slash-separated names of all datasets below a group."""
    for name, item in group.items():
        if isinstance(item, h5py.Group):
            yield from dataset_names(item, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}"


def _damaged(group: h5py.Group, path: str, what: str) -> FileFormatError:
    name = group.name.rsplit("/", 1)[-1]
    return FileFormatError(f"{name} in {path} is damaged: {what}; take it from a copy or delete it")


def _put(group: h5py.Group, name: str, array: NDArray[Any]) -> None:
    if array.dtype.kind == "U":
        group.create_dataset(name, data=array.astype(object), dtype=h5py.string_dtype())
        return
    rows = 0
    if name == "states" and array.nbytes >= COMPRESS_STATES_FROM:
        rows = min(len(array), max(1, CHUNK_BYTES * len(array) // array.nbytes))
    elif array.dtype == np.uint8 and array.ndim > 1 and array.nbytes >= COMPRESS_IMAGES_FROM:
        rows = 1
    if rows:
        chunks = (rows, *array.shape[1:])
        group.create_dataset(name, data=array, chunks=chunks, compression="gzip", compression_opts=1)
        return
    # what `create_dataset` does for a plain array, in a third of its time: an episode has thirty of them
    space = h5py.h5s.create_simple(array.shape)
    kind = h5py.h5t.py_create(array.dtype, logical=True)
    dataset = h5py.h5d.create(group.id, name.encode(), kind, space, _PLAIN, _WITH_PARENTS)
    if array.size:
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(array))


def _check_names(arrays: Mapping[str, NDArray[Any]]) -> None:
    for name, array in arrays.items():
        parts = name.split("/")
        if not all(parts) or "." in parts or "\0" in name:
            raise BunrakuError(f"{name!r} cannot name an array in a file; use words joined by single slashes")
        if any("/".join(parts[:count]) in arrays for count in range(1, len(parts))):
            raise BunrakuError(f"{name!r} lies below another array of that name; rename one of them")
        if np.asarray(array).dtype.kind not in "biufU":
            raise BunrakuError(
                f"{name!r} holds {np.asarray(array).dtype}; numbers, flags or text can be saved"
            )
