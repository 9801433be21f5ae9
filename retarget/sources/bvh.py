"""BVH files in the namings of CMU, LAFAN1, Mixamo, Xsens and SMPL.

The naming is found by the joints that are there; a prefix such as `mixamorig:` does not matter. A first frame that is
a T pose and not part of the motion (LAFAN1 exports have one) is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import FileFormatError
from bunraku.motion import SMPL_JOINTS, HumanMotion
from bunraku.retarget.reading.axes import LEG, leg_length, to_motion
from bunraku.retarget.reading.bvh_file import Bvh, parse_bvh
from bunraku.retarget.reading.content import Content, ReadOptions

Array = NDArray[np.float64]

_SIDES = ("left", "right")


def _naming(
    middle: Mapping[str, str], sides: Mapping[str, str], pattern: str = "{side}{part}"
) -> dict[str, str]:
    """Return key point: alternatives, parted by |; `sides` are written once for left and right."""
    out = dict(middle)
    for side in _SIDES:
        for point, parts in sides.items():
            words = [pattern.format(side=side, s=side[0], part=part) for part in parts.split("|")]
            out[f"{side}_{point}"] = "|".join(words)
    return out


_LEGS_AND_ARMS = {"hip": "upleg", "knee": "leg", "ankle": "foot", "foot": "toebase|toe"} | {
    "collar": "shoulder",
    "shoulder": "arm",
    "elbow": "forearm",
    "wrist": "hand",
}
_ANATOMIC = {"hip": "hip", "knee": "knee", "ankle": "ankle", "foot": "toe|foot|toebase"} | {
    "collar": "collar",
    "shoulder": "shoulder",
    "elbow": "elbow",
    "wrist": "wrist|hand",
}
NAMINGS: dict[str, dict[str, str]] = {
    "CMU (cgspeed)": _naming(
        {
            "pelvis": "hips",
            "spine1": "lowerback",
            "spine2": "spine",
            "spine3": "spine1",
            "neck": "neck",
            "head": "head",
        },
        _LEGS_AND_ARMS,
    ),
    "LAFAN1 or Mixamo": _naming(
        {
            "pelvis": "hips",
            "spine1": "spine",
            "spine2": "spine1",
            "spine3": "spine2",
            "neck": "neck",
            "head": "head",
        },
        _LEGS_AND_ARMS,
    ),
    "CMU (3ds Max)": _naming(
        {
            "pelvis": "hips",
            "spine1": "chest",
            "spine2": "chest2",
            "spine3": "lowerneck",
            "neck": "neck",
            "head": "head",
        },
        _ANATOMIC,
    ),
    "Xsens": _naming(
        {
            "pelvis": "hips",
            "spine1": "chest",
            "spine2": "chest2|chest3",
            "spine3": "chest4|chest3",
            "neck": "neck",
        }
        | {"head": "head"},
        _ANATOMIC,
    ),
    "SMPL": _naming(
        {name: name for name in ("pelvis", "spine1", "spine2", "spine3", "neck", "head")},
        _ANATOMIC | {"ankle": "ankle", "foot": "foot|toe"},
        pattern="{side}{part}",
    ),
    "SMPL (short)": _naming(
        {name: name for name in ("pelvis", "spine1", "spine2", "spine3", "neck", "head")},
        _ANATOMIC | {"ankle": "ankle", "foot": "foot|toe"},
        pattern="{s}{part}",
    ),
}
"""Namings, the more particular ones first; names are lower case, without prefix and separators."""


class BvhSource:
    """Reads BVH."""

    description = "BVH in the namings of CMU, LAFAN1, Mixamo, Xsens and SMPL"

    def recognises(self, content: Content) -> bool:
        """Say whether the text begins as BVH does."""
        return content.text.lstrip("\ufeff \t\r\n")[:9].upper() == "HIERARCHY"

    def load(self, content: Content, options: ReadOptions) -> Sequence[HumanMotion]:
        """Return the clip."""
        bvh = parse_bvh(content.text.lstrip("\ufeff"), content.name)
        naming, columns = find_naming([joint.name for joint in bvh.joints], content.name)
        points = bvh.positions()[:, columns]
        notes = [f"joint names as of {naming}"]
        _fill_toes(bvh, columns, points)
        if _begins_with_rest(points):
            points = points[1:]
            notes.append("the first frame, a T pose, was left out")
        return [to_motion(points, options, name=content.name, fps=bvh.fps, notes=notes)]


def find_naming(names: Sequence[str], file: str) -> tuple[str, list[int]]:
    """Return the naming of a skeleton and the joint of each key point.

    Raises:
        FileFormatError: If no naming fits; names what the nearest one lacks.
    """
    index = {_bare(name): i for i, name in reversed(list(enumerate(names)))}
    lacking: dict[str, list[str]] = {}
    for naming, points in NAMINGS.items():
        found = {
            p: next((index[w] for w in words.split("|") if w in index), None) for p, words in points.items()
        }
        missing = [p for p, joint in found.items() if joint is None and not p.endswith("_foot")]
        if not missing:
            ankles = {side: found[f"{side}_ankle"] for side in _SIDES}
            # toes that the skeleton lacks are the end of the ankle's chain; `_fill_toes` sees to them
            return naming, [
                joint if (joint := found[point]) is not None else int(ankles[point.split("_")[0]] or 0)
                for point in SMPL_JOINTS
            ]
        lacking[naming] = missing
    nearest = min(lacking, key=lambda naming: len(lacking[naming]))
    raise FileFormatError(
        f"{file}: its joint names are of no naming that is known; the nearest, {nearest}, lacks"
        f" {', '.join(lacking[nearest])} among {', '.join(names)[:400]}"
    )


def _bare(name: str) -> str:
    """Return a joint's name in lower case without prefix (`mixamorig:`) and separators."""
    bare = name.lower()
    if bare.endswith(" end"):
        return bare
    return (
        bare.rsplit(":", 1)[-1].removeprefix("mixamorig").replace("_", "").replace("-", "").replace(" ", "")
    )


def _fill_toes(bvh: Bvh, columns: list[int], points: Array) -> None:
    """Put toes that the skeleton lacks at the end site of the foot, in place."""
    for side in _SIDES:
        toe, ankle = SMPL_JOINTS.index(f"{side}_foot"), SMPL_JOINTS.index(f"{side}_ankle")
        if columns[toe] == columns[ankle]:
            ends = [i for i, joint in enumerate(bvh.joints) if joint.parent == columns[ankle]]
            if ends:
                points[:, toe] = bvh.positions()[:, ends[0]]


def _begins_with_rest(points: Array) -> bool:
    """Say whether the first frame is a T pose that the second does not go on from."""
    if len(points) < 3:
        return False
    local = points[:3] - points[:3, :1]
    size = leg_length(points) / (0.5 * sum(LEG))
    leap = np.linalg.norm(local[1] - local[0], axis=-1).max() > 0.25 * size
    goes_on = np.linalg.norm(local[2] - local[1], axis=-1).max() < 0.15 * size
    straight = True
    for side in _SIDES:
        shoulder, elbow, wrist = (
            points[0, SMPL_JOINTS.index(f"{side}_{p}")] for p in ("shoulder", "elbow", "wrist")
        )
        upper, lower = elbow - shoulder, wrist - elbow
        straight &= bool(upper @ lower > 0.95 * np.linalg.norm(upper) * np.linalg.norm(lower))
    return bool(leap and goes_on and straight)


SOURCE = BvhSource()
