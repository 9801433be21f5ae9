"""One frame at a time: heading, targets and solver steps in a single compiled call, for live use.

The arithmetic is that of a clip (`targets.frame_targets`, `sweeps.sweep`); only what looks ahead is missing. `State`
holds the scratch and what is carried from frame to frame.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bunraku.retarget.solver.jit import compiled
from bunraku.retarget.solver.problem import Packed, Problem
from bunraku.retarget.solver.sweeps import sweep
from bunraku.retarget.stages.targets import TargetTable, frame_targets, root_rotation

Array = NDArray[np.float64]

LEFT_HIP, RIGHT_HIP, LEFT_SHOULDER, RIGHT_SHOULDER = 1, 2, 16, 17
NOT_FINITE, NO_DIRECTION, NO_HEADING, JUMP = 1, 2, 4, 8
FLAT = 0.3
"""As in `stages.heading`: below this share of their width the hips do not tell a heading."""


class State(NamedTuple):
    """What is carried from frame to frame."""

    x: Array
    """Joint angles of the last frame and of this one `(2, n)` [rad]."""
    offsets: Array
    """Targets `(2, K, 3)`; the second row is this frame's."""
    rotations: Array
    """Target rotations `(2, K, 3, 3)`."""
    ends: Array
    """Bone ends and directions `(2B, 3)`."""
    chest: Array
    """Rotation of the chest `(3, 3)`."""
    root: Array
    """Rotation of the person's root `(3, 3)`."""
    joints: Array
    """Key points of the last frame, and relative to the root rotation `(2, 22, 3)` [m]."""
    numbers: Array
    """`(3,)`: heading [rad], width of the hips [m], frames so far."""
    work: Array
    """Scratch `(9, 3)`."""


def make_state(problem: Problem, table: TargetTable) -> State:
    """Return the state before the first frame."""
    tasks, bones = len(problem.tasks), len(table.bones)
    ends = np.zeros((2 * bones, 3))
    ends[bones:, 2] = -1.0
    return State(
        x=np.tile(problem.rest, (2, 1)),
        offsets=np.zeros((2, tasks, 3)),
        rotations=np.tile(np.eye(3), (2, tasks, 1, 1)),
        ends=ends,
        chest=np.eye(3),
        root=np.eye(3),
        joints=np.zeros((2, 22, 3)),
        numbers=np.zeros(3),
        work=np.zeros((9, 3)),
    )


@compiled
def take_in(joints: Array, fps_limit: float, state: State) -> int:
    """Take the key points `(22, 3)` of a new frame into the state; return what is wrong with them.

    Key points that are not finite stay where they were; `fps_limit` is the longest way of a key point in a frame [m].
    """
    flags, last, numbers = 0, state.joints[0], state.numbers
    first = numbers[2] == 0.0
    back = (last[0, 0], last[0, 1], last[0, 2])
    for i in range(22):
        x, y, z = joints[i, 0], joints[i, 1], joints[i, 2]
        if not (math.isfinite(x) and math.isfinite(y) and math.isfinite(z)):
            flags |= NOT_FINITE
            x, y, z = last[i, 0], last[i, 1], last[i, 2]
        if not first:
            dx = (x - last[0, 0]) - (last[i, 0] - back[0])
            dy = (y - last[0, 1]) - (last[i, 1] - back[1])
            dz = (z - last[0, 2]) - (last[i, 2] - back[2])
            if i > 0 and dx * dx + dy * dy + dz * dz > fps_limit * fps_limit:
                flags |= JUMP
        last[i, 0], last[i, 1], last[i, 2] = x, y, z
    x, y = last[LEFT_HIP, 0] - last[RIGHT_HIP, 0], last[LEFT_HIP, 1] - last[RIGHT_HIP, 1]
    z = last[LEFT_HIP, 2] - last[RIGHT_HIP, 2]
    if first:
        numbers[1] = math.sqrt(x * x + y * y + z * z)
    if x * x + y * y > (FLAT * numbers[1]) ** 2:
        turn = math.atan2(y, x) - 0.5 * math.pi - numbers[0]
        turn -= 2.0 * math.pi * math.floor(turn / (2.0 * math.pi) + 0.5)
        sx, sy = (
            last[LEFT_SHOULDER, 0] - last[RIGHT_SHOULDER, 0],
            last[LEFT_SHOULDER, 1] - last[RIGHT_SHOULDER, 1],
        )
        if not first and abs(turn) > 0.5 * math.pi and x * sx + y * sy < 0.0:
            flags |= NO_HEADING
        else:
            numbers[0] += turn
    else:
        flags |= NO_HEADING
    return flags


@compiled
def live_targets(
    table: TargetTable, rest: Array, joints: Array, head: Array, has_head: bool, state: State, jump: float
) -> int:
    """Take in a frame and write its targets into the state.

    Args:
        table: How key points become targets.
        rest: Calibration `(5,)` [rad].
        joints: Key points `(22, 3)`, Z up [m].
        head: Head rotation in the chest `(3, 3)`.
        has_head: Whether it is given.
        state: Carried from frame to frame.
        jump: Longest way of a key point in a frame [m].

    Returns:
        What is wrong with the frame, as flags.
    """
    flags = take_in(joints, jump, state)
    state.numbers[2] += 1.0
    here, local, root = state.joints[0], state.joints[1], state.root
    if not root_rotation(here, table.whole_pelvis, rest[2], state.numbers[0], root, state.work):
        flags |= NO_DIRECTION
    for i in range(22):
        x, y, z = here[i, 0] - here[0, 0], here[i, 1] - here[0, 1], here[i, 2] - here[0, 2]
        for k in range(3):
            local[i, k] = root[0, k] * x + root[1, k] * y + root[2, k] * z
    lacking = frame_targets(
        table,
        rest,
        local,
        head,
        has_head,
        state.offsets[1],
        state.rotations[1],
        state.ends,
        state.chest,
        state.work,
    )
    return flags | NO_DIRECTION if lacking else flags


@compiled
def live_frame(
    table: TargetTable,
    p: Packed,
    rest: Array,
    joints: Array,
    head: Array,
    has_head: bool,
    state: State,
    first_steps: int,
    substeps: int,
    target_step: float,
    gain: float,
    bound: Array,
    jump: float,
) -> int:
    """Solve one frame; the joint angles are in `state.x[1]`, the flags of `live_targets` are returned.

    Args:
        table: As for `live_targets`, like `rest`, `joints`, `head`, `has_head`, `state`, `jump`.
        p: The problem.
        rest: See `table`.
        joints: See `table`.
        head: See `table`.
        has_head: See `table`.
        state: See `table`.
        first_steps: Solver steps of the first frame.
        substeps: Solver steps of the others.
        target_step: Longest position error that counts in a step [m].
        gain: Share of the way to a joint limit that one step may go.
        bound: Largest joint step per frame `(n,)` [rad].
        jump: See `table`.
    """
    flags = live_targets(table, rest, joints, head, has_head, state, jump)
    x, offsets, rotations = state.x, state.offsets, state.rotations
    if state.numbers[2] == 1.0:
        sweep(p, x[1:], offsets[1:], rotations[1:], 0, 0, False, first_steps, np.inf, gain, bound, 0.0, False)
    else:
        x[0] = x[1]
        sweep(p, x, offsets, rotations, 1, 1, True, substeps, target_step, gain, bound, 0.0, False)
    return flags
