"""From a device's frame to the robot's world.

A Y-up device pose becomes Z up with the operator's forward along +x (`bunraku.geometry.y_up_to_z_up`, applied to the
pose as a whole), and then turns about the vertical by the angle at which the operator faces: 0 looks where the robot
looks, 180 degrees looks at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from bunraku.geometry import Y_UP_TO_Z_UP_QUAT, Array, Pose, change_frame, from_rotvec, multiply

FACING_WORDS = {"with": 0.0, "toward": 180.0, "left": 90.0, "right": -90.0}
"""Words for `--facing`: the operator looks with the robot, toward it, to its left, to its right."""


def device_to_world(frame: Literal["y_up", "z_up"], facing_deg: float = 0.0) -> Callable[[Pose], Pose]:
    """Return the map from poses in a device's frame to poses in the robot's world (up to an offset).

    Args:
        frame: Axes of the device's frame.
        facing_deg: Heading of the operator's forward in the world, counter-clockwise from +x seen from above [deg].
    """
    turn = from_rotvec(np.array([0.0, 0.0, np.deg2rad(facing_deg)]))
    world_device = multiply(turn, Y_UP_TO_Z_UP_QUAT) if frame == "y_up" else turn

    def convert(pose: Pose) -> Pose:
        return change_frame(world_device, pose)

    return convert


def facing_from_stroke(start: Array, end: Array) -> float:
    """Return the heading [deg] to set as `facing` so that a stroke straight ahead moves the tool along +x.

    Args:
        start: Hand position `(3,)` at the start, in the Z-up device frame [m].
        end: Hand position at the end.

    Raises:
        ValueError: If the stroke is shorter than 5 cm in the horizontal plane.
    """
    dx, dy = float(end[0] - start[0]), float(end[1] - start[1])
    length = float(np.hypot(dx, dy))
    if length < 0.05:
        raise ValueError(
            f"the stroke must be at least 0.05 m long in the horizontal plane, got {length:.3f} m"
        )
    return -float(np.rad2deg(np.arctan2(dy, dx)))
