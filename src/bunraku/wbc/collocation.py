"""The planar problem as a nonlinear program by Lobatto collocation, solved by IPOPT through CasADi.

The time horizon is a mesh of equal intervals with n points each; neighbours share their common point. States and
commands are polynomials through the values at the points, and in each interval

    x_i - x_0 = h * integral of the polynomial through f(t_j, x_j, z_j), from 0 to node i

CasADi differentiates, IPOPT solves; its relaxation of bounds is off, so that no bound is exceeded at a point.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bunraku.errors import BunrakuError, MissingDependencyError
from bunraku.geometry import Array
from bunraku.wbc import planar
from bunraku.wbc.lobatto import Lobatto
from bunraku.wbc.planar import JOINTS, PlanarProblem
from bunraku.wbc.validate import validate

if TYPE_CHECKING:
    import casadi as ca


@dataclass(frozen=True, slots=True)
class Solution:
    """States and commands at the points of the mesh, and how they were found."""

    problem: PlanarProblem
    intervals: int
    points: int
    x: Array
    """States `(N, 10)`: joint angles [rad], joint speeds [rad/s]."""
    z: Array
    """Null-space commands `(N, 5)` [rad/s^2]."""
    objective: float
    iterations: int
    variables: int
    equations: int
    build_s: float
    """Time to state and differentiate the problem [s]."""
    solve_s: float
    """Time that IPOPT took [s]."""

    def at(self, time: Array) -> tuple[Array, Array]:
        """Return states `(m, 10)` and commands `(m, 5)` of the polynomials at times `(m,)` [s]."""
        rule, step = Lobatto(self.points), self.problem.duration / self.intervals
        interval = np.minimum((time / step * (1.0 + 1e-14)).astype(int), self.intervals - 1)
        both = np.concatenate([self.x, self.z], axis=1)
        out = np.zeros((len(time), both.shape[1]))
        for k in range(self.intervals):
            rows = interval == k
            first = k * (self.points - 1)
            out[rows] = rule.interpolate(both[first : first + self.points], time[rows] / step - k)
        return out[:, :10], out[:, 10:]


def solve(problem: PlanarProblem, intervals: int = 10, points: int = 4, tolerance: float = 1e-10) -> Solution:
    """Solve the problem.

    Args:
        problem: The problem.
        intervals: Number of intervals of the mesh.
        points: Points per interval, both ends included.
        tolerance: IPOPT's tolerance.

    Raises:
        MissingDependencyError: If CasADi is not installed.
        BunrakuError: If the problem has no solution; the message says which constraint fails and when.
    """
    if intervals < 1 or points < 2:
        raise BunrakuError(f"the mesh needs 1 interval and 2 points or more, got {intervals} and {points}")
    validate(problem)
    try:
        import casadi as ca
    except ImportError as error:
        raise MissingDependencyError("casadi", "the planar whole-body problem", "wbc") from error
    began = time.perf_counter()
    rule = Lobatto(points)
    step = problem.duration / intervals
    times = _mesh_times(rule, intervals, step)
    x, z = ca.SX.sym("x", 10, len(times)), ca.SX.sym("z", 5, len(times))
    dynamics, cost = _functions(ca, problem)
    f, c = dynamics.call([times.reshape(1, -1), x, z])[0], cost.call([x, z])[0]
    objective: Any = 0
    defects = []
    for k in range(intervals):
        part = slice(k * (points - 1), k * (points - 1) + points)
        objective += step * ca.dot(rule.integration[-1], c[0, part].T)
        moved = step * ca.mtimes(f[:, part], rule.integration[1:].T)
        defects.append(ca.vec(x[:, part][:, 1:] - ca.repmat(x[:, part][:, 0], 1, points - 1) - moved))
    nlp: dict[str, Any] = {"x": ca.vec(ca.vertcat(x, z)), "f": objective, "g": ca.vertcat(*defects)}
    options: dict[str, Any] = {
        "print_time": False,
        "ipopt": {"tol": tolerance, "bound_relax_factor": 0.0, "print_level": 0, "sb": "yes"},
    }
    solver = ca.nlpsol("planar", "ipopt", nlp, options)
    built = time.perf_counter()
    low, high = _bounds(problem, len(times))
    result = solver(x0=_guess(problem, times), lbx=low, ubx=high, lbg=0.0, ubg=0.0)
    solved = time.perf_counter()
    stats = solver.stats()
    values = np.array(result["x"]).reshape(len(times), 15)
    if not stats["success"]:
        raise BunrakuError(
            _diagnosis(stats["return_status"], values, np.array(result["g"]).ravel(), times, problem)
        )
    return Solution(
        problem,
        intervals,
        points,
        values[:, :10].copy(),
        values[:, 10:].copy(),
        float(result["f"]),
        int(stats["iter_count"]),
        int(nlp["x"].shape[0]),
        int(nlp["g"].shape[0]),
        built - began,
        solved - built,
    )


def _mesh_times(rule: Lobatto, intervals: int, step: float) -> Array:
    """Return the times `(N,)` of the mesh's points [s]."""
    inner = [(k + rule.nodes[1:]) * step for k in range(intervals)]
    return np.concatenate([[0.0], *inner])


