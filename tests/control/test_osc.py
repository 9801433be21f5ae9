"""Operational-space control: dynamics against MuJoCo's, what the formulas promise, limits, and contact."""

from __future__ import annotations

from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bunraku.control.dynamics import ArmDynamics
from bunraku.control.hierarchy import InfeasibleError, Level, Limits, solve_levels
from bunraku.control.ik import quat_error_matrix
from bunraku.control.osc import OperationalSpace, null_space
from bunraku.envs.tasks import panda_reach
from bunraku.geometry import Array, Pose, angle_between, from_rotvec, multiply
from bunraku.robots.panda import ROBOT

pytest.importorskip("daqp", reason="control under limits needs daqp")

HOME, LIMIT, SPEED = np.array(ROBOT.home), np.array(ROBOT.force_limit), np.array(ROBOT.speed_limit)
LOWER, UPPER = ArmDynamics(ROBOT).lower, ArmDynamics(ROBOT).upper
near_home = arrays(np.float64, 7, elements=st.floats(-0.5, 0.5)).map(lambda offset: HOME + offset)
unit = arrays(np.float64, 7, elements=st.floats(-1.0, 1.0))


def make(**options: Any) -> Any:
    """Return PandaReach with torques, bare."""
    options = {"control_mode": "osc", "max_episode_steps": -1, **options}
    return gymnasium.make("bunraku/PandaReach-v0", disable_env_checker=True, **options).unwrapped


ENV = make()


def real(q: Array, qd: Array) -> tuple[mujoco.MjModel, mujoco.MjData, Array, Array]:
    """Return the environment's own model at a state, with its inertia and tool Jacobian."""
    model, data = ENV.model, mujoco.MjData(ENV.model)
    data.qpos[:], data.qvel[:] = q, qd
    mujoco.mj_forward(model, data)
    mass, jacobian = np.zeros((7, 7)), np.zeros((6, 7))
    mujoco.mj_fullM(model, data, mass)
    mujoco.mj_jacSite(model, data, jacobian[:3], jacobian[3:], model.site("right_tool").id)
    return model, data, mass, jacobian


# Dynamics.


@given(near_home, unit)
@settings(max_examples=40)
def test_dynamics_are_those_of_the_environment_s_own_model(q: Array, qd: Array) -> None:
    dynamics = ArmDynamics(ROBOT)
    dynamics.update(q, qd)
    _, data, mass, jacobian = real(q, qd)
    np.testing.assert_allclose(dynamics.mass, mass, atol=1e-12)
    np.testing.assert_allclose(dynamics.bias, data.qfrc_bias - data.qfrc_passive, atol=1e-12)
    np.testing.assert_allclose(dynamics.jacobian, jacobian, atol=1e-12)
    ahead, behind = (real(q + sign * 1e-6 * qd, qd)[3] for sign in (1.0, -1.0))
    np.testing.assert_allclose(dynamics.drift, (ahead - behind) @ qd / 2e-6, atol=1e-7)


def test_many_arms_in_several_scratch_models_have_the_bits_of_one() -> None:
    rng = np.random.default_rng(0)
    q, qd = HOME + rng.uniform(-0.5, 0.5, (70, 7)), rng.normal(size=(70, 7))
    many, one = ArmDynamics(ROBOT, nsim=70), ArmDynamics(ROBOT)
    many.update(q, qd)
    for i in (0, 63, 64, 69):
        one.update(q[i], qd[i])
        for name in ("mass", "bias", "jacobian", "drift", "pos", "quat"):
            assert getattr(many, name)[i].tobytes() == getattr(one, name).tobytes(), name


