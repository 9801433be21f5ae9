"""Joint servos of a humanoid: stiffness, damping, and what an action asks of them.

A servo pulls with `stiffness * (target - angle) - damping * speed`, up to the torque limit. For `h1` both follow from
the motor's own inertia, which a gear makes large: the rotor's inertia times the gear ratio squared is the joint's
`armature` I in the model. A servo that answers as a mass on a spring of natural frequency f = 10 Hz with twice the
critical damping has

    stiffness = I (2 pi f)^2,    damping = 2 * 2 * I (2 pi f).

The links' own inertia slows it from there, and the double damping leaves room for that. It gives 17.8, 9.9 and 2.4
N m/rad for h1's large, medium and small motors: both ankles together hold 19.7 N m/rad, twice the 9.4 N m/rad with
which gravity topples a stiff 4 kg robot (weight times the height of its centre of mass).

For `unitree_h1` the model's armature is a round 0.1 kg m^2 everywhere, from which the rule would give every joint the
same; its gains are those published with OmniH2O (He et al., 2024).
"""

from __future__ import annotations

import mujoco
import numpy as np

from bunraku.geometry import Array
from bunraku.humanoid import HumanoidSpec

FREQUENCY = 10.0
"""Natural frequency of a servo by the armature rule [Hz]."""
DAMPING_RATIO = 2.0
"""Its damping over the critical one."""
ACTION_SHARE = 0.25
"""Share of the torque limit that an action of 1 asks for, at rest."""
SOFT_LIMIT = 0.9
"""Share of a joint's range within its soft limits."""
_PUBLISHED = {
    "unitree_h1": {
        "hip": (200.0, 5.0),
        "knee": (300.0, 6.0),
        "ankle": (40.0, 2.0),
        "torso": (300.0, 6.0),
        "shoulder": (100.0, 2.0),
        "elbow": (100.0, 2.0),
    }
}
"""Robot: part of a joint's name: stiffness [N m/rad] and damping [N m s/rad]."""


def from_armature(armature: Array) -> tuple[Array, Array]:
    """Return stiffness [N m/rad] and damping [N m s/rad] of servos with reflected inertias `(n,)` [kg m^2]."""
    speed = 2.0 * np.pi * FREQUENCY
    return armature * speed**2, 2.0 * DAMPING_RATIO * armature * speed


def gains(robot: HumanoidSpec) -> tuple[Array, Array]:
    """Return stiffness [N m/rad] and damping [N m s/rad] of each joint `(n,)`."""
    published = _PUBLISHED.get(robot.name)
    if published is not None:
        pairs = [next(v for part, v in published.items() if part in name) for name in robot.joints]
        return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    model = robot.load(root="fixed").compile()
    return from_armature(np.array([float(model.joint(name).armature[0]) for name in robot.joints]))


def action_scale(torque_limit: Array, stiffness: Array, share: float = ACTION_SHARE) -> Array:
    """Return the change of each target `(n,)` [rad] that an action of 1 makes."""
    return share * torque_limit / stiffness


def soft_limits(model: mujoco.MjModel, joints: tuple[str, ...]) -> tuple[Array, Array]:
    """Return lower and upper soft limits `(n,)` [rad]: the middle `SOFT_LIMIT` of the range."""
    ranges = np.array([model.joint(name).range for name in joints])
    middle, half = ranges.mean(axis=1), 0.5 * SOFT_LIMIT * (ranges[:, 1] - ranges[:, 0])
    return middle - half, middle + half


def add_servos(spec: mujoco.MjSpec, robot: HumanoidSpec) -> None:
    """Add a position servo with the robot's gains and torque limit for each joint, in the order of `robot.joints`."""
    stiffness, damping = gains(robot)
    for name, kp, kd, limit in zip(robot.joints, stiffness, damping, robot.torque_limit, strict=True):
        servo = spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        servo.set_to_position(kp=float(kp), kv=float(kd))
        servo.forcelimited = True
        servo.forcerange = [-limit, limit]
