"""Solve the planar whole-body problem: the right hand tracks with strict priority, the rest serves the left hand.

The optimal control problem is transcribed by Lobatto collocation, solved by IPOPT through CasADi (extra `wbc`), and
checked on 4,001 times and by integrating the closed loop on its own. Exit code 1 if a bound is violated.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from bunraku.cli.main import EXIT_CHECK_FAILED, EXIT_OK, say
from bunraku.errors import BunrakuError


@dataclass(frozen=True)
class Args:
    """Options of `wbc`."""

    save: Path | None = None
    """Write a figure: arm poses, hand paths, errors, trunk, leakage (needs the `plots` extra)."""
    intervals: int = 10
    """Intervals of the mesh."""
    points: int = 4
    """Points per interval, both ends included."""
    duration: float = 2.5
    """Time horizon [s]."""
    move: tuple[float, float] = (0.04, 0.08)
    """Where the right hand goes from where it starts, x and y [m]."""
    left_target: tuple[float, float] | None = None
    """Where the left hand is wanted, x and y [m]; by default that of the published example."""
    json: bool = False
    """Print one JSON object on stdout."""
    force: bool = False
    """Replace an existing figure."""


def run(args: Args) -> int:
    """Solve and check; return the exit code."""
    from bunraku.wbc.check import check, histories
    from bunraku.wbc.collocation import solve
    from bunraku.wbc.planar import PlanarProblem

    if args.save is not None and args.save.exists() and not args.force:
        raise BunrakuError(f"{args.save} exists; use --force to replace it")
    problem = PlanarProblem(duration=args.duration, move=args.move, left_target=args.left_target)
    solution = solve(problem, args.intervals, args.points)
    dense = histories(solution)
    report = check(solution, dense)
    if args.save is not None:
        from bunraku.wbc.figure import save_figure

        save_figure(args.save, problem, dense)
    for line in (
        f"null-space leakage |J N|: {report.null_space_leakage:.3e}",
        f"right hand's error: {report.right_hand_error_m:.4e} m on the polynomials,"
        f" {report.right_hand_error_integrated_m:.1e} m integrated",
        f"left hand's error: {report.left_hand_error_start_m:.4f} m at the start,"
        f" {report.left_hand_error_end_m:.6f} m at the end",
        f"bound violation: {report.bound_violation:g}; smallest margin {report.bound_margin:.2e},"
        f" {report.bound_margin_at}",
        f"right hand: {_point(report.right_hand_start)} to {_point(report.right_hand_end)} m",
        f"cost {solution.objective:.10f} after {solution.iterations} iterations; {solution.variables} variables,"
        f" {solution.equations} equations; built in {solution.build_s:.2f} s, solved in {solution.solve_s:.2f} s",
    ):
        say(line)
    if args.save is not None:
        say(f"figure: {args.save}")
    if args.json:
        facts = {
            **asdict(report),
            "build_s": solution.build_s,
            "solve_s": solution.solve_s,
            "iterations": solution.iterations,
            "variables": solution.variables,
            "equations": solution.equations,
            "figure": None if args.save is None else str(args.save),
        }
        sys.stdout.write(json.dumps(facts) + "\n")
    return EXIT_OK if report.bound_violation == 0.0 else EXIT_CHECK_FAILED


def _point(point: list[float]) -> str:
    return f"[{point[0]:.6f}, {point[1]:.6f}]"
