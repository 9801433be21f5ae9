"""A file that changes all at once or not at all, for HDF5 to write through.

HDF5 changes a file in place: to add one group it rewrites the superblock, nodes of a search tree and heaps,
each with a write of its own. A process that is killed between two of these writes leaves a file that cannot
be opened, with everything that was ever recorded in it. `AtomicFile` stands between HDF5 and the disk:

- What HDF5 writes behind the committed end of the file goes straight to disk, where no reader looks yet.
- What it writes before that end is kept in memory, page by page.
- `commit` appends the changed pages as a journal behind the new part, with a checksum over both, makes all of it
  durable, copies the pages to their places and makes those durable. The journal then stays until the next change
  is written over it, or the file is closed: to apply it again changes nothing.

A kill before the journal is complete leaves the old content, one after it the new content, as soon as
`settle` has been called, which opening does. So does a crash of the machine, whatever order the disk wrote in:
the checksum tells a journal whose new part is not all there. No second file is involved, and HDF5 itself ignores
what lies behind its end.

    with AtomicFile(path) as file, h5py.File(file, "r+") as h5:
        h5["data/demo_7"] = ...
        h5.flush()
        file.commit()
"""

from __future__ import annotations

import io
import os
import struct
import zlib
from pathlib import Path
from typing import BinaryIO

from bunraku.episode.lock import lock_exclusively
from bunraku.errors import FileFormatError

PAGE = 4096
"""Bytes that are kept and journalled as one."""

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"

_MAGIC = b"bunraku\x00journal\x02"
_RECORD = struct.Struct("<QI")
"""Head of one journalled page: offset, length."""
_FOOTER = struct.Struct("<16sQQQI")
"""Last bytes of a file with a complete journal: magic, journal length, committed size before, size after applying
it, CRC-32 of all between the former and this footer.
"""

_BLOCK = 1 << 20
"""Bytes that are read at a time for the checksum."""

_sync = getattr(os, "fdatasync", os.fsync)
"""Makes content and size durable, not the times of access, which costs a file system's journal more."""


