"""Other projects' packages, each in a virtual environment of its own on top of the packages of this one.

The environments are kept in the folder that `BUNRAKU_TEST_ENVS` names, or in pytest's cache.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest


def foreign_python(request: pytest.FixtureRequest, name: str, *steps: list[str]) -> str:
    """Return the interpreter of an environment, making it at the first use.

    Args:
        request: pytest's, for its cache.
        name: Of the environment.
        steps: Arguments of `pip install`, one call after another.

    Where the packages cannot be had, the test fails in CI and is skipped elsewhere.
    """
    named = os.environ.get("BUNRAKU_TEST_ENVS")
    root = Path(named) if named else request.config.cache.mkdir("envs")  # type: ignore[union-attr]
    recipe = hashlib.sha256(repr((steps, sys.version_info[:2])).encode()).hexdigest()[:8]
    folder = root / f"{name}-{recipe}"
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    ready = folder / "ready"
    if not ready.exists():
        venv.create(folder, with_pip=True, clear=True)
        paths = {"base": str(folder), "platbase": str(folder)}
        site = Path(sysconfig.get_path("purelib", vars=paths))
        below = sysconfig.get_path("purelib")
        (site / "below.pth").write_text(f"import site; site.addsitedir({below!r})\n")
        try:
            for step in steps:
                pip = [python, "-m", "pip", "install", "-q", *step]
                subprocess.run(pip, capture_output=True, text=True, check=True)
        except subprocess.CalledProcessError as error:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"{name} cannot be installed here: {error.stderr[-300:]}")
        ready.touch()
    return str(python)


def run(python: str, script: str, *arguments: object, env: dict[str, str] | None = None) -> str:
    """Run a script; return what it printed.

    Raises:
        AssertionError: It failed; with what it said.
    """
    command = [python, "-c", script, *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, **(env or {})}
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
