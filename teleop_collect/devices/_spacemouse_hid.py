"""Finding and opening SpaceMice through pyspacemouse, and saying what to do when that fails.

`pyspacemouse.open` prints to stdout, opens by index only and, by path, only on Linux; so the device objects
are made here from the library's own specifications, in its ROS axis convention (x forward, y left, z up,
rotations about these axes), which is ours.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Any

from bunraku.errors import DeviceError, MissingDependencyError

UDEV_RULE = 'SUBSYSTEM=="hidraw", KERNELS=="*:256F:*|*:046D:C62?.*", MODE="0660", TAG+="uaccess"'
"""Gives the person at the machine access to 3Dconnexion devices (256F; before 2013 Logitech's 046D:C62x)."""
UDEV_FILE = "/etc/udev/rules.d/70-spacemouse.rules"
MULTI_AXIS = (0x01, 0x08)
"""HID usage page and usage of a multi-axis controller: the interface of several that carries the motion."""


@dataclass(frozen=True, slots=True)
class Library:
    """The two modules that speak to the hardware."""

    pyspacemouse: Any
    easyhid: Any


@dataclass(frozen=True, slots=True)
class Found:
    """A SpaceMouse that is plugged in."""

    model: str
    """The library's name of the model."""
    serial: str
    """Serial number, empty if the device has none."""
    path: str
    """Where the operating system has it."""
    hid: Any
    """The `easyhid.HIDDevice` to open."""

    @property
    def source(self) -> str:
        """Which physical device this is."""
        return f"{self.model}:{self.serial or self.path}"


def load_library() -> Library:
    """Import pyspacemouse and the HID library below it.

    Raises:
        MissingDependencyError: If pyspacemouse is not installed.
        DeviceError: If the system's hidapi is missing, or pyspacemouse is too old.
    """
    try:
        library = Library(importlib.import_module("pyspacemouse"), importlib.import_module("easyhid"))
    except ModuleNotFoundError as error:
        raise MissingDependencyError("pyspacemouse", "a SpaceMouse", "spacemouse") from error
    except (OSError, TypeError) as error:  # what easyhid raises where it finds no hidapi at all
        raise DeviceError(_no_hidapi()) from error
    if not hasattr(library.pyspacemouse, "AxisConvention"):
        raise DeviceError(
            f"pyspacemouse {library.pyspacemouse.__version__} is too old to tell which way its axes point; "
            "update it with: pip install --upgrade 'pyspacemouse>=2.1'"
        )
    return library


def find(library: Library) -> list[Found]:
    """Return the SpaceMice that are plugged in, one entry each, in the order of their serial numbers.

    Raises:
        DeviceError: If the system's hidapi is missing.
    """
    models = {spec.hid_id: name for name, spec in library.pyspacemouse.get_device_specs().items()}
    try:
        devices = library.easyhid.Enumeration().find()
    except AttributeError as error:  # easyhid binds to nothing on Linux where hidapi is missing
        raise DeviceError(_no_hidapi()) from error
    known = [d for d in devices if (d.vendor_id, d.product_id) in models]
    # Windows and macOS list each interface of a device: take the one that moves, where the system tells it.
    moving = [d for d in known if (d.usage_page, d.usage) == MULTI_AXIS]
    told = {(d.vendor_id, d.product_id) for d in moving}
    chosen = moving + [d for d in known if (d.vendor_id, d.product_id) not in told]
    by_path = {
        d.path: Found(models[d.vendor_id, d.product_id], d.serial_number or "", d.path, d) for d in chosen
    }
    return sorted(by_path.values(), key=lambda found: (found.serial, found.path))


def open_mouse(library: Library, found: Found) -> Any:
    """Open a SpaceMouse for reading without blocking; return a `pyspacemouse.SpaceMouseDevice`.

    Raises:
        DeviceError: If it cannot be opened, which is a matter of permissions or of another program.
    """
    sm = library.pyspacemouse
    spec = sm.apply_axis_convention(sm.get_device_specs()[found.model], sm.AxisConvention.ROS)
    mouse = sm.SpaceMouseDevice(info=spec, device=found.hid)
    try:
        mouse.open()
        found.hid.set_nonblocking(True)
    except (RuntimeError, library.easyhid.HIDException) as error:
        raise DeviceError(_not_opened(found)) from error
    return mouse


def not_found(library: Library) -> DeviceError:
    """Return the error for a machine without a SpaceMouse."""
    count = len(library.pyspacemouse.get_supported_devices())
    hint = "; inside a container or virtual machine, pass the USB device through" if _linux() else ""
    return DeviceError(
        f"no SpaceMouse found ({count} models are known); plug it in and see that its light is on{hint}; "
        "--device keyboard or --device scripted needs no hardware"
    )


def _not_opened(found: Found) -> str:
    if _linux():
        return (
            f"cannot open {found.model} at {found.path}: no permission, or in use; allow it with: echo "
            f"'{UDEV_RULE}' | sudo tee {UDEV_FILE} && sudo udevadm control --reload; then plug it in again"
        )
    return (
        f"cannot open {found.model}: another program holds it; close 3DxWare and programs that use it, "
        "then plug it in again"
    )


def _no_hidapi() -> str:
    if _linux():
        remedy = "sudo apt install libhidapi-hidraw0 (Fedora: sudo dnf install hidapi)"
    elif sys.platform == "darwin":
        remedy = "brew install hidapi"
    else:
        remedy = (
            "download hidapi-win.zip from https://github.com/libusb/hidapi/releases and put x64/hidapi.dll "
            "beside python.exe"
        )
    return f"a SpaceMouse needs the hidapi library, which is not on this machine; install it with: {remedy}"


def _linux() -> bool:
    return sys.platform.startswith("linux")
