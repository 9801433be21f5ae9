"""Recorded actions replay bit for bit, and what does not is found at its step."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from bunraku.episode.episode import Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.verify import VerifyReport, make_env, replay, verify
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError

XML = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <light pos="0 -1 2"/>
    <camera name="front" pos="0 -1.5 0.5" xyaxes="1 0 0 0 0.2 1"/>
    <camera name="top" pos="0 0 2"/>
    <camera name="away" pos="0 0 50" xyaxes="1 0 0 0 -1 0"/>
    <geom type="plane" size="2 2 0.1" rgba="0.4 0.4 0.5 1"/>
    <body pos="0 0 0.4"><joint name="hinge" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" rgba="0.9 0.5 0.1 1"/></body>
    <body pos="0.25 0 0.1"><freejoint/><geom type="box" size="0.06 0.06 0.06" rgba="0.2 0.6 0.9 1"/></body>
    <body pos="0.25 0 0.25"><freejoint/><geom type="box" size="0.05 0.05 0.05"/></body>
  </worldbody>
  <actuator><intvelocity joint="hinge" kp="20" actrange="-2 2"/></actuator>
</mujoco>
"""
STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
ENV_ID = "bunraku_test/HitBoxes-v0"


class HitBoxes(gymnasium.Env[dict[str, NDArray[Any]], NDArray[np.float32]]):
    """A pendulum, driven through an actuator with memory, that strikes boxes in contact."""

    def __init__(self, gain: float = 1.0) -> None:
        self.model = mujoco.MjModel.from_xml_string(XML)
        self.data = mujoco.MjData(self.model)
        self.gain = gain
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(
            {"observation": gymnasium.spaces.Box(-np.inf, np.inf, (self.model.nq,))}
        )

    @property
    def state(self) -> NDArray[np.float64]:
        out = np.empty(mujoco.mj_stateSize(self.model, STATE))
        mujoco.mj_getState(self.model, self.data, out, STATE)
        return out

    def set_state(self, row: NDArray[np.float64]) -> None:
        mujoco.mj_setState(self.model, self.data, row, STATE)
        mujoco.mj_forward(self.model, self.data)
        # Forward solves the contacts anew; the warm start has to be the recorded one.
        mujoco.mj_setState(self.model, self.data, row, STATE)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[0] = self.np_random.uniform(-0.5, 0.5) + (options or {}).get("offset", 0.0)
        mujoco.mj_forward(self.model, self.data)
        return {"observation": self.data.qpos.copy()}, {}

    def step(self, action: NDArray[np.float32]) -> Any:
        self.data.ctrl[:] = self.gain * action
        mujoco.mj_step(self.model, self.data, 4)
        return {"observation": self.data.qpos.copy()}, 0.0, False, False, {}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    gymnasium.register(ENV_ID, HitBoxes, max_episode_steps=15)
    yield
    gymnasium.registry.pop(ENV_ID)


