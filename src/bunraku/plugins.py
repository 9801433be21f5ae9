"""Finding things by name: each device, robot, task and exporter is one file, and its file name is its name.

A group is a package of ours (`bunraku.teleop_collect.devices`) together with the entry points of the same
group name that other distributions declare:

    [project.entry-points."bunraku.devices"]
    my_glove = "my_package.glove:Glove"

Nothing is imported until it is asked for by name.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import pkgutil
from dataclasses import dataclass
from functools import cache
from typing import Any

from bunraku.errors import BunrakuError, UnknownNameError


@dataclass(frozen=True, slots=True)
class Group:
    """A kind of plugin."""

    kind: str
    """The word for one of them in messages, such as "device"."""
    package: str
    """Our package that holds one file for each."""
    entry_points: str
    """Entry-point group for those of others."""
    attribute: str
    """The name that each of our files binds to the thing itself (a class or an object)."""


DEVICES = Group("device", "bunraku.teleop_collect.devices", "bunraku.devices", "DEVICE")
ROBOTS = Group("robot", "bunraku.robots", "bunraku.robots", "ROBOT")
EXPORTERS = Group("export format", "bunraku.teleop_collect.exporters", "bunraku.exporters", "EXPORTER")
MOTION_SOURCES = Group("motion source", "bunraku.retarget.sources", "bunraku.motion_sources", "SOURCE")
MOTION_EXPORTERS = Group(
    "motion format", "bunraku.retarget.exporters", "bunraku.motion_exporters", "EXPORTER"
)
IMPORTERS = Group("import format", "bunraku.teleop_collect.importers", "bunraku.importers", "IMPORTER")
TASKS = Group("environment", "bunraku.envs.tasks", "bunraku.tasks", "TASK")


@cache
def _ours(group: Group) -> frozenset[str]:
    package = importlib.import_module(group.package)
    return frozenset(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))


@cache
def _others(group: Group) -> dict[str, importlib.metadata.EntryPoint]:
    return {point.name: point for point in importlib.metadata.entry_points(group=group.entry_points)}


def names(group: Group) -> list[str]:
    """Return the names of all plugins of a group, sorted."""
    return sorted(_ours(group) | set(_others(group)))


def load(group: Group, name: str) -> Any:
    """Return the plugin of that name.

    Args:
        group: The kind of plugin.
        name: The file's name, or that of the entry point.

    Raises:
        UnknownNameError: If there is none of that name; names the nearest.
        BunrakuError: If a third party's plugin cannot be imported.
    """
    if name in _ours(group):
        return getattr(importlib.import_module(f"{group.package}.{name}"), group.attribute)
    point = _others(group).get(name)
    if point is None:
        raise UnknownNameError(group.kind, name, names(group))
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        raise BunrakuError(
            f"the {group.kind} plugin {name!r} ({point.value}) cannot be imported: {error}"
        ) from error
