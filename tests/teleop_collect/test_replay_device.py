"""Playing a recorded device stream."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunraku.errors import BunrakuError, DeviceError
from bunraku.teleop_collect.devices.replay import Replay
from tests.teleop_collect.manual_clock import ManualClock
from tests.teleop_collect.recorded_stream import STEPS, as_episode, recording, saved


def test_every_recorded_step_comes_back_in_order_and_as_old_as_it_was(tmp_path: Path) -> None:
    recorded = recording()
    clock = ManualClock(3.0)
    path = saved(tmp_path, as_episode(recorded, {"device": "gamepad"}))
    with Replay(clock=clock, path=path) as device:
        for was in recorded:
            clock.sleep(0.02)
            now = device.read()
            assert now.time == clock.now
            assert now.events == was.events
            assert sorted(now.commands) == sorted(was.commands)
            assert list(now.hands) == ["left", "right"]
            for hand, then in was.hands.items():
                played = now.hands[hand]
                assert now.time - played.time == pytest.approx(was.time - then.time, abs=1e-9)
                back = dataclasses.replace(played, time=then.time)
                np.testing.assert_array_equal(back.to_array(), then.to_array())


def test_after_the_last_step_hands_are_not_tracked_and_quit_comes_once(tmp_path: Path) -> None:
    path = saved(tmp_path, as_episode(recording(), {"device": "gamepad"}))
    with Replay(clock=ManualClock(), path=path) as device:
        for _ in range(STEPS):
            assert "quit" not in device.read().commands
        after = [device.read() for _ in range(3)]
    assert [state.commands for state in after] == [("quit",), (), ()]
    assert all(hand.pose is None and hand.trigger == 0.0 for state in after for hand in state.hands.values())


def test_entering_again_plays_from_the_start(tmp_path: Path) -> None:
    path = saved(tmp_path, as_episode(recording(), {"device": "gamepad"}))
    device = Replay(clock=ManualClock(), path=path)
    with device:
        first = device.read()
        device.read()
    with device:
        again = device.read()
    np.testing.assert_array_equal(again.hands["right"].to_array(), first.hands["right"].to_array())


def test_an_episode_is_chosen_by_name_or_by_place(tmp_path: Path) -> None:
    path = saved(tmp_path, *(as_episode(recording(seed), {"device": "gamepad"}) for seed in range(2)))
    for choice, seed in ((0, 0), (1, 1), ("1", 1), ("demo_1", 1)):
        with Replay(clock=ManualClock(), path=path, episode=choice) as device:
            pose = device.read().hands["right"].pose
        expected = recording(seed)[0].hands["right"].pose
        assert pose is not None
        assert expected is not None
        np.testing.assert_array_equal(pose.as_array(), expected.as_array())


@pytest.mark.parametrize(
    ("meta", "frame"),
    [
        ({"device": "gamepad"}, "z_up"),
        ({"device": "somebody's glove", "device_frame": "y_up"}, "y_up"),
        ({"device": {"name": "glove", "frame": "y_up"}}, "y_up"),
    ],
)
def test_poses_are_in_the_frame_of_the_recorded_device(
    tmp_path: Path, meta: dict[str, Any], frame: str
) -> None:
    with Replay(clock=ManualClock(), path=saved(tmp_path, as_episode(recording(), meta))) as device:
        assert device.frame == frame


def test_without_read_times_the_newest_sample_of_a_step_counts_as_just_taken(tmp_path: Path) -> None:
    recorded = recording()
    episode = as_episode(recorded, {"device": "gamepad"}, **{"device/time": None})
    with Replay(clock=ManualClock(), path=saved(tmp_path, episode)) as device:
        for was in recorded:
            now = device.read()
            newest = max(hand.time for hand in was.hands.values())
            for hand, then in was.hands.items():
                assert now.time - now.hands[hand].time == pytest.approx(newest - then.time, abs=1e-9)


def test_an_episode_that_was_recorded_with_one_hand_plays_one_hand(tmp_path: Path) -> None:
    episode = as_episode(recording(), {"device": "gamepad"}, **{"device/left": None})
    with Replay(clock=ManualClock(), path=saved(tmp_path, episode)) as device:
        assert list(device.read().hands) == ["right"]


def test_what_cannot_be_played_is_refused_in_one_line_with_a_remedy(tmp_path: Path) -> None:
    good = saved(tmp_path, as_episode(recording(), {"device": "gamepad"}))
    bare = {"device/left": None, "device/right": None}
    (tmp_path / "b").mkdir()
    without = saved(tmp_path / "b", as_episode(recording(), {"device": "gamepad"}, **bare))
    (tmp_path / "c").mkdir()
    narrow = saved(
        tmp_path / "c", as_episode(recording(), {"device": "x"}, **{"device/right": np.zeros((STEPS, 7))})
    )
    (tmp_path / "d").mkdir()
    frameless = saved(tmp_path / "d", as_episode(recording(), {}))
    cases: list[tuple[dict[str, Any], type[BunrakuError], str]] = [
        ({}, DeviceError, "give it a demonstration file"),
        ({"path": str(tmp_path / "none.hdf5")}, DeviceError, "give it an existing"),
        ({"path": good, "episode": 7}, DeviceError, "it has 1, counted from 0"),
        ({"path": good, "episode": "demo_9"}, BunrakuError, "demo_0"),
        ({"path": without}, DeviceError, "choose an episode"),
        ({"path": narrow}, DeviceError, "record it anew"),
        ({"path": frameless}, DeviceError, "choose an episode"),
    ]
    for options, error, remedy in cases:
        with pytest.raises(error, match=remedy) as caught:
            Replay(**options).__enter__()
        assert "\n" not in str(caught.value)
