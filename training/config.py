"""What a run is made of. A run folder keeps it as JSON, with all that is needed to repeat it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from bunraku.errors import BunrakuError, FileFormatError
from bunraku.training.checkpoints import remove_old

RUN_FORMAT = 1
"""Run folders with a higher number are refused."""
CONFIG = "run.json"


@dataclass(frozen=True)
class RunConfig:
    """One training run."""

    method: str
    """`bc` or `rl`."""
    env: str
    """Short name or id of the environment."""
    env_kwargs: dict[str, Any]
    """Its options."""
    max_episode_steps: int | None
    """Steps of an episode; None for the environment's own limit."""
    seed: int
    """Seed of everything."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The method's own settings, resolved."""


def begin_run(folder: Path, config: RunConfig, *, force: bool = False) -> None:
    """Make a run folder with its description.

    Raises:
        BunrakuError: It exists and is not empty, or cannot be written.
    """
    check_writable(folder, force=force)
    remove_old(folder)
    described = {
        "run_format": RUN_FORMAT,
        **asdict(config),
        "command": sys.argv,
        "versions": _versions(),
        "git": _git_state(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / CONFIG).write_text(json.dumps(described, indent=2, default=str), encoding="utf-8")
    except OSError as error:
        raise BunrakuError(f"cannot write {folder}: {error.strerror}; give another --out") from error


def check_writable(folder: Path, *, force: bool = False) -> None:
    """Raise BunrakuError if a run cannot be written there: a run is there already, or there is no access."""
    if folder.exists() and not folder.is_dir():
        raise BunrakuError(f"{folder} is a file; give another --out")
    if folder.exists() and any(folder.iterdir()) and not force:
        raise BunrakuError(f"{folder} exists and is not empty; give another --out, or --force to replace it")
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(existing, os.W_OK):
        raise BunrakuError(f"cannot write {folder}: no access to {existing}; give another --out")


def read_run(folder: Path) -> RunConfig:
    """Return the description of a run.

    Raises:
        BunrakuError: It is no run folder, or of a newer version.
    """
    path = folder / CONFIG
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
        version = int(described["run_format"])
        if version > RUN_FORMAT:
            raise FileFormatError(
                f"{path} has version {version}, this bunraku reads up to {RUN_FORMAT}; update bunraku"
            )
        known = RunConfig.__dataclass_fields__
        return RunConfig(**{key: described[key] for key in known})
    except FileNotFoundError as error:
        raise BunrakuError(
            f"{folder} is no run: it has no {CONFIG}; give the folder that `bunraku train` wrote"
        ) from error
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise FileFormatError(f"{path} cannot be read ({error}); take it from a copy") from error


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("bunraku", "mujoco", "gymnasium", "numpy", "torch", "stable-baselines3"):
        found[name] = metadata.version(name)
    return found


def _git_state() -> str:
    """Return commit and whether the tree was changed, or "" outside of a repository."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40"],
            cwd=Path(__file__).parent, capture_output=True, text=True, check=False, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
