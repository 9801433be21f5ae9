"""The control file of the stand-in runtime, as ctypes structures: the layout of control.h."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import c_char, c_float, c_int32, c_uint32, c_uint64
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

MAGIC = 0x42554E52414B5531
DEVICES, EVENTS, PULSES, TEXT = 16, 256, 1024, 64


class Device(ctypes.Structure):
    """One tracked device; poses in the standing universe."""

    _fields_ = (
        *((name, c_int32) for name in ("device_class", "role", "connected", "valid", "result")),
        *((name, c_int32) for name in ("has_state", "activity", "stick_type")),
        ("matrix", c_float * 12),
        ("velocity", c_float * 3),
        ("angular", c_float * 3),
        ("noise", c_float),
        ("battery", c_float),
        ("pressed", c_uint64),
        ("touched", c_uint64),
        ("axis", c_float * 10),
        ("packet", c_uint32),
        ("pad", c_uint32),
        *((name, c_char * TEXT) for name in ("serial", "model", "type")),
    )


class Event(ctypes.Structure):
    """A posted event."""

    _fields_ = (("posted", c_uint64), *((n, c_uint32) for n in ("type", "device", "button", "pad")))


class PulseRecord(ctypes.Structure):
    """A haptic pulse that arrived."""

    _fields_ = (
        ("time", c_uint64),
        *((n, c_uint32) for n in ("device", "axis", "microseconds", "too_soon")),
    )


class Control(ctypes.Structure):
    """All of the file."""

    _fields_ = (
        ("magic", c_uint64),
        ("size", c_uint64),
        ("sequence", c_uint64),
        ("devices", Device * DEVICES),
        ("events", Event * EVENTS),
        ("event_count", c_uint64),
        ("raw_to_standing", c_float * 12),
        ("seated_to_standing", c_float * 12),
        *((n, c_int32) for n in ("init_error", "server_running", "headset_present", "input_available")),
        *((n, c_int32) for n in ("dashboard", "system_known")),
        ("frequency", c_float),
        ("hold", c_uint32),
        ("version", c_char * TEXT),
        *((n, c_uint64) for n in ("attempts", "inits", "shutdowns", "pose_reads", "polls")),
        *((n, c_uint64) for n in ("acknowledged", "pulse_count", "pid")),
        ("application", c_int32),
        ("last_origin", c_int32),
        ("last_ahead", c_float),
        ("gave_up", c_uint32),
        ("pulses", PulseRecord * PULSES),
    )


def create(path: Path) -> Control:
    """Make the file and return it mapped, with its magic and size filled in and all else zero."""
    path.write_bytes(bytes(ctypes.sizeof(Control)))
    with path.open("r+b") as file:
        control = Control.from_buffer(mmap.mmap(file.fileno(), 0))
    control.magic, control.size = MAGIC, ctypes.sizeof(Control)
    return control


@contextmanager
def writing(control: Control) -> Iterator[Control]:
    """Guard writes: a reader that meets them tries again until they are done."""
    control.sequence += 1
    try:
        yield control
    finally:
        control.sequence += 1


def fill(target: ctypes.Array[c_float], values: ArrayLike) -> None:
    """Write numbers into a float array of the file."""
    target[:] = np.asarray(values, dtype=np.float32).reshape(-1).tolist()
