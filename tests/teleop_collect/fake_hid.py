"""SpaceMice that a test plugs in, pushes and unplugs: raw USB reports below the real pyspacemouse.

Only `easyhid.Enumeration` is replaced; a test of its own holds these classes against the real ones. Reports
are written after the USB HID usage tables (x to the right, y towards the operator, z down, turns by the
right-hand rule about these), not after pyspacemouse.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Any

NAVIGATOR = (0x046D, 0xC626)
RECEIVER = (0x256F, 0xC652)


class FakeHidDevice:
    """Stands in for `easyhid.HIDDevice`; `error` is what the real one raises."""

    def __init__(self, wire: FakeMouse, error: type[Exception]) -> None:
        self.path = wire.path
        self.vendor_id, self.product_id = wire.ids
        self.release_number = 0x431
        self.manufacturer_string, self.product_string = "3Dconnexion", "SpaceMouse"
        self.serial_number = wire.serial
        self.usage_page, self.usage = wire.usage
        self.interface_number = 0
        self._wire, self._error = wire, error
        self._is_open = False

    def open(self) -> None:
        if not self._wire.plugged or not self._wire.permitted:
            raise self._error("Failed to open device")
        self._is_open = True

    def close(self) -> None:
        self._is_open = False

    def set_nonblocking(self, enable_nonblocking: bool) -> None:
        if type(enable_nonblocking) is not bool:
            raise TypeError

    def read(self, size: int = 64, timeout: int | None = None) -> bytearray:
        if not self._is_open:
            raise self._error("HIDDevice not open")
        if not self._wire.plugged:
            raise self._error("Failed to read from HID device: -1")
        if not self._wire.reports:
            return bytearray()
        report = self._wire.reports.popleft()
        return bytearray(report[:size].ljust(size, b"\0"))


class FakeMouse:
    """The thing on the desk."""

    def __init__(
        self,
        path: str = "/dev/hidraw0",
        serial: str | None = "A1",
        ids: tuple[int, int] = NAVIGATOR,
        usage: tuple[int, int] = (1, 8),
    ) -> None:
        self.path, self.serial, self.ids, self.usage = path, serial, ids, usage
        self.plugged = self.permitted = True
        self.reports: deque[bytes] = deque()

    def push(self, *, right: int = 0, toward: int = 0, down: int = 0) -> None:
        self.reports.append(struct.pack("<Bhhh", 1, right, toward, down))

    def turn(self, *, about_right: int = 0, about_toward: int = 0, about_down: int = 0) -> None:
        self.reports.append(struct.pack("<Bhhh", 2, about_right, about_toward, about_down))

    def buttons(self, bits: int) -> None:
        self.reports.append(struct.pack("<BI", 3, bits))


class FakeBus:
    """Stands in for the class `easyhid.Enumeration`: calling it lists what is plugged in."""

    def __init__(self, error: type[Exception], *mice: FakeMouse) -> None:
        self.mice, self._error = list(mice), error

    def __call__(self, vid: int = 0, pid: int = 0) -> FakeBus:
        return self

    def find(self, vid: Any = None, pid: Any = None) -> list[FakeHidDevice]:
        return [FakeHidDevice(mouse, self._error) for mouse in self.mice if mouse.plugged]
