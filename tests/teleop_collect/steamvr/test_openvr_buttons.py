"""Buttons of the openvr device: names per controller family, latching, and who has the input."""

from __future__ import annotations

import pytest

from bunraku.device import HandName, HandState
from bunraku.teleop_collect.devices.openvr import OpenVR
from bunraku.teleop_collect.openvr_buttons import INDEX, TOUCH, WAND, layout_of
from tests.teleop_collect.steamvr.runtime import StandInRuntime

EVERY_BUTTON: list[tuple[str, HandName, str]] = [
    *(("touch", "left", b) for b in ("trigger", "squeeze", "thumbstick", "x", "y", "system")),
    *(("touch", "right", b) for b in ("trigger", "squeeze", "thumbstick", "a", "b", "system")),
    *(("pico", "left", b) for b in ("x", "y")),
    *(("pico", "right", b) for b in ("a", "b")),
    *(("index", h, b) for h in ("left", "right") for b in ("trigger", "squeeze", "thumbstick", "a", "b")),
    *(("wand", h, b) for h in ("left", "right") for b in ("trigger", "squeeze", "trackpad", "menu")),
]


def hand_of(vr: StandInRuntime, device: OpenVR, hand: HandName = "right") -> HandState:
    vr.step()
    return device.read().hands[hand]


@pytest.mark.parametrize(("kind", "hand", "button"), EVERY_BUTTON)
def test_each_button_has_its_name_and_no_other(
    vr: StandInRuntime, device: OpenVR, kind: str, hand: HandName, button: str
) -> None:
    vr.controller(hand, kind=kind)
    assert hand_of(vr, device, hand).buttons == frozenset()
    vr.press(hand, button)
    state = hand_of(vr, device, hand)
    assert state.buttons == state.pressed == {button}
    assert state.trigger == (button == "trigger")
    assert state.squeeze == (button == "squeeze")
    vr.release(hand, button)
    state = hand_of(vr, device, hand)
    assert (state.buttons, state.pressed) == (frozenset(), frozenset())
    assert (state.trigger, state.squeeze) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("kind", "stick"), [("touch", "thumbstick"), ("index", "thumbstick"), ("wand", "trackpad")]
)
def test_analog_parts_have_their_values(vr: StandInRuntime, device: OpenVR, kind: str, stick: str) -> None:
    vr.controller("right", kind=kind)
    vr.analog("right", "trigger", 0.25)
    vr.analog("right", stick, -0.5, 0.75)
    state = hand_of(vr, device)
    assert (state.trigger, state.thumbstick) == (0.25, (-0.5, 0.75))
    if kind != "wand":
        vr.analog("right", "squeeze", 0.5)
        assert hand_of(vr, device).squeeze == 0.5
    assert state.buttons == frozenset(), "a half-pressed trigger is no button"


@pytest.mark.parametrize(
    ("type_", "axis0", "layout"),
    [("oculus_touch", 2, TOUCH), ("knuckles", 1, INDEX), ("vive_controller", 1, WAND)]
    + [("unheard_of", 2, TOUCH), ("unheard_of", None, TOUCH), ("unheard_of", 1, WAND)],
)
def test_a_type_that_is_not_in_the_table_is_taken_by_its_stick(
    type_: str, axis0: int | None, layout: object
) -> None:
    assert layout_of(type_, axis0) is layout


