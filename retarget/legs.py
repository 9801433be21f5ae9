"""Inverse kinematics of a leg for all frames of a clip at once: bring the corners of a sole to where they should be.

Four corners have position and orientation in one, in one unit, and weigh them as sliding does: a turned foot is wrong
by as much as its corners moved. A leg with fewer than six joints gets as near as it can.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import from_rotvec, to_matrix
from bunraku.humanoid import Foot
from bunraku.retarget.solver.tree import Tree

Array = NDArray[np.float64]

DAMPING = 1e-5
"""Damping of a step against the squared lever of the joints [m^2]."""
LONGEST_STEP = 0.3
"""Largest change of a joint in one step [rad]."""


class Leg:
    """The chain of joints from the root to a foot."""

    def __init__(self, tree: Tree, foot: Foot) -> None:
        """Read the chain.

        Args:
            tree: The robot.
            foot: Its foot.
        """
        frame = tree.frame(foot.body)
        self.links = tree.chain(frame.link)
        """Joints of the leg, as columns of `dof`; a waist between root and leg would be among them."""
        self._tree = tree
        self._sole = frame.pos + np.asarray(foot.sole) @ frame.rot.T
        self.lower, self.upper = tree.lower[self.links], tree.upper[self.links]

    def walk(self, dof: Array) -> tuple[Array, Array, Array, Array]:
        """Return what `_walk` returns for joint angles of the whole robot `(T, n)`."""
        return self._walk(dof[:, self.links])

    def _walk(self, q: Array) -> tuple[Array, Array, Array, Array]:
        """Return rotation and position of the last link, and all joints' axes and origins, in the root frame."""
        tree = self._tree
        rot, pos = np.broadcast_to(np.eye(3), (len(q), 3, 3)), np.zeros((len(q), 3))
        axes, origins = np.empty((len(q), len(self.links), 3)), np.empty((len(q), len(self.links), 3))
        for i, link in enumerate(self.links):
            pos = pos + rot @ tree.offset[link]
            rot = rot @ tree.rotation[link]
            axes[:, i], origins[:, i] = rot @ tree.axis[link], pos
            rot = rot @ to_matrix(from_rotvec(q[:, i, None] * tree.axis[link]))
        return rot, pos, axes, origins

    def corners(self, dof: Array) -> Array:
        """Return the corners of the sole `(T, 4, 3)` in the root frame at joint angles of the robot `(T, n)` [m]."""
        rot, pos, _, _ = self.walk(dof)
        corners: Array = pos[:, None] + np.einsum("tij,cj->tci", rot, self._sole)
        return corners

    def hip_to_sole(self, dof: Array) -> tuple[Array, float]:
        """Return where the leg starts in the root frame `(T, 3)` and how far its last joint can get from there [m].

        The start is the first joint after which the leg's length does not change by turning about it: the hip.
        """
        _, _, _, origins = self.walk(dof)
        lengths = np.linalg.norm(np.diff(origins[0], axis=0), axis=-1)
        long = np.flatnonzero(lengths > 0.3 * lengths.max())
        return origins[:, long[0]], float(lengths[long[0] :].sum())

    def solve(self, dof: Array, target: Array, steps: int = 8) -> Array:
        """Return joint angles `(T, n)` that bring the corners to their targets, the other joints unchanged.

        Args:
            dof: Where to start `(T, n)` [rad].
            target: Corners in the root frame `(T, 4, 3)` [m].
            steps: Gauss-Newton steps.
        """
        q = dof[:, self.links].copy()
        for _ in range(steps):
            rot, pos, axes, origins = self._walk(q)
            corners = pos[:, None] + np.einsum("tij,cj->tci", rot, self._sole)
            arms = corners[:, :, None] - origins[:, None]
            jac = np.cross(axes[:, None], arms)  # (T, 4, k, 3)
            # a joint at its limit that would go on is held, so that the others take over
            gradient = np.einsum("tcki,tci->tk", jac, target - corners)
            held = ((q <= self.lower) & (gradient < 0.0)) | ((q >= self.upper) & (gradient > 0.0))
            jac = np.where(held[:, None, :, None], 0.0, jac)
            gradient = np.where(held, 0.0, gradient)
            normal = np.einsum("tcki,tcli->tkl", jac, jac)
            normal += DAMPING * np.eye(len(self.links))
            step = np.linalg.solve(normal, gradient[..., None])[..., 0]
            largest = np.abs(step).max(axis=1, keepdims=True)
            step *= np.minimum(1.0, LONGEST_STEP / np.maximum(largest, 1e-12))
            q = np.clip(q + step, self.lower, self.upper)
        out = dof.copy()
        out[:, self.links] = q
        return out
