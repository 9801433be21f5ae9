"""Is a demonstration file sound? Says what is wrong, where, and how to mend it.

Arrays are read one at a time, so memory is bounded by the largest of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np

from bunraku.dataset.newfile import NewFile
from bunraku.episode.codec import dataset_names
from bunraku.episode.episode import LABELS
from bunraku.episode.format import DATA, INDEX, INDEX_DTYPE, NEXT_OBS, OBS, demo_number
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.repair import HDF5_ERRORS, index_row
from bunraku.errors import BunrakuError

MEND = "bunraku dataset validate FILE --repair --out NEW mends it"
DROP = "bunraku dataset validate FILE --repair --out NEW leaves the episode out"

_NEEDED = ("actions", "rewards", "dones", "states", "obs")
_MAX_RATIO = 1100
"""gzip shrinks by about 1,030 at most: an array that claims more is not read."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, or worth knowing."""

    severity: Literal["error", "warning"]
    """An error keeps readers from working, or is false; a warning may be meant."""
    where: str
    """Path in the file."""
    what: str
    """What is wrong."""
    remedy: str
    """How to mend it."""

    @property
    def line(self) -> str:
        """The finding for the user."""
        return f"{self.severity}: {self.where}: {self.what}; {self.remedy}"


def validate(path: str | Path, told: Callable[[], None] = lambda: None) -> list[Finding]:
    """Return what is wrong with a file, file-wide findings first.

    Args:
        path: The file.
        told: Called after each episode.

    Raises:
        FileFormatError: Nothing of it can be read.
    """
    with EpisodeFile(path) as file:
        found = file.guarded(lambda: list(_file_findings(file)))
        seeds: dict[str, str] = {}
        bytes_there = Path(path).stat().st_size
        for name in file.guarded(lambda: _groups(file.root)):
            found += _guarded(file.root, name, partial(_episode_findings, file, name, bytes_there))
            found += _guarded(file.root, name, partial(_seed_findings, name, seeds))
            told()
    return found


def repair(
    path: str | Path, out: str | Path, *, force: bool = False, told: Callable[[], None] = lambda: None
) -> tuple[int, list[str]]:
    """Write a copy with the episodes that have no error, and all that is derived from them made anew.

    Returns:
        Number of episodes kept, and names of those left out.
    """
    bad = {
        f.where.split("/")[2]
        for f in validate(path)
        if f.severity == "error" and f.where.startswith(f"/{DATA}/demo_")
    }
    with EpisodeFile(path) as file, NewFile(out, file, force=force) as new:
        for name in file.guarded(lambda: _groups(file.root)):
            if name not in bad:
                new.copy(file, name)
            told()
        return len(new), sorted(bad)


def _groups(root: h5py.File) -> list[str]:
    names = [name for name in root[DATA] if demo_number(name) is not None]
    return sorted(names, key=lambda name: demo_number(name) or 0)


