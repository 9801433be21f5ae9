"""Reading a user's robot: any MJCF or URDF becomes an `MjSpec` of the bare robot, its root fixed.

What does not belong to the bare robot goes: actuators, sensors, keyframes, the floor, a free joint of the root. In a
URDF, `package://` paths are looked up in the folders above the file; meshes that are not there are left out, and
with them their part of the self-collision check, which a warning says.
"""

from __future__ import annotations

import logging
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import mujoco

from bunraku.errors import BunrakuError, FileFormatError

LOG = logging.getLogger("bunraku.retarget")


def read_model(path: Path) -> mujoco.MjSpec:
    """Return the bare robot of an MJCF or URDF file.

    Args:
        path: The file.

    Raises:
        BunrakuError: If there is no such file.
        FileFormatError: If it is neither MJCF nor URDF, or MuJoCo cannot read it.
    """
    if not path.is_file():
        raise BunrakuError(f"no robot model {path}; name an MJCF or URDF file, or a built-in robot")
    try:
        tag = ElementTree.parse(path).getroot().tag
    except (ElementTree.ParseError, UnicodeDecodeError) as error:
        raise FileFormatError(
            f"{path} is not XML ({error}); a robot model is an MJCF or URDF file"
        ) from error
    if tag not in ("mujoco", "robot"):
        raise FileFormatError(f"{path} is neither MJCF (<mujoco>) nor URDF (<robot>), but <{tag}>")
    try:
        spec = (
            mujoco.MjSpec.from_string(_urdf(path)) if tag == "robot" else mujoco.MjSpec.from_file(str(path))
        )
        _strip(spec)
        spec.compile()
    except ValueError as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from error
    return spec


def urdf_speed_limits(path: Path) -> dict[str, float]:
    """Return the speed limits [rad/s] that a URDF states, by joint; none of an MJCF."""
    root = ElementTree.parse(path).getroot()
    limits = {joint.get("name", ""): joint.find("limit") for joint in root.iter("joint")}
    return {name: float(limit.get("velocity", 0)) for name, limit in limits.items() if limit is not None}


def _strip(spec: mujoco.MjSpec) -> None:
    """Take out what the bare robot does not have."""
    for element in [*spec.sensors, *spec.actuators, *spec.keys]:
        spec.delete(element)
    for body in spec.worldbody.bodies:
        for joint in list(body.joints):
            if int(joint.type) == int(mujoco.mjtJoint.mjJNT_FREE):
                spec.delete(joint)
    for element in [*spec.worldbody.geoms, *spec.worldbody.lights, *spec.worldbody.cameras]:
        spec.delete(element)


def _urdf(path: Path) -> str:
    """Return a URDF with absolute mesh paths, a fixed world under its root, and its fixed links kept."""
    robot = ElementTree.parse(path).getroot()
    lost = 0
    for link in robot.iter("link"):
        for kind in ("visual", "collision"):
            for element in link.findall(kind):
                mesh = element.find("geometry/mesh")
                if mesh is None:
                    continue
                found = _find(path, mesh.get("filename", ""))
                if found is not None and found.suffix.lower() in (".stl", ".obj", ".msh"):
                    mesh.set("filename", str(found))
                else:
                    link.remove(element)
                    lost += kind == "collision"
    if lost:
        LOG.warning(
            "%s: %d collision meshes were not found; self-collisions of those links are not seen", path, lost
        )
    links = [link.get("name") for link in robot.findall("link")]
    children = {child.get("link") for child in robot.iter("child")}
    if "world" not in links:
        (root,) = [name for name in links if name not in children][:1] or [None]
        if root is None:
            raise FileFormatError(f"{path} has no link that is nobody's child")
        ElementTree.SubElement(robot, "link", name="world")
        mount = ElementTree.SubElement(robot, "joint", name="world_mount", type="fixed")
        ElementTree.SubElement(mount, "parent", link="world")
        ElementTree.SubElement(mount, "child", link=str(root))
    for old in robot.findall("mujoco"):
        robot.remove(old)
    options = ElementTree.SubElement(robot, "mujoco")
    ElementTree.SubElement(
        options,
        "compiler",
        fusestatic="false",
        discardvisual="true",
        balanceinertia="true",
        strippath="false",
    )
    return ElementTree.tostring(robot, encoding="unicode")


def _find(urdf: Path, name: str) -> Path | None:
    """Return the file that a URDF means by a mesh name."""
    relative = Path(name.removeprefix("package://").removeprefix("file://"))
    shorter = Path(*relative.parts[1:]) if len(relative.parts) > 1 else relative
    for folder in urdf.resolve().parents:
        for candidate in (folder / relative, folder / shorter):
            if candidate.is_file():
                return candidate
    return None
