"""A leg: where its sole is, and joint angles that bring the sole to where it should be, for all frames at once.

Four corners have position and orientation in one, in one unit, and weigh them as sliding does: a turned foot is wrong
by as much as its corners moved. A leg with fewer than six joints gets as near as it can.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bunraku.humanoid import Foot
from bunraku.retarget.limb import Chain
from bunraku.retarget.solver.tree import Tree

Array = NDArray[np.float64]

GRID = 181
"""Angles of a joint that are tried for the longest reach."""


class Leg:
    """The chain of joints from the root to a foot."""

    def __init__(self, tree: Tree, foot: Foot) -> None:
        """Read the chain.

        Args:
            tree: The robot.
            foot: Its foot.
        """
        frame = tree.frame(foot.body)
        self._chain = Chain(tree, [frame] * 4, [np.array(corner) for corner in foot.sole])
        self.links = self._chain.links
        """Joints of the leg, as columns of `dof`."""
        self.lower, self.upper = self._chain.lower, self._chain.upper
        self._hip, self._reach = 0, 0.0
        self._straighten()

    def origins(self, dof: Array) -> Array:
        """Return where the joints of the leg are `(T, k, 3)` in the root frame [m]."""
        return self._chain.walk(dof[:, self.links])[2]

    def corners(self, dof: Array) -> Array:
        """Return the corners of the sole `(T, 4, 3)` in the root frame at joint angles of the robot `(T, n)` [m]."""
        return self._chain.points(dof)

    def hip_to_sole(self, dof: Array) -> tuple[Array, float]:
        """Return where the leg starts in the root frame `(T, 3)` and how far its last joint can get from there [m].

        The start is the last joint before the first long bone: the hip.
        """
        return self.origins(dof)[:, self._hip], self._reach

    def _straighten(self) -> None:
        """Find hip, knee and reach, and keep the knee on the side to which it bends.

        Many a knee can go a little past straight. Without this bound a foot near the leg's full reach could be had
        with the knee on either side, and solutions would snap between them.
        """
        q = np.clip(0.0, self.lower, self.upper)
        lengths = np.linalg.norm(np.diff(self._chain.walk(q[None])[2][0], axis=0), axis=-1)
        self._hip = int(np.flatnonzero(lengths > 0.3 * lengths.max())[0])
        knee, most = 0, -1.0
        for _ in range(2):
            for joint in range(self._hip, len(self.links)):
                tried = np.tile(q, (GRID, 1))
                tried[:, joint] = np.linspace(self.lower[joint], self.upper[joint], GRID)
                origins = self._chain.walk(tried)[2]
                distance = np.linalg.norm(origins[:, -1] - origins[:, self._hip], axis=-1)
                if np.ptp(distance) > most:
                    knee, most = joint, float(np.ptp(distance))
                if np.ptp(distance) > 1e-9:
                    q[joint] = tried[distance.argmax(), joint]
                    self._reach = float(distance.max())
        if q[knee] < 0.5 * (self.lower[knee] + self.upper[knee]):
            self._chain.lower[knee] = q[knee]
        else:
            self._chain.upper[knee] = q[knee]

    def solve(self, dof: Array, target: Array) -> Array:
        """Return joint angles `(T, n)` that bring the corners to their targets, the other joints unchanged.

        Args:
            dof: Where to start `(T, n)` [rad].
            target: Corners in the root frame `(T, 4, 3)` [m].
        """
        return self._chain.reach(dof, target)
