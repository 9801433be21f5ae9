"""The solver without numba: Jacobians from MuJoCo, algebra in NumPy, the same steps and the same joints.

It is also what the reference is made of (`reference`): nothing here is shared with the compiled kernels but the
problem's description.
"""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.geometry import from_matrix, to_matrix, to_rotvec
from bunraku.retarget.solver.engine import Limb
from bunraku.retarget.solver.problem import Problem

Array = NDArray[np.float64]
Active = NDArray[np.int8]


class MujocoKinematics:
    """Task errors and Jacobians of a problem at given joint angles, in the root frame."""

    def __init__(self, problem: Problem, model: mujoco.MjModel) -> None:
        """Prepare for a problem on `model`, the model that its tree was read from."""
        self.problem, self.model, self.data = problem, model, mujoco.MjData(model)
        tree = problem.tree
        self._root = model.body(tree.root_body).id
        self._tip, self._anchor = [], []
        for task, frame in zip(problem.tasks, problem.frames, strict=True):
            body, point, turn = self._mount(task.body)
            # the task frame's axes, which are the root's at rest, in those of the body
            self._tip.append((body, point, turn @ tree.frame(task.body).rot.T @ frame.rot))
            self._anchor.append(self._mount(task.anchor or tree.root_body)[:2])

    def _mount(self, name: str) -> tuple[int, Array, Array]:
        """Return body, position and rotation in it of a body or site."""
        model = self.model
        body = int(mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name))
        if body >= 0:
            return body, np.zeros(3), np.eye(3)
        site = model.site(name).id
        return int(model.site_bodyid[site]), model.site_pos[site], to_matrix(model.site_quat[site])

    def update(self, q: Array) -> None:
        """Move the robot to joint angles `q` `(n,)`."""
        self.data.qpos[:] = self.model.qpos0
        self.data.qpos[self.problem.tree.qpos] = q
        mujoco.mj_kinematics(self.model, self.data)
        mujoco.mj_comPos(self.model, self.data)
        self._to_root = self.data.xmat[self._root].reshape(3, 3).T

    def error(self, k: int, offset: Array, rotation: Array) -> tuple[Array, Array]:
        """Return position and orientation error `(3,)` of task `k`: from where it is to where it should be."""
        body, point, turn = self._tip[k]
        rot = self.data.xmat[body].reshape(3, 3)
        away = self._to_root @ (self._at(body, point) - self._at(*self._anchor[k]))
        return offset - away, to_rotvec(from_matrix(rotation @ (self._to_root @ rot @ turn).T))

    def jacobian(self, k: int) -> tuple[Array, Array]:
        """Return the Jacobians `(3, n)` of task `k`: its point against its anchor, and its rotation."""
        dofs = self.problem.tree.dof
        body, point, _ = self._tip[k]
        anchor, base = self._anchor[k]
        linear, angular, moved = (np.zeros((3, self.model.nv)) for _ in range(3))
        mujoco.mj_jac(self.model, self.data, linear, angular, self._at(body, point), body)
        mujoco.mj_jac(self.model, self.data, moved, None, self._at(anchor, base), anchor)
        return self._to_root @ (linear - moved)[:, dofs], self._to_root @ angular[:, dofs]

    def _at(self, body: int, point: Array) -> Array:
        """Return a point of a body in the world."""
        return self.data.xpos[body] + self.data.xmat[body].reshape(3, 3) @ point

    def objective(
        self, q: Array, offsets: Array, rotations: Array, target_step: float
    ) -> tuple[Array, Array]:
        """Return Hessian `(n, n)` and gradient `(n,)` of the Gauss-Newton model at `q` `(n,)`, damping included."""
        self.update(q)
        settings = self.problem.settings
        n = self.problem.tree.n
        hessian = np.eye(n) * (settings.posture**2 + settings.damping)
        gradient = settings.posture**2 * (q - self.problem.rest)
        for k, task in enumerate(self.problem.tasks):
            position, orientation = self.error(k, offsets[k], rotations[k])
            size = float(np.sqrt(position @ position))
            if size > target_step:
                position = position * (target_step / size)
            linear, angular = self.jacobian(k)
            hessian += task.position**2 * linear.T @ linear + task.orientation**2 * angular.T @ angular
            gradient -= task.position**2 * position @ linear + task.orientation**2 * orientation @ angular
        return hessian, gradient


