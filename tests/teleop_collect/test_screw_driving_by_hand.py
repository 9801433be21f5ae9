"""Screw driving through the whole teleoperation path, with tracked hands and with a 3D mouse."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
import pytest

import bunraku  # noqa: F401 - registers the environments
from bunraku.cli.main import collect_main
from bunraku.episode.verify import verify
from bunraku.errors import UnknownNameError
from bunraku.geometry import Pose
from bunraku.teleop_collect.clocks import SimulatedClock
from bunraku.teleop_collect.devices.scripted import Scripted
from bunraku.teleop_collect.simulated_cap import SimulatedCap
from bunraku.teleop_collect.simulated_hand import WRIST, Seen
from bunraku.teleop_collect.wrapper import TeleopWrapper


def drive(style: Literal["hand", "mouse"], episodes: int, seed: int = 0) -> list[dict[str, Any]]:
    """Return what came of each episode."""
    env = gymnasium.make(
        "bunraku/ScrewDriving-v0", max_episode_steps=-1, disable_env_checker=True, control_freq=50.0
    )
    clock, results = SimulatedClock(), []
    with Scripted(clock=clock, seed=seed, style=style) as device:
        wrapped = TeleopWrapper(env, device, clock=clock)
        for episode in range(episodes):
            wrapped.reset(seed=seed + episode)
            result: dict[str, Any] = {"success": False, "tilt": 0.0, "wrist": 0.0, "precision": 0}
            for _ in range(60 * 50):
                clock.advance(0.02)
                info = wrapped.step(None)[4]
                report = info["teleop"].hands["right"]
                down = -float(env.unwrapped.data.site("arm_tool").xmat[8])  # type: ignore[attr-defined]
                result["tilt"] = max(result["tilt"], float(np.arccos(min(1.0, down))))
                result["precision"] += report.precision
                turned = 2.0 * np.arccos(min(1.0, abs(report.sample.pose.quat[0])))
                result["wrist"] = max(result["wrist"], turned)
                if info["is_success"]:
                    result |= {"success": True, "force": info["max_axial_force"]}
                    break
            result["clutches"] = report.clutches
            results.append(result)
    return results


def test_tracked_hands_drive_screws_by_taking_hold_anew_again_and_again() -> None:
    results = drive("hand", 1)
    for result in results:
        assert result["success"], result
        assert result["force"] < 80.0
        assert (
            result["wrist"] < WRIST + 0.1
        )  # two and a half turns, by a wrist that turns less than a quarter
        assert result["tilt"] < np.radians(2.0)
        assert result["precision"] > 0
    assert results[-1]["clutches"] >= 6


def test_a_3d_mouse_drives_screws_without_letting_go() -> None:
    results = drive("mouse", 2)
    assert [result["success"] for result in results] == [True] * 2
    assert max(result["tilt"] for result in results) < np.radians(2.0)
    assert results[-1]["clutches"] <= 4


def test_a_cap_at_rest_does_not_move_the_hand_and_a_deflected_one_moves_it_towards_the_goal() -> None:
    cap = SimulatedCap(0.6, 0.2, False, np.random.default_rng(0))
    here = Pose.identity()
    there = Pose(np.array([0.1, 0.0, 0.0]), here.quat)
    for k in range(90):
        cap.advance(k / 90, Seen(here, here, True))
    assert np.array_equal(cap.pose.pos, np.zeros(3))
    assert not cap.driving(1.0)
    for k in range(90, 180):
        cap.advance(k / 90, Seen(here, there, True))
    assert cap.driving(2.0)
    assert cap.pose.pos[0] > 0.1
    assert np.abs(cap.pose.pos[1:]).max() == 0.0


def test_a_style_that_does_not_exist_is_named() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'mouse'"):
        Scripted(style="mous")  # type: ignore[arg-type]


def test_recorded_episodes_replay_bit_for_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "screws.hdf5"
    words = ["collect", "--env", "ScrewDriving", "--device", "scripted", "--device-option", "style=mouse"]
    words += ["--viewer", "none", "--episodes", "1", "--seed", "7", "--out", str(out), "--json"]
    monkeypatch.setattr(sys, "argv", words)
    code = collect_main()
    summary = json.loads(capsys.readouterr().out)
    assert code in (0, None)
    assert (summary["episodes"], summary["successes"]) == (1, 1)
    report = verify(out)
    assert report.ok, report.sentence
    middle = verify(out, start="middle")
    assert middle.ok, middle.sentence
