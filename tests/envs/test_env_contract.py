"""What every environment of bunraku keeps to, whatever its task."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from bunraku.envs.arm_control import CONTROL_MODES
from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.plugins import TASKS, load
from bunraku.registration import ENVIRONMENTS, env_id

IDS = [env_id(name) for name in ENVIRONMENTS]
SECTIONS = (
    "Description",
    "Action Space",
    "Observation Space",
    "Rewards",
    "Starting State",
    "Episode End",
    "Arguments",
    "Version History",
)

pytestmark = pytest.mark.filterwarnings("error")
every_env = pytest.mark.parametrize("name", IDS)


def make(name: str, **kwargs: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make(name, **kwargs)


def make_vec(name: str, num_envs: int, **kwargs: Any) -> Any:
    return gymnasium.make_vec(name, num_envs, vectorization_mode="vector_entry_point", **kwargs)


def assert_same(ours: Any, theirs: Any, where: str = "") -> None:
    """Assert that two nests of dictionaries and arrays have the same keys, types of values and bits."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs), where
        for key in theirs:
            assert_same(ours[key], theirs[key], f"{where}/{key}")
    elif isinstance(theirs, tuple | list) or (isinstance(theirs, np.ndarray) and theirs.dtype == object):
        assert len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif theirs is None:
        assert ours is None, where
    else:
        a, b = np.asarray(ours), np.asarray(theirs)
        assert (a.shape, a.dtype) == (b.shape, b.dtype), where
        assert a.tobytes() == b.tobytes(), where


def rollout(env: gymnasium.Env[Any, Any], actions: Any) -> list[Any]:
    return [(env.step(a), env.unwrapped.state) for a in actions]  # type: ignore[attr-defined]


def actions_for(env: gymnasium.Env[Any, Any], steps: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (steps, *env.action_space.shape)).astype(np.float32)


# Checkers and documentation.


@every_env
@pytest.mark.parametrize("gripper", [False, True])
@pytest.mark.parametrize("goal_orientation", [False, True])
def test_gymnasium_s_checker_has_nothing_to_say(name: str, gripper: bool, goal_orientation: bool) -> None:
    env = make(name, gripper=gripper, goal_orientation=goal_orientation)
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


