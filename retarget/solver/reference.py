"""The same problem, solved step by step with other people's parts: MuJoCo's Jacobians and the QP solver daqp.

The compiled solver is tested against it. daqp comes with `pip install 'bunraku[dev]'`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, MissingDependencyError
from bunraku.retarget.solver.mujoco_path import MujocoEngine

Array = NDArray[np.float64]
Active = NDArray[np.int8]


class ReferenceEngine(MujocoEngine):
    """`MujocoEngine` whose QPs daqp solves."""

    def solve(self, hessian: Array, gradient: Array, low: Array, high: Array, active: Active) -> Array:
        """Return the joint step `(n,)` of one substep; `active` is not used."""
        try:
            import daqp
        except ImportError as error:
            raise MissingDependencyError("daqp", "the reference solver", "dev") from error

        n = len(gradient)
        x, _, flag, _ = daqp.solve(
            np.ascontiguousarray(hessian),
            np.ascontiguousarray(gradient),
            np.zeros((0, n)),
            np.ascontiguousarray(high),
            np.ascontiguousarray(low),
            np.zeros(n, dtype=np.int32),
        )
        if flag < 1:
            raise BunrakuError(f"daqp found no solution (exit flag {flag})")
        return x
