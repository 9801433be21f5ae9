"""SMPL parameters: AMASS (`poses`, `trans`), GVHMR (`smpl_params_global`), and the like, `.npz`, `.pkl` or `.pt`.

Joint positions come from forward kinematics of our default skeleton, or of the licensed body model and the file's
`betas` when the user has one: `--body-model`, or the environment variable `BUNRAKU_BODY_MODEL`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import FileFormatError
from bunraku.geometry import from_matrix, from_rotvec, multiply, rotate
from bunraku.motion import SMPL_JOINTS, SMPL_PARENTS, HumanMotion
from bunraku.retarget.reading.axes import TO_Z_UP, to_motion
from bunraku.retarget.reading.body_model import rest_joints
from bunraku.retarget.reading.content import Content, ReadOptions
from bunraku.retarget.reading.skeleton import REST_OFFSETS, forward_kinematics

Array = NDArray[np.float64]

POSES = ("poses", "fullpose", "pose", "body_pose", "pose_body", "smpl_poses")
ROOTS = ("global_orient", "root_orient", "pose_root")
TRANSLATIONS = ("trans", "transl", "translation", "smpl_trans")
GROUPS = ("smpl_params_global", "smpl_params", "smpl")
"""Tables within a file that hold the parameters, the one in world coordinates first."""
FPS = 30.0
"""Taken where the file says nothing: video and most of AMASS's derivatives."""

_NECK, _HEAD = SMPL_JOINTS.index("neck"), SMPL_JOINTS.index("head")


class SmplSource:
    """Reads SMPL parameters."""

    description = "SMPL parameters of AMASS, GVHMR and the like, .npz, .pkl or .pt"

    def recognises(self, content: Content) -> bool:
        """Say whether there are body poses."""
        return _parameters(content).array(*POSES) is not None

    def load(self, content: Content, options: ReadOptions) -> Sequence[HumanMotion]:
        """Return the clip."""
        parameters = _parameters(content)
        rotations = _rotations(parameters)
        frames = len(rotations)
        trans = parameters.array(*TRANSLATIONS)
        notes = []
        if trans is None:
            notes.append("the file has no translation; the pelvis stays in place")
            trans = np.zeros((frames, 3))
        if trans.reshape(-1, 3).shape != (frames, 3):
            raise FileFormatError(f"{content.name}: translations {trans.shape} for {frames} poses")
        offsets, origin = _skeleton(content.name, parameters, options, notes)
        root = np.asarray(trans, dtype=np.float64).reshape(-1, 3) + origin
        points, _ = forward_kinematics(offsets, rotations, root)
        return [
            to_motion(
                points,
                options if options.units != "auto" else replace(options, units="m"),
                name=content.name,
                fps=content.frame_rate() or parameters.frame_rate(),
                default_fps=FPS,
                usual_up="z",
                licence=content.word("licence", "license"),
                notes=notes,
                head_quat=head_in_chest(rotations),
            )
        ]


def head_in_chest(rotations: Array) -> Array:
    """Return the orientation of the head in the chest `(N, 4)`, in axes x forward, z up, of SMPL joint rotations."""
    local = multiply(rotations[:, _NECK], rotations[:, _HEAD])
    vector = rotate(from_matrix(TO_Z_UP["y"]), local[:, 1:])
    return np.concatenate([local[:, :1], vector], axis=1)


def _parameters(content: Content) -> Content:
    """Return the part of the content that holds the parameters."""
    for group in GROUPS:
        inner = content.values.get(group)
        if isinstance(inner, Mapping):
            return Content(content.name, values=dict(inner))
    return content


def _rotations(parameters: Content) -> Array:
    """Return the joint rotations `(N, 22, 4)` against their parents."""
    poses, root = parameters.array(*POSES), parameters.array(*ROOTS)
    assert poses is not None  # recognised
    body = _quaternions(poses, parameters.name)
    if root is not None:
        root_quat = _quaternions(root, parameters.name)
        if root_quat.shape[:2] != (len(body), 1):
            raise FileFormatError(
                f"{parameters.name}: root orientations {root.shape} for body poses {poses.shape}"
            )
        if body.shape[1] in (21, 23):
            body = np.concatenate([root_quat, body], axis=1)
    if body.shape[1] < len(SMPL_JOINTS):
        missing = "; body poses without a root orientation" if body.shape[1] in (21, 23) else ""
        raise FileFormatError(
            f"{parameters.name}: poses {poses.shape} are {body.shape[1]} joints, SMPL's body has 22{missing}"
        )
    return body[:, : len(SMPL_JOINTS)]


def _quaternions(poses: NDArray[Any], name: str) -> Array:
    """Return `(N, J, 4)` of rotation vectors `(N, 3 J)` or `(N, J, 3)`, or matrices `(N, J, 3, 3)`."""
    poses = np.asarray(poses, dtype=np.float64)
    bad = (
        ~np.isfinite(poses.reshape(len(poses), -1)).all(axis=1) if poses.ndim > 1 else np.zeros(0, dtype=bool)
    )
    if bad.any():
        # a gap is closed by the pose before it (or the first good one), since a rotation cannot be left out
        good = np.flatnonzero(~bad)
        if len(good) == 0:
            raise FileFormatError(f"{name}: no pose is finite")
        poses = poses[good[np.maximum(np.searchsorted(good, np.arange(len(poses)), side="right") - 1, 0)]]
    if poses.ndim == 4 and poses.shape[2:] == (3, 3):
        return from_matrix(poses)
    if poses.ndim == 3 and poses.shape[2] == 3:
        return from_rotvec(poses)
    if poses.ndim == 2 and poses.shape[1] % 3 == 0:
        return from_rotvec(poses.reshape(len(poses), -1, 3))
    raise FileFormatError(
        f"{name}: poses {poses.shape} are neither rotation vectors (N, 3 J) nor matrices (N, J, 3, 3)"
    )


def _skeleton(name: str, parameters: Content, options: ReadOptions, notes: list[str]) -> tuple[Array, Array]:
    """Return the rest offsets `(22, 3)`, Y up, and the pelvis at rest `(3,)` [m]."""
    path = options.body_model or os.environ.get("BUNRAKU_BODY_MODEL")
    if not path:
        notes.append("joints by forward kinematics of the default skeleton: no body model was given")
        return REST_OFFSETS @ TO_Z_UP["y"], np.zeros(3)
    betas = parameters.array("betas", "shape")
    if betas is None:
        notes.append("the file has no betas; the body model's mean shape taken")
    shape = np.zeros(10) if betas is None else np.asarray(betas, dtype=np.float64)
    joints = rest_joints(Path(path), shape.reshape(-1, shape.shape[-1])[0])
    parents = np.array(SMPL_PARENTS)
    offsets = joints - joints[np.maximum(parents, 0)]
    notes.append(f"joints by the body model {Path(path).name}")
    return offsets, joints[0]


SOURCE = SmplSource()
