"""A whole clip at once: sweeps in both directions, the better branch of each limb, then smoothing under hard bounds.

Frame by frame, inverse kinematics keeps to the branch that it is on: an arm that was led to the wrong side of a
singular posture stays there, tens of millimetres off, until the motion frees it. A second sweep from the end of the
clip takes other branches, and where both are poor, a few restarts find another. Each limb then follows the cheapest
path through these candidates. Frames are refined in turn, each held within the speed bound of both its neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bunraku.retarget.solver.choice import choose
from bunraku.retarget.solver.engine import Engine
from bunraku.retarget.stages.limits import bound_steps

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClipSettings:
    """Numbers of the search over a clip."""

    first_steps: int = 30
    """Solver steps of the first frame, from the rest posture."""
    jump_price: float = 0.02
    """Objective that a limb pays for a joint step between frames [1/rad^2]."""
    pull: float = 0.02
    """Weight that draws a frame to the middle of its neighbours [1/rad^2]."""
    refinements: int = 3
    """Refining sweeps."""
    repairs: int = 1
    """Rounds of restarts where all candidates are poor."""
    seeds: int = 4
    """Restarts per stretch of poor frames and limb."""
    seed_steps: int = 8
    """Solver steps of each."""
    poor: float = 0.015
    """Position error above which a limb counts as poor [m]."""
    margin: int = 8
    """Frames before and after a poor stretch over which a repair may be taken up; stretches that near are one."""

    @classmethod
    def bounded(cls) -> Self:
        """Return the numbers for use with a speed bound: jumps cost more, since each becomes a slow swing, and the
        bound itself already keeps neighbours together."""
        return cls(jump_price=0.05, pull=0.005, refinements=4)


SEED_TARGET_STEP = 0.05
"""As `Settings.target_step`, for restarts, which come from far [m]."""


@cache
def seed_points(count: int, dims: int) -> Array:
    """Return `count` points of the unit cube `(count, dims)`, spread evenly (additive recurrence, generalised golden
    ratio): the same ones every time."""
    ratio = 2.0
    for _ in range(60):
        ratio = (1.0 + ratio) ** (1.0 / (dims + 1))
    return (0.5 + np.outer(np.arange(1, count + 1), ratio ** -np.arange(1.0, dims + 1))) % 1.0


def track(
    engine: Engine, offsets: Array, rotations: Array, first_steps: int, bound: Array | None = None
) -> Array:
    """Return the joint angles `(T, n)` of a forward sweep from the rest posture, as live use makes them."""
    problem = engine.problem
    settings = problem.settings
    x = np.tile(problem.rest, (len(offsets), 1))
    engine.sweep(
        x, offsets, rotations, 0, 0, follow=False, substeps=first_steps, limit_gain=settings.limit_gain
    )
    if len(x) > 1:
        engine.sweep(
            x,
            offsets,
            rotations,
            1,
            len(x) - 1,
            follow=True,
            substeps=settings.substeps,
            target_step=settings.target_step,
            limit_gain=settings.limit_gain,
            bound=bound,
        )
    return x


def solve_clip(
    engine: Engine,
    offsets: Array,
    rotations: Array,
    settings: ClipSettings | None = None,
    bound: Array | None = None,
) -> Array:
    """Return the joint angles of a clip `(T, n)`.

    Args:
        engine: The solver of the robot.
        offsets: Targets relative to the anchors `(T, K, 3)` [m].
        rotations: Target rotations `(T, K, 3, 3)`.
        settings: Numbers of the search; by default those for use with or without a bound.
        bound: Largest joint step between frames `(n,)` [rad]: never exceeded. None: no bound.
    """
    if settings is None:
        settings = ClipSettings() if bound is None else ClipSettings.bounded()
    problem = engine.problem
    substeps, last = problem.settings.substeps, len(offsets) - 1
    forward = np.tile(problem.rest, (len(offsets), 1))
    engine.sweep(forward, offsets, rotations, 0, 0, follow=False, substeps=settings.first_steps)
    if last == 0:
        return forward
    engine.sweep(forward, offsets, rotations, 1, last, follow=True, substeps=substeps)
    backward = forward.copy()
    engine.sweep(backward, offsets, rotations, last, last, follow=False, substeps=8)
    engine.sweep(backward, offsets, rotations, last - 1, 0, follow=True, substeps=substeps)
    candidates = [forward, backward]
    costs = [engine.costs(x, offsets, rotations) for x in candidates]
    x = np.empty_like(forward)
    groups = problem.packed.joint_group
    choose(np.stack(candidates), np.stack(costs), groups, settings.jump_price, x)
    for turn in range(settings.repairs):
        repaired = repair(engine, x, offsets, rotations, settings, middle=turn > 0)
        if repaired is None:
            break
        candidates.append(repaired)
        costs.append(engine.costs(repaired, offsets, rotations))
        choose(np.stack(candidates), np.stack(costs), groups, settings.jump_price, x)
    if bound is not None:
        x = bound_steps(x, bound)
    for turn in range(settings.refinements):
        first, end = (0, last) if turn % 2 == 0 else (last, 0)
        engine.sweep(
            x,
            offsets,
            rotations,
            first,
            end,
            follow=False,
            substeps=1,
            bound=bound,
            pull=settings.pull,
            two_sided=True,
        )
    return x


def repair(
    engine: Engine, x: Array, offsets: Array, rotations: Array, settings: ClipSettings, middle: bool
) -> Array | None:
    """Search again where a limb is poor; return a further candidate `(T, n)`, or None if nothing better was found.

    In each stretch of poor frames one frame is solved from several seeds of the limb's joints, and the best solution is
    followed to both ends of the stretch and `margin` frames beyond.

    Args:
        engine: The solver.
        x: Joint angles `(T, n)`.
        offsets: Targets `(T, K, 3)`.
        rotations: Target rotations `(T, K, 3, 3)`.
        settings: Numbers of the search.
        middle: Restart in the middle of a stretch rather than at its worst frame.
    """
    packed = engine.problem.packed
    errors = engine.errors(x, offsets, rotations)[:, :, 0]
    found = None
    for group in range(1, int(packed.task_group.max()) + 1):
        tasks = (packed.task_group == group) & (packed.weights[:, 0] > 0.0)
        if tasks.sum() < 2:  # one task alone has no wrong branch worth the search
            continue
        error = errors[:, tasks].max(axis=1)
        poor = np.flatnonzero(error > settings.poor)
        if len(poor) == 0:
            continue
        limb = engine.limb(group)
        path = Path(limb.engine, x[:, limb.joints], offsets[:, limb.tasks], rotations[:, limb.tasks])
        better = False
        for stretch in np.split(poor, np.flatnonzero(np.diff(poor) > settings.margin) + 1):
            at = int(stretch[len(stretch) // 2] if middle else stretch[np.argmax(error[stretch])])
            first = max(0, int(stretch[0]) - settings.margin)
            last = min(len(x) - 1, int(stretch[-1]) + settings.margin)
            better |= path.restart(at, first, last, limb.own, settings)
        if better:
            found = x.copy() if found is None else found
            found[:, limb.joints[limb.own]] = path.x[:, limb.own]
    return found


@dataclass(frozen=True)
class Path:
    """The way of one limb through a clip."""

    engine: Engine
    """The solver of the limb and the trunk that carries it."""
    x: Array
    """Joint angles `(T, m)` [rad]."""
    offsets: Array
    """Its targets `(T, k, 3)` [m]."""
    rotations: Array
    """Its target rotations `(T, k, 3, 3)`."""

    def restart(
        self, at: int, first: int, last: int, joints: NDArray[np.int64], settings: ClipSettings
    ) -> bool:
        """Solve a frame from several seeds; follow the best to `first` and `last` if it beats what is there.

        Args:
            at: The frame to restart at.
            first: First frame to change.
            last: Last frame to change.
            joints: The joints to seed.
            settings: Numbers of the search.

        Returns:
            Whether it was better.
        """
        tree, here = self.engine.problem.tree, slice(at, at + 1)
        seeds = np.repeat(self.x[here], settings.seeds, axis=0)
        points = seed_points(settings.seeds, len(joints))
        seeds[:, joints] = tree.lower[joints] + points * (tree.upper - tree.lower)[joints]
        target = np.repeat(self.offsets[here], settings.seeds, axis=0)
        turn = np.repeat(self.rotations[here], settings.seeds, axis=0)
        end, steps = settings.seeds - 1, settings.seed_steps
        self.engine.sweep(
            seeds, target, turn, 0, end, follow=False, substeps=steps, target_step=SEED_TARGET_STEP
        )
        cost = self.engine.costs(seeds, target, turn)[:, 1]
        best = int(np.argmin(cost))
        if (
            not cost[best]
            < self.engine.costs(self.x[here], self.offsets[here], self.rotations[here])[0, 1] - 1e-4
        ):
            return False
        self.x[at] = seeds[best]
        substeps = self.engine.problem.settings.substeps
        for start, end in ((at + 1, last), (at - 1, first)):
            if (end - start) * (end - at) >= 0 and start != at and end != at:
                self.engine.sweep(
                    self.x, self.offsets, self.rotations, start, end, follow=True, substeps=substeps
                )
        return True
