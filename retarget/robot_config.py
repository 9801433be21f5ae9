"""The file that describes a robot for retargeting: a built-in name or `my_robot.toml`.

    [robot]
    name = "my_robot"
    model = "my_robot.urdf"       # MJCF or URDF, relative to this file; or a built-in robot
    root_body = "pelvis"
    human_scale = 0.75            # robot size over human size
    home_height = 0.79            # of the root body over the floor at `home` [m]

    [frames]                      # human key point = body or site of the robot
    pelvis = "pelvis"
    left_knee = "left_knee_link"

    [sites]                       # points that the model lacks: body, x, y, z in its frame [m]
    left_toe = ["left_ankle_link", 0.1, 0.0, -0.03]

    [feet.left]
    body = "left_ankle_link"
    sole = [[0.1, 0.03, -0.03], ...]    # front left, front right, rear right, rear left

    [home]                        # joint angles of a relaxed stand [rad]; others are 0
    [torque_limit]                # joint = [N m]; `default` for the others
    [speed_limit]                 # joint = [rad/s]; `default` for the others
    [tasks]                       # key point = [position weight, orientation weight]; the source's table by default
    [solver]                      # posture, damping, substeps, target_step, limit_gain

`bunraku robots new MODEL` writes a first version by reading the model.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import mujoco

from bunraku import plugins
from bunraku.errors import BunrakuError, FileFormatError, UnknownNameError
from bunraku.humanoid import LIMBS, Foot, HumanoidSpec, Root, free_root, humanoids
from bunraku.retarget.model_files import read_model
from bunraku.retarget.solver.problem import FrameTask, Settings
from bunraku.retarget.solver.source_table import WEIGHTS, source_tasks

REQUIRED = {"pelvis", "spine3"} | {point for limb in LIMBS.values() for point in limb}
"""Key points that every robot has."""
OPTIONAL = {"left_foot", "right_foot"}
"""Key points that a robot may have: the toes."""
_TABLES = {"robot", "frames", "sites", "feet", "home", "torque_limit", "speed_limit", "tasks", "solver"}
_ROBOT_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "model": str,
    "root_body": str,
    "human_scale": (int, float),
    "home_height": (int, float),
}


@dataclass(frozen=True)
class RobotConfig:
    """A robot with the weights and numbers of its inverse kinematics."""

    robot: HumanoidSpec
    """The robot."""
    weights: Mapping[str, tuple[float, float]] = field(default_factory=lambda: dict(WEIGHTS))
    """Position weight [1/m] and orientation weight [1/rad] of each task."""
    settings: Settings = field(default_factory=Settings)
    """Numbers of the solver."""

    def tasks(self) -> list[FrameTask]:
        """Return the task table."""
        return source_tasks(self.robot.frames, self.weights)


def load_robot(robot: str | Path) -> RobotConfig:
    """Return the robot of a built-in name or of a configuration file.

    Args:
        robot: A built-in humanoid (`h1` is bunraku's own small one, `unitree_h1` is Unitree's) or a `.toml` file.

    Raises:
        UnknownNameError: If there is no humanoid of that name.
        BunrakuError: If there is no such file, or it names what the model does not have.
        FileFormatError: If the file is not what it should be.
    """
    text = str(robot)
    if not text.endswith(".toml"):
        if text not in humanoids():
            raise UnknownNameError("robot", text, humanoids())
        return RobotConfig(plugins.load(plugins.ROBOTS, text))
    path = Path(robot)
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise BunrakuError(f"no robot file {path}; `bunraku robots new MODEL` writes one") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} is not TOML: {error}") from error
    return _Reader(path, data).config()


class _Reader:
    """Reads one file; every complaint names it."""

    def __init__(self, path: Path, data: dict[str, Any]) -> None:
        self.path, self.data = path, data

    def fail(self, message: str) -> FileFormatError:
        return FileFormatError(f"{self.path}: {message}")

    def table(self, name: str) -> dict[str, Any]:
        value = self.data.get(name, {})
        if not isinstance(value, dict):
            raise self.fail(f"[{name}] is a table; got {value!r}")
        return value

    def known(self, what: str, names: Sequence[str] | set[str], allowed: Sequence[str] | set[str]) -> None:
        for name in names:
            if name not in allowed:
                raise FileFormatError(f"{self.path}: {UnknownNameError(what, name, allowed)}")

    def numbers(self, where: str, value: Any, count: int) -> tuple[float, ...]:
        good = isinstance(value, list) and len(value) == count
        if not good or not all(isinstance(v, int | float) and not isinstance(v, bool) for v in value):
            raise self.fail(f"{where} is {count} numbers; got {value!r}")
        return tuple(float(v) for v in value)

    def config(self) -> RobotConfig:
        self.known("table", set(self.data), _TABLES)
        robot = self.table("robot")
        self.known("key of [robot]", set(robot), set(_ROBOT_KEYS))
        for key, kind in _ROBOT_KEYS.items():
            if not isinstance(robot.get(key), kind):
                raise self.fail(f"[robot] needs {key} = ...; got {robot.get(key)!r}")
        if not robot["human_scale"] > 0:
            raise self.fail(f"human_scale is above 0; got {robot['human_scale']}")
        bare_robot = self.model(robot["model"])
        sites = {name: self.site(name, value) for name, value in self.table("sites").items()}
        bare = bare_robot()
        bodies = [body.name for body in bare.bodies if body.name != "world"]
        self.known("body (root_body)", {robot["root_body"]}, bodies)
        self.known("body (of a site)", {body for body, _ in sites.values()}, bodies)
        root_body = robot["root_body"]

        def load(root: Root = "fixed") -> mujoco.MjSpec:
            spec = bare_robot()
            for name, (body, pos) in sites.items():
                spec.body(body).add_site(name=name, pos=list(pos))
            return free_root(spec, root_body, root)

        joints = _hinges(bare)
        frames = self.frames({*bodies, *sites, *(site.name for site in bare.sites)})
        feet = self.feet(bodies)
        for name in ("home", "torque_limit", "speed_limit"):
            self.known(f"joint in [{name}]", set(self.table(name)) - {"default"}, joints)
        spec = HumanoidSpec(
            name=robot["name"],
            joints=tuple(joints),
            root_body=root_body,
            frames=frames,
            human_scale=float(robot["human_scale"]),
            feet=feet,
            home=self.by_joint("home", joints, 0.0),
            home_height=float(robot["home_height"]),
            torque_limit=self.by_joint("torque_limit", joints, float("inf")),
            speed_limit=self.by_joint("speed_limit", joints, float("inf")),
            load=load,
        )
        return RobotConfig(spec, self.weights(), self.settings())

    def model(self, name: str) -> Callable[[], mujoco.MjSpec]:
        """Return what loads the bare robot with a fixed root: of a built-in robot, or of a file."""
        if name in humanoids():
            load: Callable[[], mujoco.MjSpec] = plugins.load(plugins.ROBOTS, name).load
            return load
        path = (self.path.parent / Path(name).expanduser()).resolve()
        return lambda: read_model(path)

    def site(self, name: str, value: Any) -> tuple[str, tuple[float, ...]]:
        if not isinstance(value, list) or len(value) != 4 or not isinstance(value[0], str):
            raise self.fail(f"[sites] {name} is [body, x, y, z]; got {value!r}")
        return value[0], self.numbers(f"[sites] {name} after its body", value[1:], 3)

    def frames(self, places: set[str]) -> dict[str, str]:
        frames = self.table("frames")
        self.known("key point in [frames]", set(frames), REQUIRED | OPTIONAL)
        missing = sorted(REQUIRED - set(frames))
        if missing:
            raise self.fail(
                f"[frames] lacks {', '.join(missing)}; name the body or site of the robot for each"
            )
        self.known("body or site in [frames]", set(frames.values()), places)
        return frames

    def feet(self, bodies: list[str]) -> tuple[Foot, Foot]:
        feet = self.table("feet")
        if set(feet) != {"left", "right"}:
            raise self.fail(f"[feet.left] and [feet.right] are needed; got {sorted(feet)}")
        made = []
        for side in ("left", "right"):
            body, sole = feet[side].get("body"), feet[side].get("sole")
            self.known(f"body in [feet.{side}]", {str(body)}, bodies)
            if not isinstance(sole, list) or len(sole) != 4:
                raise self.fail(f"[feet.{side}] sole is 4 corners; got {sole!r}")
            corners = tuple(self.numbers(f"a corner of [feet.{side}] sole", corner, 3) for corner in sole)
            made.append(Foot(body, corners))  # type: ignore[arg-type]
        return made[0], made[1]

    def by_joint(self, name: str, joints: Sequence[str], default: float) -> tuple[float, ...]:
        table = self.table(name)
        for joint, value in table.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.fail(f"[{name}] {joint} is a number; got {value!r}")
        return tuple(float(table.get(joint, table.get("default", default))) for joint in joints)

    def weights(self) -> dict[str, tuple[float, float]]:
        table = self.table("tasks")
        if not table:
            return dict(WEIGHTS)
        self.known("task in [tasks]", set(table), set(WEIGHTS))
        weights = {}
        for name, value in table.items():
            position, orientation = self.numbers(f"[tasks] {name}", value, 2)
            if position < 0 or orientation < 0:
                raise self.fail(f"[tasks] {name}: weights are not negative; got {value!r}")
            weights[name] = (position, orientation)
        return weights

    def settings(self) -> Settings:
        table = self.table("solver")
        self.known("key of [solver]", set(table), {f.name for f in fields(Settings)})
        for name, value in table.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
                raise self.fail(f"[solver] {name} is a number from 0 up; got {value!r}")
        return Settings(**table)


def _hinges(spec: mujoco.MjSpec) -> list[str]:
    """Return the names of the hinges in the order of the model."""
    model = spec.compile()
    hinge = int(mujoco.mjtJoint.mjJNT_HINGE)
    return [model.joint(j).name for j in range(model.njnt) if int(model.jnt_type[j]) == hinge]


def to_toml(config: RobotConfig, model: str, sites: Mapping[str, tuple[str, Sequence[float]]]) -> str:
    """Return the text of a configuration file.

    Args:
        config: The robot.
        model: Path of its model, as the file shall name it.
        sites: Points that the model lacks: body and position in its frame [m].
    """
    robot = config.robot

    def number(value: float) -> str:
        return repr(round(float(value), 6))

    def rows(values: Mapping[str, str]) -> list[str]:
        return [f"{name} = {value}" for name, value in values.items()]

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = ["[robot]"]
    lines += rows({"name": quoted(robot.name), "model": quoted(model), "root_body": quoted(robot.root_body)})
    lines += rows({"human_scale": number(robot.human_scale), "home_height": number(robot.home_height)})
    lines += ["", "[frames]", *rows({point: quoted(place) for point, place in robot.frames.items()})]
    if sites:
        lines += ["", "[sites]"]
        lines += [
            f"{name} = [{quoted(body)}, {', '.join(map(number, pos))}]" for name, (body, pos) in sites.items()
        ]
    for side, foot in zip(("left", "right"), robot.feet, strict=True):
        corners = ", ".join("[" + ", ".join(map(number, corner)) + "]" for corner in foot.sole)
        lines += ["", f"[feet.{side}]", f"body = {quoted(foot.body)}", f"sole = [{corners}]"]
    home = {joint: number(q) for joint, q in zip(robot.joints, robot.home, strict=True) if q}
    lines += ["", "[home]", *rows(home)]
    for name in ("torque_limit", "speed_limit"):
        values = dict(zip(robot.joints, getattr(robot, name), strict=True))
        lines += ["", f"[{name}]", *rows({joint: number(v) for joint, v in values.items() if v < 1e6})]
    lines += ["", "[tasks]  # position weight, orientation weight"]
    lines += [f"{name} = [{number(p)}, {number(o)}]" for name, (p, o) in config.weights.items()]
    lines += [
        "",
        "[solver]",
        *rows({f.name: repr(getattr(config.settings, f.name)) for f in fields(Settings)}),
    ]
    return "\n".join(lines) + "\n"
