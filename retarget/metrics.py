"""How good a retargeted motion is: the field's metrics as pure functions on arrays, and the report that holds them.

Figures that depend on the frame rate take `fps` and say how. Lengths are metres in, millimetres out; the floor is
z = 0. `T` frames, `K` key points, `F` feet, `C` corners of a sole, `n` joints.

    contact = ground_contact(human_toes, fps=20.0)
    slide_speed(soles, contact, fps=20.0)      # m/s, mean over frames in contact
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.geometry import angle_between

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

END_EFFECTORS = ("left_wrist", "right_wrist", "left_ankle", "right_ankle", "head")
"""Key points whose errors make `ee_mean_mm` and `ee_max_mm`."""
JUMP = 0.5
"""A joint that turns by more than this within `JUMP_INTERVAL` jumps [rad]."""
JUMP_INTERVAL = 1.0 / 20.0
"""Time between the samples in which jumps are counted [s]: the frame time of 20 fps, for which the field counts."""
LIMIT_TOLERANCE = 1e-4
"""A joint outside its limits by more than this violates them [rad]."""
DEEP = 5e-3
"""Self-contacts deeper than this count [m]."""
TOUCHING = 5e-3
"""Corners of a sole within this of its lowest one carry the foot [m]."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and largest value of an error."""

    mean: float
    max: float


def key_point_errors(robot: ArrayLike, target: ArrayLike, names: Sequence[str]) -> dict[str, Spread]:
    """Return the distance of each key point from its target, over the frames [mm].

    Both sides are in the robot's frame and at the robot's scale, so this is the root-relative MPJPE per body part,
    measured at robot size. It does not depend on the frame rate.

    Args:
        robot: Key points of the robot `(T, K, 3)` [m].
        target: Where they should be `(T, K, 3)` [m].
        names: Name of each key point `(K,)`.
    """
    robot, target = np.asarray(robot, dtype=np.float64), np.asarray(target, dtype=np.float64)
    if robot.shape != target.shape or robot.ndim != 3 or robot.shape[1] != len(names):
        raise ValueError(f"{robot.shape=}, {target.shape=} and {len(names)=} do not match (T, K, 3)")
    distance = 1e3 * np.linalg.norm(robot - target, axis=-1)
    return {name: Spread(float(d.mean()), float(d.max())) for name, d in zip(names, distance.T, strict=True)}


def pooled(errors: dict[str, Spread], names: Sequence[str]) -> Spread:
    """Return the mean of the means and the largest of the maxima of some body parts (those that are there)."""
    chosen = [errors[name] for name in names if name in errors]
    if not chosen:
        return Spread(float("nan"), float("nan"))
    return Spread(float(np.mean([e.mean for e in chosen])), max(e.max for e in chosen))


def orientation_error(robot: ArrayLike, target: ArrayLike) -> Spread:
    """Return the geodesic angle between orientations over the frames [rad].

    Args:
        robot: Quaternions `(T, 4)`, w, x, y, z.
        target: Quaternions `(T, 4)`.
    """
    angle = angle_between(robot, target)
    return Spread(float(angle.mean()), float(angle.max()))


