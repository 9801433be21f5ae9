"""A demonstration file that is made from others and appears under its name only when it is complete.

    with NewFile("good.hdf5", like=source) as new:
        for name in source.names("success"):
            new.copy(source, name)

Whatever ends the work early, the inputs are untouched and nothing stands under the new name.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np

from bunraku.episode.episode import LABELS
from bunraku.episode.format import DATA, FORMAT_ATTR, MASK, demo_name
from bunraku.episode.lock import lock_exclusively, sync_folder
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.repair import HDF5_ERRORS, mend, set_mask
from bunraku.errors import BunrakuError


class NewFile:
    """A file under construction."""

    path: Path
    """Its name once it is complete."""

    def __init__(
        self,
        path: str | Path,
        like: EpisodeFile,
        *,
        inputs: Iterable[str | Path] = (),
        force: bool = False,
        changed: Mapping[str, str] | None = None,
    ) -> None:
        """Begin.

        Args:
            path: The file to make.
            like: The file whose attributes (environment, versions, shapes) it gets.
            inputs: Files that are read meanwhile; none of them can be the output.
            force: Replace an existing file.
            changed: Attributes of `/data` that differ from those of `like`.

        Raises:
            BunrakuError: The file exists, is one of the inputs, or cannot be written.
        """
        self.path = Path(path)
        refuse_existing(self.path, [like.path, *(Path(p) for p in inputs)], force=force)
        self._unfinished = self.path.with_name(f"{self.path.name}.{os.getpid()}.new")
        self._names: dict[Path, dict[str, str]] = {}
        self._masks: list[tuple[Path, dict[str, list[str]]]] = []
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._h5 = h5py.File(self._unfinished, "w")
            _copy_attrs(like.root, self._h5)
            self._data = self._h5.create_group(DATA)
            _copy_attrs(like.root[DATA], self._data)
            for key, value in (changed or {}).items():
                self._data.attrs[key] = value
            self._data.attrs["total"] = 0
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def __len__(self) -> int:
        """Return the number of episodes copied so far."""
        return len(self._data)

    def copy(self, source: EpisodeFile, name: str) -> h5py.Group:
        """Copy one episode with all that belongs to it, under the next number; return its group."""
        new = self._next(source, name)
        try:
            source.root.copy(source.group(name), self._data, name=new)
        except HDF5_ERRORS as error:
            raise self._failed(error) from error
        return self._data[new]

    def begin(self, source: EpisodeFile, name: str) -> h5py.Group:
        """Return an empty group with the attributes of one episode, for its changed arrays."""
        group = self._data.create_group(self._next(source, name))
        _copy_attrs(source.group(name), group)
        return group

    def add_mask(self, key: str, names: Iterable[str]) -> None:
        """Add a filter list of names in the new file."""
        set_mask(self._h5.require_group(MASK), key, [name.encode() for name in names])

    def new_name(self, source: EpisodeFile, name: str) -> str:
        """Return the name in the new file of an episode that was copied."""
        return self._names[source.path][name]

    def _next(self, source: EpisodeFile, name: str) -> str:
        if source.path not in self._names:
            self._names[source.path] = {}
            self._masks.append((source.path, source.masks))
        new = demo_name(len(self._data))
        self._names[source.path][name] = new
        return new

    def _finish(self) -> None:
        ours = FORMAT_ATTR in self._h5.attrs
        kept: dict[str, list[str]] = {}
        for path, masks in self._masks:
            renamed = self._names[path]
            for key, names in masks.items():
                if not (ours and key in LABELS):  # those are made from the labels
                    kept.setdefault(key, []).extend(renamed[name] for name in names if name in renamed)
        for key, names in kept.items():
            if key not in self._h5.require_group(MASK):
                self.add_mask(key, names)
        mend(self._h5, self.path)
        self._h5.flush()
        self._h5.close()
        with open(self._unfinished, "r+b", buffering=0) as file:
            os.fsync(file.fileno())
        if self.path.exists():
            with open(self.path, "r+b", buffering=0) as replaced:
                lock_exclusively(replaced, self.path)
        os.replace(self._unfinished, self.path)
        sync_folder(self.path.parent)

    def _failed(self, error: BaseException) -> BunrakuError:
        if getattr(error, "errno", None) == errno.ENOSPC or "No space left" in str(error):
            return cannot_write(self.path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return BunrakuError(f"{self.path} was not written: {reason}; the inputs are untouched")

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Complete the file, or leave nothing of it."""
        try:
            if kind is None:
                try:
                    self._finish()
                except HDF5_ERRORS as failure:
                    raise self._failed(failure) from failure
        finally:
            try:
                self._h5.close()
            except HDF5_ERRORS:
                if kind is None:  # else the first error is the one to tell
                    raise
            finally:
                self._unfinished.unlink(missing_ok=True)


def refuse_existing(path: Path, inputs: Iterable[Path], *, force: bool) -> None:
    """Raise BunrakuError where an output would overwrite what must stay."""
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise BunrakuError(f"{path} is read and cannot be the output as well; give another --out")
    if path.is_dir():
        raise BunrakuError(f"{path} is a folder; give --out the name of a file")
    if path.exists() and not force:
        raise BunrakuError(f"{path} exists; give another --out, or --force to replace it")


def cannot_write(path: Path, error: OSError) -> BunrakuError:
    """Return the error for an output that cannot be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return BunrakuError(f"no room left for {path}: make space on its disk; the inputs are untouched")
    return BunrakuError(
        f"cannot write {path}: {error.strerror or error}; give --out a file in a folder that you can write to"
    )


def _copy_attrs(source: Any, target: Any) -> None:
    for key, value in source.attrs.items():
        if isinstance(value, h5py.Empty):
            continue
        target.attrs[key] = value if not isinstance(value, bytes) else np.bytes_(value)