@every_env
def test_stable_baselines3_s_checker_has_nothing_to_say(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what importing torch says is not about the environment
        checker = pytest.importorskip(
            "stable_baselines3.common.env_checker", reason="needs stable_baselines3"
        )
    env = make(name)
    checker.check_env(env.unwrapped)
    env.close()


@every_env
def test_the_task_documents_itself_in_gymnasium_s_sections(name: str) -> None:
    task = load(TASKS, ENVIRONMENTS[name.removeprefix("bunraku/").removesuffix("-v0")][0])
    found = re.findall(r"^([A-Z][A-Za-z ]+):$", inspect.cleandoc(task.__doc__), re.MULTILINE)
    assert tuple(found) == SECTIONS


def test_an_environment_can_be_made_by_module_and_id_without_importing_bunraku_first() -> None:
    code = (
        "import gymnasium; gymnasium.make('bunraku.envs:bunraku/PandaReach-v0').reset(seed=0); print('made')"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "made", done.stderr


# Spaces and bits.


@every_env
@pytest.mark.parametrize("mode", CONTROL_MODES)
def test_observations_stay_in_their_space_whatever_the_actions(name: str, mode: str) -> None:
    env = make(name, control_mode=mode, gripper=True, goal_orientation=True)
    observation, _ = env.reset(seed=1)
    assert env.observation_space.contains(observation)
    rng = np.random.default_rng(2)
    for k in range(50 * 4):
        if k % 50 == 0:  # extreme actions that last drive joints and targets against their limits
            held = rng.choice([-1.0, 1.0], env.action_space.shape).astype(np.float32)
        action = held if k % 100 < 50 else rng.uniform(-1.0, 1.0, held.shape).astype(np.float32)
        observation, _, _, truncated, info = env.step(action)
        assert env.observation_space.contains(observation)
        assert "unstable" not in info
        if truncated:
            env.reset()


@every_env
def test_the_same_seed_gives_the_same_bits_and_another_seed_does_not(name: str) -> None:
    one, two = make(name), make(name)
    actions = actions_for(one, 10)
    runs = []
    for env, seed in ((one, 5), (two, 5), (one, 5), (two, 6)):
        first = env.reset(seed=seed)
        runs.append([*np.concatenate(list(first[0].values())), *rollout(env, actions)[-1][1]])
    assert runs[0] == runs[1] == runs[2]
    assert runs[0] != runs[3]


@every_env
@pytest.mark.parametrize("mode", CONTROL_MODES)
def test_restoring_the_state_in_the_middle_of_an_episode_gives_the_same_bits_again(
    name: str, mode: str
) -> None:
    env, other = (make(name, control_mode=mode, gripper=True, goal_orientation=True) for _ in range(2))
    env.reset(seed=3)
    other.reset(seed=99)
    rollout(env, actions_for(env, 7, seed=1))
    state, rest = env.unwrapped.state, actions_for(env, 8, seed=2)
    wanted = rollout(env, rest)
    for again in (env, other):
        again.unwrapped.set_state(state)
        assert_same(rollout(again, rest), wanted)


@every_env
def test_restoring_the_states_of_a_vector_environment_gives_the_same_bits_again(name: str) -> None:
    envs = make_vec(name, 3)
    envs.reset(seed=3)
    actions = np.random.default_rng(1).uniform(-1, 1, (8, *envs.action_space.shape))
    envs.step(actions[0])
    states = envs.state
    wanted = [envs.step(a)[0] for a in actions]
    envs.set_state(states)
    for action, observation in zip(actions, wanted, strict=True):
        assert_same(envs.step(action)[0], observation)
    envs.close()


# One simulation and many.


@every_env
@pytest.mark.parametrize("autoreset", list(AutoresetMode))
@pytest.mark.parametrize(
    ("mode", "gripper", "goal_orientation"),
    [
        ("ee_delta_pos", False, False),
        ("ee_delta_pose", True, True),
        ("joint_delta", True, False),
        ("joint_pos", False, True),
    ],
)
def test_a_vector_environment_equals_gymnasium_s_of_single_ones_bit_for_bit_over_episode_ends(
    name: str, autoreset: AutoresetMode, mode: str, gripper: bool, goal_orientation: bool
) -> None:
    options: dict[str, Any] = {
        "control_mode": mode,
        "gripper": gripper,
        "goal_orientation": goal_orientation,
        "success_threshold": 0.25,
        "angle_threshold": 1.0,
        "terminate_on_success": True,
        "reward_type": "dense",
        "max_episode_steps": 5,
    }
    ours = make_vec(name, 3, autoreset_mode=autoreset, **options)
    singles = SyncVectorEnv([lambda: make(name, **options)] * 3, autoreset_mode=autoreset)
    assert ours.metadata["autoreset_mode"] is autoreset
    assert_same(ours.reset(seed=7), singles.reset(seed=7))
    rng = np.random.default_rng(4)
    ended = []
    for _ in range(16):
        action = rng.uniform(-1.2, 1.2, ours.action_space.shape).astype(np.float32)
        mine, theirs = ours.step(action), singles.step(action)
        for a, b, what in zip(
            mine, theirs, ("obs", "reward", "terminated", "truncated", "info"), strict=True
        ):
            assert_same(a, b, what)
        assert_same(ours.state, np.stack([e.unwrapped.state for e in singles.envs]), "state")
        done = mine[2] | mine[3]
        ended += [*done]
        if autoreset is AutoresetMode.DISABLED and done.any():
            mine = ours.reset(options={"reset_mask": done.copy()})
            theirs = singles.reset(options={"reset_mask": done.copy()})
            assert_same(mine, theirs, "masked reset")
    assert sum(ended) > 3
    ours.close()
    singles.close()


@pytest.mark.parametrize("autoreset", list(AutoresetMode))
def test_a_simulation_that_blows_up_ends_its_episode_and_no_other(autoreset: AutoresetMode) -> None:
    ours = make_vec(IDS[0], 3, autoreset_mode=autoreset)
    singles = SyncVectorEnv([lambda: make(IDS[0], disable_env_checker=True)] * 3, autoreset_mode=autoreset)
    ours.reset(seed=7)
    singles.reset(seed=7)
    states = ours.state
    states[1, 1 + ours.sim.model.nq] = 1e11  # the first velocity, after the time and the positions
    ours.set_state(states)
    singles.envs[1].unwrapped.set_state(states[1])
    action = np.zeros(ours.action_space.shape, dtype=np.float32)
    mine, theirs = ours.step(action), singles.step(action)
    assert mine[2].tolist() == [False, True, False]
    assert mine[4].get("final_info", mine[4])["unstable"].tolist() == [False, True, False]
    assert_same(mine, theirs)
    if autoreset is AutoresetMode.DISABLED:
        mask = {"reset_mask": mine[2].copy()}
        assert_same(ours.reset(options=dict(mask)), singles.reset(options=dict(mask)))
    for _ in range(3):
        assert_same(ours.step(action), singles.step(action))
    ours.close()
    singles.close()


def test_the_last_of_more_simulations_than_fit_one_scratch_model_equals_a_single_one() -> None:
    envs, env = make_vec(IDS[0], 66), make(IDS[0])
    observation, _ = envs.reset(seed=100)
    assert_same({k: v[65] for k, v in observation.items()}, env.reset(seed=165)[0])
    for action in actions_for(env, 5):
        observation = envs.step(np.tile(action, (66, 1)))[0]
        assert_same({k: v[65] for k, v in observation.items()}, env.step(action)[0])
    envs.close()


@every_env
def test_a_vector_environment_takes_a_seed_for_each_simulation(name: str) -> None:
    envs, env = make_vec(name, 3), make(name)
    observation, _ = envs.reset(seed=[11, 4, 11])
    for i, seed in enumerate([11, 4, 11]):
        assert_same({k: v[i] for k, v in observation.items()}, env.reset(seed=seed)[0])
    with pytest.raises(ValueError, match="seed needs 3 entries, got 2"):
        envs.reset(seed=[1, 2])
    envs.close()


@every_env
def test_a_masked_reset_leaves_the_other_simulations_and_their_generators_alone(name: str) -> None:
    envs, untouched = (make_vec(name, 3) for _ in range(2))
    for e in (envs, untouched):
        e.reset(seed=0)
        e.step(np.full(e.action_space.shape, 0.5))
    before = envs.state
    observation, _ = envs.reset(seed=50, options={"reset_mask": np.array([False, True, False])})
    assert_same(envs.state[[0, 2]], before[[0, 2]])
    assert_same({k: v[1] for k, v in observation.items()}, make(name).reset(seed=51)[0])
    after, expected = envs.reset()[0], untouched.reset()[0]
    assert_same({k: v[[0, 2]] for k, v in after.items()}, {k: v[[0, 2]] for k, v in expected.items()})
    with pytest.raises(ValueError, match=r"reset_mask must have shape \(3,\)"):
        envs.reset(options={"reset_mask": np.array([True])})


def test_make_vec_truncates_at_the_registered_step_limit_and_at_one_of_the_user_s() -> None:
    for options, limit in (({}, 100), ({"max_episode_steps": 4}, 4)):
        envs = make_vec(IDS[0], 2, control_mode="joint_delta", **options)
        envs.reset(seed=0)
        zero = np.zeros(envs.action_space.shape)
        truncated = [envs.step(zero)[3].tolist() for _ in range(limit)]
        assert truncated == [[False, False]] * (limit - 1) + [[True, True]]
        envs.close()


def test_environments_run_in_spawned_processes() -> None:
    envs = gymnasium.make_vec(IDS[0], 2, vectorization_mode="async", vector_kwargs={"context": "spawn"})
    here = make_vec(IDS[0], 2)
    try:
        assert_same(envs.reset(seed=3), here.reset(seed=3))
        action = np.full(envs.action_space.shape, 0.5, dtype=np.float32)
        assert_same(envs.step(action)[0], here.step(action)[0])
    finally:
        envs.close()


# Mistakes.


@pytest.mark.parametrize("build", [make, lambda name, **options: make_vec(name, 2, **options)])
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"control_mode": "ee_delta_poze"}, UnknownNameError, "did you mean 'ee_delta_pose'?"),
        ({"reward_type": "spars"}, UnknownNameError, "did you mean 'sparse'?"),
        ({"robot_model": "menagery"}, UnknownNameError, "did you mean 'menagerie'?"),
        ({"camera": "frnt"}, UnknownNameError, "did you mean 'front'?"),
        ({"control_freq": 0}, ValueError, "control_freq must be between 1 and 500 Hz, got 0"),
        ({"control_freq": 501}, ValueError, "control_freq must be between 1 and 500 Hz, got 501"),
        ({"control_freq": float("nan")}, ValueError, "control_freq must be between 1 and 500 Hz, got nan"),
        ({"ik_freq": 10}, ValueError, "ik_freq must be between control_freq (20) and 500 Hz, got 10"),
        ({"success_threshold": 0}, ValueError, "success_threshold must be positive, got 0"),
        ({"angle_threshold": -1}, ValueError, "angle_threshold must be positive, got -1"),
        ({"width": 0}, ValueError, "image size must be positive, got 0x480"),
    ],
)
def test_a_wrong_option_is_named_with_what_was_expected(
    build: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=re.escape(message)):
        build(IDS[0], **options)


