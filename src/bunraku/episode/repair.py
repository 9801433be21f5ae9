"""Make a demonstration file whole again: after a kill, a crash of the machine, or another program's edits.

`recover` finishes or drops what was being written (see `journal.py`), removes half-written demonstrations,
and rebuilds what is derived from the others: the total, the filter lists and the index. Whole
demonstrations are not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from bunraku.episode.codec import meta_of
from bunraku.episode.episode import LABELS
from bunraku.episode.format import (
    DATA,
    FORMAT_ATTR,
    INDEX,
    INDEX_DTYPE,
    MASK,
    NAME_DTYPE,
    demo_name,
    demo_number,
)
from bunraku.episode.interrupts import deferred_interrupts
from bunraku.episode.journal import AtomicFile
from bunraku.errors import BunrakuError, FileFormatError

STRAY = "not_demonstrations"
"""Root group that takes what stands under `/data` and is no demonstration, which would break robomimic's
reader.
"""

HDF5_ERRORS = (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError, MemoryError)
"""What h5py raises, with little system, when a file's content is damaged."""


@dataclass(frozen=True, slots=True)
class RecoveryReport:
    """What `recover` found and did."""

    path: str
    """The file."""
    episodes: int
    """Whole demonstrations in it."""
    steps: int
    """Their rows."""
    dropped_bytes: int = 0
    """Size of the unfinished recording that was cut off."""
    removed: tuple[str, ...] = ()
    """Half-written demonstrations that were removed."""
    completed: tuple[str, ...] = ()
    """Demonstrations that were whole but for `num_samples`."""
    moved: tuple[str, ...] = ()
    """What stood under `/data` and is no demonstration; it is under `/not_demonstrations` now."""
    rebuilt: tuple[str, ...] = ()
    """Derived parts that did not agree with the demonstrations."""

    @property
    def changed(self) -> bool:
        """Whether anything had to be mended."""
        return bool(self.dropped_bytes or self.removed or self.completed or self.moved or self.rebuilt)

    @property
    def sentence(self) -> str:
        """The report for the user."""
        done = []
        if self.dropped_bytes or self.removed:
            count = max(len(self.removed), 1)
            done.append(f"{count} unfinished episode{'s' * (count > 1)} removed")
        if self.completed:
            done.append(f"row count restored of {', '.join(self.completed)}")
        if self.moved:
            done.append(f"{', '.join(self.moved)} moved from /data to /{STRAY}")
        if self.rebuilt:
            done.append(f"{', '.join(self.rebuilt)} rebuilt")
        kept = f"{self.episodes} episode{'s' * (self.episodes != 1)} ({self.steps} steps)"
        if not done:
            return f"{self.path} is whole: {kept}"
        return f"{self.path} was mended: {kept} are intact; {'; '.join(done)}"


def recover(path: str | Path) -> RecoveryReport:
    """Mend a demonstration file in place; a whole file stays as it is.

    Raises:
        FileFormatError: It is not a demonstration file, or cut short in a way that nothing can be read.
        BunrakuError: It is in use, or cannot be written.
    """
    path = Path(path)
    with deferred_interrupts():
        try:
            file = AtomicFile(path)
        except OSError as error:
            reason = error.strerror or error
            raise BunrakuError(f"cannot mend {path}: {reason}; check its name and permissions") from error
        with file:
            return _recover(file, path)


def _recover(file: AtomicFile, path: Path) -> RecoveryReport:
    try:
        with h5py.File(file, "r+") as h5:
            report = mend(h5, path, file.dropped_bytes)
            h5.flush()
            file.commit()
            file.discard()
    except HDF5_ERRORS as error:
        file.discard()
        if file.error is not None:
            reason = file.error.strerror
            raise BunrakuError(f"cannot mend {path}: {reason}; make space or copy it elsewhere") from error
        reason = str(error).splitlines()[0]
        raise FileFormatError(
            f"{path} is damaged and cannot be mended ({reason}); take it from a copy"
        ) from error
    return report


def mend(h5: h5py.File, path: Path, dropped_bytes: int = 0) -> RecoveryReport:
    """Do the work of `recover` on an open file; the caller flushes."""
    if not isinstance(h5.get(DATA), h5py.Group):
        raise FileFormatError(f"{path} has no /data group, so it is no demonstration file; give another one")
    data = h5[DATA]
    removed, completed, moved = [], [], []
    for name in list(data):
        if demo_number(name) is None:
            h5.require_group(STRAY)
            h5.move(f"{DATA}/{name}", f"{STRAY}/{name}")
            moved.append(name)
        elif not _is_whole(data, name):
            if _complete(data, name):
                completed.append(name)
            else:
                del data[name]
                removed.append(name)
    rows = _index_rows(data)
    rebuilt = [part for part, done in (("total", _mend_total(data, rows)), *_mend_masks(h5, rows)) if done]
    if FORMAT_ATTR in h5.attrs and _mend_index(h5, rows):
        rebuilt.append(INDEX)
    return RecoveryReport(
        path=str(path),
        episodes=len(rows),
        steps=int(rows["num_samples"].sum()),
        dropped_bytes=dropped_bytes,
        removed=tuple(removed),
        completed=tuple(completed),
        moved=tuple(moved),
        rebuilt=tuple(rebuilt),
    )


