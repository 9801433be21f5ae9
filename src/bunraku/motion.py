"""Motion over time: a person's key points, a robot's joint angles, and the `.npz` files of both.

    human = HumanMotion.load("walk.npz")            # joints (N, 22, 3) in metres, Z up
    robot = RobotMotion.load("walk_h1.npz")
    robot.select(["left_knee", "right_knee"])       # (T, 2): by name, never by position

Arrays are read-only copies of what was given; `dataclasses.replace` makes changed copies. Body poses and velocities
are filled in by `bunraku.motion_bodies.with_bodies`.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.errors import BunrakuError, FileFormatError, UnknownNameError

Array = NDArray[np.float64]

SMPL_JOINTS: tuple[str, ...] = (
    "pelvis",
    "left_hip",
    "right_hip",
    "spine1",
    "left_knee",
    "right_knee",
    "spine2",
    "left_ankle",
    "right_ankle",
    "spine3",
    "left_foot",
    "right_foot",
    "neck",
    "left_collar",
    "right_collar",
    "head",
    "left_shoulder",
    "right_shoulder",
    "left_elbow",
    "right_elbow",
    "left_wrist",
    "right_wrist",
)
"""The 22 key points of a person, in the order of SMPL's body joints; `left_foot` and `right_foot` are the toes."""

SMPL_PARENTS: tuple[int, ...] = (-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19)
"""Index of each key point's parent, -1 for the pelvis."""

_DERIVED = ("body_pos", "body_quat", "body_lin_vel", "body_ang_vel", "human_points")
"""What is stored in single precision: it can be had from the rest, and would be most of the file."""

HUMAN_KIND, ROBOT_KIND = "human/1", "robot/1"
_KIND = "bunraku_motion"


@dataclass(frozen=True, eq=False)
class HumanMotion:
    """A person in motion; the frame is Z up, x forward (where the person faces in the first frame), y left."""

    joints: Array
    """Key points `(N, 22, 3)` [m], in the order of `joint_names`. A key point that was not seen is NaN."""
    fps: float
    """Frames per second."""
    joint_names: tuple[str, ...] = SMPL_JOINTS
    """Names of the key points."""
    source: str = ""
    """Where the motion comes from: file, clip, prompt or generator."""
    licence: str = ""
    """Licence of the motion, where known."""
    head_quat: Array | None = None
    """Orientation of the head in the frame of the chest `(N, 4)`, unit, w, x, y, z, where the source has it."""
    notes: tuple[str, ...] = ()
    """What was assumed or changed on reading, one sentence each."""

    def __post_init__(self) -> None:
        """Check shapes and values."""
        _own(self, "joints", self.joints)
        if self.joints.shape != (len(self.joints), len(SMPL_JOINTS), 3) or len(self.joints) == 0:
            raise BunrakuError(f"key points are (N, 22, 3) with N >= 1, got {self.joints.shape}")
        if tuple(self.joint_names) != SMPL_JOINTS:
            raise BunrakuError(
                "joint_names are not the 22 of SMPL_JOINTS in their order; reorder the key points by name"
            )
        if not np.isfinite(self.joints).any():
            raise BunrakuError(f"{self.source or 'the motion'} holds no key point that is a finite number")
        _positive(self.fps)
        if self.head_quat is not None:
            _own(self, "head_quat", self.head_quat, (len(self.joints), 4))

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.joints)

    @property
    def duration(self) -> float:
        """Seconds from the first to the last frame."""
        return (len(self) - 1) / self.fps

    def point(self, name: str) -> Array:
        """Return one key point over time `(N, 3)` [m]."""
        return self.joints[:, _index(self.joint_names, name, "key point")]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the motion as `.npz`."""
        arrays: dict[str, Any] = {"joints": self.joints, "fps": np.float64(self.fps), "up": "z"}
        arrays |= {"joint_names": np.array(self.joint_names), "source": self.source, "licence": self.licence}
        arrays["notes"] = np.array(self.notes, dtype=str)
        if self.head_quat is not None:
            arrays["head_quat"] = self.head_quat
        _write(Path(path), HUMAN_KIND, arrays, force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a motion that `save` wrote; `bunraku.retarget.load_motion` reads those of others.

        Raises:
            FileFormatError: If the file is something else.
        """
        arrays = _read(Path(path), HUMAN_KIND)
        with _told_by(path):
            return cls(
                joints=arrays["joints"],
                fps=float(arrays["fps"]),
                joint_names=tuple(str(name) for name in arrays["joint_names"]),
                source=str(arrays["source"]),
                licence=str(arrays["licence"]),
                head_quat=arrays.get("head_quat"),
                notes=tuple(str(note) for note in arrays.get("notes", ())),
            )


