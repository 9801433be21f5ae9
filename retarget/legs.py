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
        origins = self.origins(dof)
        lengths = np.linalg.norm(np.diff(origins[0], axis=0), axis=-1)
        long = np.flatnonzero(lengths > 0.3 * lengths.max())
        return origins[:, long[0]], float(lengths[long[0] :].sum())

    def solve(self, dof: Array, target: Array) -> Array:
        """Return joint angles `(T, n)` that bring the corners to their targets, the other joints unchanged.

        Args:
            dof: Where to start `(T, n)` [rad].
            target: Corners in the root frame `(T, 4, 3)` [m].
        """
        return self._chain.reach(dof, target)
