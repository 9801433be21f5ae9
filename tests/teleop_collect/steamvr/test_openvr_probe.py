"""What the doctor is told about SteamVR."""

from __future__ import annotations

import numpy as np
import pytest

from bunraku.errors import DeviceError
from bunraku.teleop_collect.devices.openvr import OpenVR
from bunraku.teleop_collect.openvr_probe import SteamVRReport, probe
from tests.teleop_collect.manual_clock import ManualClock
from tests.teleop_collect.steamvr.runtime import StandInRuntime


def look(clock: ManualClock, seconds: float = 1.0) -> SteamVRReport:
    return probe(seconds, clock=clock, sleep=clock.sleep)


def test_the_probe_reports_each_controller(vr: StandInRuntime, clock: ManualClock) -> None:
    vr.controller("left", index=4, kind="index", noise=0.002, battery=0.5)
    vr.controller("right", index=2, kind="touch", noise=0.0)
    vr.controller(None, index=6, kind="wand")
    vr.press("left", "a", "trigger")
    vr.lose("right")
    report = look(clock)
    assert (report.ok, report.error_code, report.runtime_version) == (True, None, "2.12.14")
    assert (report.headset, report.headset_asleep, report.input_available) == (
        "Stand-in headset",
        False,
        True,
    )
    assert report.detail == "SteamVR 2.12.14, 3 controllers"
    right, left, spare = report.controllers
    assert (right.index, right.role, right.model, right.serial) == (
        2,
        "right",
        "Oculus Quest2",
        "TOUCH-RIGHT",
    )
    assert (right.valid_share, right.rate, right.jitter_mm, right.buttons) == (0.0, 0.0, None, ())
    assert (left.role, left.controller_type, left.buttons) == ("left", "knuckles", ("a", "trigger"))
    assert left.valid_share == 1.0
    assert left.rate == pytest.approx(250.0, rel=0.02)
    assert left.jitter_mm == pytest.approx(2.0, rel=0.02)
    assert left.battery == 0.5
    assert left.packet_moving
    assert left.problems() == []
    assert spare.role == "none"


def test_the_rate_is_that_of_the_pose_and_not_of_the_asking(vr: StandInRuntime, clock: ManualClock) -> None:
    vr.controller("right", noise=0.0)
    start = clock.now

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        step = int((clock.now - start) * 60.0)
        vr.move("right", (0.2, 1.0 + 0.001 * np.sin(step), -0.4))

    report = probe(2.0, clock=clock, sleep=sleep)
    assert report.controllers[0].rate == pytest.approx(60.0, rel=0.05)


def test_jitter_is_that_of_the_stillest_moment(vr: StandInRuntime, clock: ManualClock) -> None:
    vr.controller("right", noise=0.0005)
    start = clock.now

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        moved = max(0.0, clock.now - start - 0.6)
        vr.move("right", (0.2 + 0.3 * moved, 1.0, -0.4))

    report = probe(2.0, clock=clock, sleep=sleep)
    assert report.controllers[0].jitter_mm == pytest.approx(0.5, rel=0.05)


def test_problems_come_with_what_to_do(vr: StandInRuntime, clock: ManualClock) -> None:
    index = vr.controller("right", battery=0.05)
    vr.lose("right")
    vr.legacy_input("right", False)
    vr.set_role(index, None)
    problems = look(clock).controllers[0].problems()
    assert len(problems) == 4
    for problem, word in zip(problems, ("turn both", "view", "binding", "charge"), strict=True):
        assert word in problem


@pytest.mark.parametrize(
    ("error", "word"), [(108, "switch the headset on"), (110, "install"), (9999, "start")]
)
def test_a_steamvr_that_refuses_is_a_report_and_not_an_exception(
    vr: StandInRuntime, clock: ManualClock, error: int, word: str
) -> None:
    vr.refuse(error)
    report = look(clock)
    assert (report.ok, report.error_code, report.controllers) == (False, error, ())
    assert word in report.remedy
    assert f"({error})" in report.detail
    assert "\n" not in report.detail
    assert report.remedy not in report.detail, "the doctor shows both"


def test_the_probe_never_starts_steamvr_and_leaves_it_again(vr: StandInRuntime, clock: ManualClock) -> None:
    vr.control.server_running = 0
    report = look(clock)
    assert report.error_code == 121
    assert "start SteamVR" in report.remedy
    assert vr.control.server_running == 0
    vr.start()
    assert look(clock).ok
    assert (vr.control.inits, vr.control.shutdowns) == (1, 1)


def test_a_headset_that_nobody_wears_and_no_controllers_are_told(
    vr: StandInRuntime, clock: ManualClock
) -> None:
    vr.headset_activity(3)
    report = look(clock)
    assert report.headset_asleep
    assert report.controllers == ()
    assert "turn the controllers on" in report.remedy


def test_the_probe_does_not_pull_the_connection_from_under_an_open_device(
    vr: StandInRuntime, device: OpenVR, clock: ManualClock
) -> None:
    vr.controller("right")
    with pytest.raises(DeviceError, match="already"):
        look(clock)
    vr.step()
    assert device.read().hands["right"].pose is not None
