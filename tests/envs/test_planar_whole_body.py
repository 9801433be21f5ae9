"""The planar upper body as an environment: the model is the equations', and costs what the optimum costs."""

from __future__ import annotations

from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

from bunraku.gl import GraphicsError
from bunraku.wbc import planar
from bunraku.wbc.planar import PlanarProblem
from tests.gl import no_gl

NAME = "bunraku/PlanarWholeBody-v0"


def make(**kwargs: Any) -> Any:
    return gymnasium.make(NAME, disable_env_checker=True, **kwargs).unwrapped


def test_the_optimal_solution_replayed_costs_the_same_within_one_percent() -> None:
    pytest.importorskip("casadi", reason="the optimal solution needs casadi")
    from bunraku.wbc.collocation import solve

    solution = solve(PlanarProblem())
    command = solution.at((np.arange(250) + 0.5) / 100.0)[1] / planar.COMMAND
    env = gymnasium.make(NAME)
    env.reset(seed=0)
    cost, right = 0.0, []
    for k, action in enumerate(command.astype(np.float32)):
        observation, reward, terminated, truncated, info = env.step(action)
        cost -= float(reward)
        right.append(float(env.unwrapped.task.right_hand_error()))  # type: ignore[attr-defined]
        assert not terminated
        assert truncated == (k == 249)
    assert cost == pytest.approx(solution.objective, rel=0.01)
    assert cost == pytest.approx(solution.objective, rel=5e-4)  # what is left is the hold of 10 ms
    assert max(right) < 5e-6
    assert info["is_success"]
    np.testing.assert_allclose(observation["observation"], solution.x[-1], atol=2e-3)


def test_a_worse_command_costs_more() -> None:
    env = make()
    env.reset(seed=0)
    assert sum(-env.step(np.zeros(5))[1] for _ in range(250)) > 2.0


def test_the_model_s_torque_is_acceleration_and_its_sites_are_the_equations_hands() -> None:
    env = make()
    env.reset(seed=0)
    model, data = env.model, mujoco.MjData(env.model)
    rng = np.random.default_rng(0)
    for _ in range(20):
        data.qpos[:], data.qvel[:] = rng.uniform(0.99 * planar.LOWER, 0.99 * planar.UPPER), rng.normal(size=5)
        data.ctrl[:] = rng.uniform(-10.0, 10.0, 5)
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qacc, data.ctrl, rtol=1e-10, atol=1e-10)
        right, left = planar.hands(planar.arms(data.qpos))
        np.testing.assert_allclose(data.site("right_hand").xpos[[0, 2]], right, atol=1e-12)
        np.testing.assert_allclose(data.site("left_hand").xpos[[0, 2]], left, atol=1e-12)
    assert int(model.opt.integrator) == int(mujoco.mjtIntegrator.mjINT_RK4)
    assert model.opt.timestep == pytest.approx(1e-3)


def test_a_step_is_ten_runge_kutta_steps_of_a_millisecond_with_the_command_held() -> None:
    env = make()
    env.reset(seed=0)
    action = np.array([-0.7, 0.3, 0.2, -0.5, 0.4])
    problem, z = PlanarProblem(), planar.COMMAND * action
    q, qd = np.array(problem.start), np.zeros(5)
    for k in range(10):
        # torque held for a millisecond: constant acceleration, which Runge-Kutta integrates exactly
        qdd = problem.acceleration(np.array(k * 1e-3), q, qd, z)
        q, qd = q + 1e-3 * qd + 0.5e-6 * qdd, qd + 1e-3 * qdd
    observation = env.step(action)[0]["observation"]
    np.testing.assert_allclose(observation, [*q, *qd], atol=1e-13)


def test_the_command_cannot_disturb_the_right_hand() -> None:
    env = make(start_noise=0.1)
    rng = np.random.default_rng(1)
    for seed in range(3):
        env.reset(seed=seed)
        for _ in range(250):
            env.step(rng.uniform(-1.0, 1.0, 5))
            assert env.task.right_hand_error() < 5e-6


def test_joints_stop_at_their_limits_and_keep_their_speed_limit() -> None:
    env = make()
    for sign in (1.0, -1.0):
        env.reset(seed=0)
        for _ in range(250):
            q, qd = np.split(env.step(np.full(5, sign))[0]["observation"], 2)
            assert (np.abs(qd) <= planar.SPEED + 1e-9).all()
            assert (q >= planar.LOWER - 0.06).all()
            assert (q <= planar.UPPER + 0.06).all()
        assert np.abs(q[0]) == pytest.approx(0.55, abs=0.03)


def test_options_out_of_range_are_named() -> None:
    with pytest.raises(ValueError, match=r"start_noise must be between 0 and 0\.25 rad, got 1\.0"):
        make(start_noise=1.0)
    with pytest.raises(ValueError, match="success_threshold must be positive"):
        make(success_threshold=0.0)
    with pytest.raises(LookupError, match="did you mean 'qpos'"):
        make().reset(options={"qpo": planar.START})


def test_the_camera_sees_both_arms() -> None:
    env = make(render_mode="rgb_array", width=96, height=96)
    env.reset(seed=0)
    try:
        image = env.render().astype(int)
    except GraphicsError as error:
        no_gl(str(error))
    red, blue = image[..., 0] - image[..., 2] > 60, image[..., 2] - image[..., 0] > 60
    assert red[:, 48:].sum() > 30
    assert blue[:, :48].sum() > 30
    env.close()
