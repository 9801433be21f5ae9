"""Input devices: where an operator's hands are, and what they press.

Each file here is one device behind the protocol of `bunraku.device.Device`, and the file's name is the
device's name; files that start with an underscore are shared parts. Other distributions add devices by entry
points of the group "bunraku.devices". Nothing is imported, and no hardware touched, until a device is asked
for and entered:

    with open_device("gamepad") as device:
        state = device.read()
"""

from __future__ import annotations

import inspect
from typing import Any

from bunraku import plugins
from bunraku.device import Device
from bunraku.errors import UnknownNameError


def names() -> list[str]:
    """Return the names of all devices, ours and those of other distributions, sorted."""
    return plugins.names(plugins.DEVICES)


def open_device(name: str, **options: Any) -> Device:
    """Return the device of that name, which opens its hardware when it is entered.

    Args:
        name: The name of a device, one of `names()`.
        options: Arguments of its constructor: `clock` and `seed`, and its own.

    Raises:
        UnknownNameError: If there is no such device, or the device has no such option; names the nearest.
    """
    factory = plugins.load(plugins.DEVICES, name)
    parameters = inspect.signature(factory).parameters
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        for option in options:
            if option not in parameters:
                raise UnknownNameError(f"option of device {name}", option, parameters)
    device: Device = factory(**options)
    return device
