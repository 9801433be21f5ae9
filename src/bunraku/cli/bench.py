"""Measure speed against a named peer or limit, both in one run; a ratio over 1 means that ours is better.

The benchmarks are part of the source checkout (folder benchmarks/). Exit code 1 if a required ratio is missed.
"""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from bunraku.cli.main import EXIT_CHECK_FAILED, EXIT_OK, say
from bunraku.errors import BunrakuError, MissingDependencyError, UnknownNameError

HELPERS = {"timing"}


@dataclass(frozen=True)
class Args:
    """Options of `bench`."""

    name: Annotated[str, tyro.conf.Positional]
    """The benchmark: a file of the folder benchmarks/, such as ik, tick, single-env, vector-env, startup."""
    repeats: int | None = None
    """Rounds; each benchmark has its own default."""
    json: bool = False
    """Print one JSON object on stdout."""


def run(args: Args) -> int:
    """Run one benchmark; return the exit code."""
    folder = benchmarks_folder()
    known = {
        path.stem.replace("_", "-")
        for path in folder.glob("*.py")
        if path.stem not in HELPERS and "def run(" in path.read_text(encoding="utf-8")
    }
    if args.name not in known:
        raise UnknownNameError("benchmark", args.name, known)
    sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(args.name.replace("-", "_"))
    except ImportError as error:
        raise MissingDependencyError(error.name or str(error), f"the benchmark {args.name}", "dev") from error
    results = module.run() if args.repeats is None else module.run(args.repeats)
    for result in results:
        verdict = "ok" if result.ok else f"MISSED (needs {result.required:g})"
        say(
            f"{result.name}: ours {result.ours:.4g} {result.unit}, peer {result.peer:.4g} {result.unit},"
            f" ratio {result.ratio:.2f} {verdict}"
        )
    if args.json:
        worst = min(results, key=lambda result: result.ratio / result.required)
        cases = [asdict(result) | {"ok": result.ok} for result in results]
        sys.stdout.write(json.dumps({**asdict(worst), "name": args.name, "cases": cases}) + "\n")
    return EXIT_OK if all(result.ok for result in results) else EXIT_CHECK_FAILED


def benchmarks_folder() -> Path:
    """Return the folder of benchmarks of the source checkout.

    Raises:
        BunrakuError: If there is none: an installed wheel has no benchmarks.
    """
    for root in (Path(__file__).resolve().parents[3], Path.cwd()):
        folder = root / "benchmarks"
        if (folder / "timing.py").is_file():
            return folder
    raise BunrakuError("no benchmarks/ folder here; run bunraku bench in a checkout of the source")