class AtomicFile(io.RawIOBase):
    """A binary file object for `h5py.File(file, "r+")`, locked against other writers.

    A failing write (a full disk) is kept in `error` and raised by `commit`, not inside HDF5, which cannot
    be closed any more once one of its own writes has failed.
    """

    error: OSError | None
    """The first write that failed since the last commit."""

    def __init__(self, path: Path) -> None:
        """Open and lock an existing HDF5 file, and finish or drop what a killed process left behind its end.

        Raises:
            FileFormatError: The file is not HDF5, or its end is missing.
            BunrakuError: Another process has the file open.
            OSError: The file cannot be opened for writing.
        """
        super().__init__()
        self._file = open(path, "r+b", buffering=0)  # noqa: SIM115
        try:
            lock_exclusively(self._file, path)
            self.dropped_bytes = settle(self._file, path)
        except BaseException:
            self._file.close()
            raise
        self._committed = self._size = self._file.seek(0, os.SEEK_END)
        # What is on disk from here on is no part of the file: nothing, or the journal of the last commit.
        self._written = self._stale = self._committed
        self._pages: dict[int, bytearray] = {}
        self._position = 0
        self._discarding = False
        self._applying = False
        self.error = None

    def commit(self) -> None:
        """Make all that was written since the last commit durable, as one.

        Raises:
            OSError: Nothing has changed on disk, or (only if the last copying fails) it will when next
                opened.
        """
        if self.error is not None:
            raise self.error
        if not self._pages and self._size == self._committed:
            return
        # Nothing may stand behind the journal: its footer is looked for in the last bytes.
        end = max(self._size, self._committed)
        kept = min(self._written, end)
        if self._file.seek(0, os.SEEK_END) > kept:
            self._file.truncate(kept)
        journal = b"".join(
            _RECORD.pack(page * PAGE, len(data)) + data for page, data in sorted(self._pages.items())
        )
        begin = min(self._committed, end)
        checksum = zlib.crc32(journal, _checksum(self._file, begin, end))
        footer = _FOOTER.pack(_MAGIC, len(journal), begin, self._size, checksum)
        _write_all(self._file, end, journal + footer)
        _sync(self._file.fileno())
        self._applying = True
        _apply(self._file, journal)
        self._applying = False
        self._pages.clear()
        self._committed = self._written = self._size
        self._stale = end + len(journal) + len(footer)

    def discard(self) -> None:
        """Forget what was written since the last commit; from now on all writes are dropped, until closed."""
        self._discarding = True
        self._pages.clear()

    def close(self) -> None:
        """Close without committing; what was not committed is cut off."""
        if self.closed:
            return
        try:
            if not self._applying:  # else the journal is needed: the next opening goes on with it
                self._file.truncate(self._committed)
        finally:
            self._file.close()
            super().close()

    def readable(self) -> bool:
        """Say yes."""
        return True

    def writable(self) -> bool:
        """Say yes."""
        return True

    def seekable(self) -> bool:
        """Say yes."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Set the position."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        """Fill the buffer from the file as HDF5 sees it; what was never written reads as zeros."""
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._size - self._position))
        view = view[:count]
        there = max(0, min(count, self._written - self._position))
        filled = 0
        self._file.seek(self._position)
        while filled < there:
            got = self._file.readinto(view[filled:there])
            if not got:
                break
            filled += got
        view[filled:] = bytes(count - filled)
        if self._pages:
            self._overlay(view)
        self._position += count
        return count

    def write(self, data: memoryview, /) -> int:  # type: ignore[override]
        """Write at the position: on disk behind the committed end, in memory before it."""
        view = memoryview(data).cast("B")
        length, start = len(view), self._position
        self._position += length
        self._size = max(self._size, self._position)
        if self._discarding or self.error is not None:
            return length
        split = min(max(self._committed - start, 0), length)
        try:
            if split < length:
                self._append(start + split, view[split:])
            self._patch(start, view[:split])
        except OSError as error:
            self.error = error
        return length

    def truncate(self, size: int | None = None, /) -> int:
        """Set the size that the file has after the next commit."""
        self._size = self._position if size is None else size
        return self._size

    def _append(self, start: int, view: memoryview) -> None:
        gap = min(start, self._stale) - self._written
        if gap > 0:  # it is to read as zeros, not as an old journal
            _write_all(self._file, self._written, bytes(gap))
        _write_all(self._file, start, view)
        self._written = max(self._written, start + len(view))

    def _patch(self, start: int, view: memoryview) -> None:
        done = 0
        while done < len(view):
            number, offset = divmod(start + done, PAGE)
            count = min(PAGE - offset, len(view) - done)
            page = self._pages.get(number)
            if page is None:
                self._file.seek(number * PAGE)
                page = bytearray(self._file.read(min(PAGE, self._committed - number * PAGE)) or b"")
                self._pages[number] = page
            page[offset : offset + count] = view[done : done + count]
            done += count

    def _overlay(self, view: memoryview) -> None:
        first, last = self._position // PAGE, (self._position + len(view) - 1) // PAGE
        wanted = range(first, last + 1)
        for number in wanted if len(wanted) < len(self._pages) else [n for n in self._pages if n in wanted]:
            page = self._pages.get(number)
            if page is None:
                continue
            shift = number * PAGE - self._position
            low, high = max(0, shift), min(len(view), shift + len(page))
            if low < high:
                view[low:high] = page[low - shift : high - shift]


def settle(file: BinaryIO | io.FileIO, path: Path) -> int:
    """Finish a complete journal at the end of a file, or cut off what lies behind the end that HDF5 knows.

    Args:
        file: An HDF5 file, open for reading and writing.
        path: Its path, for messages.

    Returns:
        Bytes of unfinished recording that were cut off.

    Raises:
        FileFormatError: The file is not HDF5, or shorter than it says.
    """
    journal, size_after = _read_journal(file)
    if journal is not None:
        _apply(file, journal)
        file.truncate(size_after)
    end = stored_end(file, path)
    size = file.seek(0, os.SEEK_END)
    if end is None or size == end:
        return 0
    file.truncate(end)
    os.fsync(file.fileno())
    return size - end


def has_journal(file: BinaryIO | io.FileIO) -> bool:
    """Say whether the file ends in a complete journal, which `settle` would apply."""
    return _read_journal(file)[0] is not None


def stored_end(file: BinaryIO | io.FileIO, path: Path) -> int | None:
    """Return where HDF5's superblock says that the file ends, None for layouts that bunraku does not write.

    Raises:
        FileFormatError: The file is not HDF5, or shorter than its superblock says.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    head = file.read(96) or b""
    if not head.startswith(HDF5_SIGNATURE):
        what = "is empty" if size == 0 else "is not an HDF5 file"
        raise FileFormatError(
            f"{path} {what}; give a file that bunraku or robomimic recorded, or another name"
        )
    if len(head) < 48:
        raise FileFormatError(f"{path} is cut short: it has {size} bytes; take it from a copy")
    version = head[8]
    offset = {0: 40, 1: 44, 2: 28, 3: 28}.get(version)
    eight_byte_offsets = head[13 if version < 2 else 9] == 8
    if offset is None or not eight_byte_offsets:
        return None
    end = int.from_bytes(head[offset : offset + 8], "little")
    if size < end:
        raise FileFormatError(f"{path} is cut short: {size} of {end} bytes are there; take it from a copy")
    return end


def _read_journal(file: BinaryIO | io.FileIO) -> tuple[bytes | None, int]:
    size = file.seek(0, os.SEEK_END)
    if size < _FOOTER.size:
        return None, 0
    file.seek(size - _FOOTER.size)
    magic, length, begin, size_after, checksum = _FOOTER.unpack(file.read(_FOOTER.size) or b"")
    end = size - _FOOTER.size - length
    if magic != _MAGIC or not 0 <= begin <= end:
        return None, 0
    found = _checksum(file, begin, end)
    file.seek(end)
    journal = file.read(length) or b""
    if len(journal) != length or zlib.crc32(journal, found) != checksum:
        return None, 0
    return journal, size_after


def _checksum(file: BinaryIO | io.FileIO, begin: int, end: int) -> int:
    """Return the CRC-32 of a part of a file."""
    found = 0
    file.seek(begin)
    while begin < end:
        block = file.read(min(_BLOCK, end - begin))
        if not block:
            break
        found = zlib.crc32(block, found)
        begin += len(block)
    return found


def _apply(file: BinaryIO | io.FileIO, journal: bytes) -> None:
    """Copy journalled pages to their places, for good."""
    position = 0
    while position < len(journal):
        offset, length = _RECORD.unpack_from(journal, position)
        position += _RECORD.size
        _write_all(file, offset, journal[position : position + length])
        position += length
    _sync(file.fileno())


def _write_all(file: BinaryIO | io.FileIO, offset: int, data: bytes | memoryview) -> None:
    view = memoryview(data)
    file.seek(offset)
    while view:
        written = file.write(view)
        view = view[written or 0 :]
