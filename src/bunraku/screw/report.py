"""The figures of a demonstration, and which of them are as they must be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bunraku.screw import figures
from bunraku.screw.gif import GifFacts
from bunraku.screw.measures import Row

IK_TOLERANCE, GAP_TOLERANCE, SECONDS_TOLERANCE = 1e-9, 1e-6, 0.1
"""Allowed [m], [m] and [s]."""
GIF_SECONDS = 13.59
RENDER_RATIO = 1.3
FINAL_TOP = 0.003
_DIGITS = 12
"""Places to which figures are rounded, past which there is only the noise of floating point."""


@dataclass(frozen=True, slots=True)
class Report:
    """What `bunraku screw` found out; lengths in metres, times in seconds."""

    frames: int
    """Frames rendered."""
    gif_frames: int
    gif_seconds: float
    gif_last_seconds: float
    gif_width: int
    gif_height: int
    gif_bytes: int
    mp4_frames: int | None
    """Read back; None where no mp4 could be written."""
    ik_targets: int
    ik_max_error_m: float
    max_gap_m: float
    max_penetration_m: float
    final_angle_deg: float
    sink_m: float
    final_top_m: float
    bit_lag_deg: float
    """Largest angle between bit and recess while the screw turns."""
    max_tilt_deg: float
    """Largest angle of the driver to the vertical."""
    max_joint_step_rad: float
    smallest_joint_margin_deg: float
    elbow_m: float
    """Height of the elbow with the bit on the screw."""
    mirror_elbow_m: float
    """The same in the mirror solution."""
    lowest_link_m: float
    """Lowest point of the arm's links in all frames; the table is at 0."""
    render_ms: float
    """Of a frame: pose, lines, MuJoCo's renderer, status."""
    renderer_ms: float
    """Of MuJoCo's renderer alone, in turn with ours."""
    render_ratio: float
    """The first over the second: median over the frames that were timed."""
    seconds: float
    """Of the whole run, with checks and files."""

    def missed(self) -> list[str]:
        """Return a sentence for each figure that is not as it must be."""
        limits = {
            "frames": self.frames == figures.FRAMES,
            "ik_max_error_m": self.ik_max_error_m < IK_TOLERANCE,
            "max_gap_m": self.max_gap_m < GAP_TOLERANCE,
            "max_penetration_m": self.max_penetration_m < GAP_TOLERANCE,
            "final_angle_deg": self.final_angle_deg == np.degrees(figures.SCREW_TURN),
            "sink_m": self.sink_m == figures.SCREW_SINK,
            "final_top_m": self.final_top_m == FINAL_TOP,
            "gif_seconds": abs(self.gif_seconds - GIF_SECONDS) <= SECONDS_TOLERANCE,
            "mp4_frames": self.mp4_frames in (None, self.frames),
            "max_joint_step_rad": self.max_joint_step_rad <= figures.MAX_JOINT_STEP,
            "lowest_link_m": self.lowest_link_m > 0.0,
            "smallest_joint_margin_deg": self.smallest_joint_margin_deg >= 0.0,
        }
        return [f"{name} is {getattr(self, name)}" for name, good in limits.items() if not good]

    def as_json(self) -> dict[str, Any]:
        """Return all figures."""
        return asdict(self)

    def table(self) -> list[str]:
        """Return the lines that a person reads."""
        mm, mirror = 1000.0, f"mirror solution {self.mirror_elbow_m:.2f} m"
        return [
            f"inverse kinematics: {self.ik_max_error_m:.2e} m at most, at {self.ik_targets} targets",
            f"bit on screw, frames {figures.PRESS_END} to {figures.TURN_END}: gap {self.max_gap_m:.2e} m, "
            f"penetration {self.max_penetration_m:.2e} m, angle to the recess {self.bit_lag_deg:.1e} deg",
            f"screw: {self.final_angle_deg:.1f} deg, sunk by {mm * self.sink_m:.1f} mm, top at "
            f"{self.final_top_m:.3f} m (board {figures.BOARD_TOP:.3f} m)",
            f"arm: elbow at {self.elbow_m:.2f} m ({mirror}), lowest link {mm * self.lowest_link_m:.0f} mm over the "
            f"table, nearest joint limit {self.smallest_joint_margin_deg:.2f} deg away, largest step "
            f"{self.max_joint_step_rad:.4f} rad, driver tilted by {self.max_tilt_deg:.1e} deg",
            f"frames: {self.frames} rendered; GIF {self.gif_width}x{self.gif_height}, {self.gif_frames} frames, "
            f"{self.gif_seconds:.2f} s (the last {1000 * self.gif_last_seconds:.0f} ms), {self.gif_bytes} bytes"
            + ("" if self.mp4_frames is None else f"; mp4 {self.mp4_frames} frames"),
            f"rendering: {self.render_ms:.1f} ms per frame, MuJoCo's renderer alone {self.renderer_ms:.1f} ms, "
            f"ratio {self.render_ratio:.2f} (at most {RENDER_RATIO:g}); {self.seconds:.1f} s in all",
        ]


def compose(
    rows: Sequence[Row],
    ik_errors: Sequence[float],
    elbows: tuple[float, float],
    gif: GifFacts,
    mp4_frames: int | None,
    timings: Sequence[tuple[float, float]],
    seconds: float,
) -> Report:
    """Return the report.

    Args:
        rows: One of each frame.
        ik_errors: Distance of the tip from each target [m].
        elbows: The elbow's height in the solution that is taken and in its mirror image [m].
        gif: What a reader finds in the GIF.
        mp4_frames: What a reader finds in the mp4, if there is one.
        timings: Seconds of some frames with ours and with the bare renderer.
        seconds: Of the whole run.
    """
    pressed = rows[figures.PRESS_END : figures.TURN_END + 1]
    last = rows[-1]
    return Report(
        frames=len(rows),
        gif_frames=gif.frames,
        gif_seconds=gif.seconds,
        gif_last_seconds=gif.last_seconds,
        gif_width=gif.width,
        gif_height=gif.height,
        gif_bytes=gif.bytes,
        mp4_frames=mp4_frames,
        ik_targets=len(ik_errors),
        ik_max_error_m=max(ik_errors),
        max_gap_m=max(0.0, *(row.gap for row in pressed)),
        max_penetration_m=max(0.0, *(-row.gap for row in pressed)),
        final_angle_deg=round(float(np.degrees(last.turn)), _DIGITS - 3),
        sink_m=round(last.depth, _DIGITS),
        final_top_m=round(last.top, _DIGITS),
        bit_lag_deg=float(np.degrees(max(abs(row.bit_lag) for row in pressed))),
        max_tilt_deg=float(np.degrees(max(row.tilt for row in rows))),
        max_joint_step_rad=max(row.step for row in rows),
        smallest_joint_margin_deg=float(np.degrees(min(row.margin for row in rows))),
        elbow_m=elbows[0],
        mirror_elbow_m=elbows[1],
        lowest_link_m=min(row.lowest_link for row in rows),
        render_ms=1000.0 * float(np.median([ours for ours, _ in timings])),
        renderer_ms=1000.0 * float(np.median([peer for _, peer in timings])),
        render_ratio=float(np.median([ours / peer for ours, peer in timings])),
        seconds=seconds,
    )
