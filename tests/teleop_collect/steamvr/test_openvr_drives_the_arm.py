"""From SteamVR to the simulated arm: the unmodified openvr wheel, the device, the clutch and the Panda."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import bunraku  # noqa: F401 - registers the environments
from bunraku.geometry import Pose, conjugate, multiply, to_rotvec
from bunraku.teleop_collect.devices.openvr import OpenVR
from bunraku.teleop_collect.profile import Profile
from bunraku.teleop_collect.wrapper import TeleopWrapper
from tests.teleop_collect.manual_clock import ManualClock
from tests.teleop_collect.steamvr.matrices import pose_matrix
from tests.teleop_collect.steamvr.runtime import OUT_OF_RANGE, StandInRuntime

DT = 0.02


class Drive:
    """Drives an arm with a stand-in SteamVR: each control step is one tick of the reader."""

    def __init__(self, vr: StandInRuntime, device: OpenVR, clock: ManualClock, env_id: str) -> None:
        self.vr, self.clock = vr, clock
        env = gymnasium.make(
            env_id, max_episode_steps=-1, control_mode="ee_delta_pose", gripper=True, control_freq=1.0 / DT
        )
        self.env = TeleopWrapper(env, device, clock=clock, profile=Profile(filter="none"))
        self.env.reset(seed=0)
        self.at = {"left": np.array([-0.2, 1.1, -0.4]), "right": np.array([0.2, 1.1, -0.4])}
        self.turn = {"left": np.zeros(3), "right": np.zeros(3)}

    @property
    def arm(self) -> Any:
        return self.env.task.arms()[-1]

    def step(self, count: int = 1) -> Any:
        for _ in range(count):
            self.clock.sleep(DT)
            info = self.env.step(None)[4]
        return info["teleop"]

    def move(self, hand: Any, offset: Any, turn: Any = (0.0, 0.0, 0.0), steps: int = 25) -> Any:
        """Move a controller steadily, in SteamVR's axes."""
        start, start_turn = self.at[hand], self.turn[hand]
        for k in range(1, steps + 1):
            share = k / steps
            self.at[hand] = start + share * np.asarray(offset)
            self.turn[hand] = start_turn + share * np.asarray(turn)
            self.vr.move(hand, pose_matrix(self.at[hand], self.turn[hand]))
            step = self.step()
        return step

    def settled(self, arm: Any = None) -> Pose:
        self.step(40)
        return (arm or self.arm).tool()

    def engage(self, hand: Any = "right") -> Any:
        self.vr.release(hand, "trigger")
        self.step(2)
        self.vr.press(hand, "trigger")
        return self.step(2)


@pytest.fixture
def drive(vr: StandInRuntime, inline: OpenVR, clock: ManualClock) -> Iterator[Drive]:
    vr.controller("right", pose=pose_matrix((0.2, 1.1, -0.4)))
    vr.controller("left", pose=pose_matrix((-0.2, 1.1, -0.4)))
    driven = Drive(vr, inline, clock, "bunraku/PandaReach-v0")
    driven.step(5)
    yield driven
    driven.env.close()


def turned(before: Pose, after: Pose) -> np.ndarray:
    return to_rotvec(multiply(after.quat, conjugate(before.quat)))


def test_nothing_moves_until_the_trigger_is_pressed_and_then_forward_is_forward(drive: Drive) -> None:
    before = drive.settled()
    drive.move("right", (0.1, 0.1, -0.1))
    assert np.allclose(drive.settled().pos, before.pos, atol=1e-5)
    assert drive.engage().hands["right"].engaged
    assert np.allclose(drive.settled().pos, before.pos, atol=2e-5)
    drive.move("right", (0.0, 0.0, -0.1))  # forward in SteamVR is -z
    ahead = drive.settled()
    assert np.allclose(ahead.pos - before.pos, (0.06, 0.0, 0.0), atol=5e-4)
    drive.move("right", (0.0, 0.1, 0.0))
    assert np.allclose(drive.settled().pos - ahead.pos, (0.0, 0.0, 0.06), atol=5e-4)


@pytest.mark.parametrize(
    ("steamvr", "robot"),
    [((0, 0.3, 0), (0, 0, 0.3)), ((0.3, 0, 0), (0, -0.3, 0)), ((0, 0, -0.3), (0.3, 0, 0))],
)
def test_turning_the_controller_turns_the_tool_about_the_same_axis(
    drive: Drive, steamvr: Any, robot: Any
) -> None:
    before = drive.settled()
    drive.engage()
    drive.move("right", (0, 0, 0), steamvr)
    after = drive.settled()
    assert np.allclose(turned(before, after), robot, atol=2e-3)
    assert np.allclose(after.pos, before.pos, atol=5e-4)


def test_the_stick_gives_precision_and_the_grip_closes_the_gripper(drive: Drive) -> None:
    drive.engage()
    before = drive.settled()
    drive.vr.press("right", "thumbstick")
    drive.step(2)
    drive.move("right", (0.0, 0.0, -0.1))
    assert np.allclose(drive.settled().pos - before.pos, (0.012, 0.0, 0.0), atol=3e-4)
    drive.vr.press("right", "squeeze")
    drive.step(60)
    assert float(drive.arm.finger_pos) < 2e-3


