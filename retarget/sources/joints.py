"""Joint positions `[N, J, 3]` in `.npy` or `.npz`, and our own motion files.

J is 22 (SMPL's body), 24 (SMPL), 52 (SMPL-H), or 55, 127, 144 (SMPL-X): the first 22 are the same in all. One frame
`[J, 3]` and `[N, 66]` are taken too.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import FileFormatError
from bunraku.motion import HUMAN_KIND, HumanMotion, is_motion_file
from bunraku.retarget.reading.axes import to_motion
from bunraku.retarget.reading.content import UNNAMED, Content, ReadOptions

COUNTS = {22: "SMPL's body", 24: "SMPL", 52: "SMPL-H", 55: "SMPL-X", 127: "SMPL-X", 144: "SMPL-X"}
"""Numbers of joints whose first 22 are the key points."""
NAMES = ("joints", "joint_positions", "joints3d", "keypoints", "positions", "pos", "motion", UNNAMED)
"""Names under which files keep joint positions."""


class JointsSource:
    """Reads joint positions."""

    description = "joint positions [N, 22, 3] in .npy or .npz"

    def recognises(self, content: Content) -> bool:
        """Say whether there is an array that could be joint positions."""
        array = content.array(*NAMES)
        return is_motion_file(content.values, HUMAN_KIND) or (
            array is not None and (array.ndim in (1, 2, 3) or (array.ndim == 4 and array.shape[0] == 1))
        )

    def load(self, content: Content, options: ReadOptions) -> Sequence[HumanMotion]:
        """Return the clip."""
        if is_motion_file(content.values, HUMAN_KIND):
            return [HumanMotion.load(content.name)]
        array = content.array(*NAMES)
        assert array is not None  # recognised
        points, note = _points(array, content.name)
        return [
            to_motion(
                points,
                options,
                name=content.name,
                fps=content.frame_rate(),
                licence=content.word("licence", "license"),
                source=content.word("source", "src"),
                notes=[note] if note else [],
            )
        ]


def _points(array: NDArray[np.generic], name: str) -> tuple[NDArray[np.float64], str]:
    """Return `(N, 22, 3)` and what was done to get there."""
    given = array.shape
    if array.ndim == 4:
        array = array[0]
    if array.ndim == 2 and array.shape == (len(array), 66):
        array = array.reshape(-1, 22, 3)
    elif array.ndim == 2:
        array = array[None]
    if array.ndim == 3 and array.shape[2] != 3 and array.shape[1] == 3 and array.shape[2] in COUNTS:
        array = array.transpose(0, 2, 1)
    elif array.ndim == 3 and array.shape[:2] == (22, 3) and array.shape[2] != 3:
        array = array.transpose(2, 0, 1)
    if array.ndim != 3 or array.shape[2] != 3 or array.shape[1] not in COUNTS or len(array) == 0:
        hint = (
            "; 263 values per frame are HumanML3D features, recover the joints first" if 263 in given else ""
        )
        raise FileFormatError(
            f"{name} holds an array {given}; joint positions are (N, J, 3) with J one of"
            f" {', '.join(map(str, COUNTS))}{hint}"
        )
    joints = array.shape[1]
    note = "" if joints == 22 else f"{joints} joints ({COUNTS[joints]}), of which the first 22 were taken"
    return np.asarray(array[:, :22], dtype=np.float64), note


SOURCE = JointsSource()
