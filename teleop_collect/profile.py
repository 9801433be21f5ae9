"""What is set once per operator: facing, scale, height, filter, and which button does what.

A profile is a small TOML file, `<config folder>/bunraku/profiles/<name>.toml`:

    facing_deg = 0.0
    scale = 0.6
    filter = "low_pass"

    [buttons]
    b = "success"

What a file leaves out keeps its default.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from bunraku.device import BUTTONS, COMMANDS, HANDS, HandName
from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.teleop_collect.clutch import PRECISION, SCALE
from bunraku.teleop_collect.filters import DEFAULT_TIME_CONSTANT, FILTERS

REFERENCE_HEIGHT = 1.75
"""Height [m] of the operator for whom `scale` is meant; arms grow with height, so others get it in proportion."""

HAND_ACTIONS = ("rereference", "precision", "none")
"""What a button may do to its hand, besides the recorder's commands."""

DEFAULT_BUTTONS: Mapping[str, str] = {
    "a": "rereference",
    "x": "rereference",
    "b": "success",
    "y": "discard",
    "menu": "discard",
    "thumbstick": "precision",
    "trackpad": "precision",
}
"""Button: what it does. The trigger always drives and the grip always closes the gripper."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How one operator drives."""

    hand: HandName = "right"
    """The hand that drives where there is one arm."""
    facing_deg: float = 0.0
    """Heading of the operator's forward in the robot's world [deg]: 0 looks with the robot, 180 toward it."""
    scale: float = SCALE
    """Tool motion per hand motion, for an operator of `REFERENCE_HEIGHT`."""
    precision: float = PRECISION
    """Factor on the scale while precision is held."""
    height: float = REFERENCE_HEIGHT
    """The operator's height [m]."""
    filter: str = "low_pass"
    """`low_pass`, `one_euro` or `none`."""
    filter_tau: float = DEFAULT_TIME_CONSTANT
    """Time constant of the low pass [s]; 0.031 is a factor of 0.3 at 90 Hz."""
    buttons: Mapping[str, str] = field(default_factory=lambda: dict(DEFAULT_BUTTONS))
    """Button: a recorder's command, or `rereference`, `precision`, `none`."""

    def __post_init__(self) -> None:
        """Check every value.

        Raises:
            BunrakuError: If one is out of range; names it.
        """
        for name in ("scale", "precision", "height"):
            if not 0.0 < getattr(self, name) < 10.0:
                raise BunrakuError(f"profile: {name} must be between 0 and 10, got {getattr(self, name)}")
        if not 0.0 <= self.filter_tau <= 1.0:
            raise BunrakuError(f"profile: filter_tau must be between 0 and 1 s, got {self.filter_tau}")
        if self.hand not in HANDS:
            raise UnknownNameError("hand", self.hand, HANDS)
        if self.filter not in FILTERS:
            raise UnknownNameError("filter", self.filter, FILTERS)
        for button, action in self.buttons.items():
            if button not in BUTTONS:
                raise UnknownNameError("button", button, BUTTONS)
            if action not in (*COMMANDS, *HAND_ACTIONS):
                raise UnknownNameError("button action", action, (*COMMANDS, *HAND_ACTIONS))

    @property
    def hand_scale(self) -> float:
        """Tool motion per hand motion for this operator's height."""
        return self.scale * REFERENCE_HEIGHT / self.height


def profile_path(name: str) -> Path:
    """Return where the profile of that name is kept (a path to a .toml file is taken as it is)."""
    if name.endswith(".toml"):
        return Path(name)
    if sys.platform == "win32":
        base = Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming"))
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME", Path.home() / ".config"))
    return base / "bunraku" / "profiles" / f"{name}.toml"


def load_profile(name: str) -> Profile:
    """Load a profile by name or path.

    Raises:
        BunrakuError: If there is none, or it cannot be read; names the file and the value.
    """
    path = profile_path(name)
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BunrakuError(
            f"no profile {name!r} at {path}; write one with collect --save-profile {name}"
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BunrakuError(f"cannot read the profile {path}: {error}") from error
    known = [f.name for f in fields(Profile)]
    for key, value in values.items():
        if key not in known:
            raise UnknownNameError(f"profile key in {path}", key, known)
        wanted = {"buttons": dict, "filter": str, "hand": str}.get(key, float)
        if not isinstance(value, (int, float) if wanted is float else wanted) or isinstance(value, bool):
            raise BunrakuError(f"profile {path}: {key} must be a {wanted.__name__}, got {value!r}")
    if "buttons" in values:
        values["buttons"] = {**DEFAULT_BUTTONS, **values["buttons"]}
    return Profile(**values)


def save_profile(profile: Profile, name: str) -> Path:
    """Write a profile; return its path.

    Raises:
        BunrakuError: If the file cannot be written.
    """
    path = profile_path(name)
    values = asdict(profile)
    buttons = values.pop("buttons")
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    lines += ["", "[buttons]", *(f"{key} = {json.dumps(value)}" for key, value in buttons.items())]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as error:
        raise BunrakuError(f"cannot write the profile {path}: {error.strerror}") from error
    return path
