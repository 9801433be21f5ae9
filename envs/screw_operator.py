"""How an operator sees the screw arm: the bit as the tool, and as the goal a guide that is always a little ahead.

The guide is a pose like any other goal, so that whoever can bring a tool to a goal can drive a screw:

1. over the screw, the bit turned to the recess;
2. in the recess;
3. ahead of the bit by `LEAD`, and below it by what that much turning sinks the screw and by what is wanting of the
   axial force, sideways where the walls push it;
4. when the screw is deep: above it.

Heights and sideways offsets in contact are thus told through the force that a screen would show as a bar: a guide that
stood below the bit for good would have the operator press ever harder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bunraku.device import HandName
from bunraku.envs.screw_control import ScrewArmControl, spun
from bunraku.geometry import Array, Pose
from bunraku.screw import figures

if TYPE_CHECKING:
    from bunraku.envs.tasks.screw_driving import ScrewDriving, Work

LEAD = 1.2
"""How far the guide turns ahead of the bit [rad]."""
HOVER, LIFTED = 0.015, 0.045
"""Height of the guide over the screw's top before and after [m]."""
ALIGNED, ASIDE = 0.1, 0.0015
"""Turned to the recess by this [rad] and this near the axis [m], the bit may go down."""
PRESS_START, PRESS_GROWTH = 20.0, 15.0
"""Axial force to aim at, at the start and what the whole depth adds [N]."""
GIVE = 1.0e-4
"""How far the arm gives way per newton: what the guide asks for per newton wanting [m/N]."""
MOST_DOWN, MOST_BACK = 0.003, 0.01
"""For the sake of a force the guide asks for no more than this [m]: to press, to give way."""


class ScrewOperatorArm:
    """The arm of one simulation as a hand drives it."""

    hand: HandName = "right"
    has_gripper = False

    def __init__(self, task: ScrewDriving) -> None:
        """Look at a task that is bound to one simulation."""
        self._task = task
        self._control: ScrewArmControl = task.control
        self.action_slice = self._control.action_slice

    def tool(self) -> Pose:
        """Return the pose of the bit's lowest point, world; z points down."""
        return self._control.tool()

    def target(self) -> Pose:
        """Return the pose that the bit is driven to, world: always vertical."""
        return self._control.target()

    def workspace(self) -> tuple[Array, Array]:
        """Return centre and half size `(3,)` of the box for targets, world [m]."""
        return self._control.workspace()

    def commanded_joints(self) -> Array:
        """Return the joint angles `(5,)` commanded [rad]."""
        return self._control.commanded_joints()

    def action_towards(self, world_tool: Pose, gripper: float) -> Array:
        """Return the action `(4,)` that drives the target towards a pose; see `ScrewArmControl`."""
        return self._control.action_towards(world_tool, gripper)

    def tracking_error(self) -> tuple[float, float]:
        """Return how far the commanded joints leave the tip from its target: nothing, targets are within reach."""
        return 0.0, 0.0

    def goal(self) -> Pose:
        """Return the guide: what to do next."""
        work = self._task.work()
        aligned = work.bit_angle - work.apart
        above = np.array([*work.top[:2], work.top[2] + HOVER])
        if work.deep:
            return Pose(np.array([*work.tip[:2], work.top[2] + LIFTED]), spun(work.bit_angle))
        if work.in_recess:
            return self._ahead(work)
        near = np.hypot(*(work.tip - work.top)[:2]) < ASIDE and abs(work.apart) < ALIGNED
        if near:
            floor = np.array([*work.top[:2], work.top[2] - work.recess_depth - GIVE * 0.5 * PRESS_START])
            return Pose(floor, spun(aligned))
        return Pose(above, spun(aligned))

    def _ahead(self, work: Work) -> Pose:
        press = PRESS_START + PRESS_GROWTH * min(work.depth / figures.SCREW_SINK, 1.0)
        down = np.clip(GIVE * (press - work.force[2]), -MOST_BACK, MOST_DOWN)
        sideways = np.clip(GIVE * work.force[:2], -MOST_DOWN, MOST_DOWN)
        sink = LEAD * self._task.pitch / (2.0 * np.pi)
        pos = work.tip + np.array([sideways[0], sideways[1], -down - sink])
        return Pose(pos, spun(work.bit_angle + LEAD))