@given(near_home, unit)
@settings(max_examples=40)
def test_a_null_space_torque_does_not_accelerate_the_tool_of_the_real_model(q: Array, effort: Array) -> None:
    """The simulator itself is asked: acceleration of the tool's sensor with and without the torque."""
    model, data, mass, jacobian = real(q, np.zeros(7))
    raw = LIMIT * effort
    data.qfrc_applied[:] = null_space(mass, jacobian) @ raw
    before = data.qacc.copy()
    mujoco.mj_forward(model, data)
    leaked = jacobian @ (data.qacc - before)
    data.qfrc_applied[:] = raw
    mujoco.mj_forward(model, data)
    unprojected = jacobian @ (data.qacc - before)
    assert np.linalg.norm(leaked) <= 1e-9 * max(np.linalg.norm(unprojected), 1e-3)


@given(near_home, unit, unit)
@settings(max_examples=30)
def test_the_torque_gives_the_tool_the_acceleration_of_its_spring_and_damper(
    q: Array, qd: Array, away: Array
) -> None:
    control = OperationalSpace(ArmDynamics(ROBOT), dt=0.002)
    model, data, mass, jacobian = real(q, 0.2 * qd)
    site = model.site("right_tool").id
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, data.site_xmat[site])
    target = Pose(data.site_xpos[site] + 0.01 * away[:3], multiply(from_rotvec(0.02 * away[3:6]), quat))
    velocity = np.zeros(6)
    torque = control.torque(q, 0.2 * qd, target.pos, quat_error_matrix(target.quat), velocity, q)
    if control.limited:
        return
    data.qfrc_applied[:] = torque
    mujoco.mj_forward(model, data)
    inertia = np.linalg.inv(jacobian @ np.linalg.inv(mass) @ jacobian.T)
    damping = 2.0 * np.sqrt(control.stiffness * np.diag(inertia))
    wrench = control.stiffness * control.error - damping * (jacobian @ (0.2 * qd))
    acceleration = jacobian @ data.qacc + control.dynamics.drift
    np.testing.assert_allclose(inertia @ acceleration, wrench, rtol=1e-6, atol=1e-6)


# Limits.


@given(
    arrays(np.float64, 7, elements=st.floats(0.0, 1.0)),
    unit,
    arrays(np.float64, 3, elements=st.floats(-1.5, 1.5)),
    arrays(np.float64, 3, elements=st.floats(-3.0, 3.0)),
)
@settings(max_examples=60)
def test_torques_never_exceed_their_limits_whatever_state_and_target(
    share: Array, speed: Array, pos: Array, turn: Array
) -> None:
    control = OperationalSpace(ArmDynamics(ROBOT), dt=0.002)
    q = LOWER + share * (UPPER - LOWER)
    torque = control.torque(
        q, 2.0 * SPEED * speed, pos, quat_error_matrix(from_rotvec(turn)), np.zeros(6), HOME
    )
    assert np.isfinite(torque).all()
    assert (np.abs(torque) <= LIMIT).all()


@given(st.integers(0, 2**31))
@settings(max_examples=6, deadline=None)
def test_joint_ranges_speeds_and_torques_are_never_exceeded_whatever_the_actions(seed: int) -> None:
    env = make()
    env.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)  # nothing else pushes the arm
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    limited = 0
    for k in range(80):
        if k % 10 == 0:
            action = rng.choice([-1.0, 0.0, 1.0], 6)
        for tick in range(env.task.rates.ticks):
            if tick == 0:
                env.task.act(action)
            env.task.tick(tick)
            env.sim.step(1, last=False)
            q, qd = env.data.qpos, env.data.qvel
            assert (q >= LOWER).all()
            assert (q <= UPPER).all()
            assert (np.abs(qd) <= SPEED).all()
            assert (np.abs(env.data.ctrl) <= LIMIT).all()
            limited += bool(env.task.arms()[0].osc.limited)
    assert limited > 0


# The hierarchy of programs.


def loose(n: int, bound: float = 1e6) -> Limits:
    return Limits([f"x{i}" for i in range(n)], np.eye(n), np.full(n, -bound), np.full(n, bound))


rounded = st.floats(-1, 1).map(lambda value: round(value, 2))


