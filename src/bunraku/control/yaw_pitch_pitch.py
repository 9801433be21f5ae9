"""Closed-form inverse kinematics of an arm that yaws about z and has two pitch joints about -y.

    q = solve([0.185, 0.0, 0.159], geometry)           # the elbow above the shoulder
    q = solve([0.185, 0.0, 0.159], geometry, mirror=True)  # the same tip, the elbow below

The base stands at the origin of the frame in which tips are given, z up; all angles zero stretches the arm along
+x. With the shoulder as origin, `r = hypot(x, y)` and `d = hypot(r, z)`:

    yaw      = atan2(y, x)
    elbow    = -+ acos((d^2 - L1^2 - L2^2) / (2 L1 L2))
    shoulder = atan2(z, r) - atan2(L2 sin(elbow), L1 + L2 cos(elbow))

The negative elbow angle lifts the elbow over the line from shoulder to tip. Its mirror image about that line has
the same tip, but where the tip is low and near the base its elbow lies under the table that the arm stands on.

Functions accept any leading axes, `(..., 3)`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.errors import BunrakuError
from bunraku.geometry import Array

Range = tuple[float, float]
_ROUNDING = 1e-12


class ReachError(BunrakuError, ValueError):
    """A target that the arm cannot reach."""


@dataclass(frozen=True, slots=True)
class ArmGeometry:
    """Lengths and joint ranges."""

    upper: float
    """Length L1 from shoulder to elbow [m]."""
    fore: float
    """Length L2 from elbow to tip [m]."""
    shoulder_height: float
    """Height of the shoulder's pitch axis over the base [m]; it crosses the yaw axis."""
    yaw_range: Range
    """Smallest and largest yaw [rad]."""
    shoulder_range: Range
    """Smallest and largest shoulder pitch [rad]; positive lifts."""
    elbow_range: Range
    """Smallest and largest elbow pitch [rad]; negative has the elbow above the shoulder."""

    @property
    def ranges(self) -> Array:
        """Smallest and largest angles `(3, 2)` [rad]."""
        return np.array([self.yaw_range, self.shoulder_range, self.elbow_range])

    def reach(self, *, mirror: bool = False) -> Range:
        """Return the smallest and largest distance [m] from shoulder to tip that the elbow's range allows."""
        low, high = self.elbow_range if mirror else (-self.elbow_range[1], -self.elbow_range[0])
        folded, straight = np.clip([high, low], 0.0, np.pi)
        return _span(self, folded), _span(self, straight)


def solve(pos: ArrayLike, geometry: ArmGeometry, *, mirror: bool = False) -> Array:
    """Return the joint angles yaw, shoulder, elbow `(..., 3)` [rad] that put the tip at `pos`.

    Args:
        pos: Tip positions in the base's frame `(..., 3)` [m].
        geometry: The arm.
        mirror: Take the solution with the elbow below the line from shoulder to tip.

    Raises:
        ReachError: A target is too far, too near, or needs an angle outside a joint's range.
    """
    base_tip = np.asarray(pos, dtype=np.float64)
    if base_tip.shape[-1:] != (3,):
        raise ValueError(f"a tip position has 3 numbers, got an array of shape {base_tip.shape}")
    distance = _distance(base_tip, geometry)
    near, far = geometry.reach(mirror=mirror)
    beyond = np.fmax(near - distance, distance - far)
    # what is no number is out of reach as well
    beyond = np.where(np.isnan(beyond), np.inf, beyond)
    if (beyond > _ROUNDING).any():
        at = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
        worst, how_far = base_tip[at], distance[at]
        raise ReachError(
            f"the tip cannot reach {_text(worst)}: it is {how_far:.4f} m from the shoulder at height "
            f"{geometry.shoulder_height:g} m, and the arm reaches from {near:.4f} to {far:.4f} m; choose a "
            "target within that"
        )
    q = angles(base_tip, geometry, mirror=mirror)
    low, high = geometry.ranges.T
    outside = (q < low - _ROUNDING) | (q > high + _ROUNDING)
    if outside.any():
        *leading, joint = (int(index) for index in np.argwhere(outside)[0])
        name = ("yaw", "shoulder", "elbow")[joint]
        raise ReachError(
            f"the tip cannot reach {_text(base_tip[tuple(leading)])}: the {name} would need "
            f"{np.degrees(q[(*leading, joint)]):.1f} degrees, and its range is "
            f"{np.degrees(low[joint]):.0f} to {np.degrees(high[joint]):.0f} degrees; within it the arm "
            f"reaches from {near:.4f} to {far:.4f} m around the shoulder"
        )
    return q


