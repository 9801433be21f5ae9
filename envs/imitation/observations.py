"""What a policy sees, and what a critic may see besides.

The actor's part is BeyondMimic's: what the reference does now, where its anchor is as seen from the robot's, and what
the robot's own sensors tell. All of it is in frames of the robot, so that heading and place do not matter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.envs.imitation.targets import in_anchor_frame, two_columns
from bunraku.geometry import Array, conjugate, multiply, rotate

BOUND = 100.0
"""Observations are clipped to this: only a robot that flies apart gets there."""


@dataclass(frozen=True, slots=True)
class ObservationNoise:
    """Half widths of uniform noise on the actor's observation; BeyondMimic's."""

    anchor_position: float = 0.25
    """[m], for a robot of the published size."""
    anchor_orientation: float = 0.05
    linear_velocity: float = 0.5
    """[m/s], for a robot of the published size."""
    angular_velocity: float = 0.2
    """[rad/s]"""
    joint_position: float = 0.01
    """[rad]"""
    joint_velocity: float = 0.5
    """[rad/s]"""

    def widths(self, dof: int, size: float) -> Array:
        """Return the half width of each number of the actor's observation `(15 + 5 dof,)`."""
        parts = [(0.0, 2 * dof), (self.anchor_position * size, 3), (self.anchor_orientation, 6)]
        parts += [(self.linear_velocity * size, 3), (self.angular_velocity, 3)]
        parts += [(self.joint_position, dof), (self.joint_velocity, dof), (0.0, dof)]
        return np.concatenate([np.full(count, width) for width, count in parts])


def actor_size(dof: int) -> int:
    """Return how many numbers the actor's observation has."""
    return 15 + 5 * dof


def actor(
    reference_dof: Array,
    reference_dof_vel: Array,
    anchor_pos: Array,
    anchor_quat: Array,
    root_quat: Array,
    root_vel: Array,
    dof_off_home: Array,
    dof_vel: Array,
    action: Array,
) -> Array:
    """Return the actor's observation `(..., 15 + 5 n)`.

    Args:
        reference_dof: Joint angles of the reference `(..., n)` [rad].
        reference_dof_vel: Its joint speeds `(..., n)` [rad/s].
        anchor_pos: The reference's anchor in the frame of the robot's `(..., 3)` [m].
        anchor_quat: Its orientation there `(..., 4)`.
        root_quat: Orientation of the robot's root `(..., 4)`.
        root_vel: Velocity of the root `(..., 6)` as MuJoCo has it: linear in the world, angular in its own frame.
        dof_off_home: Joint angles less those of home `(..., n)` [rad].
        dof_vel: Joint speeds `(..., n)` [rad/s].
        action: The last action `(..., n)`.
    """
    return np.concatenate(
        [
            reference_dof,
            reference_dof_vel,
            anchor_pos,
            two_columns(anchor_quat),
            rotate(conjugate(root_quat), root_vel[..., :3]),
            root_vel[..., 3:6],
            dof_off_home,
            dof_vel,
            action,
        ],
        axis=-1,
    )


def privileged(pos: Array, quat: Array, anchor_pos: Array, anchor_quat: Array) -> Array:
    """Return the robot's key points in the frame of its anchor `(..., 9 B)`: positions, then orientations."""
    local_pos, local_quat = in_anchor_frame(pos, quat, anchor_pos, anchor_quat)
    flat = (*pos.shape[:-2], -1)
    return np.concatenate([local_pos.reshape(flat), two_columns(local_quat).reshape(flat)], axis=-1)


def future(dof: Array, anchor_pos: Array, anchor_quat: Array, robot_pos: Array, robot_quat: Array) -> Array:
    """Return coming frames of the reference `(..., K (n + 9))`: joint angles, and the anchor seen from the robot's.

    Args:
        dof: Joint angles `(..., K, n)` [rad].
        anchor_pos: Anchors `(..., K, 3)`, world [m].
        anchor_quat: Their orientations `(..., K, 4)`.
        robot_pos: The robot's anchor `(..., 3)`.
        robot_quat: Its orientation `(..., 4)`.
    """
    pos, quat = in_anchor_frame(anchor_pos, anchor_quat, robot_pos, robot_quat)
    parts = np.concatenate([dof, pos, two_columns(quat)], axis=-1)
    return parts.reshape(*dof.shape[:-2], -1)


def anchor_seen(
    reference_pos: Array, reference_quat: Array, robot_pos: Array, robot_quat: Array
) -> tuple[Array, Array]:
    """Return the reference's anchor in the frame of the robot's: position `(..., 3)` and orientation `(..., 4)`."""
    back = conjugate(robot_quat)
    return rotate(back, reference_pos - robot_pos), multiply(back, reference_quat)