def _guarded(root: h5py.File, name: str, check: Callable[[h5py.Group], Iterator[Finding]]) -> list[Finding]:
    try:
        return list(check(root[DATA][name]))
    except (*HDF5_ERRORS, BunrakuError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        return [Finding("error", f"/{DATA}/{name}", f"cannot be read ({reason})", DROP)]


def _file_findings(file: EpisodeFile) -> Iterator[Finding]:
    data = file.root[DATA]
    if file.format_version is None:
        yield Finding(
            "warning", "/", "is a plain robomimic file, without bunraku_format", "nothing needs to be done"
        )
    for name in data:
        if demo_number(name) is None:
            yield Finding(
                "error",
                f"/{DATA}/{name}",
                "is no demonstration, and robomimic cannot load the file with it",
                MEND,
            )
    names = _groups(file.root)
    if not names:
        yield Finding("warning", f"/{DATA}", "holds no episode", "record some with collect")
    try:
        args = json.loads(data.attrs.get("env_args", ""))
        if not isinstance(args, dict) or not args.get("env_name"):
            raise ValueError
    except (ValueError, TypeError):
        yield Finding(
            "error",
            f"/{DATA}",
            "attribute env_args names no environment",
            "take it from a copy, or record anew",
        )
    rows = []
    for name in names:
        try:
            rows.append(index_row(name, data[name]))
        except (*HDF5_ERRORS, BunrakuError):
            continue  # told where the episode is looked at
    expected = np.sort(np.array(rows, dtype=INDEX_DTYPE), order="demo")
    total = int(expected["num_samples"].sum())
    if int(data.attrs.get("total", -1)) != total:
        yield Finding(
            "error",
            f"/{DATA}",
            f"attribute total is {data.attrs.get('total', 'absent')}, the episodes have {total} rows",
            MEND,
        )
    if file.format_version is not None:
        stored = file.root[INDEX][()] if INDEX in file.root else None
        if stored is not None and stored.dtype != INDEX_DTYPE:
            yield Finding(
                "warning", f"/{INDEX}", "has the columns of an earlier version, so summaries are slow", MEND
            )
        elif stored is None or not np.array_equal(np.sort(stored, order="demo"), expected):
            yield Finding("error", f"/{INDEX}", "does not agree with the episodes", MEND)
    for key, listed in file.masks.items():
        gone = sorted(set(listed) - set(names))
        if gone:
            yield Finding(
                "error", f"/mask/{key}", f"lists {', '.join(gone[:3])}, which is not in the file", MEND
            )


def _episode_findings(file: EpisodeFile, name: str, bytes_there: int, group: h5py.Group) -> Iterator[Finding]:
    where = f"/{DATA}/{name}"
    missing = [key for key in _NEEDED if key not in group]
    if "num_samples" not in group.attrs:
        yield Finding("error", where, "has no attribute num_samples", DROP)
        return
    if missing:
        yield Finding("error", where, f"has no {', '.join(missing)}", DROP)
    count = int(group.attrs["num_samples"])
    if count < 1:
        yield Finding("error", where, f"has num_samples {count}", DROP)
        return
    if count == 1:
        yield Finding("warning", where, "has a single row", f"bunraku dataset delete FILE {name} --out NEW")
    for key in dataset_names(group):
        yield from _array_findings(group[key], f"{where}/{key}", key, count, bytes_there)
    yield from _meaning_findings(file, where, group)


def _array_findings(
    array: h5py.Dataset, where: str, key: str, count: int, bytes_there: int
) -> Iterator[Finding]:
    if array.nbytes > max(1 << 26, _MAX_RATIO * bytes_there):
        yield Finding("error", where, f"claims {array.nbytes} bytes in a file of {bytes_there}", DROP)
        return
    if key != "final_state" and (not array.shape or array.shape[0] != count):
        yield Finding("error", where, f"has shape {array.shape} where num_samples is {count}", DROP)
        return
    if array.dtype.kind not in "biufSO":
        yield Finding("error", where, f"holds {array.dtype}; numbers, flags or text belong there", DROP)
    if array.dtype.kind == "f" and not key.startswith("streams/") and key != "wall_time":
        finite = np.isfinite(array[()])
        if not finite.all():
            row = int(np.argwhere(~finite)[0][0]) if finite.ndim else 0
            yield Finding("error", where, f"is not finite in row {row}", DROP)


def _meaning_findings(file: EpisodeFile, where: str, group: h5py.Group) -> Iterator[Finding]:
    actions = group.get("actions")
    if isinstance(actions, h5py.Dataset) and actions.dtype.kind == "f" and actions.size:
        largest = float(np.abs(actions[()]).max())
        if largest > 1.0 + 1e-6:
            yield Finding("error", f"{where}/actions", f"reach {largest:g}, outside [-1, 1]", DROP)
        got = "x".join(map(str, actions.shape[1:])) or "1"
        expected = file.signature.get("actions", got)
        if got != expected:
            yield Finding("error", f"{where}/actions", f"has rows of {got}, the file says {expected}", DROP)
    for key in group.get(OBS, {}):
        if NEXT_OBS in group and key not in group[NEXT_OBS]:
            yield Finding("error", f"{where}/{NEXT_OBS}", f"lacks {key}", DROP)
    if file.format_version is None:
        return
    label = str(group.attrs.get("label", "absent"))
    if label not in LABELS:
        yield Finding(
            "error",
            where,
            f"has label {label!r}; one of {', '.join(LABELS)} is meant",
            "bunraku dataset relabel",
        )
    elif bool(group.attrs.get("success", label == "success")) != (label == "success"):
        yield Finding(
            "error",
            where,
            f"has label {label!r} and success {group.attrs['success']}",
            "bunraku dataset relabel",
        )
    if "final_state" not in group or group["final_state"].shape != group["states"].shape[1:]:
        yield Finding("error", f"{where}/final_state", "is missing, or of another size than the states", DROP)
    if "sim_time" in group and (np.diff(group["sim_time"][()]) <= 0.0).any():
        yield Finding("error", f"{where}/sim_time", "does not increase", DROP)
    if not str(group.attrs.get("model_file", "")).lstrip().startswith("<"):
        yield Finding(
            "warning",
            where,
            "has no model (attribute model_file)",
            "rendering and replaying make the environment anew",
        )


def _seed_findings(name: str, seen: dict[str, str], group: h5py.Group) -> Iterator[Finding]:
    meta: dict[str, Any] = json.loads(group.attrs.get("meta", "{}"))
    seed = group.attrs.get("seed", meta.get("seed"))
    if seed is None:
        return
    start = json.dumps([int(seed), meta.get("reset_options")], sort_keys=True)
    if start in seen:
        yield Finding(
            "warning",
            f"/{DATA}/{name}",
            f"starts as {seen[start]} does (seed {int(seed)})",
            "record with another --seed, or delete one if it is a copy",
        )
    seen.setdefault(start, name)
