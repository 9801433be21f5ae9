"""The files that openvr's loader looks for, in a folder of the test, and how they can be broken."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import ClassVar


class Installation:
    """A SteamVR folder and the registry that names it."""

    VARIABLES: ClassVar[tuple[str, ...]] = (
        "VR_PATHREG_OVERRIDE",
        "VR_OVERRIDE",
        "VR_CONFIG_PATH",
        "VR_LOG_PATH",
        "BUNRAKU_STAND_IN_STEAMVR",
    )
    """Environment variables that `set_environment` sets or takes away."""

    def __init__(self, folder: Path, library: Path) -> None:
        """Lay out the files under a folder, with a copy of the compiled library."""
        self.folder = folder
        self.registry = folder / "openvrpaths.vrpath"
        self.runtime = folder / "SteamVR"
        self.client = self.runtime / "bin" / "linux64" / "vrclient.so"
        self.control_file = folder / "control"
        self.client.parent.mkdir(parents=True)
        for name in ("config", "log"):
            (folder / name).mkdir()
        shutil.copy(library, self.client)
        paths = {
            "runtime": [str(self.runtime)],
            "config": [str(folder / "config")],
            "log": [str(folder / "log")],
        }
        self.registry.write_text(
            json.dumps({"version": 1, "jsonid": "vrpathreg", "external_drivers": None, **paths})
        )

    def set_environment(self) -> None:
        """Let the loader find this installation and no other."""
        for name in self.VARIABLES:
            os.environ.pop(name, None)
        os.environ["VR_PATHREG_OVERRIDE"] = str(self.registry)
        os.environ["BUNRAKU_STAND_IN_STEAMVR"] = str(self.control_file)

    def uninstall(self) -> None:
        """Leave no trace: SteamVR was never installed."""
        self.registry.unlink()
        shutil.rmtree(self.runtime)

    def garble_registry(self) -> None:
        """Cut the registry in the middle of a word."""
        self.registry.write_text('{"version": 1, "runt')

    def move_away(self) -> None:
        """Move the folder; the registry still names the old place."""
        self.runtime.rename(self.folder / "SteamVR-moved")

    def lose_binaries(self) -> None:
        """Empty the SteamVR folder."""
        shutil.rmtree(self.runtime / "bin")

    def lose_client(self) -> None:
        """Delete vrclient.so."""
        self.client.unlink()
