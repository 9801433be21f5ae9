"""Find out which way the operator faces: hold the trigger, move the hand straight ahead, let go.

The heading goes into a profile, which `collect --profile NAME` uses. With several strokes their mean is taken.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from typing import Literal

from bunraku.cli.main import EXIT_OK, say
from bunraku.errors import BunrakuError


@dataclass(frozen=True)
class Args:
    """Options of `calibrate`."""

    profile: str = "default"
    """Name of the profile to write."""
    device: str = "openvr"
    """The device to calibrate."""
    hand: Literal["left", "right"] = "right"
    """The hand that makes the stroke."""
    timeout: float = 60.0
    """Time to wait for the stroke [s]."""
    json: bool = False
    """Print one JSON object on stdout."""


def run(args: Args) -> int:
    """Calibrate; return the exit code."""
    from bunraku.teleop_collect.calibration import record_stroke
    from bunraku.teleop_collect.devices import open_device
    from bunraku.teleop_collect.frames import facing_from_stroke
    from bunraku.teleop_collect.profile import Profile, load_profile, profile_path, save_profile

    with open_device(args.device, clock=time.perf_counter) as device:
        say(
            "Face the way that is 'ahead' for you. Hold the trigger, move the hand 20 cm straight ahead, let go."
        )
        start, end = record_stroke(device, args.hand, timeout=args.timeout)
    try:
        facing = facing_from_stroke(start, end)
    except ValueError as error:
        raise BunrakuError(f"{error}; run calibrate again") from error
    known = profile_path(args.profile).exists()
    profile = replace(load_profile(args.profile) if known else Profile(), facing_deg=round(facing, 1))
    path = save_profile(profile, args.profile)
    say(
        f"facing {profile.facing_deg:g} degrees, saved in {path}; use it with: collect --profile {args.profile}"
    )
    if args.json:
        sys.stdout.write(json.dumps({"profile": str(path), "facing_deg": profile.facing_deg}) + "\n")
    return EXIT_OK
