"""The sizes, places and times of screw driving: the one place where they stand.

They are those of a published kinematic playback of the task (a ROS package by the name of `mujoco_arm_screw`),
but for what is marked "ours", which it leaves open. Lengths are in metres, angles in radians, heights in world
coordinates with the arm's base at the origin and z up.
"""

from __future__ import annotations

from math import radians

from bunraku.control.yaw_pitch_pitch import ArmGeometry

ARM = ArmGeometry(
    upper=0.30,
    fore=0.30,
    shoulder_height=0.06,
    yaw_range=(-3.14159, 3.14159),
    shoulder_range=(-2.0944, 2.0944),
    elbow_range=(-2.6180, 2.6180),
)
"""Yaw about z, then two pitches about (0, -1, 0)."""

# The driver hangs vertically below the arm's tip; its frame has its origin where rod and bit meet.
DRIVER_DROP = 0.11
"""The driver's origin below the tip."""
DRIVER_RADIUS = 0.009
DRIVER_LENGTH = 0.10
BLADE_HALF_SIZE = (0.016, 0.003, 0.003)
"""One of the two crossed boxes of the bit."""
BLADE_DROP = 0.006
"""The bit's lowest point below the driver's origin: the whole height of a blade."""

# The screw's frame has its origin in the middle of its thick cylinder.
SCREW_XY = (0.185, 0.0)
"""Ours: here the arm folds to 0.21 m and 139 degrees with the elbow at 0.36 m and its mirror image at -0.14 m,
which the source states, and no joint leaves its range."""
SCREW_RADIUS = 0.019
SCREW_HALF_HEIGHT = 0.023
SCREW_POINT_RADIUS = 0.012
"""Of the thin cylinder below the thick one."""
SCREW_POINT_HEIGHT = 0.014
SCREW_START_HEIGHT = 0.020
"""Height of the screw's origin before it turns."""
SCREW_SINK = 0.040
"""How far it goes down."""
SCREW_TURN = radians(900.0)
"""How far it turns for that."""
SCREW_PITCH = SCREW_SINK / 2.5
"""Way down per turn [m]."""

BOARD_SIZE = (0.26, 0.22, 0.02)
"""Length, width and thickness; the top is at `BOARD_TOP`."""
BOARD_TOP = 0.020

# Places of the arm's tip.
HOME = (0.14, 0.0, 0.20)
STANDBY_HEIGHT = 0.22
PRESS_HEIGHT = 0.159
"""The bit rests on the screw that has not turned yet."""

# The playback: frames at which its parts end.
APPROACH_END = 70
PRESS_END = 110
TURN_END = 350
LIFT_END = 420
FRAMES = 450
MAX_JOINT_STEP = 0.07
"""Largest way of a joint per frame [rad]."""


def screw_height(theta: float) -> float:
    """Return the height [m] of the screw's origin once it has turned by `theta` [rad]."""
    return SCREW_START_HEIGHT - SCREW_SINK * (theta / SCREW_TURN)


def tip_height(theta: float) -> float:
    """Return the height [m] of the arm's tip when the bit rests on a screw turned by `theta` [rad]."""
    return screw_height(theta) + SCREW_HALF_HEIGHT + BLADE_DROP + DRIVER_DROP
