"""The planar whole-body problem: the published figures, formulas against independent ones, and mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bunraku.cli.main import main
from bunraku.errors import BunrakuError
from bunraku.geometry import Array
from bunraku.wbc import planar
from bunraku.wbc.check import null_space_projector
from bunraku.wbc.lobatto import Lobatto
from bunraku.wbc.planar import PlanarProblem
from bunraku.wbc.validate import validate

casadi = pytest.importorskip("casadi", reason="the planar problem is solved with casadi")

postures = arrays(np.float64, 5, elements=st.floats(0.0, 1.0)).map(
    lambda u: planar.LOWER + u * (planar.UPPER - planar.LOWER)
)
speeds = arrays(np.float64, 5, elements=st.floats(-3.0, 3.0))
commands = arrays(np.float64, 5, elements=st.floats(-10.0, 10.0))


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    return run_json([])


def run_json(arguments: list[str]) -> dict[str, Any]:
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["wbc", "--json", *arguments]) == 0
    return dict(json.loads(out.getvalue()))


# The published figures.


def test_the_command_reproduces_the_published_figures(report: dict[str, Any]) -> None:
    assert report["null_space_leakage"] < 1e-14
    assert report["right_hand_error_m"] <= 1.6e-6
    assert report["right_hand_error_m"] == pytest.approx(1.535e-6, rel=1e-3)
    assert report["right_hand_error_integrated_m"] <= 1e-9
    assert round(report["left_hand_error_start_m"], 4) == 0.0820
    assert report["left_hand_error_end_m"] <= 0.00555
    assert report["bound_violation"] == 0.0
    assert report["bound_margin"] >= 0.0
    assert "trunk" in report["bound_margin_at"]
    np.testing.assert_allclose(report["right_hand_start"], [0.605445, 0.578541], atol=2e-6)
    np.testing.assert_allclose(report["right_hand_end"], [0.645445, 0.658541], atol=2e-6)
    assert report["objective"] == pytest.approx(1.2198266, abs=1e-6)
    assert (report["variables"], report["equations"]) == (465, 300)
    assert report["build_s"] > 0.0
    assert report["solve_s"] > 0.0


def test_a_finer_mesh_confirms_the_optimum_and_shrinks_the_error_of_the_polynomials(
    report: dict[str, Any],
) -> None:
    finer = run_json(["--points", "6"])
    assert finer["right_hand_error_m"] < 1e-2 * report["right_hand_error_m"]
    assert finer["objective"] == pytest.approx(report["objective"], rel=1e-3)
    assert finer["left_hand_error_end_m"] == pytest.approx(report["left_hand_error_end_m"], abs=2e-5)


def test_a_mesh_that_oversteps_a_bound_between_its_points_fails_the_check(capsys: Any) -> None:
    """On 40 intervals of 4 points |z| exceeds 10 rad/s^2 between points: the dense check must see it."""
    assert main(["wbc", "--intervals", "40", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert 0.005 < found["bound_violation"] < 0.05
    assert "command of trunk" in found["bound_margin_at"]


def test_the_figure_is_written_and_not_overwritten(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("matplotlib", reason="the figure needs matplotlib")
    from PIL import Image

    path = tmp_path / "plot.png"
    assert main(["wbc", "--save", str(path)]) == 0
    image = np.asarray(Image.open(path).convert("RGB"))
    assert image.shape[1] > 1000
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 100
    before = path.read_bytes()
    assert main(["wbc", "--save", str(path)]) == 2
    assert "--force" in capsys.readouterr().err
    assert path.read_bytes() == before
    assert main(["wbc", "--save", str(tmp_path / "plot.abc")]) == 2
    assert "the ending must be one of" in capsys.readouterr().err


# Formulas.


def numeric_jacobian(q: Array, hand: int) -> Array:
    columns = []
    for i in range(5):
        step = np.zeros(5)
        step[i] = 1e-6
        ahead, behind = planar.hands(planar.arms(q + step))[hand], planar.hands(planar.arms(q - step))[hand]
        columns.append((ahead - behind) / 2e-6)
    return np.array(columns).T


@given(postures, speeds)
def test_jacobian_and_hand_velocities_are_the_derivatives_of_the_hands(q: Array, qd: Array) -> None:
    right, left = numeric_jacobian(q, 0), numeric_jacobian(q, 1)
    np.testing.assert_allclose(planar.right_jacobian(q), right, atol=1e-8)
    velocities = planar.hand_velocities(planar.arms(q), qd)
    np.testing.assert_allclose(velocities[0], right @ qd, atol=1e-7)
    np.testing.assert_allclose(velocities[1], left @ qd, atol=1e-7)


@given(postures, speeds, commands, st.floats(0.0, 2.5))
def test_the_closed_loop_is_the_published_matrix_formula(q: Array, qd: Array, z: Array, time: float) -> None:
    problem = PlanarProblem()
    jac = planar.right_jacobian(q)
    jac_dot = (planar.right_jacobian(q + 1e-6 * qd) - planar.right_jacobian(q - 1e-6 * qd)) / 2e-6
    null = null_space_projector(jac)
    np.testing.assert_allclose(null, np.diag(planar.NULL_SPACE), atol=1e-12)
    wanted = problem.reference(np.array(time))
    acc = wanted.acc + 36.0 * (wanted.pos - planar.hands(planar.arms(q))[0]) + 12.0 * (wanted.vel - jac @ qd)
    pseudo = jac.T @ np.linalg.inv(jac @ jac.T)
    expected = pseudo @ (acc - jac_dot @ qd) + null @ z
    np.testing.assert_allclose(problem.acceleration(np.array(time), q, qd, z), expected, rtol=1e-6, atol=1e-5)


def test_the_reference_is_at_rest_at_both_ends_and_consistent_in_between() -> None:
    problem = PlanarProblem()
    times = np.linspace(0.0, 2.5, 1001)
    path = problem.reference(times)
    for ends in (path.vel[[0, -1]], path.acc[[0, -1]]):
        np.testing.assert_allclose(ends, 0.0, atol=1e-12)
    np.testing.assert_allclose(path.pos[-1] - path.pos[0], problem.move, atol=1e-15)
    np.testing.assert_allclose(np.gradient(path.pos, times, axis=0)[2:-2], path.vel[2:-2], atol=1e-5)
    np.testing.assert_allclose(np.gradient(path.vel, times, axis=0)[2:-2], path.acc[2:-2], atol=1e-5)
    np.testing.assert_array_equal(problem.reference(np.array(9.0)).pos, path.pos[-1])


@given(st.integers(2, 9), arrays(np.float64, 3, elements=st.floats(-2.0, 2.0)))
@settings(max_examples=40)
def test_lobatto_is_exact_for_the_polynomials_that_it_should_be_exact_for(points: int, extra: Array) -> None:
    rule = Lobatto(points)
    poly = np.polynomial.Polynomial(np.concatenate([extra, np.ones(points)])[:points])
    at = np.linspace(0.0, 1.0, 23)
    np.testing.assert_allclose(rule.interpolate(poly(rule.nodes)[:, None], at)[:, 0], poly(at), atol=1e-12)
    np.testing.assert_allclose(rule.integration @ poly(rule.nodes), poly.integ()(rule.nodes), atol=1e-12)
    high = np.polynomial.Polynomial(np.ones(2 * points - 2))  # the rule itself is exact up to degree 2 n - 3
    assert rule.integration[-1] @ high(rule.nodes) == pytest.approx(high.integ()(1.0), abs=1e-12)


# Mistakes.


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"duration": 0.0}, "duration must be positive, got 0"),
        (
            {"lower": (0.6, *planar.LOWER[1:])},
            "limits of trunk are inconsistent: lower 0.6 rad is not below upper 0.55 rad",
        ),
        (
            {"start": (0.25, -0.45, 0.2, 0.6, -1.1)},
            "right_elbow starts at 0.2 rad, outside its limits 0.35 to 1.8 rad, at t = 0 s",
        ),
        ({"left_target": (1.0, 1.0)}, "the left hand cannot reach its target [1.000, 1.000] m"),
        ({"left_target": (float("nan"), 1.0)}, "the left hand's target must be finite"),
        ({"move": (0.1, 0.1)}, "at t = 1.565 s it is asked to [0.678, 0.651] m, 0.680 m from the shoulder"),
        ({"move": (0.065, 0.06)}, "takes right_elbow to 0.35"),
        ({"duration": 0.05}, "needs 3.02 rad/s of right_shoulder at t = 0.009 s, its speed limit is 3 rad/s"),
    ],
)
def test_bad_data_are_refused_with_the_constraint_and_the_time(change: dict[str, Any], message: str) -> None:
    with pytest.raises(BunrakuError) as caught:
        validate(PlanarProblem(**change))
    assert message in str(caught.value)


def test_a_problem_that_only_the_solver_finds_infeasible_names_the_constraint_and_the_time() -> None:
    from bunraku.wbc.collocation import solve

    # the path needs 0.25087 rad/s of the elbow; three intervals of two points cannot follow it that closely
    with pytest.raises(BunrakuError) as caught:
        solve(PlanarProblem(speed=0.2512), intervals=3, points=2)
    text = str(caught.value)
    assert "of right_elbow misses its dynamics" in text
    assert "speed limit of right_elbow at t = 1.667 s" in text


def test_the_published_solution_is_a_local_optimum() -> None:
    """Kept bent the other way, the left elbow reaches the same target at less than half the cost."""
    from bunraku.wbc.collocation import solve

    published = PlanarProblem()
    goal = tuple(published.left_goal)
    left = np.array([0.0, 0.0, 0.0, *other_branch(published)])
    np.testing.assert_allclose(planar.hands(planar.arms(left))[1], goal, atol=1e-12)
    bent = PlanarProblem(left_target=goal, left_posture=other_branch(published))
    assert solve(bent).objective < 0.5 * solve(published).objective


def other_branch(problem: PlanarProblem) -> tuple[float, float]:
    """Return left shoulder and elbow that reach the default target with the elbow bent the other way."""
    shoulder, elbow = problem.left_posture
    inner = np.arctan2(planar.FOREARM * np.sin(elbow), planar.UPPER_ARM + planar.FOREARM * np.cos(elbow))
    return float(shoulder + 2.0 * inner), -elbow


def test_the_command_line_says_it_in_one_line(capsys: Any) -> None:
    assert main(["wbc", "--move", "0.1", "0.1"]) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert said[0].startswith("bunraku: error: the right hand cannot follow its path: at t = 1.565 s")
    assert main(["wbc", "--points", "1"]) == 2
