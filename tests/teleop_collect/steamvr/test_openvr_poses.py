"""Poses, roles and events of the openvr device, through the unmodified wheel and its own reader thread."""

from __future__ import annotations

import numpy as np
import pytest

from bunraku.device import HandState
from bunraku.geometry import rotate
from bunraku.teleop_collect.devices.openvr import OpenVR
from bunraku.teleop_collect.openvr_tracking import LIVE_AFTER
from tests.teleop_collect.manual_clock import ManualClock
from tests.teleop_collect.steamvr.matrices import pose_matrix
from tests.teleop_collect.steamvr.runtime import OUT_OF_RANGE, ROTATION_ONLY, StandInRuntime
from tests.teleop_collect.test_device_contract import check_state

FLOAT32 = 1.2e-7
"""Relative precision of what the binding delivers."""


def right(vr: StandInRuntime, device: OpenVR) -> HandState:
    """The right hand after the reader has seen everything that the test did."""
    vr.step()
    return device.read().hands["right"]


def events(vr: StandInRuntime, device: OpenVR) -> tuple[str, ...]:
    vr.step()
    return device.read().events


def test_a_pose_arrives_with_float32_accuracy(vr: StandInRuntime, device: OpenVR, clock: ManualClock) -> None:
    rng = np.random.default_rng(5)
    vr.controller("right", noise=0.0)
    for _ in range(5):
        matrix = pose_matrix(rng.uniform(-2.0, 2.0, 3), rng.uniform(-2.0, 2.0, 3))
        vr.move("right", matrix)
        clock.sleep(10.0)  # time to get there
        hand = right(vr, device)
        assert hand.pose is not None
        np.testing.assert_allclose(hand.pose.pos, matrix[:, 3], atol=2.0 * FLOAT32)
        for axis in np.eye(3):
            np.testing.assert_allclose(rotate(hand.pose.quat, axis), matrix[:, :3] @ axis, atol=4.0 * FLOAT32)
        assert np.linalg.norm(hand.pose.quat) == pytest.approx(1.0, abs=1e-12)


def test_poses_are_those_of_the_standing_universe_at_the_moment_of_asking(
    vr: StandInRuntime, device: OpenVR, clock: ManualClock
) -> None:
    vr.controller("right", noise=0.0)
    vr.move("right", (0.3, 1.0, -0.4), velocity=(1.0, 0.5, -0.25), angular_velocity=(0.0, 2.0, 0.0))
    clock.sleep(0.5)
    hand = right(vr, device)
    assert (vr.control.last_origin, vr.control.last_ahead) == (1, 0.0)
    assert hand.time == clock.now
    assert hand.pose is not None
    np.testing.assert_allclose(hand.pose.pos, (0.3, 1.0, -0.4), atol=FLOAT32)
    np.testing.assert_allclose(hand.linear_velocity, (1.0, 0.5, -0.25))
    np.testing.assert_allclose(hand.angular_velocity, (0.0, 2.0, 0.0))


