"""What tells a good demonstration from a poor one, in a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.episode.episode import Episode
from bunraku.geometry import Array

IDLE_SPEED = 0.005
"""A tool slower than this stands still [m/s]."""


@dataclass(frozen=True, slots=True)
class Quality:
    """Measures of one episode; of several hands the worst counts."""

    seconds: float
    """Simulated length [s]."""
    path_efficiency: float
    """Straight distance from start to end over the length of the target's path, 0 to 1."""
    jerk: float
    """Root mean square jerk of the target [m/s^3]."""
    idle_share: float
    """Share of the time in which the target stands still."""
    clutches: int
    """Engagements of all hands."""
    dropped: int
    """Device samples dropped."""
    pose_age_ms: float
    """Median age of the pose at use [ms]; NaN if there was none."""
    success: bool
    """Whether the last step was a success."""

    def line(self) -> str:
        """Return a line for the terminal."""
        return (
            f"{self.seconds:5.1f} s, path efficiency {self.path_efficiency:4.2f}, jerk {self.jerk:6.1f} m/s^3,"
            f" idle {100 * self.idle_share:3.0f} %, {self.clutches} clutches, {self.dropped} dropped"
        )


def measure(episode: Episode, control_freq: float) -> Quality:
    """Measure an episode that was driven through `Teleoperator`.

    Args:
        episode: The episode, with its streams.
        control_freq: Its steps per second [Hz].
    """
    hands = [key.removeprefix("target/") for key in episode.streams if key.startswith("target/")]
    paths = [episode.streams[f"target/{hand}"][:, :3] for hand in hands]
    ages = np.concatenate([episode.streams[f"pose_age/{hand}"] for hand in hands])
    ages = ages[np.isfinite(ages)]
    return Quality(
        seconds=len(episode) / control_freq,
        path_efficiency=min(_efficiency(path) for path in paths),
        jerk=max(_jerk(path, control_freq) for path in paths),
        idle_share=max(_idle(path, control_freq) for path in paths),
        clutches=sum(_increase(episode.streams[f"clutches/{hand}"]) for hand in hands),
        dropped=sum(_increase(episode.streams[f"dropped/{hand}"]) for hand in hands),
        pose_age_ms=1e3 * float(np.median(ages)) if ages.size else float("nan"),
        success=bool(episode.success[-1]),
    )


def _increase(counter: Array) -> int:
    return int(counter[-1] - counter[0])


def _efficiency(path: Array) -> float:
    length = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum())
    return min(1.0, float(np.linalg.norm(path[-1] - path[0])) / length) if length > 1e-9 else 1.0


def _jerk(path: Array, control_freq: float) -> float:
    if len(path) < 4:
        return 0.0
    third = np.diff(path, n=3, axis=0) * control_freq**3
    return float(np.sqrt((third * third).sum(axis=1).mean()))


def _idle(path: Array, control_freq: float) -> float:
    if len(path) < 2:
        return 1.0
    speed = np.linalg.norm(np.diff(path, axis=0), axis=1) * control_freq
    return float((speed < IDLE_SPEED).mean())
