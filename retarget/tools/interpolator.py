"""`MotionInterpolator`: joint angles at another frame rate, smoothed, and two clips joined without self-collision.

    tool = MotionInterpolator(90.0, lower=lower, upper=upper, collides=SelfCollision(model))
    fine = tool.process(dof, fps_in=20.0)
    joined = tool.join(first, second)          # both (T, n) at 90 fps
    joined.dof[joined.start : joined.stop]     # the frames in between

A transition leaves with the speed of the first clip and arrives with that of the second. It goes straight if it can,
else past a pose on the way home, else past others near it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bunraku.errors import BunrakuError
from bunraku.retarget.stages.filters import weighted_moving_filter
from bunraku.retarget.tools.spline import Method, resample

Array = NDArray[np.float64]
Collides = Callable[[Array], NDArray[np.bool_]]
"""Says of each frame of joint angles `(T, n)` whether the robot collides with itself."""

SHORTEST = 0.25
"""Time of the shortest transition [s]."""
EASY_SPEED = 4.0
"""Joint speed that a transition is timed for [rad/s]."""
PEAK = 1.875
"""Peak speed of the quintic step, relative to its mean."""
CREST = 0.2
"""Bound on how far `_coast` runs on, relative to speed times time."""
TRIES = 48
"""Poses to go past that are tried before giving up."""


@dataclass(frozen=True)
class Joined:
    """Two clips and what is between them."""

    dof: Array
    """All frames `(M, n)` [rad]."""
    start: int
    """First frame of the transition."""
    stop: int
    """First frame of the second clip."""
    tries: int
    """How many ways were looked at; 1: straight."""


class MotionInterpolator:
    """Interpolates, smooths and joins joint angles of one robot."""

    def __init__(
        self,
        fps: float = 90.0,
        *,
        method: Method = "cubic",
        window: int = 7,
        zero_phase: bool = True,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        home: ArrayLike | None = None,
        collides: Collides | None = None,
    ) -> None:
        """Remember how to interpolate.

        Args:
            fps: Frames per second of the results.
            method: How frames are interpolated.
            window: Window of the weighted moving filter, in frames of the result.
            zero_phase: Filter to both sides, without lag; False: over the past only, as in live use.
            lower: Lower joint limits `(n,)` [rad], kept in between the frames too.
            upper: Upper joint limits `(n,)` [rad].
            home: A pose clear of collisions `(n,)`, that detours lean to.
            collides: The collision check of `join`; without one, transitions go straight.
        """
        if not fps > 0.0:
            raise BunrakuError(f"frames per second are positive, got {fps:g}")
        self.fps, self.method, self.window, self.zero_phase = fps, method, window, zero_phase
        self.lower = None if lower is None else np.asarray(lower, dtype=np.float64)
        self.upper = None if upper is None else np.asarray(upper, dtype=np.float64)
        self.home = None if home is None else np.asarray(home, dtype=np.float64)
        self.collides = collides

    def interpolate(self, dof: ArrayLike, fps_in: float) -> Array:
        """Return joint angles `(T, n)` at the frame rate of the results, within the limits at and between frames."""
        return resample(dof, fps_in, self.fps, self.method, self.lower, self.upper)

    def smooth(self, dof: ArrayLike) -> Array:
        """Return joint angles `(T, n)` after the weighted moving filter."""
        return weighted_moving_filter(dof, self.window, zero_phase=self.zero_phase)

    def process(self, dof: ArrayLike, fps_in: float) -> Array:
        """Interpolate, then smooth."""
        return self.smooth(self.interpolate(dof, fps_in))

    def join(self, first: ArrayLike, second: ArrayLike, seconds: float | None = None) -> Joined:
        """Return two clips with a transition in between.

        Args:
            first: Joint angles `(T, n)` at `fps`.
            second: Joint angles `(U, n)` at `fps`.
            seconds: Time of the transition; by default the joint that has furthest to go decides.

        Raises:
            BunrakuError: If an end collides itself, or no way around was found.
        """
        first, second = np.atleast_2d(np.asarray(first, float)), np.atleast_2d(np.asarray(second, float))
        if first.shape[1] != second.shape[1]:
            raise BunrakuError(
                f"the clips have {first.shape[1]} and {second.shape[1]} joints; they must be the same"
            )
        straight = self._straight(first, second, seconds)
        way, tries = straight, 1
        if self.collides is not None and self.collides(way).any():
            way, tries = self._around(straight)
        start = len(first)
        return Joined(np.concatenate([first, way[1:-1], second]), start, start + len(way) - 2, tries)

    def _straight(self, first: Array, second: Array, seconds: float | None) -> Array:
        """Return the way from the last frame to the first, both included `(K, n)`, within the limits."""
        begin, end = first[-1], second[0]
        if seconds is None:
            seconds = max(SHORTEST, PEAK * float(np.abs(end - begin).max()) / EASY_SPEED)
        count = max(2, round(seconds * self.fps))
        t = np.arange(count + 1)[:, None] / self.fps
        total = count / self.fps
        speed_in = (first[-1] - first[-2]) * self.fps if len(first) > 1 else np.zeros_like(begin)
        speed_out = (second[1] - second[0]) * self.fps if len(second) > 1 else np.zeros_like(begin)
        s = t / total
        way = begin + s * s * s * (10.0 + s * (6.0 * s - 15.0)) * (end - begin)
        # leaving and arriving at speed runs on past the ends; it is over sooner where a limit is near
        coast = self._time_to_stop(begin, end, speed_in, total)
        land = self._time_to_stop(begin, end, -speed_out, total)
        way += speed_in * coast * _coast(t / coast) - speed_out * land * _coast((total - t) / land)
        if self.lower is not None or self.upper is not None:
            # leaving and arriving can add up
            np.clip(way, self.lower, self.upper, out=way)
        return way

    def _time_to_stop(self, begin: Array, end: Array, speed: Array, total: float) -> Array:
        """Return the time in which a joint that runs on at `speed` must come to rest `(n,)` [s]."""
        room = np.full_like(begin, np.inf)
        if self.upper is not None:
            room = np.where(speed > 0.0, self.upper - np.maximum(begin, end), room)
        if self.lower is not None:
            room = np.where(speed < 0.0, np.minimum(begin, end) - self.lower, room)
        with np.errstate(divide="ignore", invalid="ignore"):
            time = np.where(speed == 0.0, total, room / (CREST * np.abs(speed)))
        return np.clip(time, 1.0 / self.fps, total)

    def _around(self, straight: Array) -> tuple[Array, int]:
        assert self.collides is not None
        for name, pose in (
            ("last frame of the first", straight[:1]),
            ("first frame of the second", straight[-1:]),
        ):
            if self.collides(pose).any():
                raise BunrakuError(
                    f"the {name} clip collides with itself, so no transition can be clear of it"
                )
        s = np.linspace(0.0, 1.0, len(straight))[:, None]
        bump = 64.0 * (s * (1.0 - s)) ** 3
        for tries, pose in enumerate(self._detours(straight), 2):
            # a mean of poses within the limits is within them
            way = (1.0 - bump) * straight + bump * pose
            # most ways that collide do so in some eighth frame
            if not self.collides(way[::8]).any() and not self.collides(way).any():
                return way, tries
        raise BunrakuError(
            f"no transition clear of self-collision was found in {TRIES} tries; give a pose clear of the body as"
            " home, or cut the clips elsewhere"
        )

    def _detours(self, straight: Array) -> Iterator[Array]:
        """Yield poses to go past `(n,)`: towards home, then around those."""
        middle = straight[len(straight) // 2]
        home = middle if self.home is None else self.home
        lower = np.full_like(middle, -np.pi) if self.lower is None else self.lower
        upper = np.full_like(middle, np.pi) if self.upper is None else self.upper
        leans = [1.0, 0.5] if self.home is not None else [0.0]
        if self.home is not None:
            yield from (middle + lean * (home - middle) for lean in leans)
        rng = np.random.default_rng(0)
        for k in range(TRIES - len(leans)):
            around = middle + leans[k % len(leans)] * (home - middle)
            # wider and wider, so that near ways are found first
            spread = 0.2 + 0.8 * k / TRIES
            yield np.clip(around + spread * rng.standard_normal(len(middle)), lower, upper)


def _coast(s: Array) -> Array:
    """Return how far something runs on that comes back to rest where it was: speed 1 at s = 0, all 0 from s = 1 on."""
    s = np.clip(s, 0.0, 1.0)
    return s - s**3 * (6.0 - s * (8.0 - 3.0 * s))
