"""How an operator sees the screw arm: the bit as the tool, and as the goal what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bunraku.device import HandName
from bunraku.envs.screw_control import ScrewArmControl
from bunraku.geometry import Array, Pose

if TYPE_CHECKING:
    from bunraku.envs.tasks.screw_driving import ScrewDriving


class ScrewOperatorArm:
    """The arm of one simulation as a hand drives it."""

    hand: HandName = "right"
    has_gripper = False

    def __init__(self, task: ScrewDriving) -> None:
        """Look at a task that is bound to one simulation."""
        self._task = task
        self._control: ScrewArmControl = task.control
        self.action_slice = self._control.action_slice

    def goal(self) -> Pose | None:
        """Return None."""
        return None

    def __getattr__(self, name: str):
        return getattr(self._control, name)
