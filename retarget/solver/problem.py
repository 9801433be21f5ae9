"""What the inverse kinematics is asked for: frame tasks with weights, a posture, damping and limits.

A task pulls a frame of the robot to `anchor + offset`, where the anchor is a point of the robot itself (shoulder,
hip, neck) and the offset comes from the human: the direction of a bone times the robot's own length. Its error is
therefore a difference of two points of the robot, so the trunk is not dragged along by an arm that cannot reach.

For joint angles q the objective is

    f(q) = 1/2 sum_k ( wp_k^2 |a_k(q) + d_k - x_k(q)|^2 + wr_k^2 |log(R_k^target R_k(q)^T)|^2 ) + 1/2 w^2 |q - q0|^2

and one step of the solver minimises its Gauss-Newton model plus `damping / 2 |dq|^2` over a box.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError
from bunraku.retarget.solver.tree import Frame, Tree

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class FrameTask:
    """One row of the task table."""

    name: str
    """The human key point (or `chest`) that it follows."""
    body: str
    """Body or site of the robot whose frame it is."""
    position: float
    """Position weight [1/m]; 0: the position is free."""
    orientation: float
    """Orientation weight [1/rad]; 0: the orientation is free."""
    anchor: str | None = None
    """Body or site whose origin the target is measured from; None: the root."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Numbers of the solver; the defaults are the source's."""

    posture: float = 0.1
    """Weight of the posture task [1/rad]."""
    damping: float = 1e-3
    """Weight of the squared joint step [1/rad^2]."""
    substeps: int = 2
    """Solver steps per frame."""
    target_step: float = 0.01
    """A target is at most so far from its frame in one step [m]: large jumps are walked, not leapt."""
    limit_gain: float = 0.5
    """Share of the way to a joint limit that one step may go."""


class Packed(NamedTuple):
    """A problem as arrays for the kernels; K tasks, n joints, G groups."""

    parent: Ints
    """Parent link `(n,)`."""
    offset: Array
    """Link origins in the parent `(n, 3)`."""
    rot_a: Array
    """Link rotation = `a + b sin q + c cos q`: the constant part `(n, 3, 3)`."""
    rot_b: Array
    """The sine part `(n, 3, 3)`."""
    rot_c: Array
    """The cosine part `(n, 3, 3)`."""
    axis: Array
    """Joint axes in the parent link `(n, 3)`."""
    lower: Array
    """Lower limits `(n,)`."""
    upper: Array
    """Upper limits `(n,)`."""
    rest: Array
    """Posture `(n,)`."""
    scalars: Array
    """`(2,)`: squared posture weight, damping."""
    link: Ints
    """Link of each task's frame `(K,)`."""
    point: Array
    """Its position in the link `(K, 3)`."""
    turn: Array
    """Its rotation in the link `(K, 3, 3)`."""
    weights: Array
    """Squared position and orientation weights `(K, 2)`."""
    anchor: Ints
    """Link of each task's anchor `(K,)`, -1 for the root."""
    anchor_point: Array
    """Its position in that link `(K, 3)`."""
    chain: Ints
    """Links that move the frame, root first `(K, n)`."""
    chain_length: Ints
    """`(K, 2)`: how many, and how many of the first of them move the anchor too."""
    task_group: Ints
    """Group of each task `(K,)`."""
    joint_group: Ints
    """Group of each joint `(n,)`; group 0 is the trunk."""


