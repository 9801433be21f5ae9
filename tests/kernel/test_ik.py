"""Inverse kinematics of the Panda: accuracy on long paths, behaviour at singularities and out of reach, same bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.control.ik import DampedLeastSquares, quat_error_matrix
from bunraku.control.kinematics import ArmKinematics, kinematic_model
from bunraku.control.solve import PoseSolver
from bunraku.geometry import Array, Pose, conjugate, from_rotvec, multiply, to_rotvec
from bunraku.robots.panda import ROBOT

HOME = np.array(ROBOT.home)
SMALLEST_SINGULAR_VALUE = 0.05
KINEMATICS = ArmKinematics(ROBOT)
MODEL = kinematic_model(ROBOT)
LOWER, UPPER = KINEMATICS.lower, KINEMATICS.upper


def tool(q: Array) -> Pose:
    KINEMATICS.update(q)
    return Pose(KINEMATICS.pos.copy(), KINEMATICS.quat.copy())


def wave_path(count: int, span: float = 1.0, turns: float = 10.0) -> list[Pose]:
    """Return a continuous path around home that does not repeat itself."""
    home = tool(HOME)
    poses = []
    for phase in np.linspace(0.0, 2.0 * np.pi * turns, count):
        slow = phase / turns
        offset = [0.08 * np.sin(phase), 0.2 * np.sin(2 * phase + slow), 0.1 * np.sin(3 * phase)]
        turn = 0.3 * np.array([np.sin(phase + slow), np.sin(2 * phase), np.sin(phase)])
        poses.append(Pose(home.pos + span * np.array(offset), multiply(from_rotvec(turn), home.quat)))
    return poses


def error_to(q: Array, pose: Pose) -> tuple[float, float]:
    """Return distance [m] and angle [rad] by forward kinematics, independent of what the solver reports."""
    reached = tool(q)
    turn = to_rotvec(multiply(pose.quat, conjugate(reached.quat)))
    return float(np.linalg.norm(pose.pos - reached.pos)), float(np.linalg.norm(turn))


def test_ten_thousand_poses_within_a_tenth_of_a_millimetre_in_five_steps() -> None:
    solver, q, regular = PoseSolver(MODEL, ROBOT.dof), HOME, 0
    for pose in wave_path(10_000):
        result = solver.solve(q, pose, rotation_tolerance=np.deg2rad(0.045))
        assert np.linalg.norm(result.q - q) <= 0.3 + 1e-12
        q = result.q
        assert np.all((q >= LOWER) & (q <= UPPER))
        distance, angle = error_to(q, pose)
        if np.linalg.svd(KINEMATICS.jacobian(), compute_uv=False)[-1] >= SMALLEST_SINGULAR_VALUE:
            regular += 1
            assert result.iterations <= 5
            assert distance <= 1e-4
            assert angle <= np.deg2rad(0.05)
    assert regular > 9_000


def test_out_of_reach_and_back_is_bounded_and_smooth() -> None:
    """A straight line to 1.3 m, where the stretched arm is singular, and back home."""
    home, solver, q = tool(HOME), PoseSolver(MODEL, ROBOT.dof), HOME
    smallest, steps = np.inf, []
    for phase in np.linspace(0.0, np.pi, 4_000):
        result = solver.solve(q, Pose(home.pos + [0.8 * np.sin(phase), 0.0, 0.0], home.quat))
        steps.append(np.max(np.abs(result.q - q)))
        q = result.q
        assert np.all(np.isfinite(q))
        assert np.all((q >= LOWER) & (q <= UPPER))
        tool(q)
        smallest = min(smallest, np.linalg.svd(KINEMATICS.jacobian(), compute_uv=False)[-1])
    assert smallest < SMALLEST_SINGULAR_VALUE
    assert max(steps) < 0.1
    distance, angle = error_to(q, home)
    assert distance <= 1e-4
    assert angle <= np.deg2rad(0.05)


def test_beyond_reach_the_arm_comes_to_rest_at_the_nearest_point() -> None:
    ik, home = DampedLeastSquares(ArmKinematics(ROBOT)), tool(HOME)
    direction = np.array([np.cos(0.4), np.sin(0.4), 0.0])
    target, q, moves = np.array([0.0, 0.0, 0.333]) + 2.0 * direction, HOME, []
    matrix = quat_error_matrix(home.quat)
    for _ in range(3_000):
        new = ik.step(q, target, matrix, np.full(ROBOT.dof, 0.01))
        moves.append(np.max(np.abs(new - q)))
        assert np.all((new >= LOWER) & (new <= UPPER))
        q = new.copy()
    assert max(moves) <= 0.01 + 1e-12
    assert moves[-1] < 1e-4
    rest, (before, _) = tool(q), error_to(HOME, Pose(target, home.quat))
    assert np.linalg.norm(target - rest.pos) < before - 0.2
    assert np.dot(rest.pos - home.pos, direction) > 0.15


def test_a_wrist_turned_past_its_range_stops_at_the_limit_and_comes_back() -> None:
    """Two full turns about the tool's axis: no joint leaves its range, and the last one is at its limit meanwhile."""
    home, solver, q = tool(HOME), PoseSolver(MODEL, ROBOT.dof), HOME
    nearest = np.inf
    for phase in np.linspace(0.0, np.pi, 3_000):
        turn = from_rotvec(np.array([0.0, 0.0, 4.0 * np.pi * np.sin(phase)]))
        q = solver.solve(q, Pose(home.pos, multiply(turn, home.quat))).q
        assert np.all((q >= LOWER) & (q <= UPPER))
        nearest = min(nearest, float(np.min([q - LOWER, UPPER - q])))
    assert nearest == 0.0