@dataclass(frozen=True, eq=False)
class RobotMotion:
    """A robot in motion; `qpos` is root position, root quaternion, joints, or the joints alone if the root is fixed."""

    qpos: Array
    """Generalised positions `(T, nq)` as in MuJoCo: [m], unit w, x, y, z, [rad]."""
    joint_names: tuple[str, ...]
    """Names of the n joints, in the order of the last n columns of `qpos`."""
    fps: float
    """Frames per second."""
    robot: str
    """Name of the robot."""
    source: str = ""
    """Where the motion comes from."""
    licence: str = ""
    """Licence of the motion that it was made from, where known."""
    base: Array | None = None
    """Pose of a fixed root in the world `(7,)`; None: the origin. With a free root, None."""
    body_names: tuple[str, ...] = ()
    """Names of the bodies below; empty where there are none."""
    body_pos: Array | None = None
    """Position of the bodies in the world `(T, B, 3)` [m]."""
    body_quat: Array | None = None
    """Orientation of the bodies in the world `(T, B, 4)`."""
    body_lin_vel: Array | None = None
    """Velocity of the bodies' origins in the world `(T, B, 3)` [m/s]."""
    body_ang_vel: Array | None = None
    """Angular velocity of the bodies in the world frame `(T, B, 3)` [rad/s]."""
    human_points: Array | None = None
    """The person's key points where they were pursued, in the robot's world `(T, 22, 3)` [m]."""
    obstacles: Array | None = None
    """Boxes that were avoided `(K, 10)`: centre, half sizes [m], quaternion."""
    flags: NDArray[np.int64] | None = None
    """Bits that say what is degraded in each frame `(T,)`; 0 is a good frame."""

    def __post_init__(self) -> None:
        """Check shapes and values."""
        _own(self, "qpos", self.qpos)
        n, frames = len(self.joint_names), len(self.qpos)
        if self.qpos.ndim != 2 or frames == 0 or self.qpos.shape[1] not in (n, n + 7):
            raise BunrakuError(
                f"qpos of {n} joints is (T, {n}) or, with a free root, (T, {n + 7}), T >= 1; got {self.qpos.shape}"
            )
        if not np.isfinite(self.qpos).all():
            frame = int(np.flatnonzero(~np.isfinite(self.qpos).all(axis=1))[0])
            raise BunrakuError(f"qpos is not finite in frame {frame}")
        if len(set(self.joint_names)) != n:
            raise BunrakuError("joint_names holds a name twice")
        _positive(self.fps)
        bodies = len(self.body_names)
        shapes = {
            "base": (7,),
            "body_pos": (frames, bodies, 3),
            "body_quat": (frames, bodies, 4),
            "body_lin_vel": (frames, bodies, 3),
            "body_ang_vel": (frames, bodies, 3),
            "human_points": (frames, len(SMPL_JOINTS), 3),
            "obstacles": (-1, 10),
        }
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                _own(self, name, getattr(self, name), shape)
        if self.flags is not None:
            _own(self, "flags", self.flags, (frames,), np.int64)

    def __len__(self) -> int:
        """Return the number of frames."""
        return len(self.qpos)

    @property
    def duration(self) -> float:
        """Seconds from the first to the last frame."""
        return (len(self) - 1) / self.fps

    @property
    def free_root(self) -> bool:
        """Whether `qpos` begins with the pose of the root."""
        return self.qpos.shape[1] == len(self.joint_names) + 7

    @property
    def dof(self) -> Array:
        """Joint angles `(T, n)` [rad]."""
        return self.qpos[:, self.qpos.shape[1] - len(self.joint_names) :]

    @property
    def root_pos(self) -> Array:
        """Position of the root `(T, 3)` [m]."""
        return self._root()[:, :3]

    @property
    def root_quat(self) -> Array:
        """Orientation of the root `(T, 4)`, w, x, y, z."""
        return self._root()[:, 3:]

    def _root(self) -> Array:
        if self.free_root:
            return self.qpos[:, :7]
        base = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]) if self.base is None else self.base
        return np.broadcast_to(base, (len(self), 7))

    def select(self, names: Sequence[str]) -> Array:
        """Return the angles of the named joints, in that order, `(T, len(names))` [rad].

        Raises:
            UnknownNameError: If a joint is not there.
        """
        return self.dof[:, [_index(self.joint_names, name, "joint") for name in names]]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the motion as `.npz`."""
        arrays: dict[str, Any] = {"dof": self.dof, "root_pos": self.root_pos, "root_quat": self.root_quat}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                arrays[field.name] = np.array(value) if isinstance(value, tuple) else value
                if field.name in _DERIVED:
                    arrays[field.name] = value.astype(np.float32)
        if not self.body_names:
            del arrays["body_names"]
        _write(Path(path), ROBOT_KIND, arrays, force)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a motion that `save` wrote.

        Raises:
            FileFormatError: If the file is something else.
        """
        arrays = _read(Path(path), ROBOT_KIND)
        for name in ("joint_names", "body_names"):
            arrays[name] = tuple(str(entry) for entry in arrays.get(name, ()))
        for name in ("robot", "source", "licence"):
            arrays[name] = str(arrays[name])
        arrays["fps"] = float(arrays["fps"])
        known = {field.name for field in fields(cls)}
        with _told_by(path):
            return cls(**{name: value for name, value in arrays.items() if name in known})


