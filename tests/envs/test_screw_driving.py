"""Screw driving: the arm's motion, the contact that turns the screw, and what happens to those who do it badly."""

from __future__ import annotations

import re
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

import bunraku  # noqa: F401 - registers the environments
from bunraku.control.yaw_pitch_pitch import ReachError
from bunraku.envs import screw_scene, screw_workpiece
from bunraku.envs.screw_control import LINEAR_SPEED
from bunraku.envs.screw_expert import expert
from bunraku.envs.screw_observation import LAYOUT
from bunraku.errors import UnknownNameError
from bunraku.geometry import Pose, from_rotvec, multiply
from bunraku.robots.screw_arm import POSTURE_TIP, ROBOT, TIP_DROP, levelled, load
from bunraku.screw import figures
from bunraku.screw.timeline import timeline

ID = "bunraku/ScrewDriving-v0"


def make(**options: Any) -> Any:
    return gymnasium.make(ID, disable_env_checker=True, max_episode_steps=-1, **options).unwrapped


def make_vec(num_envs: int, **options: Any) -> Any:
    return gymnasium.make_vec(
        ID, num_envs, vectorization_mode="vector_entry_point", autoreset_mode="Disabled", **options
    )


class Bench:
    """The published scene, steered by force and place."""

    def __init__(self, reset: dict[str, Any] | None = None, **options: Any) -> None:
        self.env = make(randomize=False, **options)
        self.observation, self.info = self.env.reset(seed=0, options=reset)
        self.control = self.env.task.control
        self.top = self.see("screw_top")
        self.forces: list[float] = []

    def see(self, name: str) -> np.ndarray:
        return self.observation["observation"][LAYOUT[name]].copy()

    @property
    def apart(self) -> float:
        return float(np.arctan2(*self.see("recess_offset")[::-1])) / 4.0

    def step(self, move: Any, spin: float = 0.0) -> None:
        action = np.clip(np.append(move, spin), -1.0, 1.0)
        self.observation, _, _, _, self.info = self.env.step(action)

    def go(self, bit: Any, steps: int) -> None:
        """Move the bit's target to a place, turned to the recess."""
        for _ in range(steps):
            move = (bit - self.control.target_state[:3]) / (LINEAR_SPEED * 0.05)
            self.step(move, (-self.apart - self.see("bit_lead")[0]) / 0.25)

    def press(self, force: float, spin: float, steps: int, xy: Any = None) -> None:
        """Press with an axial force, following the screw as it sinks."""
        xy = self.top[:2] if xy is None else xy
        for _ in range(steps):
            sideways = (xy - self.control.target_state[:2]) / (LINEAR_SPEED * 0.05)
            inside = self.see("stage")[1:3].any()
            sinking = max(self.see("bit_speed")[0], 0.0) * self.env.task.pitch / (2 * np.pi) * 0.05 * inside
            down = -5e-5 * (force - self.see("force")[2]) - sinking
            self.step([*sideways, down / (LINEAR_SPEED * 0.05)], spin)
            self.forces.append(self.see("force")[2])

    def enter(self, aside: float = 0.0, force: float = 15.0) -> None:
        """Put the bit over the screw, `aside` of its axis, and press."""
        place = self.top + [0.0, aside, 0.0]
        self.go(place + [0.0, 0.0, 0.02], 40)
        self.go(place + [0.0, 0.0, 0.004], 10)
        self.press(force, 0.0, 40, place[:2])


# The arm.


def test_gains_are_those_that_the_joint_inertias_give() -> None:
    model = load().compile()
    data = mujoco.MjData(model)
    data.qpos[:] = levelled(POSTURE_TIP)
    mujoco.mj_forward(model, data)
    mass = np.zeros((5, 5))
    mujoco.mj_fullM(model, data, mass)
    speed, inertia = np.array([60.0] * 4 + [100.0]), np.diag(mass)
    assert np.allclose(ROBOT.stiffness, inertia * speed**2, rtol=0.01)
    assert np.allclose(ROBOT.damping, 2.0 * inertia * speed - ROBOT.joint_damping, rtol=0.01)


def test_free_motion_along_the_published_timeline_keeps_within_3_mm_and_rests_within_half_a_millimetre() -> (
    None
):
    env = make(randomize=False, control_freq=30.0)
    # nothing but the arm: the path leads through board and screw
    env.model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    env.reset(seed=0)
    control = env.task.control
    errors, tilts = [], []
    site = int(env.model.site("arm_tool").id)
    for wanted in timeline():
        place = wanted.tip - [0.0, 0.0, TIP_DROP]
        move = (place - control.target_state[:3]) * 30.0 / LINEAR_SPEED
        env.step(np.append(move, (wanted.turn - control.target_state[3]) * 30.0 / 5.0))
        errors.append(np.linalg.norm(env.data.site_xpos[site] - place))
        tilts.append(np.arccos(min(1.0, -env.data.site_xmat[site][8])))
    assert max(errors) < 0.003
    assert max(tilts) < np.radians(1.0)
    for _ in range(30):
        env.step(np.zeros(4))
    assert np.linalg.norm(env.data.site_xpos[site] - control.target_state[:3]) < 0.0005


