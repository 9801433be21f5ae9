"""Names and layout of a demonstration file: robomimic's HDF5 layout with our streams beside it.

    /                     attrs: bunraku_format
    /data                 attrs: total, env_args, bunraku_format, info, versions, signature
    /data/demo_<i>        attrs: num_samples, model_file, label, success, seed, meta
        actions, rewards, dones, states, obs/<key>, next_obs/<key>                      robomimic's, T rows
        final_state, applied, terminated, truncated, success, sim_time, wall_time, streams/<name>      ours
    /mask/<label>         names of the demonstrations with that label (robomimic's filter keys)
    /index                one row per demonstration, so that a summary needs no demonstration to be opened

Nothing but `demo_<i>` may stand under `/data`: robomimic takes the number out of every name there.
`datasets/README.md` describes the same for readers who have only h5py.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from bunraku.errors import FileFormatError

FORMAT_VERSION = 1
"""Files with a higher number are refused: their meaning is not known here."""

FORMAT_ATTR = "bunraku_format"
DATA, MASK, INDEX = "data", "mask", "index"
OBS, NEXT_OBS, STREAMS = "obs", "next_obs", "streams"
ENV_TYPE_GYM = 2
"""robomimic's number for environments that are made by id."""

INDEX_DTYPE = np.dtype(
    [
        ("demo", "<i8"),
        ("num_samples", "<i8"),
        ("label", "S16"),
        ("success", "?"),
        ("sim_seconds", "<f8"),
        ("device", "S16"),
        ("operator", "S32"),
    ]
)
"""A row of `/index`: number in `demo_<i>`, T, label, whether the last row is a success, simulated time [s], and
device and operator, cut to fit.
"""

NAME_DTYPE = np.dtype("S16")
"""Of the names in `/mask`; robomimic decodes them as UTF-8."""

COMPRESS_STATES_FROM, COMPRESS_IMAGES_FROM = 1 << 14, 1 << 20
"""Sizes [bytes] from which states, and byte arrays of two axes or more (images), are gzipped, at level 1.

Much of a state is constant: those of a Panda shrink to 0.3 of their size in 2 ms for 250 rows. Other
streams are stored as they are: measured numbers hardly shrink (0.9), and each chunked dataset costs 2 to 4
kB of search tree, more than many of them hold.
"""

CHUNK_BYTES = 1 << 18
"""States are compressed in blocks of about this size, images one by one."""

_DEMO = re.compile(r"demo_(\d+)")


def demo_name(number: int) -> str:
    """Return the group name of a demonstration."""
    return f"demo_{number}"


def demo_number(name: str) -> int | None:
    """Return the number in a group name, None if it is not that of a demonstration."""
    match = _DEMO.fullmatch(name)
    return int(match.group(1)) if match else None


def to_json(value: Any) -> str:
    """Return JSON text; arrays become lists, NumPy scalars numbers, paths text."""
    return json.dumps(value, default=_plain, ensure_ascii=False, sort_keys=True)


def env_args(env_id: str, env_kwargs: Mapping[str, Any]) -> str:
    """Return robomimic's description of an environment, JSON."""
    return to_json({"env_name": env_id, "type": ENV_TYPE_GYM, "env_kwargs": dict(env_kwargs)})


def current_versions() -> dict[str, str]:
    """Return the versions that decide whether a replay is exact."""
    found = {"python": platform.python_version(), "platform": platform.platform()}
    for distribution in ("bunraku", "mujoco", "gymnasium", "numpy", "h5py"):
        found[distribution] = metadata.version(distribution)
    return found


def differences(stored: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Return a phrase for each key whose values differ."""
    return [
        f"{key} is {stored.get(key, 'absent')} there and {given.get(key, 'absent')} here"
        for key in dict.fromkeys([*stored, *given])
        if stored.get(key, None) != given.get(key, None) or (key in stored) != (key in given)
    ]


def newer_version(path: Path, version: int) -> FileFormatError:
    """Return the error for a file of the future."""
    return FileFormatError(
        f"{path} has format version {version}, this bunraku reads up to {FORMAT_VERSION}; update bunraku"
    )


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be stored as JSON: {value!r}")
