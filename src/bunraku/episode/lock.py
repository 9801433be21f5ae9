"""One writer per file.

On POSIX this is `flock`, which HDF5 itself uses: whoever opens the file with h5py meanwhile is refused by
HDF5, and this refuses a file that any HDF5 program has open. On Windows one byte far behind small files is
locked.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from pathlib import Path
from typing import BinaryIO

from bunraku.errors import BunrakuError

_WINDOWS_LOCK_OFFSET = 2**31 - 2
"""`msvcrt.locking` counts positions in 32 bits."""


class FileInUseError(BunrakuError):
    """A demonstration file that another process has open."""

    def __init__(self, path: Path) -> None:
        """Name the file."""
        super().__init__(f"{path} is in use by another program; close that one, or give another file")


def lock_exclusively(file: BinaryIO | io.FileIO, path: Path) -> None:
    """Lock an open file until it is closed.

    Raises:
        FileInUseError: Another handle, of any process, holds it.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(_WINDOWS_LOCK_OFFSET)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            file.seek(0)
        else:
            import fcntl

            fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            raise FileInUseError(path) from error
        # Network file systems without locks: HDF5 goes on without one as well.
        if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            raise


def sync_folder(folder: Path) -> None:
    """Make a new or renamed entry of a folder durable; Windows does so by itself."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