angles = st.lists(st.floats(0.02, 0.98), min_size=ROBOT.dof, max_size=ROBOT.dof).map(
    lambda share: LOWER + np.array(share) * (UPPER - LOWER)
)


@given(q=angles)
@settings(max_examples=100, deadline=None)
def test_the_jacobian_is_the_slope_of_the_kinematics(q: Array) -> None:
    start = tool(q)
    jacobian, slope, h = KINEMATICS.jacobian().copy(), np.zeros((6, ROBOT.dof)), 1e-6
    assert jacobian.shape == (6, ROBOT.dof)
    for joint in range(ROBOT.dof):
        offset = h * np.eye(ROBOT.dof)[joint]
        after, before = tool(q + offset), tool(q - offset)
        slope[:3, joint] = (after.pos - before.pos) / (2 * h)
        slope[3:, joint] = to_rotvec(multiply(after.quat, conjugate(before.quat))) / (2 * h)
    np.testing.assert_allclose(jacobian, slope, atol=1e-7)
    assert np.all(np.isfinite(start.pos))


@pytest.mark.parametrize("nsim", [1, 2, 7, 64, 65, 130])
@pytest.mark.parametrize("with_null_step", [False, True])
def test_a_batch_has_the_bits_of_single_arms(nsim: int, with_null_step: bool) -> None:
    rng = np.random.default_rng(nsim)
    single, batch = ArmKinematics(ROBOT), ArmKinematics(ROBOT, nsim=nsim)
    one, many = DampedLeastSquares(single), DampedLeastSquares(batch)
    q = rng.uniform(LOWER, UPPER, size=(nsim, ROBOT.dof))
    target = rng.uniform([-0.8, -0.8, 0.0], [0.8, 0.8, 1.2], size=(nsim, 3))
    quat = from_rotvec(rng.normal(size=(nsim, 3)))
    null = 0.01 * rng.normal(size=(nsim, ROBOT.dof)) if with_null_step else None
    limit, alone = np.full(ROBOT.dof, 0.05), q.copy()
    for _ in range(10):
        q = many.step(q, target, quat_error_matrix(quat), limit, null).copy()
        for i in range(nsim):
            row = None if null is None else null[i]
            alone[i] = one.step(alone[i], target[i], quat_error_matrix(quat[i]), limit, row)
        assert q.tobytes() == alone.tobytes()