@given(arrays(np.float64, (2, 5), elements=rounded), arrays(np.float64, (5, 5), elements=rounded))
@settings(max_examples=60)
def test_a_lower_level_never_spoils_a_higher_one(first: Array, second: Array) -> None:
    first = first + np.eye(2, 5) * 3.0
    wanted = np.array([1.0, -2.0])
    x = solve_levels([Level("a", first, wanted), Level("b", second, np.ones(5) * 7.0)], loose(5))
    np.testing.assert_allclose(first @ x, wanted, atol=1e-6)
    # among all that keep the first, the second is served as well as can be
    particular = np.linalg.pinv(first) @ wanted
    basis = np.linalg.svd(first)[2][2:].T
    best = np.linalg.lstsq(second @ basis, np.ones(5) * 7.0 - second @ particular, rcond=1e-5)
    ours = np.linalg.norm(second @ x - 7.0)
    theirs = np.linalg.norm(second @ (particular + basis @ best[0]) - 7.0)
    assert ours <= theirs * (1.0 + 1e-4) + 1e-4


@given(
    arrays(np.float64, (3, 4), elements=st.floats(-2, 2)), arrays(np.float64, 3, elements=st.floats(-9, 9))
)
@settings(max_examples=60)
def test_limits_hold_whatever_is_asked_for(matrix: Array, wanted: Array) -> None:
    limits = loose(4, 0.5)
    x = solve_levels([Level("a", matrix[:2], wanted[:2]), Level("b", matrix[2:], wanted[2:])], limits)
    assert (np.abs(x) <= 0.5 + 2e-5).all()  # the tolerance that the module states


def test_inconsistent_bounds_are_named_with_their_time() -> None:
    limits = Limits(["torque of elbow"], np.eye(1), np.array([2.0]), np.array([1.0]))
    with pytest.raises(
        InfeasibleError, match=r"limits of torque of elbow are inconsistent at t = 1\.500 s: lower 2, upper 1"
    ):
        solve_levels([Level("a", np.eye(1), np.zeros(1))], limits, when=1.5)


def test_limits_that_contradict_one_another_are_named_with_their_time() -> None:
    limits = Limits(["push", "pull"], np.array([[1.0], [1.0]]), np.array([2.0, -1.0]), np.array([3.0, 1.0]))
    with pytest.raises(
        InfeasibleError, match=r"cannot be kept together at t = 0\.250 s: (push|pull) would have to be"
    ):
        solve_levels([Level("a", np.eye(1), np.zeros(1))], limits, when=0.25)
    soft = Limits(limits.names, limits.matrix, limits.lower, limits.upper, np.array([False, True]))
    x = solve_levels([Level("a", np.eye(1), np.zeros(1))], soft)
    assert x[0] == pytest.approx(2.0, abs=1e-6)


# The environment.


def errors(env: Any, wanted: list[Pose]) -> tuple[float, float]:
    """Drive the arm along poses; return the largest errors to its target [m], [rad]."""
    arm = env.task.arms()[0]
    distance, angle = [], []
    for pose in wanted:
        env.step(arm.action_towards(pose, 1.0))
        distance.append(np.linalg.norm(arm.tool().pos - arm.target().pos))
        angle.append(float(angle_between(arm.tool().quat, arm.target().quat)))
    return max(distance), max(angle)


def path(start: Pose, steps: int) -> list[Pose]:
    poses = []
    for k in range(steps):
        phase, ramp = 2.0 * np.pi * k / 100.0, min(1.0, k / 50.0)
        offset = ramp * np.array([0.05 * np.sin(phase), 0.1 * np.sin(phase), 0.05 * np.sin(2 * phase)])
        turn = from_rotvec(ramp * 0.2 * np.array([np.sin(phase), 0.0, np.sin(2 * phase)]))
        poses.append(Pose(start.pos + offset, multiply(turn, start.quat)))
    return poses


