"""Checks a solution of the planar problem on a dense grid, and by integrating the closed loop without its states.

The polynomials of a collocation satisfy the dynamics at the points of the mesh only. So everything is looked at on
4,001 evenly spaced times; and the closed loop is integrated by the classical Runge-Kutta method from the start with
nothing of the solution but z(t), which tells an error of the mesh from one of the controller.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bunraku.geometry import Array
from bunraku.wbc.collocation import Solution
from bunraku.wbc.planar import JOINTS, PlanarProblem, arms, hands, right_jacobian

SAMPLES = 4001


@dataclass(frozen=True, slots=True)
class Histories:
    """The solution on the dense grid, `(SAMPLES, ...)`; errors are distances."""

    time: Array
    """[s]"""
    x: Array
    """States of the polynomials `(SAMPLES, 10)`."""
    z: Array
    """Null-space commands `(SAMPLES, 5)` [rad/s^2]."""
    right: Array
    """Right hand `(SAMPLES, 2)` [m]."""
    left: Array
    """Left hand `(SAMPLES, 2)` [m]."""
    right_error: Array
    """[m]"""
    left_error: Array
    """[m]"""
    leakage: Array
    """Frobenius norm of J N."""
    integrated: Array
    """States of the integrated closed loop `(SAMPLES, 10)`."""
    integrated_error: Array
    """Right hand's error of those [m]."""


@dataclass(frozen=True, slots=True)
class Report:
    """What the checks found."""

    null_space_leakage: float
    """Largest Frobenius norm of J N."""
    right_hand_error_m: float
    """Largest, on the collocation polynomials [m]."""
    right_hand_error_integrated_m: float
    """Largest, in the independent integration [m]."""
    left_hand_error_start_m: float
    left_hand_error_end_m: float
    bound_violation: float
    """Largest, over angles, speeds and commands; 0 if every bound holds at every time."""
    bound_margin: float
    """Smallest distance to a bound after the start (negative: a violation)."""
    bound_margin_at: str
    """Which bound that is, and when."""
    right_hand_start: list[float]
    """[m]"""
    right_hand_end: list[float]
    """[m]"""
    objective: float
    integrated_state_difference: float
    """Largest difference between integrated states and polynomials."""


def null_space_projector(jac: Array) -> Array:
    """Return N = 1 - J^T (J J^T)^-1 J `(..., n, n)` of Jacobians `(..., m, n)`."""
    transposed = jac.swapaxes(-1, -2)
    pseudo = transposed @ np.linalg.inv(jac @ transposed)
    return np.eye(jac.shape[-1]) - pseudo @ jac


def histories(solution: Solution, samples: int = SAMPLES) -> Histories:
    """Look at the solution on a dense grid, and integrate its closed loop."""
    problem = solution.problem
    time = np.linspace(0.0, problem.duration, samples)
    x, z = solution.at(time)
    right, left = hands(arms(x[:, :5]))
    wanted = problem.reference(time).pos
    jac = right_jacobian(x[:, :5])
    integrated = integrate(solution, samples)
    own = hands(arms(integrated[:, :5]))[0]
    return Histories(
        time,
        x,
        z,
        right,
        left,
        _length(right - wanted),
        _length(left - problem.left_goal),
        np.sqrt(((jac @ null_space_projector(jac)) ** 2).sum(axis=(1, 2))),
        integrated,
        _length(own - wanted),
    )


def integrate(solution: Solution, samples: int = SAMPLES) -> Array:
    """Integrate the closed loop under z(t) by the classical Runge-Kutta method; return states `(samples, 10)`."""
    problem = solution.problem
    half = np.linspace(0.0, problem.duration, 2 * samples - 1)
    z = solution.at(half)[1]
    step = problem.duration / (samples - 1)
    states = np.zeros((samples, 10))
    x = states[0]
    x[:5] = problem.start

    def slope(x: Array, k: int) -> Array:
        return np.concatenate([x[5:], problem.acceleration(half[k], x[:5], x[5:], z[k])])

    for i in range(samples - 1):
        k = 2 * i
        a = slope(x, k)
        b = slope(x + 0.5 * step * a, k + 1)
        c = slope(x + 0.5 * step * b, k + 1)
        d = slope(x + step * c, k + 2)
        x = x + (step / 6.0) * (a + 2.0 * b + 2.0 * c + d)
        states[i + 1] = x
    return states


def check(solution: Solution, h: Histories) -> Report:
    """Return the figures of a solution's histories."""
    margin, where = _smallest_margin(solution.problem, h)
    return Report(
        null_space_leakage=float(h.leakage.max()),
        right_hand_error_m=float(h.right_error.max()),
        right_hand_error_integrated_m=float(h.integrated_error.max()),
        left_hand_error_start_m=float(h.left_error[0]),
        left_hand_error_end_m=float(h.left_error[-1]),
        bound_violation=max(0.0, -margin),
        bound_margin=margin,
        bound_margin_at=where,
        right_hand_start=h.right[0].tolist(),
        right_hand_end=h.right[-1].tolist(),
        objective=solution.objective,
        integrated_state_difference=float(np.abs(h.integrated - h.x).max()),
    )


def _smallest_margin(problem: PlanarProblem, h: Histories) -> tuple[float, str]:
    """Return the smallest distance to a bound, and which and when; the start itself is given, not chosen."""
    parts = {
        "angle": np.minimum(h.x[1:, :5] - problem.lower, problem.upper - h.x[1:, :5]),
        "speed": problem.speed - np.abs(h.x[1:, 5:]),
        "command": problem.command - np.abs(h.z),
    }
    found = []
    for name, margin in parts.items():
        row, joint = np.unravel_index(int(margin.argmin()), margin.shape)
        when = h.time[row] if name == "command" else h.time[row + 1]
        found.append((float(margin.min()), f"{name} of {JOINTS[joint]} at t = {when:.4f} s"))
    return min(found)


def _length(vec: Array) -> Array:
    return np.sqrt((vec * vec).sum(axis=-1))
