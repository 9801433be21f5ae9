"""Compiles the stand-in for SteamVR's client library, or says why these tests cannot run here."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

SOURCE = Path(__file__).parent / "vrclient.cpp"
FLAGS = (
    *("-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden"),
    *("-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-Wl,--as-needed"),
)


def cannot_run(reason: str) -> NoReturn:
    """Skip; with CI set, on Linux, fail: the path through the real binding must not go untested unnoticed."""
    if os.environ.get("CI") and sys.platform == "linux":
        pytest.fail(f"{reason}; these tests must not be skipped in CI")
    pytest.skip(reason)


def build(folder: Path) -> Path:
    """Compile the library into a folder and return its path."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        cannot_run("the stand-in SteamVR runs on x86-64 Linux only")
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        cannot_run("the stand-in SteamVR needs a C++ compiler; install g++")
    if importlib.util.find_spec("openvr") is None:
        cannot_run("the openvr package is not installed")
    library = folder / "vrclient.so"
    subprocess.run([compiler, *FLAGS, "-o", str(library), str(SOURCE)], check=True)
    return library