def test_lost_tracking_holds_the_arm_and_demands_a_fresh_press(drive: Drive) -> None:
    drive.engage()
    before = drive.settled()
    drive.vr.lose("right", OUT_OF_RANGE)
    drive.at["right"] = drive.at["right"] + (0.0, 0.3, 0.0)
    assert not drive.step(20).hands["right"].engaged
    drive.vr.find("right")
    drive.vr.move("right", pose_matrix(drive.at["right"]))
    assert not drive.step(30).hands["right"].engaged  # the trigger was never released
    assert np.allclose(drive.settled().pos, before.pos, atol=1e-4)
    assert drive.engage().hands["right"].engaged
    drive.move("right", (0.0, 0.0, -0.1))
    assert np.allclose(drive.settled().pos - before.pos, (0.06, 0.0, 0.0), atol=1e-3)


@pytest.mark.parametrize("what", ["swap_roles", "recentre", "open_dashboard", "quit"])
def test_an_interruption_holds_the_arm(drive: Drive, what: str) -> None:
    drive.engage()
    before = drive.settled()
    getattr(drive.vr, what)()
    assert not drive.step(10).hands["right"].engaged
    assert np.allclose(drive.settled().pos, before.pos, atol=1e-4)


def test_after_steamvr_was_quit_and_started_again_driving_goes_on(drive: Drive) -> None:
    drive.engage()
    before = drive.settled()
    drive.vr.quit()
    drive.step(5)
    assert drive.vr.control.acknowledged
    drive.vr.start()
    drive.vr.release("right", "trigger")
    for _ in range(600):
        if drive.step().hands["right"].tracked:
            break
    assert drive.engage().hands["right"].engaged
    drive.move("right", (0.0, 0.0, -0.1))
    assert np.allclose(drive.settled().pos - before.pos, (0.06, 0.0, 0.0), atol=1e-3)


def test_a_controller_that_comes_back_under_another_number_must_engage_anew(drive: Drive) -> None:
    drive.engage()
    before = drive.settled()
    index = drive.vr.switch_off("right")
    assert not drive.step(10).hands["right"].engaged
    drive.vr.switch_on("right", index, new_index=9)
    assert not drive.step(40).hands["right"].engaged
    assert np.allclose(drive.settled().pos, before.pos, atol=1e-4)
    assert drive.engage().hands["right"].engaged


def test_engaging_is_felt_in_the_hand(drive: Drive) -> None:
    seen = len(drive.vr.pulses)
    drive.engage()
    drive.step(5)
    index = drive.vr.index_of("right")
    felt = [pulse for pulse in drive.vr.pulses[seen:] if pulse.device == index]
    assert felt
    assert not any(pulse.too_soon for pulse in felt)


def test_two_controllers_drive_two_arms(vr: StandInRuntime, inline: OpenVR, clock: ManualClock) -> None:
    vr.controller("right", pose=pose_matrix((0.2, 1.1, -0.4)))
    vr.controller("left", pose=pose_matrix((-0.2, 1.1, -0.4)))
    drive = Drive(vr, inline, clock, "bunraku/DualPandaReach-v0")
    left, right = drive.env.task.arms()
    drive.step(30)
    before = left.tool().pos, right.tool().pos
    drive.engage("left")
    drive.move("left", (0.0, 0.0, -0.1))
    drive.move("right", (0.0, 0.1, 0.0))
    assert np.allclose(drive.settled(left).pos - before[0], (0.06, 0.0, 0.0), atol=5e-4)
    assert np.allclose(right.tool().pos, before[1], atol=1e-4)


def test_collect_records_an_episode_from_the_controllers_with_its_own_reader_thread(
    vr: StandInRuntime, tmp_path: Path
) -> None:
    """The command itself, in a process of its own, with nothing of ours between it and SteamVR but the stand-in."""
    vr.controller("right", pose=pose_matrix((0.2, 1.1, -0.4)))
    code = "import sys; from bunraku.cli.main import main; sys.exit(main())"
    arguments = [
        "collect",
        "--env",
        "PandaReach",
        "--viewer",
        "none",
        "--episodes",
        "1",
        "--out",
        "r.hdf5",
        "--json",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path,
        env=os.environ.copy(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        vr.until(lambda: vr.control.pose_reads > 10)
        vr.press("right", "trigger")
        for k in range(1, 41):
            vr.step()
            vr.move("right", pose_matrix((0.2, 1.1, -0.4 - 0.002 * k)))
        vr.press("right", "b")
        out, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, said
    summary = json.loads(out)
    assert (summary["episodes"], summary["successes"]) == (1, 1)
    verified = subprocess.run(
        [sys.executable, "-c", code, "verify", "r.hdf5"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert verified.returncode == 0, verified.stderr
