"""Units, up axis, handedness and heading of key points, read off the person where the file does not say.

    motion = to_motion(points, content, options, fps=30.0, fps_note="")    # points (N, 22, 3) in the file's frame

Every assumption and every change is one sentence in the motion's `notes`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, FileFormatError
from bunraku.geometry import from_rotvec, rotate
from bunraku.motion import SMPL_JOINTS, HumanMotion
from bunraku.retarget.reading.content import ReadOptions, Up

Array = NDArray[np.float64]

UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001, "inch": 0.0254, "CMU unit (inch / 0.45)": 0.0254 / 0.45}
"""Units that motion files come in [m]."""
LEG = (0.5, 1.1)
"""Length of thigh and calf that a person can have [m]; with these bounds the units above exclude each other."""

TO_Z_UP: dict[str, Array] = {
    "y": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "-y": np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]),
    "x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    "-x": np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]]),
    "z": np.eye(3),
    "-z": np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]]),
}
"""Rotation that takes a frame with that axis up to one with Z up. For `y` it is the quaternion (0.5, 0.5, 0.5, 0.5):
who faced z, as the output of text-to-motion models does, faces x."""
_CLEAR = 0.6
"""Share of frames that must agree on the up axis."""

_I = {name: i for i, name in enumerate(SMPL_JOINTS)}
_SWAP = np.array(
    [_I[n.replace("left", "right") if "left" in n else n.replace("right", "left")] for n in SMPL_JOINTS]
)


def to_motion(
    points: Array,
    options: ReadOptions,
    *,
    name: str,
    fps: float | None,
    default_fps: float = 20.0,
    usual_up: Up = "y",
    up: Up | None = None,
    licence: str = "",
    source: str = "",
    notes: Sequence[str] = (),
    head_quat: Array | None = None,
) -> HumanMotion:
    """Return a motion in metres, Z up, x forward.

    Args:
        points: Key points `(N, 22, 3)` in the frame and unit of the file.
        options: What the user says about the file.
        name: What to call the file in messages.
        fps: Frame rate that the file states, or None.
        default_fps: Frame rate that this kind of file usually has.
        usual_up: Up axis that this kind of file usually has, taken where the person does not tell.
        up: Up axis that this kind of file always has.
        licence: Licence, where known.
        source: Where the motion comes from; the file's name by default.
        notes: What was assumed so far.
        head_quat: Orientation of the head in the chest `(N, 4)`.
    """
    said = list(notes)
    points = np.where(np.isfinite(points), points, np.nan).astype(np.float64)
    if not np.isfinite(points).any():
        raise FileFormatError(f"{name} holds no key point that is a finite number")
    missing = int((~np.isfinite(points).all(axis=(1, 2))).sum())
    if missing:
        said.append(f"{missing} of {len(points)} frames lack key points")
    if options.fps is None and fps is None:
        said.append(f"the file does not state its frame rate; {default_fps:g} fps taken")
    rate = options.fps or fps or default_fps

    unit = _unit(points, options, name)
    if unit != "m":
        said.append(f"lengths in the file are in {unit}")
    points = points * UNITS[unit]

    axis = options.up if options.up != "auto" else up or _up_axis(points, usual_up, said)
    points = points @ TO_Z_UP[axis].T
    if axis != "z":
        said.append(f"{axis} is up in the file")

    if _mirrored(points):
        points = points * np.array([1.0, -1.0, 1.0])
        if head_quat is not None:
            head_quat = head_quat * np.array([1.0, -1.0, 1.0, -1.0])
        said.append("the file's axes are left-handed: y was negated")
    if options.heading == "first":
        yaw = first_heading(points)
        if yaw is None:
            said.append("the first frame does not show which way the person faces; the heading is the file's")
        else:
            points = rotate(from_rotvec(np.array([0.0, 0.0, -yaw])), points)
    return HumanMotion(
        joints=points,
        fps=rate,
        source=source or name,
        licence=licence,
        head_quat=head_quat,
        notes=tuple(said),
    )


def first_heading(points: Array) -> float | None:
    """Return the yaw [rad] that the person faces in the first frame that shows it, of Z-up points, or None."""
    left = (points[:, _I["left_hip"]] - points[:, _I["right_hip"]]) + (
        points[:, _I["left_shoulder"]] - points[:, _I["right_shoulder"]]
    )
    flat = np.hypot(left[:, 0], left[:, 1])
    seen = np.flatnonzero(flat > 0.3 * np.nanmax(np.linalg.norm(left, axis=-1), initial=1e-9))
    if len(seen) == 0 or flat[seen[0]] < 1e-6:
        return None
    return float(np.arctan2(-left[seen[0], 0], left[seen[0], 1]))


def leg_length(points: Array) -> float:
    """Return the median length of thigh and calf of both legs, in the unit of the points."""
    bones = [("left_hip", "left_knee"), ("left_knee", "left_ankle"), ("right_hip", "right_knee")]
    bones.append(("right_knee", "right_ankle"))
    lengths = [np.linalg.norm(points[:, _I[a]] - points[:, _I[b]], axis=-1) for a, b in bones]
    finite = [length[np.isfinite(length)] for length in lengths]
    return sum(float(np.median(length)) for length in finite if len(length)) / 2.0


def _unit(points: Array, options: ReadOptions, name: str) -> str:
    if options.units != "auto":
        return options.units
    leg = leg_length(points)
    for unit, metres in UNITS.items():
        if LEG[0] <= leg * metres <= LEG[1]:
            return unit
    raise FileFormatError(
        f"{name}: thigh and calf together are {leg:.4g} long, which is no person in metres, centimetres, millimetres"
        " or inches; check that the joints are in SMPL's order, or give the unit with --units"
    )


def _up_axis(points: Array, usual: Up, said: list[str]) -> Up:
    """Return the axis that most frames stand along; of those that some do, the one with the steadiest floor."""
    trunk = points[:, _I["neck"]] - points[:, _I["pelvis"]]
    legs = points[:, _I["pelvis"]] - 0.5 * (points[:, _I["left_ankle"]] + points[:, _I["right_ankle"]])
    body = trunk + legs
    body = body[np.isfinite(body).all(axis=1)]
    if len(body) == 0:
        said.append(f"no frame shows which axis is up; {usual} taken")
        return usual
    axis = np.abs(body).argmax(axis=1)
    sign = np.sign(body[np.arange(len(body)), axis])
    votes = {
        name: float(((axis == index) & (sign == direction)).mean())
        for index, letter in enumerate("xyz")
        for name, direction in ((letter, 1.0), (f"-{letter}", -1.0))
    }
    best = max(votes, key=lambda name: votes[name])
    if votes[best] >= _CLEAR:
        return best  # type: ignore[return-value]
    candidates = [name for name, share in votes.items() if share > 0.05]
    best = min(candidates, key=lambda name: _unsteadiness(points, name))
    said.append(f"the person does not stand along one axis; {best} taken as up, where the floor is steadiest")
    return best  # type: ignore[return-value]


def _unsteadiness(points: Array, axis: str) -> float:
    """Return how much the lowest key point rises and falls over the clip, with that axis up [m]."""
    heights = (points @ TO_Z_UP[axis].T)[..., 2]
    lowest = np.nanmin(heights[np.isfinite(heights).any(axis=1)], axis=1)
    return float(np.percentile(lowest, 90) - np.percentile(lowest, 10))


def _mirrored(points: Array) -> bool:
    """Say whether toes point backwards in nearly all frames: then left and right are swapped by the axes."""
    left = points[:, _I["left_hip"]] - points[:, _I["right_hip"]]
    left = left + points[:, _I["left_shoulder"]] - points[:, _I["right_shoulder"]]
    trunk = points[:, _I["neck"]] - points[:, _I["pelvis"]]
    toes = (points[:, _I["left_foot"]] - points[:, _I["left_ankle"]]) + (
        points[:, _I["right_foot"]] - points[:, _I["right_ankle"]]
    )
    forward = (np.cross(left, trunk) * toes).sum(axis=-1)
    sizes = np.linalg.norm(left, axis=-1) * np.linalg.norm(trunk, axis=-1) * np.linalg.norm(toes, axis=-1)
    seen = np.isfinite(forward) & (sizes > 1e-6)
    if not seen.any():
        return False
    return bool((forward[seen] / sizes[seen] < -0.2).mean() > 0.9)


def mirror_points(points: Array) -> Array:
    """Return key points `(..., 22, 3)` seen in a mirror along y, with left and right exchanged."""
    if points.shape[-2:] != (len(SMPL_JOINTS), 3):
        raise BunrakuError(f"key points are (..., 22, 3), got {points.shape}")
    return points[..., _SWAP, :] * np.array([1.0, -1.0, 1.0])
