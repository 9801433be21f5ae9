"""The parts of motion imitation, each against a case worked out by hand or an independent computation."""

from __future__ import annotations

from dataclasses import astuple, replace

import gymnasium
import mujoco
import numpy as np
import pytest

from bunraku.envs.imitation import control, metrics, noise, observations, pushes, rewards, terminations
from bunraku.envs.imitation.key_points import KEY_POINTS
from bunraku.envs.imitation.reference import ReferenceLibrary, load_clips, resample
from bunraku.envs.imitation.sampling import AdaptiveSampler, draw_uniform
from bunraku.envs.imitation.start import StartNoise, noisy_start
from bunraku.envs.imitation.targets import anchor_relative, in_anchor_frame, two_columns, yaw_only
from bunraku.errors import BunrakuError
from bunraku.geometry import from_rotvec, multiply, normalize, rotate, to_matrix
from bunraku.robots.h1 import ROBOT
from bunraku.robots.unitree_h1 import ROBOT as UNITREE

RNG = np.random.default_rng(0)


def random_quats(*shape: int) -> np.ndarray:
    return normalize(RNG.normal(size=(*shape, 4)))


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return ROBOT.load(root="free").compile()


def test_heading_and_way_are_forgiven_and_height_is_not() -> None:
    pos, quat = RNG.normal(size=(5, 4, 3)), random_quats(5, 4)
    turn, shift = from_rotvec(np.array([0.0, 0.0, 1.1])), np.array([2.0, -1.0, 0.3])
    moved_pos, moved_quat = rotate(turn, pos) + shift, multiply(turn, quat)
    got_pos, got_quat = anchor_relative(pos, quat, pos[:, 0], quat[:, 0], moved_pos[:, 0], moved_quat[:, 0])
    np.testing.assert_allclose(got_pos, moved_pos - [0.0, 0.0, 0.3], atol=1e-12)
    np.testing.assert_allclose(to_matrix(got_quat), to_matrix(moved_quat), atol=1e-12)


def test_a_turn_upside_down_has_no_heading() -> None:
    assert yaw_only(np.array([0.0, 1.0, 0.0, 0.0])).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_two_columns_are_those_of_the_matrix_and_the_anchor_frame_undoes_the_anchor() -> None:
    quat, anchor, pos = random_quats(6), random_quats(1)[0], RNG.normal(size=(6, 3))
    np.testing.assert_allclose(
        two_columns(quat), np.concatenate([to_matrix(quat)[..., 0], to_matrix(quat)[..., 1]], -1), atol=1e-12
    )
    place = np.array([1.0, 2.0, 3.0])
    local, turned = in_anchor_frame(place + rotate(anchor, pos), multiply(anchor, quat), place, anchor)
    np.testing.assert_allclose(local, pos, atol=1e-12)
    np.testing.assert_allclose(to_matrix(turned), to_matrix(quat), atol=1e-12)


@pytest.mark.parametrize(
    "term",
    [
        rewards.anchor_position,
        rewards.body_position,
        rewards.body_linear_velocity,
        rewards.body_angular_velocity,
    ],
)
def test_a_term_of_vectors_is_one_without_error_and_one_over_e_at_its_width(term: object) -> None:
    a = np.zeros((2, 3, 3)) if term is not rewards.anchor_position else np.zeros((2, 3))
    b = a + [0.0, 0.3, 0.0]
    assert term(a, a, 0.3).tolist() == [1.0, 1.0]  # type: ignore[operator]
    np.testing.assert_allclose(term(a, b, 0.3), np.exp(-1.0))  # type: ignore[operator]


def test_a_term_of_orientations_takes_the_angle_whatever_the_sign_of_the_quaternion() -> None:
    a = random_quats(2, 3)
    b = -multiply(a, from_rotvec(np.array([0.4, 0.0, 0.0])))
    np.testing.assert_allclose(rewards.body_orientation(a, b, 0.4), np.exp(-1.0))
    np.testing.assert_allclose(rewards.anchor_orientation(a[:, 0], b[:, 0], 0.4), np.exp(-1.0))


def test_penalties_by_hand() -> None:
    assert rewards.action_rate(np.array([1.0, 2.0]), np.array([0.0, 4.0])) == 5.0
    assert rewards.limit_overshoot(np.array([-2.0, 0.5, 3.0]), -np.ones(3), np.ones(3)) == 3.0
    assert rewards.undesired_contacts(np.array(1.0), np.array(5.0), np.array([2.0, 2.0])) == 2.0


