"""The reference: frames of one or many clips at the control frequency, one after another in arrays.

    library = ReferenceLibrary(load_clips(None, ROBOT), ROBOT, model, fps=50.0)
    at = library.index(clip, frame)         # never beyond the clip's ends
    library.qpos[at], library.points.pos[at]

Clips are matched to the robot by joint names. Velocities are made within each clip, so that none crosses from one to
the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.envs.imitation.key_points import BodyPoses, motion_key_points
from bunraku.errors import BunrakuError
from bunraku.geometry import Array, conjugate, nlerp, rotate
from bunraku.humanoid import HumanoidSpec
from bunraku.motion import RobotMotion
from bunraku.motion_bodies import angular_velocity, model_qpos, rates

Clip = str | Path | RobotMotion
SHORTEST = 0.5
"""Clips are at least this long [s]."""


def load_clips(motion: Clip | Sequence[Clip] | None, robot: HumanoidSpec) -> dict[str, RobotMotion]:
    """Return clips by name: file names without their ending, or `clip0`, `clip1` for motions given as such.

    Args:
        motion: One or several motion files or motions; None for the walk that comes along.
        robot: The robot.

    Raises:
        BunrakuError: If a clip is of another robot, lacks joints, has a fixed root or is too short.
    """
    if motion is None:
        place = files("bunraku.envs.imitation").joinpath(f"assets/walk_{robot.name}.npz")
        if not place.is_file():
            raise BunrakuError(f"no walk comes along for the robot {robot.name!r}; give a file with motion=")
        with as_file(place) as path:
            return {"walk": RobotMotion.load(path)}
    given = [motion] if isinstance(motion, str | Path | RobotMotion) else list(motion)
    if not given:
        raise BunrakuError("motion= is empty; give at least one motion file")
    clips: dict[str, RobotMotion] = {}
    for i, clip in enumerate(given):
        loaded = clip if isinstance(clip, RobotMotion) else RobotMotion.load(clip)
        name = f"clip{i}" if isinstance(clip, RobotMotion) else Path(clip).stem
        check_clip(loaded, robot, f"clip {i}" if isinstance(clip, RobotMotion) else str(clip))
        clips[name if name not in clips else f"{name}_{i}"] = loaded
    return clips


def check_clip(motion: RobotMotion, robot: HumanoidSpec, what: str) -> None:
    """Raise BunrakuError, naming the clip as `what`, if the robot cannot follow it."""
    if motion.robot != robot.name:
        raise BunrakuError(
            f"{what} is a motion of {motion.robot!r}, not of {robot.name!r}; retarget it to {robot.name!r},"
            f" or make the environment with robot={motion.robot!r}"
        )
    missing = [name for name in robot.joints if name not in motion.joint_names]
    if missing:
        raise BunrakuError(f"{what} lacks the joints {', '.join(missing)}")
    if not motion.free_root:
        raise BunrakuError(f"{what} has a fixed root; retarget it with a free root")
    if motion.duration < SHORTEST:
        raise BunrakuError(f"{what} lasts {motion.duration:.3g} s; at least {SHORTEST:g} s are needed")


def resample(motion: RobotMotion, fps: float) -> RobotMotion:
    """Return the bare motion at another frame rate: linear, orientations along the shorter arc."""
    frames = int(np.floor(motion.duration * fps + 1e-6)) + 1
    times = np.minimum(np.arange(frames) * motion.fps / fps, len(motion) - 1)
    left = np.minimum(times.astype(np.int64), len(motion) - 2)
    part = (times - left)[:, None]
    qpos = (1.0 - part) * motion.qpos[left] + part * motion.qpos[left + 1]
    qpos[:, 3:7] = nlerp(motion.qpos[left, 3:7], motion.qpos[left + 1, 3:7], part[:, 0])
    return RobotMotion(
        qpos=qpos,
        joint_names=motion.joint_names,
        fps=fps,
        robot=motion.robot,
        source=motion.source,
        licence=motion.licence,
    )


class ReferenceLibrary:
    """All frames of all clips."""

    def __init__(
        self, clips: dict[str, RobotMotion], robot: HumanoidSpec, model: mujoco.MjModel, fps: float
    ) -> None:
        """Resample the clips and compute poses and velocities.

        Args:
            clips: Motions by name.
            robot: The robot.
            model: Its model, with a free root.
            fps: Frames per second.
        """
        self.names = tuple(clips)
        """Names of the clips."""
        fine = [_reorder(resample(clip, fps), robot) for clip in clips.values()]
        self.length: NDArray[np.int64] = np.array([len(clip) for clip in fine])
        """Frames of each clip `(C,)`."""
        self.first: NDArray[np.int64] = np.concatenate([[0], np.cumsum(self.length)[:-1]])
        """First frame of each clip `(C,)`."""
        self.qpos: Array = np.concatenate([model_qpos(clip, model) for clip in fine])
        """`(F, nq)`: root position, root quaternion, joint angles."""
        self.qvel: Array = np.concatenate([_velocities(clip) for clip in fine])
        """`(F, nv)`: velocities as MuJoCo has them."""
        parts = [motion_key_points(clip, robot, model) for clip in fine]
        self.points = BodyPoses(
            *(np.concatenate([getattr(p, name) for p in parts]) for name in ("pos", "quat", "lin", "ang"))
        )
        """Key points `(F, B, ...)`."""

    def index(self, clip: NDArray[np.int64], frame: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return where frames `(...)` of clips `(...)` are in the arrays; beyond its ends a clip stands still."""
        return np.asarray(self.first[clip] + np.clip(frame, 0, self.length[clip] - 1))

    def at(self, index: NDArray[np.int64]) -> BodyPoses:
        """Return the key points at places in the arrays."""
        points = self.points
        return BodyPoses(points.pos[index], points.quat[index], points.lin[index], points.ang[index])


def _reorder(motion: RobotMotion, robot: HumanoidSpec) -> RobotMotion:
    """Return the motion with exactly the robot's joints in the robot's order."""
    qpos = np.concatenate([motion.qpos[:, :7], motion.select(robot.joints)], axis=1)
    return replace(motion, qpos=qpos, joint_names=robot.joints)


def _velocities(motion: RobotMotion) -> Array:
    """Return velocities `(T, 6 + n)` as MuJoCo has them: the root's angular velocity is in its own frame."""
    world_spin = angular_velocity(motion.root_quat, motion.fps)
    own_spin = rotate(conjugate(motion.root_quat), world_spin)
    return np.concatenate(
        [rates(motion.root_pos, motion.fps), own_spin, rates(motion.dof, motion.fps)], axis=1
    )
