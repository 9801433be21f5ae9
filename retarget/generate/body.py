"""A person built around a pelvis, two feet and the angles of trunk and arms.

The legs reach for where the feet are, so feet that stand still cannot slide, and every bone keeps its length: when a
foot is out of reach the pose is refused, not stretched.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.errors import BunrakuError
from bunraku.geometry import from_rotvec, multiply, rotate
from bunraku.motion import SMPL_JOINTS
from bunraku.retarget.reading.skeleton import REST_OFFSETS, forward_kinematics

Array = NDArray[np.float64]

X, Y, Z = np.eye(3)
SIDES = ("left", "right")
_I = {name: i for i, name in enumerate(SMPL_JOINTS)}


@dataclass
class Person:
    """The controls of N frames; angles [rad] against a relaxed stand, right-handed about the named axis."""

    frames: int
    """N."""
    size: float = 1.0
    """Factor on all lengths of the default skeleton."""
    pelvis: Array = field(init=False)
    """Position of the pelvis `(N, 3)` [m]."""
    yaw: Array = field(init=False)
    """Heading `(N,)`."""
    trunk: Array = field(init=False)
    """Roll, pitch and yaw of the trunk over the pelvis `(N, 3)`, spread over the three spine joints."""
    head: Array = field(init=False)
    """Roll, pitch and yaw of the head `(N, 3)`."""
    ankles: dict[str, Array] = field(init=False)
    """Positions of the ankles `(N, 3)` [m]."""
    foot_yaw: dict[str, Array] = field(init=False)
    """Heading of the feet `(N,)`."""
    foot_pitch: dict[str, Array] = field(init=False)
    """Pitch of the feet `(N,)`; positive points the toes down."""
    arm_swing: dict[str, Array] = field(init=False)
    """Pitch of the upper arms `(N,)`; negative is forward."""
    arm_spread: dict[str, Array] = field(init=False)
    """How far the upper arms stand away from hanging `(N,)`; pi / 2 is a T pose."""
    elbow: dict[str, Array] = field(init=False)
    """Bend of the elbows `(N,)`."""
    forearm_turn: dict[str, Array] = field(init=False)
    """Turn of the bent forearms about the upper arms `(N,)`; positive is outwards."""

    def __post_init__(self) -> None:
        """Begin with a relaxed stand, feet under the hips."""
        n = self.frames
        self.offsets = REST_OFFSETS * self.size
        zeros = np.zeros(n)
        self.yaw, self.trunk, self.head = zeros.copy(), np.zeros((n, 3)), np.zeros((n, 3))
        self.ankles, self.foot_yaw, self.foot_pitch = {}, {}, {}
        self.arm_swing, self.arm_spread, self.elbow, self.forearm_turn = {}, {}, {}, {}
        for side in SIDES:
            self.ankles[side] = np.tile(self.stance(side), (n, 1))
            self.foot_yaw[side], self.foot_pitch[side] = zeros.copy(), zeros.copy()
            self.arm_swing[side], self.arm_spread[side] = zeros.copy(), np.full(n, 0.15)
            self.elbow[side], self.forearm_turn[side] = np.full(n, 0.25), zeros.copy()
        self.pelvis = np.tile([0.0, 0.0, self.stand_height()], (n, 1))

    def stance(self, side: str) -> Array:
        """Return where an ankle is when the person stands at the origin `(3,)` [m]."""
        hip = self.offsets[_I[f"{side}_hip"]]
        return np.array([hip[0], hip[1], self.ankle_height])

    @property
    def ankle_height(self) -> float:
        """Height of an ankle over the floor [m]: the toes touch it."""
        return float(-self.offsets[_I["left_foot"], 2])

    @property
    def leg(self) -> float:
        """Length of thigh and shin [m]."""
        knee, ankle = self.offsets[_I["left_knee"]], self.offsets[_I["left_ankle"]]
        return float(np.linalg.norm(knee) + np.linalg.norm(ankle))

    def stand_height(self) -> float:
        """Return the height of the pelvis with nearly straight legs [m]."""
        return self.ankle_height + 0.985 * self.leg - float(self.offsets[_I["left_hip"], 2])

    def joints(self) -> Array:
        """Return the key points `(N, 22, 3)` [m].

        Raises:
            BunrakuError: If an ankle is out of reach of its hip.
        """
        rotations = np.tile([1.0, 0.0, 0.0, 0.0], (self.frames, len(SMPL_JOINTS), 1))
        rotations[:, 0] = _about(Z, self.yaw)
        for name in ("spine1", "spine2", "spine3"):
            rotations[:, _I[name]] = _euler(self.trunk / 3.0)
        for name in ("neck", "head"):
            rotations[:, _I[name]] = _euler(self.head / 2.0)
        for side, sign in (("left", 1.0), ("right", -1.0)):
            hang = _about(X, sign * (self.arm_spread[side] - 0.5 * np.pi))
            rotations[:, _I[f"{side}_shoulder"]] = multiply(_about(Y, self.arm_swing[side]), hang)
            bend = _about(Z, -sign * self.elbow[side])
            rotations[:, _I[f"{side}_elbow"]] = multiply(_about(Y, -self.forearm_turn[side]), bend)
        points, quats = forward_kinematics(self.offsets, rotations, self.pelvis)
        for side in SIDES:
            self._leg(points, quats[:, 0], side)
        return points

    def _leg(self, points: Array, pelvis_quat: Array, side: str) -> None:
        """Place knee, ankle and toes of one side in place."""
        hip, knee, ankle, toe = (_I[f"{side}_{part}"] for part in ("hip", "knee", "ankle", "foot"))
        thigh, shin = np.linalg.norm(self.offsets[knee]), np.linalg.norm(self.offsets[ankle])
        forward = rotate(pelvis_quat, X)
        points[:, ankle] = self.ankles[side]
        points[:, knee] = two_bones(points[:, hip], points[:, ankle], float(thigh), float(shin), forward)
        foot = multiply(_about(Z, self.foot_yaw[side]), _about(Y, self.foot_pitch[side]))
        points[:, toe] = points[:, ankle] + rotate(foot, self.offsets[toe])


def two_bones(start: Array, end: Array, first: float, second: float, bend: Array) -> Array:
    """Return the joint between two bones `(N, 3)` that lead from `start` to `end`, on the side of `bend`.

    Raises:
        BunrakuError: If the end is out of reach.
    """
    way = end - start
    distance = np.linalg.norm(way, axis=-1, keepdims=True)
    if distance.max() > first + second or distance.min() < abs(first - second) or distance.min() < 1e-9:
        raise BunrakuError(
            f"a limb of {first + second:.3f} m would have to span {distance.max():.3f} m; take a smaller amplitude"
        )
    along = way / distance
    side = bend - along * (bend * along).sum(axis=-1, keepdims=True)
    side /= np.linalg.norm(side, axis=-1, keepdims=True)
    reach = (distance**2 + first**2 - second**2) / (2.0 * distance)
    return start + along * reach + side * np.sqrt(np.maximum(first**2 - reach**2, 0.0))


def smooth_step(s: ArrayLike) -> Array:
    """Return a rise from 0 to 1 over s in 0..1 with no speed and acceleration at both ends (quintic)."""
    s = np.clip(np.asarray(s, dtype=np.float64), 0.0, 1.0)
    return s * s * s * (10.0 + s * (6.0 * s - 15.0))


def _about(axis: Array, angle: Array) -> Array:
    return from_rotvec(angle[:, None] * axis)


def _euler(angles: Array) -> Array:
    """Return yaw after pitch after roll `(N, 4)` of angles `(N, 3)`."""
    roll, pitch, yaw = angles.T
    return multiply(_about(Z, yaw), multiply(_about(Y, pitch), _about(X, roll)))