def index_row(name: str, group: h5py.Group) -> tuple[Any, ...]:
    """Return the row of `/index` for a demonstration."""
    rows = int(group.attrs["num_samples"])
    success = bool(group["success"][-1]) if "success" in group else False
    times = group.get("sim_time", None)
    seconds = float(times[-1] - times[0]) * rows / max(rows - 1, 1) if times is not None else np.nan
    label = str(group.attrs.get("label", "unlabelled"))
    meta = meta_of(group, group.file.filename)
    device, operator = (
        _cut(str(meta.get(key) or ""), INDEX_DTYPE[key].itemsize) for key in ("device", "operator")
    )
    return demo_number(name), rows, label.encode(), success, seconds, device, operator


def _cut(text: str, size: int) -> bytes:
    """Return UTF-8 bytes, at most `size`, whole characters."""
    return text.encode()[:size].decode(errors="ignore").encode()


def _is_whole(data: h5py.Group, name: str) -> bool:
    try:
        group = data[name]
        return len(group["actions"]) == int(group.attrs["num_samples"]) > 0
    except HDF5_ERRORS:
        return False


def _complete(data: h5py.Group, name: str) -> bool:
    """Set `num_samples` where all of the arrays are there with one length."""
    try:
        group = data[name]
        needed = {"actions", "states", "rewards", "dones", "obs"}
        if "num_samples" in group.attrs or not needed <= set(group):
            return False
        lengths = {len(group[key]) for key in ("actions", "states", "rewards", "dones")}
        lengths |= {len(array) for array in group["obs"].values()}
    except HDF5_ERRORS:
        return False
    if len(lengths) != 1 or lengths == {0}:
        return False
    group.attrs["num_samples"] = lengths.pop()
    return True


def _index_rows(data: h5py.Group) -> np.ndarray:
    rows = [index_row(name, data[name]) for name in data]
    return np.sort(np.array(rows, dtype=INDEX_DTYPE), order="demo")


def _mend_total(data: h5py.Group, rows: np.ndarray) -> bool:
    total = int(rows["num_samples"].sum())
    if "total" in data.attrs and int(data.attrs["total"]) == total:
        return False
    data.attrs["total"] = total
    return True


def _mend_masks(h5: h5py.File, rows: np.ndarray) -> list[tuple[str, bool]]:
    """Rebuild the lists by label, and take out of the others the names that are gone."""
    mask = h5.require_group(MASK)
    names = {demo_name(row["demo"]).encode() for row in rows}
    wanted: dict[str, list[bytes]] = {}
    if FORMAT_ATTR in h5.attrs:
        for label in LABELS:
            listed = [demo_name(row["demo"]).encode() for row in rows if row["label"] == label.encode()]
            if listed or label in mask or label in ("success", "failure"):
                wanted[label] = listed
    for key in mask:
        wanted.setdefault(key, [name for name in mask[key][()] if name in names])
    return [(f"{MASK}/{key}", set_mask(mask, key, listed)) for key, listed in wanted.items()]


def set_mask(mask: h5py.Group, key: str, names: list[bytes]) -> bool:
    """Store a filter list; return whether that changed it."""
    if key in mask:
        if sorted(mask[key][()].tolist()) == sorted(names):
            return False
        del mask[key]
    mask.create_dataset(key, data=np.array(names, dtype=NAME_DTYPE), maxshape=(None,), chunks=(256,))
    return True


def _mend_index(h5: h5py.File, rows: np.ndarray) -> bool:
    if INDEX in h5:
        stored = h5[INDEX][()]
        if stored.dtype == INDEX_DTYPE and np.array_equal(np.sort(stored, order="demo"), rows):
            return False
        del h5[INDEX]
    create_index(h5, rows)
    return True


def create_index(h5: h5py.File, rows: np.ndarray) -> None:
    """Store `/index`, extensible."""
    h5.create_dataset(INDEX, data=np.asarray(rows, dtype=INDEX_DTYPE), maxshape=(None,), chunks=(256,))
