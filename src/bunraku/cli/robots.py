"""List the humanoids that motion can be retargeted to, or describe a new one.

`robots list` shows the built-in ones (`h1` is bunraku's own small humanoid, `unitree_h1` is Unitree's). `robots new
MODEL` reads an MJCF or URDF file, or a built-in robot, and writes a first robot file for `bunraku retarget --robot`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from bunraku.cli.main import EXIT_OK, say
from bunraku.errors import BunrakuError


@dataclass(frozen=True)
class List:
    """Show the built-in humanoids."""

    json: bool = False
    """Print one JSON object on stdout."""


@dataclass(frozen=True)
class New:
    """Write a first robot file by reading a model."""

    model: Annotated[str, tyro.conf.Positional]
    """An MJCF or URDF file, or the name of a built-in humanoid."""
    out: Path | None = None
    """The file to write; by default the model's name with .toml, here."""
    force: bool = False
    """Overwrite it if it exists."""
    json: bool = False
    """Print one JSON object on stdout."""


Args = Annotated[List, tyro.conf.subcommand("list")] | Annotated[New, tyro.conf.subcommand("new")]


def run(args: List | New) -> int:
    """List or describe; return the exit code."""
    return _new(args) if isinstance(args, New) else _list(args)


def _list(args: List) -> int:
    from bunraku import plugins
    from bunraku.humanoid import humanoids

    robots: list[dict[str, Any]] = []
    for name in humanoids():
        robot = plugins.load(plugins.ROBOTS, name)
        model = robot.load().compile()
        mass = round(float(model.body_mass.sum()), 3)
        robots.append(
            {"name": name, "joints": robot.dof, "mass_kg": mass, "home_height_m": robot.home_height}
        )
    if args.json:
        sys.stdout.write(json.dumps({"robots": robots}) + "\n")
        return EXIT_OK
    for row in robots:
        sys.stdout.write(f"{row['name']:16s} {row['joints']:3d} joints  {row['mass_kg']:6.1f} kg\n")
    return EXIT_OK


def _new(args: New) -> int:
    from bunraku import plugins
    from bunraku.humanoid import humanoids
    from bunraku.retarget.guess import Guess
    from bunraku.retarget.robot_config import RobotConfig, load_robot, to_toml

    built_in = args.model in humanoids()
    out = args.out or Path(Path(args.model).stem + ".toml")
    if out.exists() and not args.force:
        raise BunrakuError(f"{out} exists; name another file with --out, or add --force")
    remarks: list[str] = []
    if built_in:
        config = RobotConfig(plugins.load(plugins.ROBOTS, args.model))
        text = to_toml(config, args.model, {})
    else:
        guess = Guess(Path(args.model))
        config, remarks = guess.config, guess.remarks
        text = to_toml(config, str(Path(args.model).resolve()), guess.sites)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, "utf-8")
    load_robot(out)  # what was written can be read
    for remark in remarks:
        say(f"look at {remark}")
    say(f"{out}: {config.robot.name}, {config.robot.dof} joints, scale {config.robot.human_scale}")
    if args.json:
        report = {
            "path": str(out),
            "robot": config.robot.name,
            "joints": config.robot.dof,
            "human_scale": config.robot.human_scale,
            "remarks": remarks,
        }
        sys.stdout.write(json.dumps(report) + "\n")
    return EXIT_OK