def test_joint_targets_move_the_joints_too() -> None:
    env = make(control_mode="joint_delta")
    env.reset(seed=0)
    before = env.data.qpos[:5].copy()
    for _ in range(10):
        env.step(np.array([0.2, -0.1, 0.1, 0.0, 0.5]))
    for _ in range(10):
        env.step(np.zeros(5))
    moved = env.data.qpos[:5] - before
    assert np.allclose(moved, np.array([0.2, -0.1, 0.1, 0.0, 0.5]) * ROBOT.speed_limit * 0.5, atol=0.01)


# The expert.


def test_the_expert_drives_at_least_99_of_100_random_screws_from_the_observation_alone() -> None:
    envs = make_vec(100)
    observation, _ = envs.reset(seed=0)
    done = np.zeros(100, dtype=bool)
    for _ in range(110):
        observation, _, _, _, info = envs.step(expert(observation["observation"]))
        done |= info["is_success"]
    assert done.sum() >= 99
    assert np.median(info["max_axial_force"]) < 50.0
    envs.close()


def test_without_the_recess_the_expert_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but contact turns the screw."""
    monkeypatch.setattr(screw_workpiece, "add_recess", lambda spec, screw: None)
    envs = make_vec(8)
    observation, _ = envs.reset(seed=0)
    for _ in range(150):
        observation, _, _, _, info = envs.step(expert(observation["observation"]))
        assert not info["is_success"].any()
    assert (info["depth"] < 0.25 * figures.SCREW_SINK).all()
    envs.close()


def test_the_dense_reward_rises_with_the_work() -> None:
    env = make(reward_type="dense")
    observation, _ = env.reset(seed=3)
    rewards = []
    for _ in range(110):
        observation, reward, _, _, info = env.step(expert(observation["observation"]))
        rewards.append(reward)
        if info["is_success"]:
            break
    assert info["is_success"]
    assert rewards[0] < -0.7
    assert rewards[-1] == pytest.approx(0.0, abs=1e-9)
    assert np.mean(np.diff(rewards) >= -0.03) > 0.95


# Contact.


@pytest.mark.parametrize(("scale", "succeeds"), [(10.0, False), (0.1, False), (1.0, True)])
def test_nothing_explodes_with_gains_ten_times_too_high_or_too_low(scale: float, succeeds: bool) -> None:
    env = make(randomize=False)
    env.model.actuator_gainprm[:5, 0] *= scale
    env.model.actuator_biasprm[:5, 1:3] *= scale
    observation, _ = env.reset(seed=0)
    for _ in range(150):
        observation, _, _, _, info = env.step(expert(observation["observation"]))
        assert "unstable" not in info
        assert np.abs(env.data.qvel).max() < 100.0
        assert np.abs(env.data.qpos[5:7]).max() < 0.25
        if info["is_success"]:
            break
    assert info["is_success"] or not succeeds


def test_a_bit_at_rest_in_the_recess_penetrates_by_less_than_a_tenth_of_a_millimetre() -> None:
    bench = Bench()
    bench.enter(force=40.0)
    assert bench.see("stage")[1] == 1.0
    assert bench.see("force")[2] == pytest.approx(40.0, abs=2.0)
    assert bench.env.data.ncon > 0
    assert bench.env.data.contact.dist.min() > -0.0001
    assert np.abs(bench.env.data.qvel).max() < 0.01


def test_without_actuators_a_turning_bit_in_the_recess_only_loses_energy() -> None:
    bench = Bench()
    bench.enter()
    model, data = bench.env.model, bench.env.data
    model.actuator_gainprm[:5], model.actuator_biasprm[:5] = 0.0, 0.0
    model.opt.gravity[:] = 0.0
    data.qvel[4] = 8.0
    energies = []
    for _ in range(500):
        mujoco.mj_step(model, data)
        mujoco.mj_energyVel(model, data)
        mujoco.mj_energyPos(model, data)
        energies.append(data.energy.sum())
    assert max(energies) <= energies[0] * 1.01 + 1e-4
    assert energies[-1] < 0.2 * energies[0]


def test_the_depth_is_the_turn_times_the_pitch() -> None:
    for pitch in (0.016, 0.008):
        bench = Bench(pitch=pitch)
        bench.enter()
        bench.press(25.0, 1.0, 40)
        turn, depth = bench.see("screw_angle")[0], bench.see("screw_depth")[0]
        assert turn > 5.0
        assert depth == pytest.approx(turn * pitch / (2 * np.pi), abs=2e-4)


def test_friction_grows_with_depth_and_with_its_factor() -> None:
    def torque(turn: float, factor: float) -> float:
        bench = Bench(reset={"turn": turn, "friction": factor})
        bench.enter()
        bench.press(25.0, 0.8, 12)
        return -float(bench.see("torque")[2])

    shallow, deep, rough = torque(1.0, 1.0), torque(10.0, 1.0), torque(10.0, 1.3)
    # what nine radians of 0.45 N m per 15.7 add, and 0.3 times what the factor acts on
    assert deep - shallow == pytest.approx(0.45 * 9.0 / figures.SCREW_TURN, abs=0.04)
    assert rough - deep == pytest.approx(0.3 * (0.05 + 0.45 * 12.0 / figures.SCREW_TURN), abs=0.04)


def test_the_bit_cams_out_without_axial_force_and_stays_in_with_it() -> None:
    loose, firm = Bench(), Bench()
    for bench, force in ((loose, 0.0), (firm, 25.0)):
        bench.enter()
        assert bench.see("stage")[1] == 1.0
        bench.press(force, 1.0, 60)
    assert loose.see("stage")[0] == 1.0
    assert loose.see("tip_pos")[2] - loose.see("screw_top")[2] > -1e-3
    assert loose.see("screw_depth")[0] < 0.5 * firm.see("screw_depth")[0]
    assert firm.see("stage")[2:4].any()


@pytest.mark.parametrize(("aside", "engages"), [(0.0, True), (0.002, True), (0.004, False), (0.007, False)])
def test_the_bit_finds_the_recess_unless_it_is_too_far_aside(aside: float, engages: bool) -> None:
    bench = Bench()
    bench.enter(aside=aside)
    assert bool(bench.see("stage")[1]) is engages
    assert bench.see("force")[2] == pytest.approx(15.0, abs=1.0)
    if not engages:
        bench.press(15.0, 0.5, 60, bench.top[:2] + [0.0, aside])
        assert bench.see("screw_depth")[0] < 0.005


def test_a_screw_that_is_pushed_aside_as_its_thread_catches_is_crossed_and_jams() -> None:
    bench = Bench()
    bench.enter()
    bench.press(15.0, 0.0, 15, bench.top[:2] + [0.0, 0.004])
    bench.press(25.0, 1.0, 15, bench.top[:2] + [0.0, 0.004])
    assert bench.info["crossed"]
    bench.press(25.0, 1.0, 100)
    assert bench.see("crossed")[0] == 1.0
    assert bench.see("screw_depth")[0] < 0.5 * figures.SCREW_SINK


def test_a_crossed_start_is_reported_spoils_success_and_is_undone_by_turning_back() -> None:
    bench = Bench(reset={"crossed": 1.0})
    assert bench.info["crossed"]
    bench.enter()
    bench.press(25.0, -1.0, 10)
    assert not bench.info["crossed"]
    bench.press(25.0, 1.0, 40)
    assert not bench.info["crossed"]
    assert bench.see("screw_depth")[0] > 0.015


def test_a_bit_that_slips_under_force_strips_the_recess() -> None:
    bench = Bench()
    bench.enter(aside=0.007, force=25.0)
    assert not bench.info["stripped"]
    bench.press(25.0, 1.0, 120, bench.top[:2] + [0.0, 0.007])
    assert bench.info["stripped"]
    assert bench.see("stripped")[0] == 1.0


def test_success_is_refused_to_who_has_pressed_too_hard() -> None:
    results = []
    for limit in (80.0, 25.0):
        env = make(randomize=False, force_limit=limit)
        observation, _ = env.reset(seed=0)
        succeeded = False
        for _ in range(110):
            observation, _, _, _, info = env.step(expert(observation["observation"]))
            succeeded |= info["is_success"]
        assert info["depth"] >= figures.SCREW_SINK
        results.append(succeeded)
    assert results == [True, False]


# State.


def test_states_in_the_middle_of_the_work_go_on_with_the_same_bits() -> None:
    env, other = make(), make()
    observation, _ = env.reset(seed=5)
    other.reset(seed=1)
    actions, states, seen = [], [env.state], [observation["observation"]]
    for _ in range(90):
        actions.append(expert(seen[-1]))
        observation, *_ = env.step(actions[-1])
        states.append(env.state)
        seen.append(observation["observation"])
    for start in (12, 40, 75):
        other.set_state(states[start])
        for k in range(start, 90):
            observation, *_ = other.step(actions[k])
            assert np.array_equal(observation["observation"], seen[k + 1])
            assert np.array_equal(other.state, states[k + 1])


def test_many_simulations_do_the_work_with_the_bits_of_a_single_one() -> None:
    envs, single = make_vec(3), make()
    observation, _ = envs.reset(seed=20)
    alone, _ = single.reset(seed=22)
    for _ in range(60):
        actions = expert(observation["observation"])
        observation = envs.step(actions)[0]
        alone = single.step(actions[2])[0]
        assert np.array_equal(observation["observation"][2], alone["observation"])
        assert np.array_equal(envs.state[2], single.state)
    assert alone["observation"][LAYOUT["screw_depth"]][0] > 0.01
    envs.close()


def test_the_published_scene_is_the_same_every_time() -> None:
    env = make(randomize=False)
    first, second = (env.reset(seed=seed)[0]["observation"] for seed in (0, 1))
    assert np.array_equal(first, second)
    assert np.allclose(first[LAYOUT["screw_top"]], [*figures.SCREW_XY, 0.043], atol=1e-9)
    assert np.allclose(first[LAYOUT["tip_pos"]], np.array(figures.HOME) - [0, 0, TIP_DROP], atol=1e-9)


def test_random_screws_fill_the_disc_and_no_more() -> None:
    envs = make_vec(200)
    tops = envs.reset(seed=0)[0]["observation"][:, LAYOUT["screw_top"]]
    radii = np.hypot(tops[:, 0] - 0.2, tops[:, 1])
    assert radii.max() <= 0.05
    assert np.mean(radii < 0.05 / np.sqrt(2)) == pytest.approx(0.5, abs=0.1)
    envs.close()


# Operators.


def test_the_tool_s_axis_is_locked() -> None:
    bench = Bench()
    arm = bench.env.task.arms()[0]
    target = arm.target()
    tilted = multiply(from_rotvec(np.array([0.4, -0.3, 0.0])), target.quat)
    action = arm.action_towards(Pose(target.pos, tilted), 0.0)
    assert np.abs(action[:3]).max() == 0.0
    assert abs(action[3]) < 0.3  # a tilt about two axes turns a little
    turned = multiply(from_rotvec(np.array([0.0, 0.0, 0.2])), target.quat)
    assert arm.action_towards(Pose(target.pos, turned), 0.0)[3] == pytest.approx(0.2 / 0.25)
    with pytest.raises(ValueError, match="use tip_spin"):
        make(control_mode="joint_delta").task.arms()[0].action_towards(target, 0.0)


# Mistakes.


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pitch": 0}, ValueError, "pitch must be positive, got 0"),
        ({"pitch": 0.5}, ValueError, "pitch must be between 0.004 and 0.04 m per turn, got 0.5"),
        ({"screw_xy": (0.9, 0.0)}, ReachError, "screw_xy (0.9, 0) m is out of the arm's reach"),
        ({"screw_xy": (0.05, 0.0)}, ReachError, "screw_xy (0.05, 0) m is out of the arm's reach"),
        ({"screw_xy": (0.2, 0.2)}, ReachError, "choose a place within 0.05 m of (0.2, 0)"),
        ({"screw_xy": (0.2,)}, ValueError, "option 'screw_xy' needs shape (2,)"),
        ({"friction": -1.0}, ValueError, "friction must be positive, got -1.0"),
        ({"force_limit": 0.0}, ValueError, "force_limit must be positive, got 0.0"),
        ({"control_mode": "tip_spun"}, UnknownNameError, "did you mean 'tip_spin'?"),
        ({"reward_type": "spars"}, UnknownNameError, "did you mean 'sparse'?"),
        ({"control_freq": 0}, ValueError, "control_freq must be between 1 and 500 Hz, got 0"),
    ],
)
def test_a_wrong_option_is_named_with_what_was_expected(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        make(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"screw": [0.2, 0.0]}, "unknown reset option 'screw'"),
        ({"screw_xy": [0.9, 0.0]}, "out of the arm's reach"),
        ({"friction": 0.0}, "friction must be positive"),
        ({"turn": "twice"}, "option 'turn' needs numbers"),
        ({"screw_yaw": [0.0, 1.0]}, "option 'screw_yaw' needs shape"),
    ],
)
def test_a_wrong_reset_option_is_named_with_what_was_expected(options: dict[str, Any], message: str) -> None:
    env = make()
    with pytest.raises((ValueError, LookupError), match=re.escape(message)):
        env.reset(seed=0, options=options)


def test_the_cameras_see_the_scene() -> None:
    model = screw_scene.screw_scene(0.002, 0.016).compile()
    assert {model.camera(i).name for i in range(model.ncam)} == {"front", "side", "wrist"}
