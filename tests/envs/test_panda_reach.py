"""Panda reach with one arm and with two: goals, control, gripper, rates, rewards, hindsight replay and images."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

from bunraku.control.kinematics import kinematic_model
from bunraku.control.solve import PoseSolver
from bunraku.envs.arm_control import LINEAR_SPEED
from bunraku.errors import BunrakuError
from bunraku.geometry import Array, Pose
from bunraku.gl import GraphicsError
from bunraku.robots.panda import ROBOT
from tests.gl import no_gl

IDS = ["bunraku/PandaReach-v0", "bunraku/DualPandaReach-v0"]
DOWN = np.array([0.0, 1.0, 0.0, 0.0])
CAMERAS = {
    IDS[0]: ["front", "side", "wrist"],
    IDS[1]: ["front", "side", "left_wrist", "right_wrist"],
}
both = pytest.mark.parametrize("name", IDS)


def make(name: str, **kwargs: Any) -> Any:
    """Return the environment bare, so that its own members can be reached."""
    return gymnasium.make(name, disable_env_checker=True, **kwargs).unwrapped


# Goals.


@both
@pytest.mark.parametrize("goal_orientation", [False, True])
def test_every_goal_is_in_reach_above_the_table_and_clear_of_the_tool(
    name: str, goal_orientation: bool
) -> None:
    env = make(name, goal_orientation=goal_orientation)
    places = env.task.places
    solvers = [PoseSolver(kinematic_model(ROBOT, place.base_pos), ROBOT.dof) for place in places]
    goals = []
    for seed in range(100 if goal_orientation else 200):
        observation, info = env.reset(seed=seed)
        assert not info["is_success"]
        tools = observation["achieved_goal"].reshape(len(places), -1)
        for solver, tool, goal in zip(
            solvers, tools, observation["desired_goal"].reshape(tools.shape), strict=True
        ):
            assert goal[2] >= 0.05
            assert np.linalg.norm(goal[:3] - tool[:3]) >= 0.05
            missing = solve(solver, Pose(goal[:3], goal[3:] if goal_orientation else DOWN))
            assert missing[0] < 1e-3, (seed, goal)
            assert missing[1] < 1e-2, (seed, goal)
            goals.append(goal[:3])
    assert (np.ptp(goals, axis=0) > 0.25).all()  # they fill the workspace


def solve(solver: PoseSolver, wanted: Pose) -> tuple[float, float]:
    """Return how far from a pose [m, rad] an arm that sets out from home ends."""
    q = np.array(ROBOT.home)
    for _ in range(40):
        result = solver.solve(q, wanted)
        q = result.q
        if result.position_error < 1e-4 and result.rotation_error < 1e-3:
            break
    return result.position_error, result.rotation_error


@both
def test_goals_and_joint_angles_of_the_user_s_choice_are_where_the_episode_starts(name: str) -> None:
    env = make(name, goal_orientation=True)
    arms = len(env.task.places)
    goal = np.arange(3.0 * arms).reshape(arms, 3) / 10.0
    qpos = np.array([ROBOT.home] * arms) + 0.1
    options = {"goal": goal, "goal_quat": [[0.0, 0.0, 2.0, 0.0]] * arms, "qpos": qpos}
    observation, _ = env.reset(seed=0, options=options)
    desired = observation["desired_goal"].reshape(arms, 7)
    np.testing.assert_array_equal(desired[:, :3], goal)
    np.testing.assert_array_equal(desired[:, 3:], [[0.0, 0.0, 1.0, 0.0]] * arms)
    np.testing.assert_array_equal(observation["observation"].reshape(arms, -1)[:, :7], qpos)


# Motion.


@both
def test_driving_straight_at_the_goal_reaches_all_of_64_goals_and_stays(name: str) -> None:
    envs = gymnasium.make_vec(name, 64, vectorization_mode="vector_entry_point")
    observation, _ = envs.reset(seed=0)
    per_step = LINEAR_SPEED / 20.0
    for _ in range(99):
        offset = observation["desired_goal"] - observation["achieved_goal"]
        observation, reward, _, _, info = envs.step(np.clip(0.3 * offset / per_step, -1.0, 1.0))
        assert (reward == info["is_success"] - 1.0).all()
    assert info["is_success"].all()
    envs.close()


@both
@pytest.mark.parametrize("control_freq", [5, 20, 100])
def test_a_target_driven_out_of_reach_comes_back_as_soon_as_it_is_called(
    name: str, control_freq: float
) -> None:
    """It must not run away while the tool cannot follow; and on its way within reach nothing may hold it back."""
    env = make(name, control_freq=control_freq)
    env.reset(seed=0)
    up = np.tile([0.0, 0.0, 1.0], len(env.task.places))
    start = [arm.target().pos[2] for arm in env.task.arms()]
    env.step(up)
    for arm, z in zip(env.task.arms(), start, strict=True):
        assert arm.target().pos[2] == pytest.approx(z + LINEAR_SPEED / control_freq)
    out = np.tile([1.0, 0.0, 0.5], len(env.task.places))
    for _ in range(2 * control_freq):
        env.step(out)
    for arm in env.task.arms():
        lead = np.linalg.norm(arm.target().pos - arm.tool().pos)
        assert lead <= max(0.1, 2.0 * LINEAR_SPEED / control_freq) + 1e-3


@both
@pytest.mark.parametrize("mode", ["ee_delta_pos", "ee_delta_pose", "joint_delta"])
def test_without_action_the_arm_holds_still_against_gravity(name: str, mode: str) -> None:
    env = make(name, control_mode=mode, gripper=True)
    start = env.reset(seed=3)[0]["achieved_goal"].reshape(-1, 3)
    action = np.zeros(env.action_space.shape)
    for _ in range(100):  # 5 s
        tools = env.step(action)[0]["achieved_goal"].reshape(-1, 3)
        assert (np.linalg.norm(tools - start, axis=1) < 1e-4).all()


@both
def test_each_action_component_of_a_pose_moves_the_tool_along_and_about_its_own_world_axis(name: str) -> None:
    env = make(name, control_mode="ee_delta_pose", goal_orientation=True)
    arms = len(env.task.places)
    for arm in range(arms):
        for axis in range(3):
            start = env.reset(seed=3)[0]["achieved_goal"].reshape(arms, 7)
            action = np.zeros((arms, 6))
            action[arm, axis] = 0.5
            for k in range(14):  # 4 steps of 2.5 cm, then time to arrive
                moved = env.step((action if k < 4 else 0.0 * action).ravel())[0]["achieved_goal"].reshape(
                    arms, 7
                )
            wanted = np.zeros((arms, 3))
            wanted[arm, axis] = 0.1
            np.testing.assert_allclose(moved[:, :3] - start[:, :3], wanted, atol=1e-3)
            np.testing.assert_allclose(np.abs((moved[:, 3:] * start[:, 3:]).sum(axis=1)), 1.0, atol=1e-5)


@pytest.mark.parametrize("mode", ["joint_delta", "joint_pos"])
def test_joint_actions_move_the_joints_as_far_as_documented(mode: str) -> None:
    env = make(IDS[0], control_mode=mode)
    start = env.reset(seed=1)[0]["observation"][:7]
    lower, upper = env.model.jnt_range[:7].T
    if mode == "joint_delta":
        action, wanted, steps = np.array([1, -1, 1, -1, 1, -1, 1.0]), None, 3
        wanted = start + action * np.array(ROBOT.speed_limit) * steps / 20.0
    else:
        wanted, steps = np.array(ROBOT.home) + 0.3, 10
        action = 2.0 * (wanted - lower) / (upper - lower) - 1.0
    for k in range(40):
        held = action if mode == "joint_pos" or k < steps else np.zeros(7)
        joints = env.step(held)[0]["observation"][:7]
    np.testing.assert_allclose(joints, wanted, atol=2e-3)


@both
@pytest.mark.parametrize("mode", ["ee_delta_pose", "joint_delta"])
def test_the_gripper_closes_and_opens_all_the_way_in_less_than_a_second(name: str, mode: str) -> None:
    env = make(name, control_mode=mode, gripper=True)
    env.reset(seed=0)
    arms = list(env.task.arms())
    fingers = [j for j in range(env.model.njnt) if "finger" in env.model.joint(j).name]
    assert len(fingers) == 2 * len(arms)
    for command, low, high in ((-1.0, -1e-3, 1e-3), (1.0, 0.039, 0.041)):
        action = np.zeros(env.action_space.shape)
        for arm in arms:
            action[arm.action_slice.stop - 1] = command
        for _ in range(19):
            env.step(action)
        travel = env.data.qpos[env.model.jnt_qposadr[fingers]]
        assert ((low < travel) & (travel < high)).all(), travel


@pytest.mark.parametrize("control_freq", [20, 50, 60, 90, 100, 200])
@pytest.mark.parametrize("mode", ["ee_delta_pos", "joint_delta"])
def test_a_step_lasts_as_long_as_the_control_frequency_says_over_physics_of_500_hz_or_more(
    mode: str, control_freq: float
) -> None:
    env = make(IDS[0], control_mode=mode, control_freq=control_freq)
    rates = env.task.rates
    assert env.metadata["render_fps"] == control_freq
    assert env.model.opt.timestep <= 1.0 / 500.0 + 1e-12
    assert rates.ticks * rates.substeps * env.model.opt.timestep == pytest.approx(
        1.0 / control_freq, rel=1e-12
    )
    env.reset(seed=0)
    for _ in range(10):
        env.step(np.zeros(env.action_space.shape))
    assert env.data.time == pytest.approx(10.0 / control_freq, rel=1e-9)


# Rewards.


@both
@pytest.mark.parametrize("reward_type", ["sparse", "dense"])
@pytest.mark.parametrize("goal_orientation", [False, True])
def test_rewards_and_ends_computed_afterwards_for_many_steps_equal_those_of_each_step(
    name: str, reward_type: str, goal_orientation: bool
) -> None:
    env = make(
        name,
        reward_type=reward_type,
        goal_orientation=goal_orientation,
        success_threshold=0.3,
        angle_threshold=0.5,
        terminate_on_success=True,
    )
    achieved, desired, rewards, ends = [], [], [], []
    rng = np.random.default_rng(0)
    for seed in range(12):
        env.reset(seed=seed)
        for _ in range(3):
            observation, reward, terminated, truncated, info = env.step(
                rng.uniform(-1, 1, env.action_space.shape)
            )
            assert terminated == info["is_success"]
            achieved.append(observation["achieved_goal"])
            desired.append(observation["desired_goal"])
            rewards.append(reward)
            ends.append((terminated, truncated))
    goals = (np.array(achieved), np.array(desired), [{}] * len(rewards))
    np.testing.assert_array_equal(env.compute_reward(*goals), rewards)
    np.testing.assert_array_equal(env.compute_terminated(*goals), [e[0] for e in ends])
    np.testing.assert_array_equal(env.compute_truncated(*goals), [e[1] for e in ends])
    assert env.compute_reward(achieved[0], desired[0], {}) == rewards[0]
    assert env.compute_terminated(achieved[0], desired[0], {}) == ends[0][0]
    assert len({e[0] for e in ends}) == 2  # some succeed, some do not


@both
def test_sparse_and_dense_rewards_are_what_the_task_s_text_says(name: str) -> None:
    sparse, dense = make(name), make(name, reward_type="dense")
    arms = len(sparse.task.places)
    goal = np.zeros((2, 3 * arms))
    achieved = goal.copy()
    achieved[0, 0], achieved[1, 0] = 0.019, 0.021
    np.testing.assert_array_equal(sparse.compute_reward(achieved, goal, {}), [0.0, -1.0])
    np.testing.assert_allclose(dense.compute_reward(achieved, goal, {}), np.array([-0.019, -0.021]) / arms)


def test_hindsight_replay_of_stable_baselines3_learns_on_it() -> None:
    sb3 = pytest.importorskip("stable_baselines3", reason="needs stable_baselines3 and torch")
    env = gymnasium.make(IDS[0], max_episode_steps=25)
    model = sb3.SAC(
        "MultiInputPolicy",
        env,
        replay_buffer_class=sb3.HerReplayBuffer,
        replay_buffer_kwargs={"n_sampled_goal": 4},
        learning_starts=60,
        train_freq=4,
        batch_size=64,
        policy_kwargs={"net_arch": [32, 32]},
        seed=0,
    )
    before = [p.detach().clone() for p in model.actor.parameters()]
    model.learn(300)
    assert model.num_timesteps == 300
    rewards = model.replay_buffer.sample(256).rewards.numpy()
    assert set(np.unique(rewards)) == {-1.0, 0.0}  # relabelled goals were reached
    assert any((a != b).any() for a, b in zip(before, model.actor.parameters(), strict=True))


# Images.


def images(name: str, camera: str, render_mode: str, goals: list[Array]) -> list[Any]:
    env = make(name, camera=camera, render_mode=render_mode, width=96, height=64)
    out = []
    for goal in goals:
        env.reset(seed=0, options={"goal": goal})
        try:
            out.append(env.render())
        except GraphicsError as error:
            no_gl(str(error))
    env.close()
    return out


def goals_in_view(name: str, offset: float) -> Array:
    """Return a goal for each arm, ahead of its tool, moved sideways by `offset` [m]."""
    return np.array([[0.5, place.base_pos[1] + offset, 0.25] for place in make(name).task.places])


@pytest.mark.parametrize(("name", "camera"), [(name, camera) for name in IDS for camera in CAMERAS[name]])
def test_every_camera_sees_the_goal_in_colour_and_depth(name: str, camera: str) -> None:
    goals = [goals_in_view(name, 0.0), goals_in_view(name, 0.06)]
    color = images(name, camera, "rgb_array", goals)
    assert color[0].shape == (64, 96, 3)
    assert color[0].dtype == np.uint8
    assert color[0].std() > 10.0
    assert (color[0] != color[1]).any()
    depth = images(name, camera, "depth_array", goals)
    assert depth[0].shape == (64, 96)
    assert depth[0].dtype == np.float32
    assert np.isfinite(depth[0]).all()
    assert 0.0 < depth[0].min() < 2.0
    assert depth[0].std() > 0.01
    assert (depth[0] != depth[1]).any()


def test_a_vector_environment_s_images_are_those_of_the_single_ones() -> None:
    options = {"render_mode": "rgb_array", "width": 96, "height": 64}
    envs = gymnasium.make_vec(IDS[0], 2, vectorization_mode="vector_entry_point", **options)
    env = make(IDS[0], **options)
    envs.reset(seed=5)
    try:
        pictures = envs.render()
    except GraphicsError as error:
        no_gl(str(error))
    for i, picture in enumerate(pictures):
        env.reset(seed=5 + i)
        np.testing.assert_array_equal(picture, env.render())
    envs.close()
    env.close()


@pytest.mark.skipif(sys.platform != "linux", reason="EGL is Linux's way to draw without a display")
def test_without_display_and_without_settings_images_come_all_the_same() -> None:
    clean = {
        k: v
        for k, v in os.environ.items()
        if k not in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY", "PYOPENGL_PLATFORM")
    }
    code = (
        "import gymnasium\n"
        "from bunraku.gl import GraphicsError\n"
        "env = gymnasium.make('bunraku.envs:bunraku/PandaReach-v0', render_mode='rgb_array', width=64, height=64)\n"
        "env.reset(seed=0)\n"
        "try:\n"
        "    print('drawn' if env.render().std() > 10 else 'blank')\n"
        "except GraphicsError as error:\n"
        "    print('no GL', error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean, capture_output=True, text=True, check=False
    )
    if done.stdout.startswith("no GL"):
        no_gl(done.stdout.strip())
    assert done.stdout.strip() == "drawn", done.stderr


# Mistakes.


@both
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gaol": [0.4, 0.0, 0.3]}, "did you mean 'goal'?"),
        ({"goal": [0.4, 0.0]}, "option 'goal' needs shape"),
        ({"goal": np.zeros((3, 2))}, "option 'goal' needs shape"),
        ({"goal": np.full((2, 3), np.nan)}, "option 'goal'"),
        ({"qpos": np.zeros(6)}, "option 'qpos' needs shape"),
        ({"goal_quat": np.zeros(3)}, "option 'goal_quat' needs shape"),
        ({"goal_quat": "up"}, "option 'goal_quat'"),
    ],
)
def test_a_wrong_reset_option_is_named_with_what_was_expected(
    name: str, options: dict[str, Any], message: str
) -> None:
    envs = gymnasium.make_vec(name, 2, vectorization_mode="vector_entry_point")
    for env in (make(name), envs):
        with pytest.raises((ValueError, BunrakuError), match=re.escape(message)):
            env.reset(seed=0, options=options)


@both
def test_a_goal_orientation_of_no_length_is_an_error_instead_of_not_a_number(name: str) -> None:
    env = make(name, goal_orientation=True)
    arms = len(env.unwrapped.task.places)
    with pytest.raises(ValueError, match="goal_quat"):
        env.reset(seed=0, options={"goal_quat": np.zeros((arms, 4))})