def _functions(ca: Any, problem: PlanarProblem) -> tuple[ca.Function, ca.Function]:
    """Return f(t, x, z) and the cost's integrand as CasADi functions, in the general matrix formulas."""
    t, x, z = ca.SX.sym("t"), ca.SX.sym("x", 10), ca.SX.sym("z", 5)
    q, qd = x[:5], x[5:]

    def hand(sign: float, shoulder: Any, elbow: Any) -> Any:
        l1, l2 = planar.UPPER_ARM, planar.FOREARM
        return ca.vertcat(
            sign * (l1 * ca.cos(shoulder) + l2 * ca.cos(shoulder + elbow)),
            planar.TRUNK + l1 * ca.sin(shoulder) + l2 * ca.sin(shoulder + elbow),
        )

    right, left = hand(1.0, q[1], q[2]), hand(-1.0, q[3], q[4])
    jac, jac_left = ca.jacobian(right, q), ca.jacobian(left, q)
    jac_dot_qd = ca.jtimes(ca.mtimes(jac, qd), q, qd)
    tau, move = t / problem.duration, ca.DM(problem.move)
    h = 10 * tau**3 - 15 * tau**4 + 6 * tau**5
    hd = (30 * tau**2 - 60 * tau**3 + 30 * tau**4) / problem.duration
    hdd = (60 * tau - 180 * tau**2 + 120 * tau**3) / problem.duration**2
    wanted = ca.DM(problem.right_start) + move * h
    acc = move * hdd + planar.STIFFNESS * (wanted - right) + planar.DAMPING * (move * hd - ca.mtimes(jac, qd))
    pseudo = ca.mtimes(jac.T, ca.inv(ca.mtimes(jac, jac.T)))
    null = ca.SX.eye(5) - ca.mtimes(pseudo, jac)
    qdd = ca.mtimes(pseudo, acc - jac_dot_qd) + ca.mtimes(null, z)
    cost = (
        planar.W_HAND * ca.sumsqr(left - ca.DM(problem.left_goal))
        + planar.W_HAND_SPEED * ca.sumsqr(ca.mtimes(jac_left, qd))
        + planar.W_TRUNK * q[0] ** 2
        + planar.W_SPEED * ca.sumsqr(qd)
        + planar.W_COMMAND * ca.sumsqr(z)
    )
    return ca.Function("f", [t, x, z], [ca.vertcat(qd, qdd)]), ca.Function("c", [x, z], [cost])


def _bounds(problem: PlanarProblem, count: int) -> tuple[Array, Array]:
    """Return lower and upper bounds of the variables `(15 N,)`, the first state fixed."""
    low = np.tile([*problem.lower, *[-problem.speed] * 5, *[-problem.command] * 5], (count, 1))
    high = np.tile([*problem.upper, *[problem.speed] * 5, *[problem.command] * 5], (count, 1))
    low[0, :10] = high[0, :10] = [*problem.start, *[0.0] * 5]
    return low.ravel(), high.ravel()


def _guess(problem: PlanarProblem, times: Array) -> Array:
    """Return a first guess: a quintic from the start towards the secondary objective, at rest at both ends."""
    end = np.array(problem.start)
    end[0] = 0.0
    end[3:] = problem.left_posture
    path = planar.reference(times, problem.duration, np.array(problem.start), end - np.array(problem.start))
    return np.concatenate([path.pos, path.vel, path.acc], axis=1).ravel()


def _diagnosis(status: str, values: Array, defects: Array, times: Array, problem: PlanarProblem) -> str:
    """Say which constraint the solver could not meet, and when, and which bound stands in its way."""
    worst = int(np.abs(defects).argmax())
    when, component = times[1 + worst // 10], worst % 10
    kind = "speed" if component < 5 else "acceleration"
    low, high = _bounds(problem, 2)
    margins = np.minimum(values[1:] - low[15:], high[15:] - values[1:])  # the first state is given
    at, bound = np.unravel_index(int(margins.argmin()), margins.shape)
    what = ("angle", "speed", "command")[bound // 5]
    return (
        f"the planar problem has no solution ({status}): the {kind} of {JOINTS[component % 5]} misses its dynamics by"
        f" {abs(defects[worst]):.2g} at t = {when:.3f} s, held back by the {what} limit of {JOINTS[bound % 5]} at"
        f" t = {times[1 + at]:.3f} s; allow more time, a smaller move, wider limits or a finer mesh"
    )
