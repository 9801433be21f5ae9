"""Reading pickled arrays without executing anything that the file asks for.

A pickle is a program: it names functions and calls them. Here every name is answered by a stand-in of ours that only
remembers its arguments, for NumPy arrays, torch tensors and the parts of SMPL body models; any other name ends the
reading with an error. Arrays are then built from the remembered bytes. NumPy's own reconstruction is not used either,
since a crafted state can crash it.
"""

from __future__ import annotations

import io
import pickle
import re
import zipfile
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import FileFormatError

_PLAIN_DTYPE = re.compile(r"^(b1|[iu][1248]|f[248]|c(8|16)|[SU]\d+|V\d+|O8?)$")
_STORAGE = {
    "FloatStorage": "f4",
    "DoubleStorage": "f8",
    "HalfStorage": "f2",
    "LongStorage": "i8",
    "IntStorage": "i4",
}
_STORAGE |= {"ShortStorage": "i2", "CharStorage": "i1", "ByteStorage": "u1", "BoolStorage": "?"}


def unpickle(data: bytes, archive: zipfile.ZipFile | None = None, name: str = "the file") -> Any:
    """Return the plain Python values and NumPy arrays of a pickle.

    Args:
        data: The pickle.
        archive: The zip file around it, for a file that torch saved.
        name: What to call the file in messages.

    Raises:
        FileFormatError: If it is truncated, or names anything that is not an array.
    """
    try:
        return _plain(_Reader(io.BytesIO(data), archive, name).load())
    except FileFormatError:
        raise
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        TypeError,
        AttributeError,
        IndexError,
        KeyError,
    ) as error:
        raise FileFormatError(f"{name} holds a pickle that cannot be read: {error}") from error
    except (RecursionError, MemoryError, OverflowError) as error:
        raise FileFormatError(f"{name} holds a pickle that is nested or sized beyond reason") from error


def read_npy(stream: BinaryIO, name: str) -> Any:
    """Return the array of a `.npy` stream; one of objects as what its pickle holds."""
    try:
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(stream)
        if dtype.hasobject:
            value = unpickle(stream.read(), name=name)
            return value.item() if isinstance(value, np.ndarray) and value.shape == () else value
        data = stream.read()
        count = int(np.prod(shape, dtype=np.int64))
        if len(data) < count * dtype.itemsize:
            raise FileFormatError(
                f"{name} is truncated: it has {len(data)} of {count * dtype.itemsize} bytes"
            )
        return np.frombuffer(data, dtype, count).reshape(shape, order="F" if fortran else "C")
    except (ValueError, EOFError, OverflowError) as error:
        raise FileFormatError(f"{name} is no NumPy array, or is truncated: {error}") from error


