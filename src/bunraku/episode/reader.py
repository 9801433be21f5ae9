"""Reading demonstration files, one episode at a time: ours, and plain robomimic ones.

with EpisodeFile("reach.hdf5") as file:
    for name in file.names("success"):
        episode = file.load(name)
"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import h5py
import numpy as np
from numpy.typing import NDArray

from bunraku.episode.codec import meta_of, read_episode
from bunraku.episode.episode import Episode
from bunraku.episode.format import (
    DATA,
    FORMAT_ATTR,
    FORMAT_VERSION,
    INDEX,
    INDEX_DTYPE,
    MASK,
    demo_number,
    newer_version,
)
from bunraku.episode.journal import AtomicFile, has_journal, stored_end
from bunraku.episode.lock import FileInUseError
from bunraku.episode.repair import HDF5_ERRORS, index_row
from bunraku.errors import BunrakuError, FileFormatError, UnknownNameError

T = TypeVar("T")


class EpisodeFile:
    """A demonstration file, open for reading."""

    path: Path
    """The file."""
    format_version: int | None
    """Version of our format, None for a plain robomimic file."""

    def __init__(self, path: str | Path) -> None:
        """Open the file and check that it is one.

        Raises:
            FileFormatError: It is not HDF5, cut short, of a newer version, or has no demonstrations group.
            BunrakuError: It is being recorded, or cannot be opened.
        """
        self.path = Path(path)
        self._bytes = _check_bytes(self.path)
        self._h5 = _open(self.path)
        try:
            version = self.guarded(lambda: self._h5.attrs.get(FORMAT_ATTR))
            self.format_version = None if version is None else int(version)
            if self.format_version is not None and self.format_version > FORMAT_VERSION:
                raise newer_version(self.path, self.format_version)
            if not self.guarded(lambda: isinstance(self._h5.get(DATA), h5py.Group)):
                raise FileFormatError(
                    f"{self.path} has no /data group, so it is no demonstration file; give another one"
                )
            self._data: h5py.Group = self._h5[DATA]
        except BaseException:
            self._h5.close()
            raise

    def __len__(self) -> int:
        """Return the number of episodes."""
        return len(self.index)

    def __iter__(self) -> Iterator[Episode]:
        """Yield the episodes, loading each when its turn comes."""
        for name in self.names():
            yield self.load(name)

    @cached_property
    def index(self) -> NDArray[np.void]:
        """Rows of `format.INDEX_DTYPE`, one per episode, by number."""
        if self.format_version is not None and INDEX in self._h5:
            rows = self.guarded(lambda: self._h5[INDEX][()])
            if rows.dtype == INDEX_DTYPE:
                return np.sort(rows, order="demo")
        names = self.guarded(lambda: [name for name in self._data if demo_number(name) is not None])
        listed = self.guarded(lambda: [index_row(name, self._data[name]) for name in names])
        return np.sort(np.array(listed, dtype=INDEX_DTYPE), order="demo")

    @property
    def env_id(self) -> str:
        """Gymnasium id of the environment."""
        return str(self._env_args.get("env_name", ""))

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Arguments of `gymnasium.make` that the environment was recorded with."""
        return dict(self._env_args.get("env_kwargs") or {})

    @property
    def info(self) -> dict[str, Any]:
        """Further facts that all episodes share."""
        return self._json_attr("info")

    @property
    def control_freq(self) -> float:
        """Rows per simulated second [Hz].

        Raises:
            BunrakuError: The file does not say.
        """
        rate = self.info.get("control_freq", self.env_kwargs.get("control_freq"))
        if not isinstance(rate, int | float) or rate <= 0:
            raise BunrakuError(
                f"{self.path} does not say its control rate (control_freq in env_kwargs), which this needs"
            )
        return float(rate)

    @property
    def versions(self) -> dict[str, str]:
        """Library versions when the file was begun."""
        return self._json_attr("versions")

    @property
    def signature(self) -> dict[str, str]:
        """Shape of one row of `actions` and of each observation, such as `48x64x3`; taken from the first episode
        where the file does not say.
        """
        stored = self._json_attr("signature")
        names = self.names()
        if stored or not names:
            return stored
        group = self.group(names[0])
        arrays = {"actions": group.get("actions")} | {
            f"obs/{key}": group["obs"][key] for key in group.get("obs", {})
        }
        return {
            key: "x".join(map(str, array.shape[1:])) or "1"
            for key, array in arrays.items()
            if isinstance(array, h5py.Dataset)
        }

    @property
    def masks(self) -> dict[str, list[str]]:
        """Filter lists by key: names of episodes."""

        def read() -> dict[str, list[str]]:
            group = self._h5.get(MASK, {})
            return {key: [bytes(name).decode() for name in group[key][()]] for key in group}

        return self.guarded(read)

    def names(self, mask: str | None = None) -> list[str]:
        """Return the names of all episodes by number, or of those in one filter list.

        Raises:
            UnknownNameError: There is no such list.
        """
        names = [f"demo_{number}" for number in self.index["demo"]]
        if mask is None:
            return names
        masks = self.masks
        if mask not in masks:
            raise UnknownNameError(f"filter list of {self.path}", mask, masks)
        listed = set(masks[mask])
        return [name for name in names if name in listed]

    def load(self, name: str) -> Episode:
        """Return one episode.

        Raises:
            UnknownNameError: There is no episode of that name.
            FileFormatError: Its arrays are missing, damaged or do not fit each other.
        """
        group = self.group(name)
        return self.guarded(lambda: read_episode(group, str(self.path), self._bytes))

    def meta(self, name: str) -> dict[str, Any]:
        """Return what the episode's `meta` holds, without loading its arrays."""
        group = self.group(name)
        return self.guarded(lambda: meta_of(group, str(self.path)))

    def label(self, name: str) -> str:
        """Return the label of one episode."""
        group = self.group(name)
        return self.guarded(lambda: str(group.attrs.get("label", "unlabelled")))

    @property
    def root(self) -> h5py.File:
        """The HDF5 file, for those who copy from it."""
        return self._h5

    def group(self, name: str) -> h5py.Group:
        """Return the HDF5 group of one episode.

        Raises:
            UnknownNameError: There is no episode of that name.
        """
        group = self.guarded(lambda: self._data.get(name) if demo_number(name) is not None else None)
        if not isinstance(group, h5py.Group):
            raise UnknownNameError(f"episode of {self.path}", name, self.names())
        return group

    def close(self) -> None:
        """Close the file."""
        self._h5.close()

    def __enter__(self) -> Self:
        """Return the file."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the file."""
        self.close()

    @cached_property
    def _env_args(self) -> dict[str, Any]:
        return self._json_attr("env_args")

    def _json_attr(self, name: str) -> dict[str, Any]:
        value = self.guarded(lambda: json.loads(self._data.attrs.get(name, "{}")))
        if not isinstance(value, dict):
            raise FileFormatError(f"{self.path}: attribute {name} of /data is not a JSON object")
        return value

    def guarded(self, read: Callable[[], T]) -> T:
        """Return what `read` returns; what HDF5 raises becomes a FileFormatError that names the file."""
        try:
            return read()
        except BunrakuError:
            raise
        except HDF5_ERRORS as error:
            raise FileFormatError(
                f"{self.path} is damaged ({_first_line(error)}); recording on to it mends what can be mended"
            ) from error


def _check_bytes(path: Path) -> int:
    """Return the file's size once its first and last bytes look right; finish a commit that was cut off."""
    try:
        with open(path, "rb") as file:
            if has_journal(file):
                AtomicFile(path).close()
            stored_end(file, path)
        return path.stat().st_size
    except OSError as error:
        raise _cannot_read(path, error) from error


def _open(path: Path) -> h5py.File:
    try:
        return h5py.File(path, "r")
    except BlockingIOError as error:
        raise FileInUseError(path) from error
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EPERM):
            raise _cannot_read(path, error) from error
        raise FileFormatError(f"{path} is damaged ({_first_line(error)}); take it from a copy") from error


def _cannot_read(path: Path, error: OSError) -> BunrakuError:
    return BunrakuError(f"cannot read {path}: {error.strerror or error}; check its name and permissions")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
