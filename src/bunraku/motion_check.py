"""What is wrong with a robot's motion before anyone trains on it, and repairs of what can be repaired.

A foot stands where its whole sole is within `STANDS` of the floor, in the frames before and after too: a foot that
rolls over its toes or swings low over the floor moves along it and does not slide.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import mujoco
import numpy as np

from bunraku.geometry import Array, rotate
from bunraku.humanoid import HumanoidSpec
from bunraku.motion import RobotMotion
from bunraku.motion_bodies import rates, with_bodies

STANDS = 0.005
"""A foot whose highest corner is below this, at human scale, stands [m]."""
FLOATS, SINKS, SLIDES = 0.05, 0.02, 0.25
"""Too high over the floor [m], too deep in it [m], too fast along it [m/s], at human scale."""
JUMP = 0.35
"""A joint that moves further from one frame to the next jumps [rad]."""


@dataclass(frozen=True)
class MotionReport:
    """What was found; lengths at human scale, so that robots of all sizes compare."""

    frames: int
    floating: float
    """Greatest height of the lower foot over the floor [m]."""
    penetration: float
    """Greatest depth of a sole in the floor [m]."""
    sliding: float
    """90th percentile of the speed of standing feet along the floor [m/s]."""
    jumps: int
    """Steps of joints from one frame to the next that are too large."""
    beyond_limits: int
    """Joint angles that are beyond the joints' ranges."""
    over_speed: int
    """Joint speeds that are beyond the robot's limits."""

    @property
    def ok(self) -> bool:
        """Whether a policy can be trained on the motion as it is."""
        smooth = self.jumps == 0 and self.beyond_limits == 0 and self.over_speed == 0
        return smooth and self.floating <= FLOATS and self.penetration <= SINKS and self.sliding <= SLIDES

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return asdict(self) | {"ok": self.ok}


def soles(motion: RobotMotion, robot: HumanoidSpec, model: mujoco.MjModel) -> Array:
    """Return the corners of both soles along a motion, world `(T, 2, 4, 3)` [m]."""
    names = [foot.body for foot in robot.feet]
    placed = with_bodies(motion, model, names)
    assert placed.body_pos is not None
    assert placed.body_quat is not None
    corners = np.array([foot.sole for foot in robot.feet])
    return placed.body_pos[:, :, None] + rotate(placed.body_quat[:, :, None], corners)


def check_motion(motion: RobotMotion, robot: HumanoidSpec) -> MotionReport:
    """Return what is wrong with a motion with a free root."""
    model = robot.load(root="free").compile()
    corners = soles(motion, robot, model) / robot.human_scale
    height = corners[..., 2].min(axis=-1)
    speed = np.sqrt((rates(corners.mean(axis=2), motion.fps)[..., :2] ** 2).sum(axis=-1))
    flat = corners[..., 2].max(axis=-1) < STANDS
    standing = flat.copy()
    standing[1:] &= flat[:-1]
    standing[:-1] &= flat[1:]
    dof = motion.select(robot.joints)
    ranges = np.array([model.joint(name).range for name in robot.joints])
    steps = np.abs(np.diff(dof, axis=0))
    return MotionReport(
        frames=len(motion),
        floating=float(max(height.min(axis=1).max(), 0.0)),
        penetration=float(max(-height.min(), 0.0)),
        sliding=float(np.percentile(speed[standing], 90.0)) if standing.any() else 0.0,
        jumps=int((steps > JUMP).sum()),
        beyond_limits=int(((dof < ranges[:, 0] - 1e-6) | (dof > ranges[:, 1] + 1e-6)).sum()),
        over_speed=int((steps * motion.fps > np.array(robot.speed_limit) + 1e-6).sum()),
    )


def repair_motion(motion: RobotMotion, robot: HumanoidSpec) -> RobotMotion:
    """Return the motion within the joints' ranges, raised or lowered as a whole so that its feet stand on the floor.

    The offset is the median height of the lower foot. Sliding and jumps are not repaired: retarget the motion anew.
    """
    model = robot.load(root="free").compile()
    ranges = np.array([model.joint(name).range for name in motion.joint_names])
    qpos = motion.qpos.copy()
    qpos[:, 7:] = np.clip(qpos[:, 7:], ranges[:, 0], ranges[:, 1])
    bare = replace(
        motion, qpos=qpos, body_names=(), body_pos=None, body_quat=None, body_lin_vel=None, body_ang_vel=None
    )
    qpos[:, 2] -= np.median(soles(bare, robot, model)[..., 2].min(axis=(1, 2)))
    return replace(bare, qpos=qpos)