def test_terminations_by_hand() -> None:
    up, down = np.array([1.0, 0, 0, 0]), np.array([0.0, 1.0, 0, 0])
    assert terminations.vertical(up) == -1.0
    assert terminations.vertical(down) == 1.0
    assert terminations.anchor_tilted(up, from_rotvec(np.array([0.0, 1.5, 0.0])), 0.8)
    assert not terminations.anchor_tilted(up, from_rotvec(np.array([0.0, 1.2, 3.0])), 0.8)
    here, low = np.array([5.0, 5.0, 1.0]), np.array([0.0, 0.0, 0.7])
    assert terminations.anchor_height_lost(here, low, 0.25)
    assert not terminations.anchor_height_lost(here, low, 0.35)
    assert terminations.end_effector_lost(np.stack([here, here]), np.stack([here, low]), 0.25)


def test_a_reference_s_velocities_are_the_derivatives_of_its_poses_and_none_crosses_clips(
    model: mujoco.MjModel,
) -> None:
    walk = load_clips(None, ROBOT)["walk"]
    far = replace(walk, qpos=walk.qpos + np.r_[50.0, np.zeros(walk.qpos.shape[1] - 1)])
    library = ReferenceLibrary({"a": walk, "b": far}, ROBOT, model, 50.0)
    assert np.abs(library.qvel).max() < 10.0
    data, at = mujoco.MjData(model), 200
    step = np.zeros(model.nv)
    mujoco.mj_differentiatePos(model, step, 0.04, library.qpos[at - 1], library.qpos[at + 1])
    np.testing.assert_allclose(library.qvel[at], step, atol=0.02)
    data.qpos[:] = library.qpos[at]
    mujoco.mj_kinematics(model, data)
    np.testing.assert_allclose(
        library.points.pos[at, KEY_POINTS.index("head")], data.body("head").xpos, atol=1e-9
    )
    clips, frames = np.array([0, 0, 1]), np.array([-3, 10_000, 10_000])
    assert library.index(clips, frames).tolist() == [0, len(walk) - 1, 2 * len(walk) - 1]


def test_joints_are_matched_by_name_and_other_frame_rates_resampled(model: mujoco.MjModel) -> None:
    walk = load_clips(None, ROBOT)["walk"]
    order = [*range(7), *reversed(range(7, 35))]
    mixed = replace(walk, qpos=walk.qpos[:, order], joint_names=walk.joint_names[::-1])
    a, b = (ReferenceLibrary({"w": w}, ROBOT, model, 50.0) for w in (walk, mixed))
    np.testing.assert_array_equal(a.qpos, b.qpos)
    half = resample(walk, 25.0)
    np.testing.assert_allclose(half.qpos, walk.qpos[::2], atol=1e-9)


def test_clips_that_cannot_be_followed_are_refused() -> None:
    walk = load_clips(None, ROBOT)["walk"]
    with pytest.raises(BunrakuError, match="not of 'unitree_h1'"):
        load_clips(walk, UNITREE)
    with pytest.raises(BunrakuError, match="fixed root"):
        load_clips(replace(walk, qpos=walk.dof), ROBOT)
    with pytest.raises(BunrakuError, match=r"at least 0.5 s"):
        load_clips(replace(walk, qpos=walk.qpos[:10]), ROBOT)


def test_a_start_is_within_its_noise_and_joints_within_their_limits() -> None:
    qpos = np.r_[0.0, 0.0, 1.0, 1.0, np.zeros(3 + 5)]
    low, high = -0.05 * np.ones(5), 0.05 * np.ones(5)
    for seed in range(50):
        q, v = noisy_start(qpos, np.zeros(11), np.random.default_rng(seed), StartNoise(), low, high)
        assert (np.abs(q[:3] - qpos[:3]) <= StartNoise().position).all()
        assert np.abs(q[7:]).max() <= 0.05
        assert (np.abs(v[:3]) <= StartNoise().linear_velocity).all()
        assert v[6:].tolist() == [0.0] * 5
    assert not any(np.any(x) for x in astuple(StartNoise().times(0.0)))


