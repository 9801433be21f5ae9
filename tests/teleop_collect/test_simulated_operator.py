"""The simulated operator works through the same path as a person, and only through it."""

from __future__ import annotations

import ast
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import bunraku  # noqa: F401 - registers the environments
from bunraku.teleop_collect import simulated_hand
from bunraku.teleop_collect.clocks import SimulatedClock
from bunraku.teleop_collect.clutch import Clutch
from bunraku.teleop_collect.devices import scripted
from bunraku.teleop_collect.simulated_hand import ROOM
from bunraku.teleop_collect.wrapper import TeleopWrapper


def successes(
    env_id: str, faults: str, episodes: int, seconds: float = 60.0, first_seed: int = 0, **kwargs: object
) -> int:
    """Return how many episodes the operator brings to a success that lasts 0.3 s."""
    options = {"control_mode": "ee_delta_pose", "gripper": True, "control_freq": 50.0, **kwargs}
    env = gymnasium.make(env_id, max_episode_steps=-1, disable_env_checker=True, **options)
    clock = SimulatedClock()
    done = 0
    with scripted.Scripted(clock=clock, seed=first_seed, faults=faults) as device:
        wrapped = TeleopWrapper(env, device, clock=clock)
        for episode in range(episodes):
            wrapped.reset(seed=first_seed + episode)
            held = 0
            for _ in range(round(seconds * 50)):
                clock.advance(0.02)
                held = held + 1 if wrapped.step(None)[4]["is_success"] else 0
                if held == 15:
                    done += 1
                    break
    return done


def test_without_faults_every_one_of_100_episodes_succeeds() -> None:
    assert successes("bunraku/PandaReach-v0", "none", 100) == 100


def test_with_all_faults_at_least_95_of_100_episodes_succeed() -> None:
    assert successes("bunraku/PandaReach-v0", "all", 100) >= 95


def test_two_hands_and_wanted_orientations_succeed_too() -> None:
    assert successes("bunraku/DualPandaReach-v0", "noise", 5) == 5
    assert successes("bunraku/PandaReach-v0", "noise", 5, goal_orientation=True) == 5


def test_without_the_clutch_it_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the clutch out: the tool follows the hand always, so moving back undoes what was done."""

    def always(self: Clutch, grip: object) -> bool:
        return not self.engaged

    def never_release(self: Clutch, hand: object, grip: object, target: object) -> object:
        return self._follow(hand)  # type: ignore[arg-type]

    with_clutch = successes("bunraku/PandaReach-v0", "none", 10, seconds=20.0)
    monkeypatch.setattr(Clutch, "wants_to_engage", always)
    monkeypatch.setattr(Clutch, "drive", never_release)
    without = successes("bunraku/PandaReach-v0", "none", 10, seconds=20.0)
    assert with_clutch == 10
    assert without <= 3  # only goals within one arm's length of hand room


def test_the_hand_stays_in_its_room() -> None:
    clock = SimulatedClock()
    env = gymnasium.make(
        "bunraku/PandaReach-v0",
        max_episode_steps=-1,
        disable_env_checker=True,
        control_mode="ee_delta_pose",
        control_freq=50.0,
    )
    with scripted.Scripted(clock=clock, seed=4, faults="none") as device:
        wrapped = TeleopWrapper(env, device, clock=clock)
        wrapped.reset(seed=4)
        positions = []
        for _ in range(1000):
            clock.advance(0.02)
            pose = wrapped.step(None)[4]["teleop"].state.hands["right"].pose
            positions.append(pose.pos)
    spread = np.ptp(np.array(positions), axis=0)
    assert (spread <= 2 * ROOM + 1e-9).all()


def test_same_seed_same_episode_bit_for_bit() -> None:
    def run() -> np.ndarray:
        clock = SimulatedClock()
        env = gymnasium.make("bunraku/PandaReach-v0", max_episode_steps=-1, control_mode="ee_delta_pose")
        with scripted.Scripted(clock=clock, seed=9, faults="all") as device:
            wrapped = TeleopWrapper(env, device, clock=clock)
            wrapped.reset(seed=9)
            actions = []
            for _ in range(150):
                clock.advance(0.05)
                actions.append(wrapped.step(None)[4]["action"])
        return np.array(actions)

    assert np.array_equal(run(), run())


def test_the_operator_knows_neither_joints_nor_inverse_kinematics() -> None:
    """What its files import and name: no simulation, no kinematics, no joint angles."""
    for module in (simulated_hand, scripted):
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        imported = {
            node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
        }
        assert not {
            name for name in imported if "control" in name or name.split(".")[-1] == "sim" or "envs" in name
        }
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not names & {"qpos", "qvel", "ctrl", "data", "commanded_joints", "task"}