def limit_violations(dof: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> int:
    """Return how many frames have a joint outside its limits by more than `LIMIT_TOLERANCE`.

    Args:
        dof: Joint angles `(T, n)` [rad].
        lower: Lower limits `(n,)` [rad].
        upper: Upper limits `(n,)` [rad].
    """
    dof = np.asarray(dof, dtype=np.float64)
    outside = (dof < np.asarray(lower) - LIMIT_TOLERANCE) | (dof > np.asarray(upper) + LIMIT_TOLERANCE)
    return int(outside.any(axis=-1).sum())


def joint_jumps(dof: ArrayLike, fps: float, threshold: float = JUMP) -> int:
    """Return how often a joint turns by more than `threshold` from one sample to the next.

    Motion faster than 20 fps is first sampled at 20 fps (linearly), so that the same motion has the same jumps at any
    rate; slower motion is taken as it is. Each joint and sample counts by itself.

    Args:
        dof: Joint angles `(T, n)` [rad].
        fps: Frame rate [1/s].
        threshold: Smallest jump [rad].
    """
    dof = np.asarray(dof, dtype=np.float64)
    if fps * JUMP_INTERVAL > 1.0 and len(dof) > 1:
        frames = np.arange(0.0, len(dof) - 1 + 1e-9, fps * JUMP_INTERVAL)
        known = np.arange(len(dof))
        dof = np.stack([np.interp(frames, known, column) for column in dof.T], axis=1)
    return int((np.abs(np.diff(dof, axis=0)) > threshold).sum())


def max_joint_speed(dof: ArrayLike, fps: float) -> float:
    """Return the largest joint speed [rad/s], by differences of frames `(T, n)` at `fps`."""
    steps = np.abs(np.diff(np.asarray(dof, dtype=np.float64), axis=0))
    return float(steps.max() * fps) if steps.size else 0.0


def jerk_rms(series: ArrayLike, fps: float) -> float:
    """Return the root mean square of the third derivative of each column: rad/s^3 of angles, m/s^3 of positions.

    By third differences of frames times `fps` cubed. It grows with the frame rate, so compare at equal `fps` only.

    Args:
        series: Values `(T, n)`.
        fps: Frame rate [1/s].
    """
    third = np.diff(np.asarray(series, dtype=np.float64), n=3, axis=0) * fps**3
    return float(np.sqrt(np.mean(third**2))) if third.size else 0.0


def ground_contact(toes: ArrayLike, fps: float, height: float = 0.05, speed: float = 0.15) -> Mask:
    """Return in which frames each foot of a human stands on the ground `(T, F)`.

    A toe stands where it is within `height` of the clip's ground (the 2nd percentile of all toe heights) and moves
    horizontally slower than `speed`, from the frame before and to the frame after.

    Args:
        toes: Toes `(T, F, 3)`, z up, human size [m].
        fps: Frame rate [1/s].
        height: Highest toe that stands [m].
        speed: Fastest toe that stands [m/s].
    """
    toes = np.asarray(toes, dtype=np.float64)
    ground = np.percentile(toes[..., 2], 2.0)
    low = toes[..., 2] < ground + height
    if len(toes) < 2:
        return low
    slow = np.linalg.norm(np.diff(toes[..., :2], axis=0), axis=-1) * fps < speed
    before, after = np.concatenate([slow[:1], slow]), np.concatenate([slow, slow[-1:]])
    return low & before & after


def touching_corners(soles: ArrayLike) -> Mask:
    """Return which corners carry each foot `(T, F, C)`: those within `TOUCHING` of its lowest one.

    Args:
        soles: Corners of the soles `(T, F, C, 3)`, z up [m].
    """
    height = np.asarray(soles, dtype=np.float64)[..., 2]
    return height <= height.min(axis=-1, keepdims=True) + TOUCHING


def slide_speeds(soles: ArrayLike, contact: ArrayLike, fps: float) -> Array:
    """Return the horizontal speed of each foot in each step between two frames in contact `(S,)` [m/s].

    What slides is what touches: the mean over the corners that carry the foot in the earlier frame, so a heel that
    lifts over a standing toe does not count. Speeds come from differences of frames at `fps`.

    Args:
        soles: Corners of the soles `(T, F, C, 3)`, z up [m].
        contact: Where a foot should stand `(T, F)`.
        fps: Frame rate [1/s].
    """
    soles, contact = np.asarray(soles, dtype=np.float64), np.asarray(contact, dtype=bool)
    carries = touching_corners(soles)[:-1]
    moved = np.linalg.norm(np.diff(soles[..., :2], axis=0), axis=-1) * fps
    speed: Array = (moved * carries).sum(axis=-1) / carries.sum(axis=-1)
    return speed[contact[:-1] & contact[1:]]


def slide_speed(soles: ArrayLike, contact: ArrayLike, fps: float) -> float:
    """Return the mean of `slide_speeds` [m/s]; 0 without contact."""
    speeds = slide_speeds(soles, contact, fps)
    return float(speeds.mean()) if speeds.size else 0.0


def sliding_share(soles: ArrayLike, contact: ArrayLike, fps: float, threshold: float = 0.1) -> float:
    """Return the share of steps in contact that slide faster than `threshold` [m/s]; 0 without contact."""
    speeds = slide_speeds(soles, contact, fps)
    return float((speeds > threshold).mean()) if speeds.size else 0.0


def penetration(soles: ArrayLike) -> Spread:
    """Return how deep the lowest corner of all soles is below the floor, over all frames [mm].

    Args:
        soles: Corners of the soles `(T, F, C, 3)`, z up [m].
    """
    soles = np.asarray(soles, dtype=np.float64)
    depth = 1e3 * np.maximum(0.0, -soles[..., 2].min(axis=(1, 2)))
    return Spread(float(depth.mean()), float(depth.max()))


def floating(soles: ArrayLike, contact: ArrayLike) -> Spread:
    """Return how high the lowest corner of a foot is above the floor, over its frames in contact [mm].

    Args:
        soles: Corners of the soles `(T, F, C, 3)`, z up [m].
        contact: Where a foot should stand `(T, F)`.
    """
    soles, contact = np.asarray(soles, dtype=np.float64), np.asarray(contact, dtype=bool)
    height = 1e3 * np.maximum(0.0, soles[..., 2].min(axis=-1))[contact]
    return Spread(float(height.mean()), float(height.max())) if height.size else Spread(0.0, 0.0)


def self_collision_share(depths: ArrayLike, deep: float = DEEP) -> float:
    """Return the share of frames whose deepest self-contact is deeper than `deep`.

    Args:
        depths: Deepest self-contact of each frame `(T,)`, 0 without [m] (`MujocoKinematics.self_depths`).
        deep: Depth that counts [m].
    """
    depths = np.asarray(depths, dtype=np.float64)
    return float((depths > deep).mean()) if depths.size else 0.0


@dataclass(frozen=True)
class MotionReport:
    """The figures of one retargeted clip. `to_json` gives them the names that other programs rely on."""

    frames_in: int
    """Frames of the human motion."""
    frames_out: int
    """Frames of the robot motion."""
    fps: float
    """Frame rate of the robot motion [1/s]."""
    ms_per_frame: float
    """Computing time per human frame [ms]."""
    ee_mean_mm: float
    """Mean error of hands, feet and head."""
    ee_max_mm: float
    """Largest error of hands, feet and head."""
    limit_violations: int
    """Frames with a joint outside its limits."""
    joint_jumps: int
    """Joint steps over 0.5 rad in a twentieth of a second."""
    max_joint_speed: float
    """[rad/s]"""
    joint_jerk: float
    """Root mean square [rad/s^3] at `fps`."""
    foot_slide_cm_s: float | None = None
    """Mean horizontal speed of feet in contact; None with a fixed root."""
    penetration_mm: float | None = None
    """Mean depth of the lowest sole below the floor; None with a fixed root."""
    penetration_max_mm: float | None = None
    """Its largest value."""
    float_mm: float | None = None
    """Mean height above the floor of feet in contact; None with a fixed root."""
    root_jerk: float | None = None
    """Root mean square of the root's jerk [m/s^3] at `fps`; None with a fixed root."""
    self_collision_share: float = 0.0
    """Share of frames with a self-contact deeper than 5 mm."""
    key_points_mm: dict[str, Spread] = field(default_factory=dict)
    """Error of each key point."""
    chest_error: Spread | None = None
    """Orientation error of the chest [rad]."""
    head_error: Spread | None = None
    """Orientation error of the head [rad]."""
    degraded_frames: tuple[int, ...] = ()
    """Human frames that could not be followed."""

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON values; what was not measured is null."""
        return _plain(asdict(self))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None  # JSON has no NaN
    return value