def reachable(pos: ArrayLike, geometry: ArmGeometry, *, mirror: bool = False) -> NDArray[np.bool_]:
    """Say which tip positions `(..., 3)` [m] can be reached within the joint ranges `(...)`."""
    base_tip = np.asarray(pos, dtype=np.float64)
    distance = _distance(base_tip, geometry)
    near, far = geometry.reach(mirror=mirror)
    q = angles(base_tip, geometry, mirror=mirror)
    low, high = geometry.ranges.T
    within = (distance >= near - _ROUNDING) & (distance <= far + _ROUNDING)
    return np.asarray(within & ((q >= low - _ROUNDING) & (q <= high + _ROUNDING)).all(axis=-1))


def angles(pos: ArrayLike, geometry: ArmGeometry, *, mirror: bool = False) -> Array:
    """Return what `solve` returns, but refuse nothing: joint ranges are left alone.

    A tip too far is approached with the arm stretched, one too near with the arm folded.

    Args:
        pos: Tip positions in the base's frame `(..., 3)` [m].
        geometry: The arm.
        mirror: Take the solution with the elbow below the line from shoulder to tip.
    """
    base_tip = np.asarray(pos, dtype=np.float64)
    l1, l2 = geometry.upper, geometry.fore
    r = np.hypot(base_tip[..., 0], base_tip[..., 1])
    z = base_tip[..., 2] - geometry.shoulder_height
    cosine = np.clip((r * r + z * z - l1 * l1 - l2 * l2) / (2.0 * l1 * l2), -1.0, 1.0)
    elbow = np.arccos(cosine) if mirror else -np.arccos(cosine)
    shoulder = np.arctan2(z, r) - np.arctan2(l2 * np.sin(elbow), l1 + l2 * np.cos(elbow))
    # with a forearm longer than the upper arm the difference may go past half a turn
    shoulder = shoulder - 2.0 * np.pi * np.round(shoulder / (2.0 * np.pi))
    return np.stack([np.arctan2(base_tip[..., 1], base_tip[..., 0]), shoulder, elbow], axis=-1)


def forward(q: ArrayLike, geometry: ArmGeometry) -> Array:
    """Return the tip position in the base's frame `(..., 3)` [m] of joint angles `(..., 3)` [rad]."""
    q = np.asarray(q, dtype=np.float64)
    yaw, shoulder, both = q[..., 0], q[..., 1], q[..., 1] + q[..., 2]
    r = geometry.upper * np.cos(shoulder) + geometry.fore * np.cos(both)
    z = geometry.upper * np.sin(shoulder) + geometry.fore * np.sin(both)
    return np.stack([r * np.cos(yaw), r * np.sin(yaw), geometry.shoulder_height + z], axis=-1)


def _distance(base_tip: Array, geometry: ArmGeometry) -> Array:
    radius = np.hypot(base_tip[..., 0], base_tip[..., 1])
    return np.asarray(np.hypot(radius, base_tip[..., 2] - geometry.shoulder_height))


def _span(geometry: ArmGeometry, elbow: float) -> float:
    l1, l2 = geometry.upper, geometry.fore
    return float(np.sqrt(l1 * l1 + l2 * l2 + 2.0 * l1 * l2 * np.cos(elbow)))


def _text(point: Array) -> str:
    return "({}) m".format(", ".join(f"{value:.4g}" for value in point))