def test_in_free_motion_the_tool_follows_as_closely_as_with_position_actuators() -> None:
    found = {}
    for mode in ("osc", "ee_delta_pose"):
        env = make(control_mode=mode)
        env.reset(seed=3)
        found[mode] = errors(env, path(env.task.arms()[0].target(), 150))
    assert found["osc"][0] < 2e-3
    assert found["osc"][1] < 1e-2
    assert found["osc"][0] < 2.0 * found["ee_delta_pose"][0]


@pytest.mark.parametrize("softness", [300.0, 1000.0])
def test_against_a_wall_the_tool_pushes_with_its_stiffness_times_the_depth(
    monkeypatch: pytest.MonkeyPatch, softness: float
) -> None:
    push_osc = push_into_wall(monkeypatch, control_mode="osc", stiffness=[softness, 3e3, 3e3, 200, 200, 200])
    assert push_osc == pytest.approx(1.0, abs=0.15)


def test_position_actuators_push_ten_times_as_hard(monkeypatch: pytest.MonkeyPatch) -> None:
    assert push_into_wall(monkeypatch, control_mode="ee_delta_pose") * 1000.0 > 3000.0


def push_into_wall(monkeypatch: pytest.MonkeyPatch, **options: Any) -> float:
    """Drive the target 3 cm into a wall; return the force over the x-stiffness (or 1000 N/m) times the depth."""
    scene = panda_reach.table_scene

    def with_wall(*args: Any) -> mujoco.MjSpec:
        spec = scene(*args)
        spec.worldbody.add_geom(
            name="wall",
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[0.02, 0.5, 0.5],
            pos=[0.62, 0.0, 0.4],
            friction=[0, 0, 0],
        )
        return spec

    monkeypatch.setattr(panda_reach, "table_scene", with_wall)
    env = make(control_freq=50.0, **options)
    env.reset(seed=0, options={"qpos": ROBOT.home})
    arm = env.task.arms()[0]
    target = Pose(np.array([0.62, 0.0, 0.35]), arm.target().quat)
    for _ in range(150):
        here = arm.target()
        step = np.clip(target.pos - here.pos, -0.004, 0.004)
        env.step(arm.action_towards(Pose(here.pos + step, target.quat), 1.0))
    force, buffer = 0.0, np.zeros(6)
    for i, contact in enumerate(env.data.contact):
        if "wall" in (env.model.geom(contact.geom1).name, env.model.geom(contact.geom2).name):
            mujoco.mj_contactForce(env.model, env.data, i, buffer)
            force += buffer[0]
    stiffness = options.get("stiffness", [1000.0])[0]
    return force / (stiffness * (arm.target().pos[0] - arm.tool().pos[0]))


def test_gains_belong_to_osc_and_are_six_numbers() -> None:
    with pytest.raises(ValueError, match="stiffness and damping_ratio are those of control_mode 'osc'"):
        make(control_mode="ee_delta_pose", stiffness=[1] * 6)
    with pytest.raises(ValueError, match="stiffness needs 6 numbers"):
        make(stiffness=[1, 2, 3])
    with pytest.raises(ValueError, match="damping_ratio must not be negative"):
        make(damping_ratio=[-1] * 6)


def test_many_arms_at_their_limits_have_the_bits_of_one() -> None:
    options = {"control_mode": "osc", "gripper": True}
    envs = gymnasium.make_vec("bunraku/PandaReach-v0", 5, vectorization_mode="vector_entry_point", **options)
    one = make(gripper=True)
    observation, _ = envs.reset(seed=3)
    single, _ = one.reset(seed=5)
    rng = np.random.default_rng(0)
    limited = 0
    for k in range(30):
        if k % 10 == 0:
            actions = rng.choice([-1.0, 1.0], (5, 7))
        observation, _single = envs.step(actions)[0], one.step(actions[2])[0]
        limited += int(np.sum(envs.unwrapped.task.arms()[0].osc.limited))  # type: ignore[attr-defined]
        for key, value in _single.items():
            assert observation[key][2].tobytes() == value.tobytes()
    assert limited > 10
    assert not np.array_equal(single["observation"], _single["observation"])
    envs.close()
