"""Where an episode starts: a frame of the reference, a little off (reference state initialisation).

The reference's velocities are MuJoCo's: the root's linear velocity in the world, its angular velocity in its own frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.geometry import Array, conjugate, from_rotvec, multiply, rotate


@dataclass(frozen=True, slots=True)
class StartNoise:
    """Half widths of uniform noise; BeyondMimic's, lengths for its robot."""

    position: tuple[float, float, float] = (0.05, 0.05, 0.01)
    """Of the root [m]."""
    rotation: tuple[float, float, float] = (0.1, 0.1, 0.2)
    """Rotation vector of the root, world [rad]."""
    linear_velocity: tuple[float, float, float] = (0.5, 0.5, 0.2)
    """Of the root [m/s]."""
    angular_velocity: tuple[float, float, float] = (0.52, 0.52, 0.78)
    """Of the root, world [rad/s]."""
    joints: float = 0.1
    """Of each joint [rad]."""

    def scaled(self, size: float) -> StartNoise:
        """Return the noise for a robot `size` times as large as the published one."""
        x, y, z = self.position
        vx, vy, vz = self.linear_velocity
        return StartNoise(
            (x * size, y * size, z * size),
            self.rotation,
            (vx * size, vy * size, vz * size),
            self.angular_velocity,
            self.joints,
        )

    def times(self, factor: float) -> StartNoise:
        """Return the noise, all of it `factor` times as large."""
        x, y, z = self.position
        a, b, c = self.rotation
        vx, vy, vz = self.linear_velocity
        wx, wy, wz = self.angular_velocity
        return StartNoise(
            (x * factor, y * factor, z * factor),
            (a * factor, b * factor, c * factor),
            (vx * factor, vy * factor, vz * factor),
            (wx * factor, wy * factor, wz * factor),
            self.joints * factor,
        )


def noisy_start(
    qpos: Array, qvel: Array, rng: np.random.Generator, noise: StartNoise, lower: Array, upper: Array
) -> tuple[Array, Array]:
    """Return positions `(nq,)` and velocities `(nv,)` near those of a frame; joint velocities stay.

    Args:
        qpos: Root position, root quaternion, joint angles of the reference.
        qvel: Its velocities.
        rng: Draws the noise.
        noise: How much.
        lower: Lower limits of the joints `(n,)` [rad]; noise goes no further.
        upper: Upper limits.
    """
    qpos, qvel = qpos.copy(), qvel.copy()
    qpos[:3] += rng.uniform(-1.0, 1.0, 3) * noise.position
    turn = from_rotvec(rng.uniform(-1.0, 1.0, 3) * noise.rotation)
    qpos[3:7] = multiply(turn, qpos[3:7])
    qvel[:3] += rng.uniform(-1.0, 1.0, 3) * noise.linear_velocity
    world_spin = rng.uniform(-1.0, 1.0, 3) * noise.angular_velocity
    qvel[3:6] += rotate(conjugate(qpos[3:7]), world_spin)
    dof = qpos[7:] + rng.uniform(-1.0, 1.0, len(qpos) - 7) * noise.joints
    # a reference may itself be beyond the soft limits; noise alone never goes there
    qpos[7:] = np.clip(dof, np.minimum(lower, qpos[7:]), np.maximum(upper, qpos[7:]))
    return qpos, qvel
