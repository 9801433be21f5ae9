"""Rows of an episode's arrays, from one HDF5 group to another: a part of them, or fewer per second.

Every dataset whose first axis has `num_samples` rows takes part, also those that bunraku does not know. Row t
of most belongs to the instant before action t; the arrays of `AFTER` to the instant after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from bunraku.episode.codec import dataset_names
from bunraku.episode.format import NEXT_OBS, to_json

AFTER = ("rewards", "dones", "terminated", "truncated", "success", "applied")
"""Arrays whose row t belongs to the instant after action t; so do those under `next_obs`."""

_FLAG_SETS = ("streams/device/events", "streams/device/commands")
"""Bit sets of what happened in a row: of several rows all count."""

Rows = NDArray[Any]


def copy_rows(source: h5py.Group, target: h5py.Group, pick: Callable[[str, Rows], Rows]) -> None:
    """Copy every array of an episode through `pick(name, rows)`; what is not one row per action stays as it is."""
    count = int(source.attrs["num_samples"])
    for name in dataset_names(source):
        dataset = source[name]
        if dataset.shape and dataset.shape[0] == count and name != "final_state":
            rows = pick(name, dataset[()])
            options: dict[str, Any] = {}
            if dataset.compression:
                options = {"compression": dataset.compression, "compression_opts": dataset.compression_opts}
            target.create_dataset(name, data=rows, dtype=dataset.dtype, **options)
        elif name != "final_state":
            source.copy(dataset, target, name=name)


def cut(source: h5py.Group, target: h5py.Group, first: int, stop: int) -> None:
    """Write rows `first` to `stop` (exclusive) of an episode; `target` has its attributes already."""
    count = int(source.attrs["num_samples"])
    copy_rows(source, target, lambda name, rows: rows[first:stop])
    _set_final(source, target, stop, count)
    _close(target, stop - first)
    note = {"first_row": first, "stop_row": stop, "of_rows": count}
    _note(target, "trimmed", note)


def thin(source: h5py.Group, target: h5py.Group, every: int, actions: str, note: dict[str, Any]) -> None:
    """Write one row for every `every` rows.

    Args:
        source: The episode.
        target: An empty group with its attributes.
        every: Rows that become one.
        actions: What becomes of their actions: `mean` or `last`; a comma-separated word per component is allowed.
        note: What to store in `meta["resampled"]`.
    """
    count = int(source.attrs["num_samples"])
    kept = count // every
    stop = kept * every

    def pick(name: str, rows: Rows) -> Rows:
        blocks = rows[:stop].reshape(kept, every, *rows.shape[1:])
        if name == "actions":
            return _join_actions(blocks, actions)
        if name in AFTER or name.startswith(f"{NEXT_OBS}/"):
            return blocks[:, -1]
        if rows.dtype == np.bool_:
            return np.asarray(blocks.any(axis=1))
        if name in _FLAG_SETS:
            return np.bitwise_or.reduce(blocks, axis=1)
        return blocks[:, 0]

    copy_rows(source, target, pick)
    _set_final(source, target, stop, count)
    _close(target, kept)
    _note(target, "resampled", note)


def _join_actions(blocks: Rows, how: str) -> Rows:
    words = how.split(",")
    size = blocks.shape[-1]
    words = words * size if len(words) == 1 else words
    joined = blocks[:, -1].copy()
    mean = blocks.mean(axis=1, dtype=np.float64)
    for i, word in enumerate(words):
        if word == "mean":
            joined[..., i] = mean[..., i]
    return joined


def _set_final(source: h5py.Group, target: h5py.Group, stop: int, count: int) -> None:
    if "final_state" not in source:
        return
    target["final_state"] = source["final_state"][()] if stop == count else source["states"][stop]


def _close(target: h5py.Group, count: int) -> None:
    """Mark the last row as the end, and store the number of rows."""
    if "dones" in target and count:
        target["dones"][count - 1] = 1
    target.attrs["num_samples"] = count


def _note(target: h5py.Group, key: str, note: dict[str, Any]) -> None:
    meta = json.loads(target.attrs.get("meta", "{}"))
    meta[key] = note
    target.attrs["meta"] = to_json(meta)