def test_a_press_between_two_reads_is_told_exactly_once(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right")
    hand_of(vr, device)
    vr.press("right", "a")
    vr.step()
    vr.release("right", "a")
    state = hand_of(vr, device)
    assert (state.buttons, state.pressed) == (frozenset(), {"a"})
    assert hand_of(vr, device).pressed == frozenset()


def test_a_press_too_short_for_the_reader_is_told_exactly_once(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right")
    hand_of(vr, device)
    vr.tap("right", "b")
    assert hand_of(vr, device).pressed == {"b"}
    assert hand_of(vr, device).pressed == frozenset()


def test_a_held_button_is_one_press(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right")
    hand_of(vr, device)
    vr.press("right", "a")
    assert hand_of(vr, device).pressed == {"a"}
    for _ in range(3):
        state = hand_of(vr, device)
        assert (state.buttons, state.pressed) == ({"a"}, frozenset())


@pytest.mark.parametrize("event_first", [True, False])
def test_event_and_state_of_one_press_in_different_reads_are_one_press(
    vr: StandInRuntime, inline: OpenVR, event_first: bool
) -> None:
    index = vr.controller("right")
    inline.read()
    told = []
    for step in range(4):
        if step == (0 if event_first else 1):
            vr.event(200, index, 7)
        if step == (1 if event_first else 0):
            vr.press("right", "a", events=False)
        told.append("a" in inline.read().hands["right"].pressed)
    assert told == [True, False, False, False]


def test_presses_on_another_device_are_not_ours(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right", index=3)
    hand_of(vr, device)
    vr.event(200, 5, 7)
    assert hand_of(vr, device).pressed == frozenset()


def test_what_is_held_when_a_controller_wakes_is_not_a_press(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right")
    hand_of(vr, device)
    index = vr.switch_off("right")
    vr.step()
    device.read()
    vr.switch_on("right", index)
    vr.press("right", "a", "b", "trigger", events=False)
    vr.step()
    device.read()
    state = hand_of(vr, device)
    assert state.pressed == frozenset()
    assert state.buttons == {"a", "b", "trigger"}


def test_what_the_other_hand_held_when_the_roles_swapped_is_not_a_press(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.controller("left")
    vr.controller("right")
    vr.press("left", "x")
    hand_of(vr, device)
    vr.swap_roles()
    state = hand_of(vr, device)
    assert (state.buttons, state.pressed) == ({"a"}, frozenset())


def test_a_dashboard_that_leaves_the_input_to_us_is_still_a_dashboard(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.controller("right")
    vr.press("right", "trigger")
    assert hand_of(vr, device).trigger == 1.0
    vr.event(502)
    assert hand_of(vr, device).trigger == 0.0
    vr.event(503)
    vr.release("right", "trigger")
    vr.step()
    vr.press("right", "trigger")
    assert hand_of(vr, device).trigger == 1.0


def test_while_the_dashboard_is_open_everything_is_released(vr: StandInRuntime, device: OpenVR) -> None:
    vr.controller("right")
    vr.press("right", "trigger", "squeeze")
    assert hand_of(vr, device).trigger == 1.0
    vr.open_dashboard()
    vr.step()
    assert device.read().events == ("dashboard_opened",)
    vr.tap("right", "a")
    hand = hand_of(vr, device)
    assert hand.pose is not None
    assert (hand.trigger, hand.squeeze, hand.buttons, hand.pressed) == (0.0, 0.0, frozenset(), frozenset())


def test_what_closed_the_dashboard_stays_released_until_it_is_pressed_anew(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.controller("right")
    vr.open_dashboard()
    vr.step()
    device.read()
    vr.press("right", "trigger", "a")
    vr.close_dashboard()
    vr.step()
    state = device.read()
    assert state.events == ("dashboard_closed",)
    for _ in range(2):
        hand = hand_of(vr, device)
        assert (hand.trigger, hand.buttons, hand.pressed) == (0.0, frozenset(), frozenset())
    vr.release("right", "trigger", "a")
    vr.step()
    vr.press("right", "trigger")
    hand = hand_of(vr, device)
    assert (hand.trigger, hand.pressed) == (1.0, {"trigger"})


def test_input_that_goes_to_another_program_is_released_without_any_event(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.controller("right")
    vr.press("right", "trigger")
    assert hand_of(vr, device).trigger == 1.0
    vr.input_available(False)
    assert hand_of(vr, device).trigger == 0.0
    vr.input_available(True)
    assert hand_of(vr, device).trigger == 0.0, "it is still held from before"


def test_input_that_comes_back_closes_a_dashboard_whose_closing_was_not_told(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.controller("right")
    vr.open_dashboard()
    vr.step()
    vr.control.dashboard = 0
    vr.input_available(True)
    vr.step()
    vr.press("right", "trigger")
    assert hand_of(vr, device).trigger == 1.0


def test_a_driver_without_legacy_bindings_gives_a_pose_and_no_buttons(
    vr: StandInRuntime, device: OpenVR
) -> None:
    vr.controller("right")
    vr.legacy_input("right", False)
    vr.press("right", "trigger", events=False)
    hand = hand_of(vr, device)
    assert hand.pose is not None
    assert (hand.trigger, hand.buttons) == (0.0, frozenset())