def is_motion_file(arrays: Mapping[str, Any], kind: str) -> bool:
    """Say whether the arrays of an `.npz` are a motion file of that kind."""
    return _KIND in arrays and str(arrays[_KIND]) == kind


def _own(
    thing: Any, name: str, value: ArrayLike, shape: tuple[int, ...] | None = None, dtype: Any = np.float64
) -> None:
    """Set a read-only array of a frozen record; -1 in `shape` is any length."""
    array: NDArray[Any] = np.array(value, dtype=dtype)
    if shape is not None and (
        array.ndim != len(shape)
        or any(want not in (-1, got) for want, got in zip(shape, array.shape, strict=True))
    ):
        raise BunrakuError(f"{name} is {shape} here, got {array.shape}")
    array.flags.writeable = False
    object.__setattr__(thing, name, array)


def _positive(fps: float) -> None:
    if not (np.isfinite(fps) and fps > 0.0):
        raise BunrakuError(f"frames per second are positive, got {fps}")


def _index(names: Sequence[str], name: str, kind: str) -> int:
    if name not in names:
        raise UnknownNameError(kind, name, names)
    return list(names).index(name)


def _write(path: Path, kind: str, arrays: Mapping[str, Any], force: bool) -> None:
    """Write all or nothing: the file has its name only once it is complete."""
    if path.exists() and not force:
        raise BunrakuError(f"{path} exists; give another name, or --force to replace it")
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **{_KIND: np.array(kind), **arrays})
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(buffer.getvalue())
        os.replace(unfinished, path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise BunrakuError(f"cannot write {path}: {error.strerror or error}; give another place") from error


def _read(path: Path, kind: str) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file) if hasattr(file, "files") else {}
    except FileNotFoundError as error:
        raise BunrakuError(f"{path} does not exist") from error
    except (ValueError, EOFError, OSError, BadZipFile, KeyError) as error:
        raise FileFormatError(f"{path} is no motion file, or is truncated: {error}") from error
    if not is_motion_file(arrays, kind):
        found = f"of kind {str(arrays[_KIND])!r}" if _KIND in arrays else "no motion file of bunraku"
        raise FileFormatError(f"{path} is {found}; expected {kind!r}")
    return arrays


class _told_by:
    """Name the file in the message of what its arrays lack."""

    def __init__(self, path: str | Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, KeyError) and not isinstance(error, BunrakuError):
            raise FileFormatError(f"{self._path} lacks the array {error}") from error
        if isinstance(error, BunrakuError | TypeError):
            raise FileFormatError(f"{self._path}: {error}") from error
