"""What a humanoid is: one frozen record per robot, the only place where its joint and body names are written.

The human side of everything are key points of the SMPL skeleton (pelvis, left_hip, ..., right_wrist); `frames` says
which body or site of the robot is which key point. A bone is the stretch between two key points of `LIMBS`, so its
length follows from the model and is written nowhere.

    from bunraku.robots.h1 import ROBOT
    model = ROBOT.load(root="free").compile()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from bunraku import plugins

if TYPE_CHECKING:
    import mujoco

Root = Literal["free", "fixed"]

LIMBS: Mapping[str, tuple[str, ...]] = {
    "left_leg": ("left_hip", "left_knee", "left_ankle"),
    "right_leg": ("right_hip", "right_knee", "right_ankle"),
    "left_arm": ("left_shoulder", "left_elbow", "left_wrist"),
    "right_arm": ("right_shoulder", "right_elbow", "right_wrist"),
    "head": ("neck", "head"),
}
"""Key points of each chain of bones, from the trunk outwards; the first is where the chain is anchored."""

Point = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Foot:
    """A foot: the body that carries the sole, and where the sole is."""

    body: str
    """Name of the body."""
    sole: tuple[Point, Point, Point, Point]
    """Corners of the sole in the body's frame [m]: front left, front right, rear right, rear left."""


@dataclass(frozen=True, slots=True)
class HumanoidSpec:
    """A humanoid robot."""

    name: str
    """The robot's name: that of its file."""
    joints: tuple[str, ...]
    """Names of the hinges, in the order of `dof` arrays and of the model's `qpos` after the root."""
    root_body: str
    """Name of the body that stands for the human's pelvis; with a free root it carries the free joint `root`."""
    frames: Mapping[str, str]
    """SMPL key point: name of the body, or else site, whose origin it is. All of `LIMBS`, `pelvis` and `spine3` (the
    chest) are there; others (the toes `left_foot`, `right_foot`) where the robot has them."""
    human_scale: float
    """Robot size over human size, by which a human's root trajectory is scaled."""
    feet: tuple[Foot, Foot]
    """Left and right foot."""
    home: tuple[float, ...]
    """Joint angles [rad] of a relaxed stand, feet flat."""
    home_height: float
    """Height of the root body above the floor at `home` [m]."""
    torque_limit: tuple[float, ...]
    """Largest joint torques [N m]."""
    speed_limit: tuple[float, ...]
    """Largest joint speeds [rad/s]."""
    load: Callable[..., mujoco.MjSpec]
    """`load(root="free")` or `load(root="fixed")`: a fresh spec of the bare robot, without floor and actuators."""

    @property
    def dof(self) -> int:
        """Number of joints."""
        return len(self.joints)


def free_root(spec: mujoco.MjSpec, body: str, root: Root) -> mujoco.MjSpec:
    """Give the root body a free joint named `root`, or leave it fixed.

    Args:
        spec: The robot with a fixed root; changed in place.
        body: Name of the root body.
        root: What its root shall be.
    """
    if root not in ("free", "fixed"):
        raise ValueError(f"root is 'free' or 'fixed'; got {root!r}")
    if root == "free":
        spec.body(body).add_freejoint(name="root")
    return spec


def humanoids() -> list[str]:
    """Return the names of the robots that are humanoids, sorted."""
    return [
        name
        for name in plugins.names(plugins.ROBOTS)
        if isinstance(plugins.load(plugins.ROBOTS, name), HumanoidSpec)
    ]