def record_episode(env: gymnasium.Env[Any, Any], seed: int, steps: int = 40) -> Episode:
    """Drive at random."""
    world: Any = env.unwrapped
    options = {"offset": 0.1}
    observation, _ = env.reset(seed=seed, options=options)
    observations, states = [observation["observation"]], [world.state]
    actions = np.random.default_rng(seed).uniform(-1, 1, (steps, 1)).astype(np.float32)
    for action in actions:
        observations.append(env.step(action)[0]["observation"])
        states.append(world.state)
    flags = np.zeros(steps, dtype=bool)
    return Episode(
        observations={"observation": np.array(observations)},
        states=np.array(states),
        actions=actions,
        applied=actions.astype(np.float64),
        rewards=np.zeros(steps),
        terminated=flags,
        truncated=flags,
        success=flags,
        sim_time=np.array([state[0] for state in states[:-1]]),
        wall_time=np.zeros(steps),
        meta={"seed": seed, "reset_options": options, "mjcf": XML},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "demos.hdf5"
    env = gymnasium.make(ENV_ID, gain=2.0, disable_env_checker=True)
    with EpisodeWriter(path, ENV_ID, {"gain": 2.0}) as writer:
        for seed in range(3):
            writer.append(record_episode(env, seed))
    return path


def rewrite(path: Path, change: Any, kwargs: dict[str, Any] | None = None) -> None:
    """Record all episodes anew, changed."""
    with EpisodeFile(path) as file:
        episodes = list(file)
    with EpisodeWriter(path, ENV_ID, {"gain": 2.0} if kwargs is None else kwargs, force=True) as writer:
        for episode in episodes:
            change(episode)
            writer.append(episode)


@pytest.mark.parametrize("start", ["first", "middle", 0, 1, 39])
def test_a_recording_replays_bit_for_bit_from_any_row_and_past_the_step_limit(path: Path, start: Any) -> None:
    seen: list[str] = []
    report = verify(path, start=start, progress=lambda check: seen.append(check.name))
    assert report.ok, report.sentence
    assert seen == ["demo_0", "demo_1", "demo_2"]
    row = {"first": 0, "middle": 20}.get(start, start)
    assert [check.steps for check in report.checks] == [40 - row] * 3
    assert all(check.reset_exact is (True if row == 0 else None) for check in report.checks)
    found = report.as_json()
    expected = {"episodes": 3, "bit_exact": 3, "max_abs_error": 0.0, "first_divergence": None}
    assert {key: found[key] for key in expected} == expected
    assert "3 of 3 episodes" in report.sentence


def test_the_contacts_make_a_replay_without_warm_start_differ(path: Path, monkeypatch: Any) -> None:
    # So that the test above proves something: the same replay with one part of the state left out fails.
    def forget_warm_start(self: HitBoxes, row: NDArray[np.float64]) -> None:
        mujoco.mj_setState(self.model, self.data, row, STATE)
        self.data.qacc_warmstart[:] = 0.0
        mujoco.mj_forward(self.model, self.data)

    monkeypatch.setattr(HitBoxes, "set_state", forget_warm_start)
    report = verify(path, start="middle")
    assert not report.ok
    assert 0.0 < report.as_json()["max_abs_error"] < 1e-3


def test_one_changed_bit_of_one_state_is_found_at_its_step(path: Path) -> None:
    def flip(episode: Episode) -> None:
        if episode.meta["seed"] == 1:
            episode.states[18, 3] = np.nextafter(episode.states[18, 3], np.inf)

    rewrite(path, flip)
    report = verify(path)
    check = report.checks[1]
    assert (check.bit_exact, check.first_divergence) == (False, 17)
    assert 0.0 < check.max_abs_error < 1e-15
    assert report.as_json()["first_divergence"] == {"episode": "demo_1", "step": 17}
    assert report.as_json()["bit_exact"] == 2
    assert "2 of 3 episodes" in report.sentence
    assert "demo_1 first differs after action 17" in report.sentence


def test_a_negative_zero_and_a_number_that_is_none_are_told_apart() -> None:
    env = make_env(ENV_ID, {})
    episode = record_episode(env, 0, steps=3)
    assert replay(env, episode).bit_exact
    zero = int(np.flatnonzero(episode.states[2] == 0.0)[0])
    episode.states[2, zero] = -0.0
    check = replay(env, episode)
    assert (check.bit_exact, check.first_divergence, check.max_abs_error) == (False, 1, 0.0)
    episode.states[3, zero] = np.nan
    assert replay(env, episode).max_abs_error == np.inf


def test_an_action_that_is_not_a_number_is_a_divergence_of_its_episode_alone(tmp_path: Path) -> None:
    path = tmp_path / "panda.hdf5"
    panda_file(path, count=2)
    with h5py.File(path, "r+") as file:
        file["data/demo_0/actions"][4, 0] = np.nan
    report = verify(path)
    assert [check.first_divergence for check in report.checks] == [4, None]
    printed = json.dumps(report.as_json(), allow_nan=False)
    assert json.loads(printed)["first_divergence"] == {"episode": "demo_0", "step": 4}


def test_another_environment_option_is_found(path: Path) -> None:
    rewrite(path, lambda episode: None, kwargs={"gain": 1.0})
    report = verify(path)
    assert [check.first_divergence for check in report.checks] == [0, 0, 0]
    assert all(check.reset_exact for check in report.checks)


def test_another_seed_is_found_by_the_reset_alone(path: Path) -> None:
    rewrite(path, lambda episode: episode.meta.update(seed=99))
    report = verify(path)
    assert not report.ok
    assert all(check.bit_exact and check.reset_exact is False for check in report.checks)
    assert "reset with the recorded seed gives another start for demo_0, demo_1, demo_2" in report.sentence


def test_only_the_named_episodes_are_replayed(path: Path) -> None:
    assert [check.name for check in verify(path, names=["demo_2"]).checks] == ["demo_2"]
    with pytest.raises(BunrakuError, match="did you mean 'demo_1'"):
        verify(path, names=["demo_11"])
    with pytest.raises(BunrakuError, match="give 'first', 'middle' or 0 to 39"):
        verify(path, start=40)


def test_what_cannot_be_replayed_here_is_said_in_one_line(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.hdf5"
    for env_id, kwargs, said in (
        ("bunraku_test/Absent-v0", {}, "cannot be made here"),
        (ENV_ID, {"gain": 1.0, "colour": 3}, "cannot be made here"),
        ("CartPole-v1", {}, "no state and set_state"),
    ):
        with EpisodeWriter(other, env_id, kwargs, force=True) as writer, EpisodeFile(path) as file:
            writer.append(file.load("demo_0"))
        with pytest.raises(BunrakuError, match=said) as error:
            verify(other)
        assert "\n" not in str(error.value)
    rewrite(path, lambda episode: setattr(episode, "states", episode.states[:, 1:]))
    with pytest.raises(BunrakuError, match="another version of the environment or of MuJoCo"):
        verify(path)


def test_other_versions_are_named_when_the_replay_differs(path: Path) -> None:
    report = VerifyReport(
        "f", (dataclasses.replace(verify(path).checks[0], bit_exact=False),), {"mujoco": ("3.1", "4.0")}
    )
    assert "recorded with mujoco 3.1 (here 4.0)" in report.sentence


def panda_file(path: Path, count: int, steps: int = 12) -> None:
    """Record PandaReach episodes with random actions."""
    env = gymnasium.make("bunraku/PandaReach-v0", control_freq=50)
    world: Any = env.unwrapped
    with EpisodeWriter(path, "bunraku/PandaReach-v0", {"control_freq": 50}) as writer:
        for seed in range(count):
            observation, _ = env.reset(seed=seed)
            observations, states = [observation], [world.state]
            actions = np.random.default_rng(seed).uniform(-1, 1, (steps, *world.action_space.shape))
            for action in actions.astype(np.float32):
                observations.append(env.step(action)[0])
                states.append(world.state)
            flags = np.zeros(steps, dtype=bool)
            writer.append(
                Episode(
                    observations={key: np.array([o[key] for o in observations]) for key in observation},
                    states=np.array(states),
                    actions=actions.astype(np.float32),
                    applied=np.zeros((steps, world.model.nu)),
                    rewards=np.zeros(steps),
                    terminated=flags,
                    truncated=flags,
                    success=flags,
                    sim_time=np.arange(steps) * 0.02,
                    wall_time=np.zeros(steps),
                    meta={"seed": seed},
                )
            )
    env.close()


def test_panda_reach_replays_bit_for_bit_from_the_first_and_the_middle_row(tmp_path: Path) -> None:
    panda_file(tmp_path / "panda.hdf5", 4)
    for start in ("first", "middle", 5):
        report = verify(tmp_path / "panda.hdf5", start=start)  # type: ignore[arg-type]
        assert report.ok, report.sentence


def test_several_processes_find_the_same_as_one(tmp_path: Path) -> None:
    path = tmp_path / "panda.hdf5"
    panda_file(path, 6)
    one, two = verify(path, processes=1), verify(path, processes=2)
    assert one == two
    assert one.ok
    with pytest.raises(BunrakuError, match="did you mean"):
        verify(path, names=["demo_0", "demo_44"], processes=2)
