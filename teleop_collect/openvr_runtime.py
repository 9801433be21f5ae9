"""Getting hold of SteamVR, and saying what to do when it cannot be had.

    with connection(BACKGROUND) as (library, system):
        ...

`openvr` is a ctypes binding whose failures are easy to misread: its exceptions have no text, a code that it
does not know is a KeyError, a SteamVR that is too old is an exception without a code, and any call on an
`IVRSystem` that was kept across `shutdown()` is a segmentation fault. Therefore nothing outside this module
calls `init` or `shutdown`, and a process has one connection at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from bunraku.errors import DeviceError

OTHER = 0
"""Application type that starts SteamVR when it is not running."""
BACKGROUND = 3
"""Application type that never starts SteamVR: it is refused with code 121 when SteamVR is not running."""

TOO_OLD = 105
HEADSET = (
    "switch the headset on and connect it to this computer (PICO Connect, Steam Link, ALVR or a cable), wait "
    "until SteamVR shows it, then try again"
)
REPAIR = "in Steam, open SteamVR > Properties > Installed Files > Verify, then start SteamVR once"

REMEDIES: Mapping[int, str] = MappingProxyType(
    {
        100: f"the folder in which SteamVR was registered is gone; {REPAIR}",
        101: f"the SteamVR folder is incomplete; {REPAIR}",
        102: f"SteamVR's client library is missing; {REPAIR}",
        TOO_OLD: "this SteamVR is older than the openvr package; the hardware is not at fault; update "
        "SteamVR in Steam (2.12 or newer), then run this again",
        108: f"SteamVR found no headset; {HEADSET}",
        110: "SteamVR is not installed for this user; install Steam and SteamVR and start SteamVR once, or "
        "choose a device that needs no headset, such as --device keyboard",
        121: "SteamVR is not running; start SteamVR, put the headset on, then try again",
        126: "SteamVR found no headset, and nothing that looks like one on USB; start the headset's "
        f"streaming program first; {HEADSET}",
    }
)
"""What to do about each EVRInitError that users meet."""
OTHERWISE = "close SteamVR, start it again, and look at what its window says"


class SteamVRError(DeviceError):
    """SteamVR cannot be used; one line with the error's name, its code and the remedy."""

    def __init__(self, name: str, code: int | None, remedy: str, meaning: str = "") -> None:
        """Build the line.

        Args:
            name: Name of the error, as OpenVR spells it.
            code: Its EVRInitError, None when the binding itself does not work here.
            remedy: What to do.
            meaning: OpenVR's own words for it.
        """
        self.name, self.code, self.remedy = name, code, remedy
        number = "" if code is None else f" ({code})"
        words = f", {meaning!r}" if meaning and meaning != name else ""
        self.detail = f"SteamVR cannot be used: {name}{number}{words}"
        super().__init__(f"{self.detail}; {remedy}")


def load_library() -> Any:
    """Return the `openvr` module.

    Raises:
        SteamVRError: If it is not installed, or has no library for this machine.
    """
    try:
        import openvr
    except ModuleNotFoundError as error:
        raise SteamVRError(
            "the openvr package is not installed", None, "install it with: pip install openvr"
        ) from error
    except (OSError, ValueError) as error:  # the wheel holds x86 libraries only, whatever the CPU
        raise SteamVRError(
            "the openvr package has no library for this machine",
            None,
            "run bunraku on the x86-64 computer that runs SteamVR, or choose another --device",
            " ".join(str(error).split()),
        ) from error
    return openvr


def failure(library: Any, error: Exception) -> SteamVRError:
    """Return what an exception of `openvr.init` means.

    Args:
        library: The `openvr` module.
        error: An OpenVRError, or the KeyError that a code unknown to the binding raises.
    """
    if isinstance(error, KeyError):
        code = int(error.args[0])
    else:
        code = int(getattr(error, "error_value", TOO_OLD))
    if code == TOO_OLD:
        name = "InitError_Init_InterfaceNotFound"
    elif isinstance(error, KeyError):
        name = "an error that this openvr package does not know"
    else:
        name = type(error).__name__
    meaning = library.getVRInitErrorAsEnglishDescription(code)
    return SteamVRError(name, code, REMEDIES.get(code, OTHERWISE), meaning)


_one_connection = threading.Lock()


@contextmanager
def connection(application: int) -> Iterator[tuple[Any, Any]]:
    """Connect to SteamVR: gives the `openvr` module and the `IVRSystem`, which dies with the context.

    The thread that enters makes all calls and leaves.

    Args:
        application: `OTHER` or `BACKGROUND`.

    Raises:
        SteamVRError: If SteamVR cannot be used.
        DeviceError: If this process is connected already: the binding has one connection per process.
    """
    library = load_library()
    if not _one_connection.acquire(blocking=False):
        raise DeviceError("this program is connected to SteamVR already; close the other openvr device first")
    try:
        try:
            system = library.init(application)
        except (library.OpenVRError, KeyError) as error:
            raise failure(library, error) from error
        yield library, system
    finally:
        library.shutdown()  # harmless when init failed
        _one_connection.release()