def test_failures_accumulate_and_draw_starts_towards_them() -> None:
    sampler = AdaptiveSampler(np.array([100, 300]), 50)
    one = AdaptiveSampler(np.array([100, 300]), 50)
    sampler.record(np.array([1, 1]), np.array([299, 299]))
    one.record(np.array([1]), np.array([299]))
    assert sampler.failures[-1] > 1.9 * one.failures[-1]
    for _ in range(500):
        sampler.record(np.array([1]), np.array([299]))
    drawn = [sampler.draw(np.random.default_rng(k)) for k in range(100)]
    assert sum(clip == 1 and frame >= 250 for clip, frame in drawn) > 70
    assert sampler.report()["entropy"] < 0.6


def test_uniform_drawing_reaches_every_clip_and_never_a_last_frame() -> None:
    drawn = {draw_uniform(np.array([3, 2]), np.random.default_rng(k)) for k in range(100)}
    assert drawn == {(0, 0), (0, 1), (1, 0)}


def test_random_numbers_follow_from_key_and_counter_alone() -> None:
    keys, counters = np.array([5.0, 6.0]), np.array([1.0, 1.0])
    both = noise.uniform(keys, counters, 1, 1000)
    assert both[0].tobytes() == noise.uniform(np.array(5.0), np.array(1.0), 1, 1000).tobytes()
    assert abs(np.corrcoef(both)[0, 1]) < 0.1
    assert abs(both.mean() - 0.5) < 0.03
    assert 0.0 <= both.min() < both.max() < 1.0


def test_a_push_lasts_a_tenth_of_a_second_and_comes_every_one_to_three() -> None:
    key, count = np.array(7.0), np.array(0.0)
    timer, on = pushes.wait(key, count), []
    for _ in range(2000):
        count, timer, pushing = pushes.advance(key, count, timer, 0.02)
        on.append(bool(pushing))
    starts = np.flatnonzero(np.diff(np.array(on, dtype=int)) == 1)
    ends = np.flatnonzero(np.diff(np.array(on, dtype=int)) == -1)
    assert set((ends - starts[: len(ends)]).tolist()) == {5}
    assert 0.9 < np.diff(starts).min() * 0.02 < np.diff(starts).max() * 0.02 < 3.3


def test_gains_follow_the_armature_and_an_action_asks_for_a_quarter_of_the_torque() -> None:
    stiffness, damping = control.gains(ROBOT)
    knee = ROBOT.joints.index("left_knee")
    assert stiffness[knee] == pytest.approx(0.0045 * (2 * np.pi * 10) ** 2)
    assert damping[knee] == pytest.approx(4 * 0.0045 * 2 * np.pi * 10)
    scale = control.action_scale(np.array(ROBOT.torque_limit), stiffness)
    np.testing.assert_allclose(scale * stiffness, 0.25 * np.array(ROBOT.torque_limit))
    assert control.gains(UNITREE)[0][UNITREE.joints.index("left_ankle_joint")] == 40.0


def test_metrics_by_hand_and_the_sizes_of_observations() -> None:
    a, b = np.zeros((2, 3)), np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 0.0]])
    assert metrics.key_point_error(a, b, 0.5) == 5.0
    assert metrics.root_drift(a[0], b[0], 0.5) == 10.0
    assert metrics.joint_error(np.array([1.0, 2.0]), np.array([0.0, 2.0])) == 0.5
    assert metrics.share_tracked(np.array(5.0), np.array(10.0), np.array(21.0)) == 0.5
    for robot, size in (("h1", 155), ("unitree_h1", 110)):
        env = gymnasium.make("bunraku/H1Imitation-v0", robot=robot)
        assert env.observation_space["observation"].shape == (size,)  # type: ignore[index]
        assert len(observations.ObservationNoise().widths(env.action_space.shape[0], 1.0)) == size  # type: ignore[index]
        env.close()


def test_following_the_joints_alone_stays_up_for_some_frames_and_falls_then() -> None:
    env = gymnasium.make("bunraku/H1Imitation-v0", start_noise=0.0)
    env.reset(seed=0, options={"frame": 0})
    for steps in range(1, 500):
        _, reward, terminated, _, info = env.step(np.zeros(env.action_space.shape, np.float32))  # type: ignore[arg-type]
        if steps == 20:
            assert reward > 3.5
        if terminated:
            break
    assert 40 < steps < 200
    assert info["fell"]
    assert not info["is_success"]
    env.close()
