"""Inverse kinematics of a limb for all frames of a clip at once: middle and end to where they should be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import from_rotvec, to_matrix
from bunraku.retarget.solver.tree import Frame, Tree

Array = NDArray[np.float64]

DAMPING = 1e-5
"""Damping of a step against the squared lever of the joints [m^2]."""
LONGEST_STEP = 0.3
"""Largest change of a joint in one step [rad]."""


class Chain:
    """Joints from the root to a link, and points that are fixed in links of it."""

    def __init__(self, tree: Tree, frames: list[Frame], points: list[Array], held: int = 0) -> None:
        """Read the chain.

        Args:
            tree: The robot.
            frames: Frames whose links carry the points; the last one is the furthest out.
            points: Positions of the points in their frames `(3,)` [m].
            held: How many joints from the root on are not to be moved.
        """
        self._tree = tree
        self.links = tree.chain(frames[-1].link)
        """Columns of the joints in `dof`."""
        self._at = [self.links.index(frame.link) if frame.link >= 0 else -1 for frame in frames]
        self._points = [frame.pos + frame.rot @ point for frame, point in zip(frames, points, strict=True)]
        self._held = held
        self.lower, self.upper = tree.lower[self.links], tree.upper[self.links]

    def walk(self, q: Array) -> tuple[Array, Array, Array]:
        """Return the points `(T, P, 3)` and all joints' axes and origins `(T, k, 3)` in the root frame for `(T, k)`."""
        tree = self._tree
        rot, pos = np.broadcast_to(np.eye(3), (len(q), 3, 3)), np.zeros((len(q), 3))
        axes, origins = np.empty((len(q), len(self.links), 3)), np.empty((len(q), len(self.links), 3))
        places = np.empty((len(q), len(self._at), 3))
        for p, (at, point) in enumerate(zip(self._at, self._points, strict=True)):
            if at < 0:
                places[:, p] = point
        for i, link in enumerate(self.links):
            pos = pos + rot @ tree.offset[link]
            rot = rot @ tree.rotation[link]
            axes[:, i], origins[:, i] = rot @ tree.axis[link], pos
            rot = rot @ to_matrix(from_rotvec(q[:, i, None] * tree.axis[link]))
            for p, (at, point) in enumerate(zip(self._at, self._points, strict=True)):
                if at == i:
                    places[:, p] = pos + rot @ point
        return places, axes, origins

    def points(self, dof: Array) -> Array:
        """Return the points `(T, P, 3)` in the root frame at joint angles of the robot `(T, n)` [m]."""
        return self.walk(dof[:, self.links])[0]

    def reach(self, dof: Array, target: Array, first: int = 0, steps: int = 8) -> Array:
        """Return joint angles `(T, n)` that bring the points to their targets, the other joints unchanged.

        Args:
            dof: Where to start `(T, n)` [rad].
            target: Targets of the points from `first` on, in the root frame `(T, P - first, 3)` [m].
            first: Points before this one are free.
            steps: Gauss-Newton steps.
        """
        q = dof[:, self.links].copy()
        carried = np.array([[i <= at for i in range(len(self.links))] for at in self._at[first:]])
        carried[:, : self._held] = False
        for _ in range(steps):
            places, axes, origins = self.walk(q)
            places = places[:, first:]
            jac = np.cross(axes[:, None], places[:, :, None] - origins[:, None]) * carried[None, :, :, None]
            # a joint at its limit that would go on is held, so that the others take over
            gradient = np.einsum("tpki,tpi->tk", jac, target - places)
            stuck = ((q <= self.lower) & (gradient < 0.0)) | ((q >= self.upper) & (gradient > 0.0))
            jac = np.where(stuck[:, None, :, None], 0.0, jac)
            gradient = np.where(stuck, 0.0, gradient)
            normal = np.einsum("tpki,tpli->tkl", jac, jac) + DAMPING * np.eye(len(self.links))
            step = np.linalg.solve(normal, gradient[..., None])[..., 0]
            largest = np.abs(step).max(axis=1, keepdims=True)
            step *= np.minimum(1.0, LONGEST_STEP / np.maximum(largest, 1e-12))
            q = np.clip(q + step, self.lower, self.upper)
        out = dof.copy()
        out[:, self.links] = q
        return out


class Limb:
    """An arm or a leg: start, middle and end, of which the trunk's joints before the start are not moved."""

    def __init__(self, tree: Tree, start: str, middle: str, end: str) -> None:
        """Find the limb.

        Args:
            tree: The robot.
            start: Body or site where the limb hangs.
            middle: Elbow or knee.
            end: Wrist or ankle.
        """
        frames = [tree.frame(name) for name in (start, middle, end)]
        zero = np.zeros(3)
        # joints that the start hangs from, but whose axes go through it, are the limb's own
        links = tree.chain(frames[0].link)
        held = len(links)
        probe = Chain(tree, frames, [zero] * 3)
        places, _, origins = probe.walk(np.zeros((1, len(probe.links))))
        length = float(np.linalg.norm(places[0, 1] - places[0, 0]))
        while held and np.linalg.norm(origins[0, held - 1] - places[0, 0]) < 0.5 * length:
            held -= 1
        self._chain = Chain(tree, frames, [zero] * 3, held)

    def points(self, dof: Array) -> Array:
        """Return start, middle and end `(T, 3, 3)` in the root frame [m]."""
        return self._chain.points(dof)

    def solve(self, dof: Array, target: Array) -> Array:
        """Return joint angles `(T, n)` that bring middle and end to targets in the root frame `(T, 2, 3)` [m]."""
        return self._chain.reach(dof, target, first=1, steps=15)
