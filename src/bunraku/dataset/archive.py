"""Folders and archives from elsewhere: nothing in them may point outside.

An archive is checked name by name before anything of it is unpacked; a path that a file of the dataset names is
only followed to what lies below the dataset's own folder.
"""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

import h5py

from bunraku.errors import BunrakuError, FileFormatError

MAX_RATIO = 1100
"""Unpacked bytes per byte of an archive; deflate shrinks by about 1,030 at most."""


@contextmanager
def opened_folder(path: Path) -> Iterator[Path]:
    """Yield the folder of a dataset: the path itself, or the content of an archive, unpacked for the while.

    Raises:
        FileFormatError: It is neither, or the archive holds links, or names that lead out of it.
    """
    if path.is_dir() or path.suffix.lower() in (".hdf5", ".h5"):
        yield path
        return
    if not path.is_file():
        raise BunrakuError(f"{path} does not exist; give the folder of a dataset, or an archive of it")
    # beside the archive and not in /tmp, which may be small
    with tempfile.TemporaryDirectory(prefix=f"{path.name}.", dir=path.absolute().parent) as name:
        folder = Path(name)
        _unpack(path, folder)
        entries = list(folder.iterdir())
        yield entries[0] if len(entries) == 1 and entries[0].is_dir() else folder


def inside(root: Path, name: str) -> Path:
    """Return `root / name` if that lies below `root`, links followed.

    Raises:
        FileFormatError: It does not, or does not exist.
    """
    path = root / name
    if not path.resolve().is_relative_to(root.resolve()):
        raise FileFormatError(f"{root} names {name!r}, which leads out of the dataset; it is not imported")
    if not path.exists():
        raise FileFormatError(f"{root} has no {name}; the dataset is incomplete")
    return path


def refuse_outside(group: h5py.Group, path: Path) -> None:
    """Refuse an HDF5 group in which anything is stored in other files.

    Raises:
        FileFormatError: There is a link, or an array, whose content lies elsewhere.
    """
    for name in group:
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise FileFormatError(
                f"{path}: {group.name}/{name} points to {link.filename!r}; it is not imported"
            )
        item = group.get(name)
        if isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
            raise FileFormatError(f"{path}: {item.name} is stored in another file; it is not imported")
        if isinstance(item, h5py.Group) and isinstance(link, h5py.HardLink):
            refuse_outside(item, path)


def _unpack(path: Path, folder: Path) -> None:
    limit = MAX_RATIO * path.stat().st_size
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                infos = archive.infolist()
                for info in infos:
                    is_link = (info.external_attr >> 16) & 0o170000 == 0o120000
                    _check(path, info.filename, is_plain=not is_link)
                _check_size(path, sum(info.file_size for info in infos), limit)
                archive.extractall(folder)
        elif tarfile.is_tarfile(path):
            with tarfile.open(path) as packed:
                total = 0
                for member in packed:
                    _check(path, member.name, is_plain=member.isfile() or member.isdir())
                    total += member.size
                    _check_size(path, total, limit)
                packed.extractall(folder, filter="data")
        else:
            raise FileFormatError(f"{path} is neither a folder nor a zip or tar archive; give one of these")
    except (tarfile.TarError, zipfile.BadZipFile, EOFError) as error:
        raise FileFormatError(f"{path} is damaged ({error}); take it from a copy") from error


def _check(archive: Path, name: str, *, is_plain: bool) -> None:
    posix, windows = PurePosixPath(name), PureWindowsPath(name)
    if posix.is_absolute() or windows.drive or windows.root or ".." in (*posix.parts, *windows.parts):
        raise FileFormatError(f"{archive} holds {name!r}, which leads out of it; nothing was unpacked")
    if not is_plain:
        raise FileFormatError(f"{archive} holds {name!r}, a link or device; nothing was unpacked")


def _check_size(archive: Path, size: int, limit: int) -> None:
    if size > limit:
        raise FileFormatError(f"{archive} claims to hold {size} bytes; nothing was unpacked")
