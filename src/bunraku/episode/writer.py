"""Recording to a demonstration file: an episode is on disk for good before it is announced.

with EpisodeWriter("reach.hdf5", "bunraku/PandaReach-v0", {"control_freq": 50}) as writer:
    name = writer.append(episode)       # flushed, synchronised, complete: kill it now and nothing is lost
    writer.discard_last()               # redo
"""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np

from bunraku.episode.codec import check_episode, write_episode
from bunraku.episode.episode import Episode
from bunraku.episode.format import (
    DATA,
    FORMAT_ATTR,
    FORMAT_VERSION,
    INDEX,
    INDEX_DTYPE,
    MASK,
    current_versions,
    demo_name,
    differences,
    env_args,
    newer_version,
    to_json,
)
from bunraku.episode.interrupts import deferred_interrupts
from bunraku.episode.journal import AtomicFile
from bunraku.episode.lock import lock_exclusively, sync_folder
from bunraku.episode.repair import (
    HDF5_ERRORS,
    RecoveryReport,
    create_index,
    index_row,
    mend,
    set_mask,
)
from bunraku.errors import BunrakuError, FileFormatError


class EpisodeWriter:
    """Appends episodes of one environment to one file, new or begun earlier."""

    path: Path
    """The file."""
    recovered: RecoveryReport | None
    """What had to be mended in a file that was begun earlier; None if it is new or was whole."""

    def __init__(
        self,
        path: str | Path,
        env_id: str,
        env_kwargs: Mapping[str, Any] | None = None,
        *,
        info: Mapping[str, Any] | None = None,
        force: bool = False,
        resume: bool = True,
    ) -> None:
        """Create the file, or open it to go on.

        Args:
            path: The file; its folder is made if need be.
            env_id: Gymnasium id.
            env_kwargs: Arguments of `gymnasium.make`, what JSON can hold.
            info: Further facts that all episodes of a file share (`control_freq`, `cameras`), what JSON can
                hold.
            force: Replace an existing file.
            resume: Go on with an existing file; if False, refuse it.

        Raises:
            FileFormatError: The existing file is not one of ours, damaged, or of a newer version.
            BunrakuError: It holds another environment, is in use, or cannot be written.
        """
        self.path, self.recovered = Path(path), None
        self._wanted = {
            "env_args": json.loads(env_args(env_id, env_kwargs or {})),
            "info": json.loads(to_json(dict(info or {}))),
        }
        exists = self.path.exists()
        if exists and not (resume or force):
            raise BunrakuError(f"{self.path} exists; give another name, or --force to replace it")
        try:
            if not exists or force:
                _create(self.path, self._wanted)
            with deferred_interrupts():
                self._open()
        except OSError as error:
            raise _cannot_write(self.path, error) from error
        try:
            self._check_same()
            self._mend()
        except BaseException:
            self.close()
            raise

    def __len__(self) -> int:
        """Return the number of episodes in the file."""
        return len(self._h5[INDEX])

    @property
    def steps(self) -> int:
        """Rows of all episodes in the file."""
        return int(self._h5[DATA].attrs["total"])

    @property
    def last_seed(self) -> int | None:
        """Seed of the newest episode in the file, or None if there is none."""
        if not len(self):
            return None
        name = demo_name(int(self._h5[INDEX]["demo"][-1]))
        seed = self._h5[DATA][name].attrs.get("seed")
        return None if seed is None else int(seed)

    def append(self, episode: Episode) -> str:
        """Save an episode; when this returns it is on disk, whatever happens next.

        Returns:
            Its name in the file.

        Raises:
            BunrakuError: It does not fit the file, or there is no room; earlier episodes are intact, and
                the writer can be used again.
        """
        check_episode(episode)
        self._check_signature(episode)
        index = self._h5[INDEX]
        name = demo_name(int(index[-1]["demo"]) + 1 if len(index) else 0)
        self._change(lambda: self._append(name, episode), f"{name} was not saved")
        return name

    def discard_last(self) -> str:
        """Take the newest episode out again, for a redo; return its name."""
        if not len(self):
            raise BunrakuError(f"{self.path} holds no episode that could be discarded")
        name = demo_name(int(self._h5[INDEX][-1]["demo"]))
        self._change(lambda: self._remove_last(name), f"{name} was not discarded")
        return name

    def close(self) -> None:
        """Close the file; everything announced is in it already."""
        with deferred_interrupts():
            self._file.discard()
            self._h5.close()
            self._file.close()

    def __enter__(self) -> Self:
        """Return the writer."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    def _open(self) -> None:
        self._file = AtomicFile(self.path)
        try:
            self._h5 = h5py.File(self._file, "r+")
        except HDF5_ERRORS as error:
            self._file.close()
            raise FileFormatError(f"{self.path} is damaged ({error}); take it from a copy") from error

    def _change(self, change: Callable[[], object], failed: str) -> None:
        """Do all of a change or nothing of it."""
        with deferred_interrupts():
            try:
                change()
                self._h5.flush()
                self._file.commit()
            except BaseException as error:
                # HDF5 fails in its own words after a write that failed.
                cause = self._file.error or error
                # The same way as after a kill: forget, and open what is on disk.
                self.close()
                self._open()
                if isinstance(cause, OSError):
                    failed = f"{failed}, the {len(self)} before it are intact"
                    raise _cannot_write(self.path, cause, failed) from error
                raise

    def _append(self, name: str, episode: Episode) -> None:
        data, index = self._h5[DATA], self._h5[INDEX]
        group = data.create_group(name)
        write_episode(group, episode)
        group.attrs["num_samples"] = len(episode)
        data.attrs["total"] = self.steps + len(episode)
        index.resize(len(index) + 1, axis=0)
        index[-1] = np.array(index_row(name, group), dtype=INDEX_DTYPE)
        mask = self._h5[MASK]
        if episode.label not in mask:
            set_mask(mask, episode.label, [])
        listed = mask[episode.label]
        listed.resize(len(listed) + 1, axis=0)
        listed[-1] = name.encode()

    def _remove_last(self, name: str) -> None:
        data, index, mask = self._h5[DATA], self._h5[INDEX], self._h5[MASK]
        data.attrs["total"] = self.steps - int(data[name].attrs["num_samples"])
        del data[name]
        index.resize(len(index) - 1, axis=0)
        for key in list(mask):
            set_mask(mask, key, [listed for listed in mask[key][()] if listed != name.encode()])
        if not len(index) and "signature" in data.attrs:
            del data.attrs["signature"]

    def _mend(self) -> None:
        """Mend an existing file where a glance shows that it needs it."""
        dropped, data = self._file.dropped_bytes, self._h5[DATA]
        try:
            names = {demo_name(int(number)) for number in self._h5[INDEX]["demo"]}
            whole = (
                self._h5[INDEX].dtype == INDEX_DTYPE  # else an earlier version's, with fewer columns
                and set(data) == names
                and int(self._h5[INDEX]["num_samples"].sum()) == self.steps
            )
        except HDF5_ERRORS:
            whole = False
        if whole:
            if dropped:
                self.recovered = RecoveryReport(str(self.path), len(self), self.steps, dropped)
            return
        report: list[RecoveryReport] = []
        self._change(lambda: report.append(mend(self._h5, self.path, dropped)), "the file was not mended")
        self.recovered = report[0]

    def _check_same(self) -> None:
        """Refuse a file of another format, environment or rate."""
        if FORMAT_ATTR not in self._h5.attrs or DATA not in self._h5:
            raise FileFormatError(
                f"{self.path} was not recorded by bunraku, so nothing is added to it; give another name"
            )
        version = int(self._h5.attrs[FORMAT_ATTR])
        if version > FORMAT_VERSION:
            raise newer_version(self.path, version)
        attrs = self._h5[DATA].attrs
        stored = {key: json.loads(attrs.get(key, "{}")) for key in self._wanted}
        found = differences(_flat(stored), _flat(self._wanted))
        if found:
            raise BunrakuError(
                f"{self.path} holds other episodes than these: {'; '.join(found)}; give another file, or "
                "--force to replace it"
            )

    def _check_signature(self, episode: Episode) -> None:
        """Refuse an episode whose actions or observations differ in shape from those of the file."""
        new = {"actions": _shape(episode.actions)}
        new |= {f"obs/{key}": _shape(array) for key, array in episode.observations.items()}
        attrs = self._h5[DATA].attrs
        if "signature" not in attrs or not len(self):
            attrs["signature"] = to_json(new)
            return
        found = differences(json.loads(attrs["signature"]), new)
        if found:
            raise BunrakuError(
                f"the episode does not fit those in {self.path}: {'; '.join(found)}; give another file"
            )


def _create(path: Path, described: Mapping[str, Any]) -> None:
    """Write a file without episodes, all at once."""
    image = io.BytesIO()
    with h5py.File(image, "w") as h5:
        h5.attrs[FORMAT_ATTR] = FORMAT_VERSION
        data = h5.create_group(DATA)
        data.attrs["total"] = 0
        data.attrs[FORMAT_ATTR] = FORMAT_VERSION
        data.attrs["versions"] = to_json(current_versions())
        for key, value in described.items():
            data.attrs[key] = to_json(value)
        mask = h5.create_group(MASK)
        for label in ("success", "failure"):
            set_mask(mask, label, [])
        create_index(h5, np.empty(0, dtype=INDEX_DTYPE))
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        with open(path, "r+b", buffering=0) as replaced:
            lock_exclusively(replaced, path)
    unfinished = path.with_name(path.name + ".new")
    try:
        with open(unfinished, "wb") as file:
            file.write(image.getvalue())
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    sync_folder(path.parent)


def _flat(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return one level of keys, in the user's words."""
    flat: dict[str, Any] = {"environment": described["env_args"].get("env_name")}
    flat |= described["env_args"].get("env_kwargs", {})
    return flat | {key: value for key, value in described["info"].items() if key not in flat}


def _shape(array: Any) -> str:
    return "x".join(str(size) for size in np.shape(array)[1:]) or "1"


def _cannot_write(path: Path, error: OSError, what: str = "") -> BunrakuError:
    what = f"{what}: " if what else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return BunrakuError(f"no room left for {path}: {what}make space on its disk and save again")
    reason = error.strerror or str(error)
    return BunrakuError(
        f"cannot record to {path}: {what}{reason}; give a file in a folder that you can write to"
    )
