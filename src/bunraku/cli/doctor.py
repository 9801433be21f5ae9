"""Say what works on this machine, and what to do where something does not.

Exit code 0 if demonstrations can be collected with some device (the simulated operator counts), else 1.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from bunraku.cli.main import EXIT_CHECK_FAILED, EXIT_OK, say

if TYPE_CHECKING:
    from bunraku.cli.health import Check


@dataclass(frozen=True)
class Args:
    """Options of `doctor`."""

    seconds: float = 2.0
    """How long to watch VR controllers [s]; hold them still."""
    json: bool = False
    """Print one JSON object on stdout."""


def run(args: Args) -> int:
    """Check everything; return the exit code."""
    from bunraku.cli.health import all_checks, can_collect

    checks: list[Check] = []
    for check in all_checks(args.seconds):
        checks.append(check)
        mark = "ok  " if check.ok else ("FAIL" if check.required else "no  ")
        say(f"{mark} {check.name}: {check.detail}" + (f"\n     -> {check.remedy}" if check.remedy else ""))
    ok = can_collect(checks)
    say("demonstrations can be collected here" if ok else "demonstrations cannot be collected here")
    if args.json:
        found = [asdict(check) for check in checks]
        sys.stdout.write(json.dumps({"ok": ok, "checks": found}) + "\n")
    return EXIT_OK if ok else EXIT_CHECK_FAILED