def test_an_option_that_does_not_exist_is_named() -> None:
    with pytest.raises(TypeError, match="grippper"):
        make(IDS[0], grippper=True)


def test_no_simulations_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="num_envs must be at least 1, got 0"):
        make_vec(IDS[0], 0)


@every_env
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
    for env in (make(name), make_vec(name, 2)):
        with pytest.raises((ValueError, BunrakuError), match=re.escape(message)):
            env.reset(seed=0, options=options)


@every_env
def test_a_goal_orientation_of_no_length_is_an_error_instead_of_not_a_number(name: str) -> None:
    env = make(name, goal_orientation=True)
    arms = len(env.unwrapped.task.places)
    with pytest.raises(ValueError, match="goal_quat"):
        env.reset(seed=0, options={"goal_quat": np.zeros((arms, 4))})


@every_env
def test_actions_that_are_no_actions_are_refused_before_anything_moves(name: str) -> None:
    env, envs = make(name, disable_env_checker=True), make_vec(name, 2)
    env.reset(seed=0)
    envs.reset(seed=0)
    for bad in (np.nan, np.inf, -np.inf):
        for e in (env, envs):
            action = np.zeros(e.action_space.shape)
            action[..., -1] = bad
            before = e.unwrapped.state
            with pytest.raises(ValueError, match="must be finite"):
                e.step(action)
            assert_same(e.unwrapped.state, before)
    with pytest.raises(ValueError, match=r"action must have shape .*, got \(1,\)"):
        env.step(np.zeros(1))
    with pytest.raises(ValueError, match=r"actions must have shape .*, got \(1, 3\)"):
        envs.step(np.zeros((1, 3)))


def test_rendering_without_a_render_mode_says_how_to_get_images() -> None:
    env = make(IDS[0], disable_env_checker=True).unwrapped
    env.reset(seed=0)
    with pytest.raises(ValueError, match="render_mode='rgb_array'"):
        env.render()
