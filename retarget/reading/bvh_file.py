"""The BVH file format: a skeleton of offsets and channels, and one line of numbers per frame.

    bvh = parse_bvh(text, "walk.bvh")
    positions = bvh.positions()          # (N, J, 3) in the unit of the file

Channels may be in any order and number; rotations are applied in the order in which they stand. Position channels
take the place of the joint's offset.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import FileFormatError
from bunraku.geometry import IDENTITY_QUAT, from_rotvec, multiply, rotate

Array = NDArray[np.float64]

_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass
class Joint:
    """A joint of the skeleton."""

    name: str
    parent: int
    """Index of its parent, -1 for the root."""
    offset: Array = field(default_factory=lambda: np.zeros(3))
    """Position against the parent at rest."""
    channels: list[str] = field(default_factory=list)
    """Such as `Xposition` and `Zrotation`, in order, lower case."""


@dataclass(frozen=True)
class Bvh:
    """A parsed file."""

    joints: list[Joint]
    """Joints, parents first; end sites are named after their parent with ` end`."""
    frames: Array
    """Channel values `(N, C)`: lengths and degrees."""
    fps: float
    """Frames per second."""

    def positions(self) -> Array:
        """Return the joints' positions `(N, J, 3)` by forward kinematics."""
        count = len(self.frames)
        points, quats = np.empty((count, len(self.joints), 3)), np.empty((count, len(self.joints), 4))
        column = 0
        for index, joint in enumerate(self.joints):
            local = np.tile(joint.offset, (count, 1))
            quat = np.tile(IDENTITY_QUAT, (count, 1))
            for channel in joint.channels:
                values, axis = self.frames[:, column], _AXES[channel[0]]
                if channel.endswith("position"):
                    local[:, axis] = values
                else:
                    quat = multiply(quat, from_rotvec(np.radians(values)[:, None] * np.eye(3)[axis]))
                column += 1
            if joint.parent < 0:
                points[:, index], quats[:, index] = local, quat
            else:
                points[:, index] = points[:, joint.parent] + rotate(quats[:, joint.parent], local)
                quats[:, index] = multiply(quats[:, joint.parent], quat)
        return points


def parse_bvh(text: str, name: str) -> Bvh:
    """Read the text of a BVH file.

    Raises:
        FileFormatError: If it is malformed or truncated; names the line.
    """
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip().upper() == "MOTION"), None)
    if start is None:
        raise FileFormatError(f"{name} is a BVH file without MOTION: it is truncated")
    joints = _hierarchy(lines[:start], name)
    count, step, first = _motion_header(lines, start, name)
    width = sum(len(joint.channels) for joint in joints)
    rows = [(i + 1, line.split()) for i, line in enumerate(lines[first:], first) if line.strip()]
    if len(rows) < count:
        raise FileFormatError(f"{name} states {count} frames and has {len(rows)}: it is truncated")
    frames = np.empty((count, width))
    for row, (number, words) in enumerate(rows[:count]):
        if len(words) != width:
            raise FileFormatError(
                f"{name} line {number}: {len(words)} numbers where the channels are {width}"
            )
        try:
            frames[row] = [float(word) for word in words]
        except ValueError as error:
            raise FileFormatError(f"{name} line {number}: {error}") from error
    # files write 1/120 s as 0.008333
    fps = round(1.0 / step) if abs(round(1.0 / step) * step - 1.0) < 1e-3 else 1.0 / step
    return Bvh(joints, frames, float(fps))


def _motion_header(lines: list[str], start: int, name: str) -> tuple[int, float, int]:
    """Return the number of frames, the time of one [s] and the first line of numbers."""
    count, step = 0, 0.0
    for i in range(start + 1, min(start + 6, len(lines))):
        key, _, value = lines[i].partition(":")
        try:
            if key.strip().lower() == "frames":
                count = int(value)
            elif " ".join(key.lower().split()) == "frame time":
                step = float(value)
                break
        except ValueError as error:
            raise FileFormatError(f"{name} line {i + 1}: {error}") from error
    if count < 1 or not (np.isfinite(step) and step > 0.0):
        raise FileFormatError(
            f"{name} states {count} frames of {step} s; a motion has at least one of positive time"
        )
    return count, step, i + 1


def _hierarchy(lines: list[str], name: str) -> list[Joint]:
    joints: list[Joint] = []
    open_joints: list[int] = []
    for number, line in enumerate(lines, 1):
        # a brace may stand on the line of the name
        words = line.replace("{", " { ").replace("}", " } ").split()
        while words:
            word = words.pop(0).upper()
            if word in ("ROOT", "JOINT", "END"):
                end = words.index("{") if "{" in words else len(words)
                title, words = " ".join(words[:end]), words[end:]
                parent = open_joints[-1] if open_joints else -1
                if parent < 0 and joints:
                    raise FileFormatError(
                        f"{name} line {number}: a second root {title!r}; one person per file"
                    )
                title = f"{joints[parent].name} end" if word == "END" and joints else title
                joints.append(Joint(title, parent))
            elif word == "{":
                open_joints.append(len(joints) - 1)
            elif word == "}":
                if not open_joints:
                    raise FileFormatError(f"{name} line {number}: a brace too many")
                open_joints.pop()
            elif word == "OFFSET":
                joints[-1].offset = _numbers(words[:3], name, number)
                words = words[3:]
            elif word == "CHANNELS":
                count = int(_numbers(words[:1], name, number, 1)[0])
                joints[-1].channels = [word.lower() for word in words[1 : 1 + count]]
                words = words[1 + count :]
                _check_channels(joints[-1], count, name, number)
            elif word != "HIERARCHY":
                raise FileFormatError(f"{name} line {number}: {word!r} is not expected in a BVH skeleton")
            if word in ("OFFSET", "CHANNELS") and not open_joints:
                raise FileFormatError(f"{name} line {number}: {word} outside a joint")
    if not joints or open_joints:
        raise FileFormatError(f"{name} is a BVH file whose skeleton is not complete: it is truncated")
    return joints


def _check_channels(joint: Joint, count: int, name: str, number: int) -> None:
    known = {f"{axis}{kind}" for axis in "xyz" for kind in ("position", "rotation")}
    unknown = [channel for channel in joint.channels if channel not in known]
    if unknown or len(joint.channels) != count:
        raise FileFormatError(
            f"{name} line {number}: channels {joint.channels} of {joint.name!r}; {count} of Xposition ... Zrotation"
            " are expected"
        )


def _numbers(words: list[str], name: str, number: int, count: int = 3) -> Array:
    try:
        values = np.array([float(word) for word in words])
    except ValueError as error:
        raise FileFormatError(f"{name} line {number}: {error}") from error
    if len(values) != count:
        raise FileFormatError(f"{name} line {number}: {count} numbers are expected, got {len(values)}")
    return values
