"""What a file holds, read once, so that every source can look at it and say whether it is its own."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, FileFormatError
from bunraku.retarget.reading.unpickle import read_npy, unpickle

GENERATOR = "generator:"
"""How a name begins that asks for generated motion instead of a file."""
UNNAMED = ""
"""Name of the array of a `.npy` file."""
LARGEST = 4 << 30
"""Files above this are not read as one clip [bytes]."""

Up = Literal["auto", "x", "y", "z", "-x", "-y", "-z"]
Units = Literal["auto", "m", "cm", "mm", "inch"]
Heading = Literal["first", "file"]


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How to read a motion where its file does not say."""

    up: Up = "auto"
    """Axis that points up in the file; `auto` looks at the person."""
    fps: float | None = None
    """Frames per second, instead of what the file or the format says."""
    units: Units = "auto"
    """Unit of length in the file; `auto` looks at the length of the legs."""
    heading: Heading = "first"
    """`first`: turn the motion so that the person faces x in the first frame. `file`: only change the axes."""
    body_model: Path | None = None
    """Licensed SMPL body model (`.npz` or `.pkl`), for SMPL parameters."""


@dataclass(frozen=True)
class Content:
    """A file's content."""

    name: str
    """Path as given, or `generator:...`."""
    text: str = ""
    """Its text, if it is text."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Its arrays and other values by name, if it holds such; `UNNAMED` for a single array."""

    @property
    def short_name(self) -> str:
        """File name without its folder."""
        return self.name if self.name.startswith(GENERATOR) else Path(self.name).name

    def array(self, *names: str) -> NDArray[Any] | None:
        """Return the first of the named values that is a numeric array, or None."""
        for name in names:
            value = self.values.get(name)
            if isinstance(value, np.ndarray) and value.dtype.kind in "fiu":
                return value
        return None

    def number(self, *names: str) -> float | None:
        """Return the first of the named values that is one number, or None."""
        for name in names:
            if name in self.values:
                value = np.asarray(self.values[name])
                if value.size == 1 and value.dtype.kind in "fiu":
                    return float(value.reshape(()))
        return None

    def word(self, *names: str) -> str:
        """Return the first of the named values that is text, or an empty one."""
        for name in names:
            if name in self.values:
                value = np.asarray(self.values[name])
                if value.size == 1 and value.dtype.kind in "US":
                    return str(value.reshape(()).astype(str))
        return ""

    def frame_rate(self) -> float | None:
        """Return the frames per second that the file states, or None."""
        fps = self.number(
            "fps", "mocap_framerate", "mocap_frame_rate", "framerate", "frame_rate", "frequency"
        )
        if fps is None:
            step = self.number("dt", "frame_time")
            fps = 1.0 / step if step else None
        if fps is not None and not (np.isfinite(fps) and fps > 0.0):
            raise FileFormatError(
                f"{self.name} states {fps} frames per second; give the right rate with --fps"
            )
        return fps


def open_content(path: str | Path) -> Content:
    """Read a file, whatever its name ends in, executing nothing of it.

    Raises:
        BunrakuError: If it cannot be read.
        FileFormatError: If it is damaged.
    """
    name = str(path)
    if name.startswith(GENERATOR):
        return Content(name)
    file = Path(path)
    try:
        if file.is_dir():
            raise BunrakuError(f"{name} is a folder; give one file, or the folder to `bunraku retarget`")
        if file.stat().st_size > LARGEST:
            raise BunrakuError(
                f"{name} has {file.stat().st_size >> 20} MiB, too much for one motion; split it"
            )
        data = file.read_bytes()
    except FileNotFoundError as error:
        raise BunrakuError(f"{name} does not exist") from error
    except OSError as error:
        raise BunrakuError(f"cannot read {name}: {error.strerror or error}") from error
    if not data:
        raise FileFormatError(f"{name} is empty")
    if data[:2] == b"PK":
        return Content(name, values=_read_zip(data, name))
    if data[:6] == b"\x93NUMPY":
        value = read_npy(io.BytesIO(data), name)
        return Content(name, values=value if isinstance(value, dict) else {UNNAMED: value})
    if data[:1] == b"\x80":
        value = unpickle(data, name=name)
        return Content(name, values=value if isinstance(value, dict) else {UNNAMED: value})
    if b"\0" in data[:4096]:
        raise FileFormatError(f"{name} is a binary file of a kind that is not known; {KNOWN_FORMATS}")
    return Content(name, text=data.decode("utf-8", errors="replace"))


def may_hold_several(path: str) -> bool:
    """Say whether a file may hold several clips, by the shapes of its arrays alone, so that folders are quick to list.

    What is damaged is found out when it is read.
    """
    if path.startswith(GENERATOR):
        return False
    try:
        with open(path, "rb") as file:
            start = file.read(6)
            file.seek(0)
            if start[:1] == b"\x80":
                return True
            if start == b"\x93NUMPY":
                return _is_batch(file)
            if start[:2] != b"PK":
                return False
            with zipfile.ZipFile(file) as archive:
                for entry in archive.namelist():
                    if entry.endswith(".npy"):
                        with archive.open(entry) as stream:
                            if _is_batch(stream):
                                return True
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError):
        return False
    return False


def _is_batch(stream: IO[bytes]) -> bool:
    """Say whether the array that begins here has four axes, or holds objects, which may be anything."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return len(shape) == 4 or (dtype.hasobject and shape == ())


KNOWN_FORMATS = (
    "known are joint arrays and model output (.npy, .npz), SMPL parameters (.npz, .pkl, .pt), BVH, and motion files"
    " of bunraku"
)


def _read_zip(data: bytes, name: str) -> dict[str, Any]:
    """Return the values of an `.npz`, or of what torch saved."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.namelist()
            pickled = next((entry for entry in entries if entry.endswith("data.pkl")), None)
            if pickled is not None:
                value = unpickle(archive.read(pickled), archive, name)
                return value if isinstance(value, dict) else {UNNAMED: value}
            arrays = [entry for entry in entries if entry.endswith(".npy")]
            if not arrays:
                raise FileFormatError(f"{name} is a zip file without arrays; {KNOWN_FORMATS}")
            return {
                e.removesuffix(".npy"): read_npy(io.BytesIO(archive.read(e)), f"{name}: {e}") for e in arrays
            }
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise FileFormatError(f"{name} is truncated or damaged: {error}") from error
