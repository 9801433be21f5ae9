"""What is observed of screw driving: the layout of the observation, the stages of the work, and how it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bunraku.envs import screw_workpiece as workpiece
from bunraku.geometry import Array
from bunraku.screw import figures

ENGAGED_DEPTH = 0.0025
"""A bit this far below the screw's top and within `ENGAGED_OFFSET` of its axis is in the recess [m]."""
ENGAGED_OFFSET = 0.003
CLEAR = 0.025
"""A bit this far above the screw's top is lifted clear [m]; the board's surface is then 8 mm below it."""
DEEP_MARGIN = 0.0003
"""An operator's guide lifts the bit when the screw is this much deeper than it must be [m]."""

LAYOUT: Mapping[str, slice] = {
    name: slice(start, start + size)
    for name, start, size in (
        ("joint_angles", 0, 4), ("joint_speeds", 4, 4), ("tip_pos", 8, 3), ("tip_quat", 11, 4),
        ("tip_vel", 15, 3), ("target_lead", 18, 3), ("bit_angle", 21, 2), ("bit_speed", 23, 1),
        ("bit_lead", 24, 1), ("screw_top", 25, 3), ("screw_depth", 28, 1), ("screw_angle", 29, 1),
        ("recess_offset", 30, 2), ("force", 32, 3), ("torque", 35, 3), ("stage", 38, 5), ("crossed", 43, 1),
        ("stripped", 44, 1),
    )
}  # fmt: skip
"""Where each quantity stands in the observation."""
SIZE = 45
_BOUNDS = {
    "joint_angles": 4.0, "joint_speeds": 50.0, "tip_pos": 2.0, "tip_quat": 1.0, "tip_vel": 20.0, "target_lead": 2.0,
    "bit_angle": 1.0, "bit_speed": 500.0, "bit_lead": 10.0, "screw_top": 2.0, "screw_depth": 1.0, "screw_angle": 1000.0,
    "recess_offset": 1.0, "force": 10000.0, "torque": 1000.0, "stage": 1.0, "crossed": 1.0, "stripped": 1.0,
}  # fmt: skip
BOUND = np.concatenate([np.full(at.stop - at.start, _BOUNDS[name]) for name, at in LAYOUT.items()])
"""Largest magnitude of each number `(45,)`."""
STAGES = ("free", "engaged", "driving", "deep", "clear")


@dataclass(frozen=True, slots=True)
class Work:
    """How the work stands, as an operator sees it."""

    tip: Array
    """The bit's lowest point `(3,)` [m]."""
    top: Array
    """Middle of the screw's top `(3,)` [m]."""
    bit_angle: float
    """Angle of the bit [rad]."""
    apart: float
    """How far the bit is turned from the nearest quarter of the recess [rad]."""
    depth: float
    """How far the screw is in [m]."""
    in_recess: bool
    """Whether the bit is in the recess."""
    deep: bool
    """Whether the screw is deep enough."""
    force: Array
    """Mean contact force on the bit `(3,)` [N]."""
    recess_depth: float = workpiece.RECESS_DEPTH
    """From the screw's top to the recess's floor [m]."""

    @classmethod
    def of(cls, seen: Array, bit_angle: float) -> Work:
        """Return how the work stands in an observation `(45,)`, with the bit's angle in any number of turns."""
        depth = float(seen[LAYOUT["screw_depth"]][0])
        tip, top = seen[LAYOUT["tip_pos"]], seen[LAYOUT["screw_top"]]
        offset = tip - top
        inside = bool(offset[2] < -ENGAGED_DEPTH and np.hypot(offset[0], offset[1]) < ENGAGED_OFFSET)
        # a screw that is barely deep is driven on, but not taken up again once the bit has left it
        deep = depth >= figures.SCREW_SINK + DEEP_MARGIN or (depth >= figures.SCREW_SINK and not inside)
        cosine, sine = seen[LAYOUT["recess_offset"]]
        return cls(
            tip=tip,
            top=top,
            bit_angle=bit_angle,
            apart=float(np.arctan2(sine, cosine)) / 4.0,
            depth=depth,
            in_recess=inside,
            deep=deep,
            force=seen[LAYOUT["force"]],
        )


def stages(offset: Array, depth: Array, caught: Array) -> Array:
    """Return which of `STAGES` it is, as ones and zeros `(..., 5)`.

    Args:
        offset: From the middle of the screw's top to the bit's lowest point `(..., 3)` [m].
        depth: How far the screw is in `(...)` [m].
        caught: 1 where its thread has caught `(...)`.
    """
    aside = np.sqrt((offset[..., :2] * offset[..., :2]).sum(axis=-1))
    in_recess = (offset[..., 2] < -ENGAGED_DEPTH) & (aside < ENGAGED_OFFSET)
    deep = depth >= figures.SCREW_SINK
    clear = deep & (offset[..., 2] > CLEAR)
    driving = in_recess & (caught > 0.0)
    stage = np.where(clear, 4, np.where(deep, 3, np.where(driving, 2, np.where(in_recess, 1, 0))))
    return np.asarray(stage[..., None] == np.arange(len(STAGES)), dtype=np.float64)


def cross(a: Array, b: Array) -> Array:
    """Return the cross product `(..., 3)`; NumPy's costs ten times as much for one vector."""
    out = a[..., [1, 2, 0]] * b[..., [2, 0, 1]] - a[..., [2, 0, 1]] * b[..., [1, 2, 0]]
    return np.asarray(out)
