"""The SpaceMouse through the real pyspacemouse, with raw reports from a fake bus below it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

from bunraku.device import DeviceState, HandState
from bunraku.geometry import to_rotvec
from bunraku.teleop_collect.devices.spacemouse import SpaceMouse
from tests.teleop_collect.fake_hid import RECEIVER, FakeBus, FakeHidDevice, FakeMouse
from tests.teleop_collect.manual_clock import ManualClock

try:
    import easyhid
except (ImportError, OSError, TypeError) as reason:  # without hidapi, Windows cannot even import them
    pytest.skip(f"pyspacemouse cannot be imported: {reason}", allow_module_level=True)

Plug = Callable[..., FakeBus]


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch) -> Plug:
    def make(*mice: FakeMouse) -> FakeBus:
        bus = FakeBus(easyhid.HIDException, *mice)
        monkeypatch.setattr(easyhid, "Enumeration", bus)
        return bus

    return make


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def mouse(plug: Plug) -> FakeMouse:
    mouse = FakeMouse()
    plug(mouse)
    return mouse


def run(device: SpaceMouse, clock: ManualClock, seconds: float) -> list[DeviceState]:
    """Read at 100 Hz for a while."""
    states = []
    for _ in range(round(seconds / 0.01)):
        clock.sleep(0.01)
        states.append(device.read())
    return states


def right(states: list[DeviceState]) -> HandState:
    return states[-1].hands["right"]


def press(
    mouse: FakeMouse, device: SpaceMouse, clock: ManualClock, bits: int, seconds: float = 0.1
) -> list[DeviceState]:
    mouse.buttons(bits)
    states = run(device, clock, seconds)
    mouse.buttons(0)
    return states + run(device, clock, 0.02)


def commands(states: list[DeviceState]) -> list[str]:
    return [name for state in states for name in state.commands]


PUSHES = [
    ("forward", {"toward": -350}, (1, 0, 0)),
    ("back", {"toward": 350}, (-1, 0, 0)),
    ("left", {"right": -350}, (0, 1, 0)),
    ("right", {"right": 350}, (0, -1, 0)),
    ("up", {"down": -350}, (0, 0, 1)),
    ("down", {"down": 350}, (0, 0, -1)),
]
TURNS = [
    ("tilt to the right", {"about_toward": -350}, (1, 0, 0)),
    ("tilt forward", {"about_right": -350}, (0, 1, 0)),
    ("twist counter-clockwise", {"about_down": -350}, (0, 0, 1)),
    ("twist clockwise", {"about_down": 350}, (0, 0, -1)),
]


@pytest.mark.parametrize(("what", "report", "direction"), PUSHES, ids=[p[0] for p in PUSHES])
def test_pushing_the_cap_moves_the_hand_that_way_at_full_speed(
    what: str, report: dict[str, int], direction: tuple[int, ...], mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False, speed=0.4) as device:
        mouse.push(**report)
        hand = right(run(device, clock, 0.21))
    assert hand.pose is not None
    np.testing.assert_allclose(hand.pose.pos, 0.2 * 0.4 * np.array(direction), atol=1e-9)
    np.testing.assert_allclose(hand.linear_velocity, 0.4 * np.array(direction), atol=1e-12)
    assert hand.trigger == 1.0
    assert "trigger" in hand.buttons


@pytest.mark.parametrize(("what", "report", "axis"), TURNS, ids=[t[0] for t in TURNS])
def test_turning_the_cap_turns_the_hand_about_the_operators_axes(
    what: str, report: dict[str, int], axis: tuple[int, ...], mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False, turn_speed=1.0) as device:
        mouse.turn(**report)
        hand = right(run(device, clock, 0.31))
    assert hand.pose is not None
    np.testing.assert_allclose(to_rotvec(hand.pose.quat), 0.3 * np.array(axis), atol=1e-9)
    np.testing.assert_allclose(hand.pose.pos, 0.0)


def test_releasing_the_cap_holds_the_hand_still_and_disengages_a_moment_later(
    mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        mouse.push(toward=-300)
        run(device, clock, 0.2)
        mouse.push()
        first = right(run(device, clock, 0.01))
        soon = right(run(device, clock, 0.25))
        later = right(run(device, clock, 0.2))
    assert first.pose is not None
    assert later.pose is not None
    np.testing.assert_array_equal(first.pose.pos, later.pose.pos)
    assert soon.trigger == 1.0
    assert later.trigger == 0.0


def test_a_cap_that_is_barely_touched_neither_moves_nor_engages(mouse: FakeMouse, clock: ManualClock) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        mouse.push(right=20, toward=-20, down=20)
        hand = right(run(device, clock, 0.3))
    assert hand.pose is not None
    np.testing.assert_array_equal(hand.pose.pos, 0.0)
    assert hand.trigger == 0.0


def test_a_cap_that_falls_silent_while_deflected_stops_the_hand(mouse: FakeMouse, clock: ManualClock) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        mouse.push(toward=-350)
        run(device, clock, 0.6)
        stopped = right(run(device, clock, 0.4))
        later = right(run(device, clock, 1.0))
    assert stopped.pose is not None
    assert later.pose is not None
    np.testing.assert_array_equal(stopped.pose.pos, later.pose.pos)
    assert later.trigger == 0.0


def test_a_hiccup_of_the_clock_moves_the_hand_no_more_than_20_mm(
    mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        mouse.push(toward=-350)
        mouse.turn(about_down=-350)
        before = right(run(device, clock, 0.1)).pose
        clock.sleep(0.4)
        after = device.read().hands["right"].pose
    assert before is not None
    assert after is not None
    moved = before.inverse() @ after
    assert np.linalg.norm(moved.pos) == pytest.approx(0.02)
    assert np.linalg.norm(to_rotvec(moved.quat)) == pytest.approx(0.1)


def test_a_short_press_between_two_reads_is_latched_once(mouse: FakeMouse, clock: ManualClock) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        mouse.buttons(0b10)
        mouse.buttons(0b00)
        clock.sleep(0.02)
        first, second = device.read().hands["right"], device.read().hands["right"]
    assert first.squeeze == 1.0
    assert "squeeze" in first.pressed
    assert second.pressed == frozenset()
    assert "squeeze" in second.buttons


def test_the_right_button_toggles_the_gripper_and_engages_while_the_fingers_move(
    mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        closed = right(press(mouse, device, clock, 0b10))
        rest = right(run(device, clock, 1.5))
        opened = right(press(mouse, device, clock, 0b10))
    assert (closed.squeeze, rest.squeeze, opened.squeeze) == (1.0, 1.0, 0.0)
    assert (closed.trigger, rest.trigger, opened.trigger) == (1.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("bits", "seconds", "command"),
    [
        (0b01, 0.1, "start"),
        (0b01, 1.2, "failure"),
        (0b10, 1.2, "discard"),
        (0b11, 0.1, "success"),
        (0b11, 2.0, "success"),
    ],
)
def test_each_gesture_gives_its_command_once_and_does_nothing_else(
    bits: int, seconds: float, command: str, mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        states = press(mouse, device, clock, bits, seconds) + run(device, clock, 0.2)
    assert commands(states) == [command]
    assert right(states).squeeze == 0.0


def test_both_buttons_count_as_both_even_if_one_is_let_go_first(mouse: FakeMouse, clock: ManualClock) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        states = []
        for bits in (0b01, 0b11, 0b10, 0b00):
            mouse.buttons(bits)
            states += run(device, clock, 0.05)
    assert commands(states) == ["success"]
    assert right(states).squeeze == 0.0


def test_with_engage_toggle_the_left_button_starts_and_ends_driving(
    mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False, engage="toggle") as device:
        mouse.push(toward=-350)
        before = right(run(device, clock, 0.1))
        during = right(press(mouse, device, clock, 0b01))
        after = right(press(mouse, device, clock, 0b01))
    assert (before.trigger, during.trigger, after.trigger) == (0.0, 1.0, 0.0)


def test_a_two_button_model_behind_the_universal_receiver_works_the_same(
    plug: Plug, clock: ManualClock
) -> None:
    mouse = FakeMouse(ids=RECEIVER)
    plug(mouse)
    with SpaceMouse(clock=clock, background=False) as device:
        assert commands(press(mouse, device, clock, 0b11)) == ["success"]
        assert right(press(mouse, device, clock, 0b10)).squeeze == 1.0


def test_unplugging_gives_an_event_and_replugging_goes_on_without_a_jump(
    mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        mouse.push(toward=-350)
        before = right(run(device, clock, 0.2))
        mouse.plugged = False
        clock.sleep(0.01)
        lost = device.read()
        gone = run(device, clock, 3.0)
        mouse.plugged = True
        back = run(device, clock, 0.6)
        mouse.push(toward=-350)
        again = right(run(device, clock, 0.05))
    assert lost.events == ("disconnected",)
    assert not lost.hands["right"].connected
    assert lost.hands["right"].pose is None
    assert lost.hands["right"].trigger == 0.0
    assert [e for s in gone for e in s.events] == []
    assert [e for s in back for e in s.events] == ["connected"]
    assert before.pose is not None
    assert right(back).pose is not None
    assert right(back).trigger == 0.0
    np.testing.assert_allclose(right(back).pose.pos, before.pose.pos, atol=1e-12)  # type: ignore[union-attr]
    assert again.trigger == 1.0
    assert again.pose is not None
    assert again.pose.pos[0] - before.pose.pos[0] == pytest.approx(0.04 * 0.4)


def test_a_closed_gripper_stays_closed_over_a_reconnect_and_is_not_pressed_anew(
    mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        press(mouse, device, clock, 0b10)
        mouse.plugged = False
        run(device, clock, 0.1)
        mouse.plugged = True
        states = run(device, clock, 1.0)
    assert right(states).squeeze == 1.0
    assert all("squeeze" not in state.hands["right"].pressed for state in states)


def test_access_that_is_granted_late_after_replugging_is_waited_for(
    mouse: FakeMouse, clock: ManualClock
) -> None:
    with SpaceMouse(clock=clock, background=False) as device:
        mouse.plugged = mouse.permitted = False
        run(device, clock, 0.1)
        mouse.plugged = True
        assert not right(run(device, clock, 1.0)).connected
        mouse.permitted = True
        assert right(run(device, clock, 1.0)).connected


def test_two_mice_are_left_and_right_by_serial_number_and_can_be_swapped(
    plug: Plug, clock: ManualClock
) -> None:
    a, b = FakeMouse("/dev/hidraw7", "A1"), FakeMouse("/dev/hidraw2", "B2")
    plug(b, a)
    with SpaceMouse(clock=clock, background=False) as device:
        a.push(toward=-350)
        hands = run(device, clock, 0.1)[-1].hands
        assert [hands["left"].trigger, hands["right"].trigger] == [1.0, 0.0]
        b.plugged = False
        hands = run(device, clock, 0.1)[-1].hands
        assert [hands["left"].connected, hands["right"].connected] == [True, False]
    b.plugged = True
    with SpaceMouse(clock=clock, background=False, swap=True) as device:
        a.push(toward=-350)
        hands = run(device, clock, 0.1)[-1].hands
        assert [hands["left"].trigger, hands["right"].trigger] == [0.0, 1.0]


def test_further_interfaces_of_one_mouse_are_not_taken_for_a_second_one(
    plug: Plug, clock: ManualClock
) -> None:
    plug(FakeMouse("col01", usage=(1, 6)), FakeMouse("col02"), FakeMouse("col03", usage=(0xFF00, 1)))
    with SpaceMouse(clock=clock, background=False) as device:
        assert list(device.read().hands) == ["right"]


def test_opening_writes_nothing_to_stdout(mouse: FakeMouse, capsys: pytest.CaptureFixture[str]) -> None:
    with SpaceMouse(background=False) as device:
        device.read()
    assert capsys.readouterr().out == ""


def test_the_reader_thread_moves_the_hand_between_reads(mouse: FakeMouse) -> None:
    with SpaceMouse() as device:
        mouse.push(toward=-350)
        deadline = time.monotonic() + 5.0
        hand = device.read().hands["right"]
        while (hand.pose is None or hand.pose.pos[0] <= 0.0) and time.monotonic() < deadline:
            time.sleep(0.005)
            hand = device.read().hands["right"]
    assert hand.pose is not None
    assert hand.pose.pos[0] > 0.0


def test_reading_never_waits_for_the_search_of_an_unplugged_mouse(
    mouse: FakeMouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    searching, found = threading.Event(), threading.Event()

    def slow_search() -> list[FakeHidDevice]:
        searching.set()
        assert found.wait(10.0)
        return []

    with SpaceMouse() as device:
        monkeypatch.setattr(easyhid.Enumeration, "find", slow_search)
        mouse.plugged = False
        assert searching.wait(10.0)
        reader = threading.Thread(target=device.read, daemon=True)
        reader.start()
        reader.join(5.0)
        waited = reader.is_alive()
        found.set()
    assert not waited