def test_a_sample_that_was_kept_does_not_change_with_the_next(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right", pose=(0.1, 1.0, -0.4))
    kept = right(vr, device)
    assert kept.pose is not None
    before = kept.pose.as_array().copy()
    vr.move("right", (0.15, 1.0, -0.4), velocity=(1.0, 1.0, 1.0))
    moved = right(vr, device)
    assert moved.pose is not None
    assert moved.pose.pos[0] > 0.14
    np.testing.assert_array_equal(kept.pose.as_array(), before)
    np.testing.assert_array_equal(kept.linear_velocity, np.zeros(3))


def test_reading_does_not_wait_for_a_steamvr_that_is_slow(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right")
    before = right(vr, device)
    vr.hold(True)
    vr.step(1)
    held = vr.control.pose_reads
    for _ in range(3):
        hand = device.read().hands["right"]
        device.rumble("right", 0.5, 0.1)
    assert hand.pose is not None
    assert hand.time == before.time
    assert vr.control.pose_reads == held
    vr.hold(False)


def test_both_hands_are_told_apart_and_say_which_controller_they_hold(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.controller("left", index=5, pose=(-0.3, 1.0, -0.4))
    vr.controller("right", index=2, pose=(0.3, 1.0, -0.4))
    vr.step()
    hands = device.read().hands
    assert {name: hand.source for name, hand in hands.items()} == {
        "left": "TOUCH-LEFT",
        "right": "TOUCH-RIGHT",
    }
    assert hands["left"].pose is not None
    assert hands["right"].pose is not None
    assert hands["left"].pose.pos[0] < 0.0 < hands["right"].pose.pos[0]


@pytest.mark.parametrize(
    ("result", "valid"),
    [
        (OUT_OF_RANGE, True),
        (OUT_OF_RANGE, False),
        (ROTATION_ONLY, True),
        (100, True),
        (1, False),
        (200, False),
    ],
)
def test_only_a_measured_pose_counts(vr: StandInRuntime, device: OpenVR, result: int, valid: bool) -> None:
    vr.controller("right")
    assert right(vr, device).pose is not None
    vr.lose("right", result, valid=valid)
    vr.press("right", "trigger")
    hand = right(vr, device)
    assert hand.connected
    assert (hand.pose, hand.linear_velocity, hand.angular_velocity) == (None, None, None)
    assert hand.trigger == 1.0, "buttons go on without tracking"
    assert device.tracking()["right"] == "untracked"
    vr.find("right")
    assert right(vr, device).pose is not None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 0.5, -1.0])
def test_a_matrix_that_is_no_rotation_is_no_pose(vr: StandInRuntime, device: OpenVR, value: float) -> None:
    vr.controller("right")
    vr.corrupt("right", value)
    assert right(vr, device).pose is None
    assert device.tracking()["right"] == "broken"


def test_a_velocity_that_no_hand_has_is_left_out_and_the_pose_stays(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.controller("right", pose=(0.0, 1.0, 0.0))
    vr.move("right", (0.0, 1.0, 0.0), velocity=(float("nan"), 0.0, 0.0), angular_velocity=(0.0, 900.0, 0.0))
    hand = right(vr, device)
    assert hand.pose is not None
    assert (hand.linear_velocity, hand.angular_velocity) == (None, None)


def test_a_pose_that_freezes_while_the_buttons_go_on_is_not_tracked(
    vr: StandInRuntime, device: OpenVR, clock: ManualClock
) -> None:
    vr.controller("right", pose=(0.2, 1.0, -0.4))
    vr.step(LIVE_AFTER + 3)
    vr.freeze("right")
    assert right(vr, device).pose is not None
    clock.sleep(0.24)
    assert right(vr, device).pose is not None
    clock.sleep(0.02)
    vr.press("right", "a")
    hand = right(vr, device)
    assert hand.pose is None
    assert hand.pressed == {"a"}
    assert device.tracking()["right"] == "frozen"
    vr.move("right", (0.21, 1.0, -0.4))
    assert right(vr, device).pose is not None


def test_a_position_that_freezes_while_the_rotation_goes_on_is_not_tracked(
    vr: StandInRuntime, device: OpenVR, clock: ManualClock
) -> None:
    vr.controller("right", pose=(0.2, 1.0, -0.4))
    vr.step(LIVE_AFTER + 3)
    vr.freeze("right")
    for i in range(30):
        clock.sleep(0.01)
        vr.move("right", pose_matrix((0.2, 1.0, -0.4), (0.0, 0.01 * i, 0.0)))
        hand = right(vr, device)
    assert hand.pose is None


def test_a_controller_that_never_moved_may_stand_still(
    vr: StandInRuntime, device: OpenVR, clock: ManualClock
) -> None:
    vr.controller("right", noise=0.0)
    for _ in range(3):
        clock.sleep(5.0)
        assert right(vr, device).pose is not None


@pytest.mark.parametrize("jump", [((0.7, 1.0, -0.4), (0.0, 0.0, 0.0)), ((0.2, 1.0, -0.4), (0.0, 3.0, 0.0))])
def test_a_jump_that_no_hand_makes_is_not_tracked_until_it_lasts(
    vr: StandInRuntime, device: OpenVR, clock: ManualClock, jump: tuple
) -> None:
    vr.controller("right", pose=(0.2, 1.0, -0.4))
    assert right(vr, device).pose is not None
    clock.sleep(0.011)
    vr.move("right", pose_matrix(*jump))
    assert right(vr, device).pose is None
    assert device.tracking()["right"] == "too_fast"
    clock.sleep(0.1)
    assert right(vr, device).pose is not None


def test_a_hand_has_no_controller_until_steamvr_gives_one_that_role(
    vr: StandInRuntime, device: OpenVR
) -> None:
    index = vr.controller(None)
    hand = right(vr, device)
    assert (hand.connected, hand.pose, hand.source) == (False, None, "")
    vr.set_role(index, "right")
    vr.step()
    state = device.read()
    assert state.events == ("connected",)
    assert state.hands["right"].pose is not None


def test_a_swap_of_roles_is_one_event_and_changes_both_sources(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("left", pose=(-0.3, 1.0, -0.4), serial="A")
    vr.controller("right", pose=(0.3, 1.0, -0.4), serial="B")
    vr.step()
    device.read()
    vr.swap_roles()
    vr.step()
    state = device.read()
    assert state.events == ("role_changed",)
    assert (state.hands["left"].source, state.hands["right"].source) == ("B", "A")
    assert state.hands["right"].pose is not None, "another controller's place is no jump"
    assert state.hands["right"].pose.pos[0] < 0.0


def test_a_controller_that_was_off_comes_back_at_another_index(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right", index=3, serial="R")
    vr.step()
    device.read()
    old = vr.switch_off("right")
    vr.step()
    state = device.read()
    assert state.events == ("disconnected",)
    assert (state.hands["right"].connected, state.hands["right"].pose) == (False, None)
    vr.switch_on("right", old, new_index=7)
    vr.move("right", (0.9, 1.0, 0.5))
    vr.step()
    state = device.read()
    assert state.events == ("connected",)
    assert state.hands["right"].source == "R"
    assert state.hands["right"].pose is not None, "where it comes back is no jump"


def test_an_index_that_changes_between_two_reads_is_told(vr: StandInRuntime, inline: OpenVR) -> None:
    vr.controller("right", index=3)
    inline.read()
    vr.switch_on("right", vr.switch_off("right"), new_index=7)
    assert inline.read().events == ("role_changed",)
    assert inline.read().events == ()


def test_a_controller_that_is_off_but_keeps_its_role_is_off(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right")
    vr.step()
    vr.switch_off("right", keep_role=True)
    hand = right(vr, device)
    assert (hand.connected, hand.pose) == (False, None)


def test_a_controller_without_a_serial_number_is_known_by_its_index(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.controller("right", index=4, serial="")
    assert right(vr, device).source == "controller 4"


@pytest.mark.parametrize("told", [True, False])
def test_another_controller_at_the_same_index_is_known_by_its_own_serial_number(
    vr: StandInRuntime, device: OpenVR, told: bool
) -> None:
    vr.controller("right", index=4, serial="A")
    assert right(vr, device).source == "A"
    vr.control.devices[4].connected = told
    vr.step()
    vr.control.devices[4].serial = b"B"
    vr.control.devices[4].connected = True
    if told:
        vr.event(111, 4)
    vr.step()
    vr.step()
    state = device.read()
    assert state.hands["right"].source == "B"
    assert state.events == (("role_changed",) if told else ("disconnected", "connected"))


@pytest.mark.parametrize("event", [801, 804, 808])
def test_a_recentring_is_told_with_the_poses_that_it_moved(
    vr: StandInRuntime, inline: OpenVR, event: int
) -> None:
    vr.controller("right", pose=(0.2, 1.0, -0.4))
    inline.read()
    vr.recentre((0.0, 0.0, 0.05), event)
    state = inline.read()
    assert state.events == ("recentred",)
    assert state.hands["right"].pose is not None
    np.testing.assert_allclose(state.hands["right"].pose.pos, (0.2, 1.0, -0.35), atol=2e-6)


def test_a_sleeping_headset_is_told_once_whether_by_event_or_by_its_activity(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.event(106, 0)
    assert events(vr, device) == ("standby",)
    vr.headset_activity(3)
    assert events(vr, device) == ()
    vr.headset_activity(1)
    assert events(vr, device) == ("resumed",)
    vr.headset_activity(0)
    assert events(vr, device) == (), "idle is not asleep"
    vr.headset_activity(3)
    assert events(vr, device) == ("standby",)
    vr.event(107, 0)
    assert events(vr, device) == ("resumed",)


def test_a_headset_that_sleeps_already_is_told_to_whoever_opens_the_device(vr: StandInRuntime) -> None:
    vr.headset_activity(3)
    vr.controller("right")
    with OpenVR() as device:
        assert device.read().events == ("standby",)


def test_a_controller_in_hand_that_sleeps_is_told_and_another_device_is_not(
    vr: StandInRuntime, device: OpenVR
) -> None:
    index = vr.controller("right")
    vr.step()
    device.read()
    vr.event(106, 9)
    assert events(vr, device) == ()
    vr.event(106, index)
    vr.event(107, index)
    assert events(vr, device) == ("standby", "resumed")


def test_what_was_there_before_opening_is_no_event(vr: StandInRuntime) -> None:
    vr.controller("right")
    vr.event(808)
    with OpenVR() as device:
        state = device.read()
    assert state.events == ()
    assert state.hands["right"].pose is not None, "the first read already has a pose"


def test_any_state_keeps_to_the_contract_of_devices(vr: StandInRuntime, device: OpenVR) -> None:
    rng = np.random.default_rng(1)
    for hand in ("left", "right"):
        vr.controller(hand)
    vr.analog("left", "thumbstick", 1.7, -3.0)
    vr.analog("right", "trigger", float("nan"))
    vr.analog("right", "squeeze", -0.2)
    chances = [
        lambda: vr.move("left", rng.uniform(-0.5, 0.5, 3) + (0.0, 1.0, 0.0)),
        lambda: vr.lose("right"),
        lambda: vr.find("right"),
        vr.swap_roles,
        vr.recentre,
        lambda: vr.press("right", "a", "trigger"),
        lambda: vr.release("right", "a"),
        vr.open_dashboard,
        vr.close_dashboard,
        lambda: vr.corrupt("left", float("nan")),
    ]
    for _ in range(40):
        chances[rng.integers(len(chances))]()
        vr.step(1)
        check_state(device.read())
