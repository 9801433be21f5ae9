"""MuJoCo Menagerie's meshed models, with the names that our robot specs use.

`mujoco_menagerie` brings the files itself or fetches them on first use; nothing of it is part of this
repository.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import mujoco

from bunraku.errors import BunrakuError, MissingDependencyError
from bunraku.robot import RobotSpec


def meshed(robot: RobotSpec, folder: str, file: str, tool_offset: float) -> mujoco.MjSpec:
    """Return the meshed model of a robot: bodies, joints and geoms, without actuators, with our tool site.

    Args:
        robot: The robot; its joint names are Menagerie's.
        folder: Menagerie's folder of the robot.
        file: The MJCF file in it.
        tool_offset: Distance of the tool centre point from the hand body along its z [m].

    Raises:
        MissingDependencyError: If `mujoco_menagerie` is not installed.
        BunrakuError: If the model's file cannot be had.
    """
    path = _model_file(folder, file)
    spec = mujoco.MjSpec.from_file(str(path))
    # whole paths: the scene is stored with recordings, and must find its meshes from wherever it is loaded
    for mesh in spec.meshes:
        if mesh.file:
            mesh.file = str((path.parent / spec.compiler.meshdir / mesh.file).resolve())
    for texture in spec.textures:
        if texture.file:
            texture.file = str((path.parent / spec.compiler.texturedir / texture.file).resolve())
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for element in [*spec.equalities, *spec.tendons, *spec.keys]:
        spec.delete(element)
    for body in spec.bodies:
        body.gravcomp = 1.0
    spec.body("hand").add_site(name=robot.tool_site, pos=[0.0, 0.0, tool_offset])
    return spec


def _model_file(folder: str, file: str) -> Path:
    try:
        menagerie = importlib.import_module("mujoco_menagerie")
    except ImportError as error:
        raise MissingDependencyError("mujoco_menagerie", "robot_model='menagerie'", "robots") from error
    try:
        path = Path(menagerie.get(folder).path(None, None))
    except (menagerie.MenagerieError, OSError) as error:
        raise BunrakuError(
            f"the Menagerie model {folder!r} cannot be had: {error}; connect to the internet once, or set"
            " MENAGERIE_ROOT to a checkout of mujoco_menagerie"
        ) from error
    path = (path if path.is_dir() else path.parent) / file
    if not path.is_file():
        raise BunrakuError(f"mujoco_menagerie has no {path}; reinstall mujoco_menagerie")
    return path