def box_qp(hessian: Array, gradient: Array, low: Array, high: Array, active: Active) -> Array:
    """Return the minimum `(n,)` of `1/2 x'Hx + g'x` over a box by the primal-dual active set method.

    Args:
        hessian: `(n, n)`, positive definite.
        gradient: `(n,)`.
        low: Lower bounds `(n,)`.
        high: Upper bounds `(n,)`.
        active: Warm start, changed in place `(n,)`: -1 at the lower bound, 1 at the upper, 0 free.
    """
    for count in range(2000):
        free = active == 0
        x = np.where(active < 0, low, high)
        if free.any():
            rest = gradient[free] + hessian[np.ix_(free, ~free)] @ x[~free]
            x[free] = -np.linalg.solve(hessian[np.ix_(free, free)], rest)
        force = hessian @ x + gradient
        wanted = np.where(x < low - 1e-13, -1, np.where(x > high + 1e-13, 1, 0))
        held = ((active < 0) & (force >= -1e-12)) | ((active > 0) & (force <= 1e-12)) | (high <= low)
        wanted = np.where(free, wanted, np.where(held, active, 0))
        wrong = np.flatnonzero(wanted != active)
        if len(wrong) == 0:
            return x
        wrong = wrong if count < 12 else wrong[:1]  # single corrections end whatever happens
        active[wrong] = wanted[wrong]
    raise AssertionError("a box QP with a positive definite matrix has a solution")


class MujocoEngine(MujocoKinematics):
    """Passes over the frames of a clip in Python."""

    def limb(self, group: int) -> Limb:
        """Return the solver of one limb."""
        problem, joints, tasks = self.problem.limb(group)
        own = np.flatnonzero(self.problem.packed.joint_group[joints] == group)
        return Limb(type(self)(problem, self.model), joints, own, tasks)

    def sweep(
        self,
        x: Array,
        offsets: Array,
        rotations: Array,
        first: int,
        last: int,
        *,
        follow: bool,
        substeps: int,
        target_step: float = np.inf,
        limit_gain: float = 0.9,
        bound: Array | None = None,
        pull: float = 0.0,
        two_sided: bool = False,
    ) -> None:
        """Solve the frames from `first` to `last` in place (see `sweeps.sweep`)."""
        tree = self.problem.tree
        active = np.zeros(tree.n, dtype=np.int8)
        towards = 1 if last >= first else -1
        for t in range(first, last + towards, towards):
            before = x[t - towards] if 0 <= t - towards < len(x) else None
            after = x[t + towards] if 0 <= t + towards < len(x) else None
            floor, ceiling = tree.lower, tree.upper
            for neighbour in (before, after if two_sided else None):
                if neighbour is not None and bound is not None:
                    floor, ceiling = (
                        np.maximum(floor, neighbour - bound),
                        np.minimum(ceiling, neighbour + bound),
                    )
            if follow and before is not None:
                x[t] = before
            for _ in range(substeps):
                q = x[t]
                hessian, gradient = self.objective(q, offsets[t], rotations[t], target_step)
                if pull > 0.0 and before is not None and after is not None:
                    hessian[np.diag_indices(tree.n)] += 2.0 * pull
                    gradient += pull * (2.0 * q - before - after)
                low = np.minimum(np.maximum(limit_gain * (tree.lower - q), floor - q), 0.0)
                high = np.maximum(np.minimum(limit_gain * (tree.upper - q), ceiling - q), 0.0)
                x[t] = np.clip(q + self.solve(hessian, gradient, low, high, active), floor, ceiling)

    def solve(self, hessian: Array, gradient: Array, low: Array, high: Array, active: Active) -> Array:
        """Return the joint step `(n,)` of one substep."""
        return box_qp(hessian, gradient, low, high, active)

    def costs(self, x: Array, offsets: Array, rotations: Array) -> Array:
        """Return the objective of every frame and group `(T, G)`."""
        p = self.problem.packed
        weights = np.stack([p.weights[:, 0], p.weights[:, 1]], axis=-1)
        per_task = 0.5 * (weights * self.errors(x, offsets, rotations) ** 2).sum(axis=-1)
        per_joint = 0.5 * p.scalars[0] * (x - p.rest) ** 2
        out = np.zeros((len(x), int(p.task_group.max()) + 1))
        for group in range(out.shape[1]):
            out[:, group] = per_task[:, p.task_group == group].sum(axis=1)
            out[:, group] += per_joint[:, p.joint_group == group].sum(axis=1)
        return out

    def errors(self, x: Array, offsets: Array, rotations: Array) -> Array:
        """Return position [m] and orientation [rad] error of every task `(T, K, 2)`."""
        out = np.zeros((len(x), len(self.problem.tasks), 2))
        for t, q in enumerate(x):
            self.update(q)
            for k in range(out.shape[1]):
                position, orientation = self.error(k, offsets[t, k], rotations[t, k])
                out[t, k] = np.sqrt(position @ position), np.sqrt(orientation @ orientation)
        return out