@dataclass(frozen=True)
class Problem:
    """A robot with its task table, ready to solve."""

    tree: Tree
    """The robot."""
    tasks: tuple[FrameTask, ...]
    """The task table."""
    settings: Settings
    """Weights and step sizes."""
    rest: Array
    """The posture `(n,)` that task frames are aligned at and that the posture task pulls to [rad]."""
    frames: tuple[Frame, ...] = field(repr=False)
    """The frame of each task; at `rest` its axes are the root's."""
    anchors: tuple[Frame, ...] = field(repr=False)
    """The anchor of each task."""
    packed: Packed = field(repr=False)
    """The same for the kernels."""

    @classmethod
    def build(
        cls,
        tree: Tree,
        tasks: Sequence[FrameTask],
        settings: Settings | None = None,
        rest: Array | None = None,
    ) -> Problem:
        """Build the problem.

        Args:
            tree: The robot.
            tasks: The task table.
            settings: Weights and step sizes; the source's by default.
            rest: The rest posture `(n,)` [rad], upright with the face along x; zeros clamped to the limits by default.

        Raises:
            BunrakuError: If an anchor is not between the root and the frame that is measured from it.
        """
        settings = settings or Settings()
        rest = np.clip(np.zeros(tree.n) if rest is None else np.asarray(rest, float), tree.lower, tree.upper)
        frames, anchors = [], []
        for task in tasks:
            body = tree.frame(task.body)
            _, world_body = tree.locate(rest, body)
            aligned = body.rot @ world_body.T
            frames.append(Frame(body.link, body.pos, aligned))
            anchor = tree.frame(task.anchor or tree.root_body)
            if anchor.link >= 0 and anchor.link not in tree.chain(body.link):
                raise BunrakuError(
                    f"task {task.name!r}: anchor {task.anchor!r} does not lie between the root and {task.body!r};"
                    " name a body that the limb hangs from"
                )
            anchors.append(anchor)
        packed = _pack(tree, tasks, settings, rest, frames, anchors)
        return cls(tree, tuple(tasks), settings, rest, tuple(frames), tuple(anchors), packed)

    def limb(self, group: int) -> tuple[Problem, Ints, Ints]:
        """Return the problem of one limb with the trunk that carries it, its joints and its tasks in this problem.

        The first joints are the trunk's; in the limb's problem the limb itself is group 1.
        """
        packed = self.packed
        own = np.flatnonzero(packed.joint_group == group)
        links = sorted({link for joint in own for link in self.tree.chain(int(joint))})
        carried = np.isin(packed.link, links) & ((packed.task_group == group) | (packed.task_group == 0))
        rows = np.flatnonzero(carried)
        joints = np.array(links, dtype=np.int64)
        tasks = [self.tasks[row] for row in rows]
        part = Problem.build(self.tree.subset(joints), tasks, self.settings, self.rest[joints])
        return part, joints, rows

    def index(self, name: str) -> int:
        """Return the row of the task `name`."""
        return [task.name for task in self.tasks].index(name)

    def step_bound(self, speed: float | Array | None, fps: float) -> Array:
        """Return the largest joint step per frame `(n,)` [rad] of a speed bound [rad/s]; infinite without.

        A billionth less than asked for, so that rounding never puts a step over the bound.
        """
        if speed is None:
            return np.full(self.tree.n, np.inf)
        bound = np.asarray(speed, dtype=np.float64) / fps * (1.0 - 1e-9)
        if not (bound > 0.0).all():
            raise BunrakuError(f"joint speed bounds are positive, got {speed}")
        return np.broadcast_to(bound, (self.tree.n,)).copy()


def _pack(
    tree: Tree,
    tasks: Sequence[FrameTask],
    settings: Settings,
    rest: Array,
    frames: Sequence[Frame],
    anchors: Sequence[Frame],
) -> Packed:
    n, count = tree.n, len(tasks)
    cross = np.zeros((n, 3, 3))
    x, y, z = tree.axis.T
    cross[:, 0, 1], cross[:, 0, 2], cross[:, 1, 2] = -z, y, -x
    cross -= cross.transpose(0, 2, 1)
    chain = np.full((count, n), -1, dtype=np.int64)
    length = np.zeros((count, 2), dtype=np.int64)
    for k, (frame, anchor) in enumerate(zip(frames, anchors, strict=True)):
        links = tree.chain(frame.link)
        chain[k, : len(links)] = links
        length[k] = len(links), len(tree.chain(anchor.link))
    task_group, joint_group = groups(tree, [f.link for f in frames], [t.anchor for t in tasks])
    return Packed(
        parent=tree.parent,
        offset=np.ascontiguousarray(tree.offset),
        rot_a=np.ascontiguousarray(tree.rotation @ (np.eye(3) + cross @ cross)),
        rot_b=np.ascontiguousarray(tree.rotation @ cross),
        rot_c=np.ascontiguousarray(-tree.rotation @ cross @ cross),
        axis=np.ascontiguousarray(np.einsum("nij,nj->ni", tree.rotation, tree.axis)),
        lower=tree.lower,
        upper=tree.upper,
        rest=rest,
        scalars=np.array([settings.posture**2, settings.damping]),
        link=np.array([f.link for f in frames], dtype=np.int64),
        point=np.array([f.pos for f in frames]),
        turn=np.array([f.rot for f in frames]),
        weights=np.array([(t.position**2, t.orientation**2) for t in tasks]),
        anchor=np.array([a.link for a in anchors], dtype=np.int64),
        anchor_point=np.array([a.pos for a in anchors]),
        chain=chain,
        chain_length=length,
        task_group=task_group,
        joint_group=joint_group,
    )


def groups(tree: Tree, links: Sequence[int], anchors: Sequence[str | None]) -> tuple[Ints, Ints]:
    """Split joints and tasks into limbs that can be judged on their own.

    Joints below which all tasks share one anchor form a limb; joints that carry several limbs are the trunk, group 0.

    Args:
        tree: The robot.
        links: Link of each task's frame.
        anchors: Anchor name of each task.

    Returns:
        Group of each task `(K,)` and of each joint `(n,)`.
    """
    names = {name: i + 1 for i, name in enumerate(dict.fromkeys(a for a in anchors if a is not None))}
    below: list[set[int]] = [set() for _ in range(tree.n)]
    for link, anchor in zip(links, anchors, strict=True):
        for joint in tree.chain(link):
            below[joint].add(names[anchor] if anchor is not None else 0)
    joint_group = np.array([next(iter(b)) if len(b) == 1 else 0 for b in below], dtype=np.int64)
    task_group = np.array([names[a] if a is not None else 0 for a in anchors], dtype=np.int64)
    return task_group, joint_group