class _Call:
    """Stands for a name in the pickle; calling it calls our function, and nothing can be set on it."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *args: Any) -> Any:
        return self._make(*args)

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a state for a name")


class _Remembered:
    """An object of the pickle: what it was made of and what state it was given."""

    kind = "object"
    args: tuple[Any, ...] = ()
    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state


def _remember(kind: str) -> _Call:
    def make(*args: Any) -> _Remembered:
        thing = _Remembered()
        thing.kind, thing.args = kind, args
        return thing

    return _Call(make)


_MAKERS: dict[tuple[str, str], _Call] = {
    ("numpy", "_reconstruct"): _remember("array"),
    ("numpy", "ndarray"): _remember("array"),
    ("numpy", "_frombuffer"): _remember("buffer"),
    ("numpy", "dtype"): _remember("dtype"),
    ("numpy", "scalar"): _remember("scalar"),
    ("_codecs", "encode"): _Call(lambda *args: _encode(*args)),
    ("collections", "OrderedDict"): _Call(lambda *args: dict(*args)),
    ("copyreg", "_reconstructor"): _Call(
        lambda kind, *args: kind() if isinstance(kind, type) else _Remembered()
    ),
    ("torch", "_rebuild_tensor_v2"): _remember("tensor"),
    ("torch", "_rebuild_parameter"): _Call(lambda data, *args: data),
    ("builtins", "object"): _remember("object"),
    ("builtins", "bytearray"): _Call(lambda data=b"", *args: bytes(data) if isinstance(data, bytes) else b""),
}
"""What a pickle may name, by the first part of the module and the name."""
_CLASSES = {("chumpy", "Ch"): "chumpy", ("scipy", "csc_matrix"): "sparse", ("scipy", "csc_array"): "sparse"}
"""Classes of body models, which a pickle must be able to make new ones of."""


class _Reader(pickle.Unpickler):
    def __init__(self, stream: BinaryIO, archive: zipfile.ZipFile | None, name: str) -> None:
        # Python 2 wrote the body models that people have; latin-1 keeps their bytes
        super().__init__(stream, encoding="latin1")
        self._archive, self._name = archive, name

    def find_class(self, module: str, name: str) -> Any:
        top = {"copy_reg": "copyreg", "__builtin__": "builtins"}.get(module, module.split(".")[0])
        if top == "torch" and name in _STORAGE:
            return _STORAGE[name]
        if (top, name) in _CLASSES:
            # a class of its own for each reading, so that nothing the file does to it stays
            return type(name, (_Remembered,), {"kind": _CLASSES[top, name]})
        if (top, name) in _MAKERS:
            return _MAKERS[top, name]
        raise FileFormatError(
            f"{self._name} asks for {module}.{name}, which no motion needs; nothing of it was executed. If you trust"
            " it, save its arrays with numpy.savez"
        )

    def persistent_load(self, pid: Any) -> Any:
        if self._archive is None or pid[0] != "storage":
            raise pickle.UnpicklingError("a reference to something outside the file")
        entry = next((n for n in self._archive.namelist() if n.endswith(f"/data/{pid[2]}")), None)
        if entry is None:
            raise pickle.UnpicklingError(f"the storage {pid[2]} is missing")
        return np.frombuffer(self._archive.read(entry), dtype=np.dtype(pid[1]))


def _encode(text: str, encoding: str = "utf-8") -> bytes:
    if encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise pickle.UnpicklingError(f"the encoding {encoding!r}")
    return text.encode("latin1" if encoding.startswith("latin") else encoding)


def _plain(value: Any) -> Any:
    """Return `value` with what was remembered made into arrays."""
    if isinstance(value, dict):
        return {_plain(k) if isinstance(k, _Remembered) else k: _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_plain(entry) for entry in value)
    if not isinstance(value, _Remembered):
        return None if isinstance(value, _Call) else value
    if value.kind == "array":
        return _array(value)
    if value.kind == "buffer":
        data, dtype, shape, order = value.args
        return np.frombuffer(bytes(data), _dtype(dtype)).reshape(shape, order=order)
    if value.kind == "scalar":
        dtype, data = value.args
        return np.frombuffer(data, _dtype(dtype), 1)[0]
    if value.kind == "tensor":
        return _tensor(*value.args[:4])
    state = _plain(value.state) or {}
    if value.kind == "chumpy" or "x" in state:
        return np.asarray(state["x"])
    if value.kind == "sparse" or "indptr" in state:
        return _dense(state)
    return state


def _dtype(remembered: _Remembered) -> np.dtype[Any]:
    name = str(remembered.args[0]).lstrip("<>|=")
    if not _PLAIN_DTYPE.match(name):
        raise FileFormatError(f"an array of type {name!r} cannot be read")
    big = bool(remembered.state) and remembered.state[1] == ">"
    return np.dtype(name).newbyteorder(">" if big else "<")


def _array(remembered: _Remembered) -> Any:
    _, shape, dtype, fortran, data = remembered.state
    if _dtype(dtype).hasobject:
        flat = np.empty(len(data), dtype=object)
        flat[:] = [_plain(entry) for entry in data]
        return flat.reshape(shape, order="F" if fortran else "C")
    raw = data.encode("latin1") if isinstance(data, str) else data
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(raw, _dtype(dtype), count).reshape(shape, order="F" if fortran else "C")


def _tensor(
    storage: NDArray[Any], offset: int, size: tuple[int, ...], stride: tuple[int, ...]
) -> NDArray[Any]:
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    if offset < 0 or min((*size, *stride, 0)) < 0 or (0 not in size and last >= len(storage)):
        raise FileFormatError("a tensor reaches outside its storage")
    if 0 in size:
        return np.zeros(size, storage.dtype)
    strides = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, strides).copy()


def _dense(state: dict[str, Any]) -> NDArray[Any]:
    rows, columns = (int(n) for n in state.get("_shape") or state["shape"])
    out = np.zeros((rows, columns))
    starts = np.asarray(state["indptr"])
    out[np.asarray(state["indices"]), np.repeat(np.arange(columns), np.diff(starts))] = state["data"]
    return out
