"""What a kinematics backend does: poses and Jacobians of a robot's frames at given joint angles.

    kinematics = MujocoKinematics(ROBOT)
    kinematics.update(dof)
    world_hand, rotation = kinematics.pose("left_hand")
    J = kinematics.jacobian("left_hand")      # (6, n)

The root body stands where its model has it, or where `update` is told.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import Pose

Array = NDArray[np.float64]


class Kinematics(Protocol):
    """A backend."""

    joints: tuple[str, ...]
    """Names of the joints, the order of every `dof` and Jacobian column."""
    lower: Array
    """Lower joint limits `(n,)` [rad]."""
    upper: Array
    """Upper joint limits `(n,)` [rad]."""

    def update(self, dof: Array, world_root: Pose | None = None) -> None:
        """Compute all poses.

        Args:
            dof: Joint angles `(n,)` [rad].
            world_root: Pose of the root body in the world; where the model has it by default.
        """
        ...

    def pose(self, frame: str) -> tuple[Array, Array]:
        """Return position `(3,)` [m] and rotation `(3, 3)` of a body or site in the world.

        Raises:
            UnknownNameError: If the robot has no such body or site.
        """
        ...

    def jacobian(self, frame: str) -> Array:
        """Return how joint speeds move a frame `(6, n)`: linear, then angular velocity, in the world's axes.

        Raises:
            UnknownNameError: If the robot has no such body or site.
        """
        ...
