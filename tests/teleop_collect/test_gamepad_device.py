"""The gamepad through the real pygame, with controllers that SDL itself simulates."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from bunraku.device import DeviceState, HandState
from bunraku.errors import DeviceError, MissingDependencyError, UnknownNameError
from bunraku.geometry import to_rotvec
from bunraku.teleop_collect.devices._gamepad_sdl import BUTTONS, SDL_HINTS
from bunraku.teleop_collect.devices.gamepad import Gamepad
from tests.teleop_collect.manual_clock import ManualClock
from tests.teleop_collect.virtual_pad import PLAIN, VirtualPad, load_sdl

for hint, value in SDL_HINTS.items():
    os.environ.setdefault(hint, value)
controller = pytest.importorskip("pygame._sdl2.controller")
pygame = pytest.importorskip("pygame")

LEFT_X, LEFT_Y, RIGHT_X, RIGHT_Y, LEFT_TRIGGER, RIGHT_TRIGGER = range(6)
BUTTON = {name: i for i, name in enumerate(BUTTONS)}

Attach = Callable[..., VirtualPad]


@pytest.fixture
def attach() -> Iterator[Attach]:
    sdl = load_sdl()
    if sdl is None:
        pytest.skip("the SDL library of pygame cannot be reached")
    controller.init()
    if pygame.joystick.get_count():
        pytest.skip("a real controller is plugged in")
    pads: list[VirtualPad] = []

    def make(*args: int, **options: int) -> VirtualPad:
        pads.append(VirtualPad(sdl, *args, **options))
        return pads[-1]

    yield make
    for pad in pads:
        pad.unplug()
    controller.quit()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def run(device: Gamepad, clock: ManualClock, seconds: float) -> list[DeviceState]:
    """Read at 100 Hz for a while."""
    states = []
    for _ in range(round(seconds / 0.01)):
        clock.sleep(0.01)
        states.append(device.read())
    return states


def right(states: list[DeviceState]) -> HandState:
    return states[-1].hands["right"]


def commands(states: list[DeviceState]) -> list[str]:
    return [name for state in states for name in state.commands]


STICKS = [
    (LEFT_Y, -1.0, (1, 0, 0)),
    (LEFT_X, -1.0, (0, 1, 0)),
    (LEFT_X, 1.0, (0, -1, 0)),
    (RIGHT_Y, -1.0, (0, 0, 1)),
    (RIGHT_TRIGGER, 1.0, (0, 0, 1)),
    (LEFT_TRIGGER, 1.0, (0, 0, -1)),
]


@pytest.mark.parametrize(("axis", "value", "direction"), STICKS)
def test_sticks_and_triggers_move_the_hand_that_way_at_full_speed(
    axis: int, value: float, direction: tuple[int, ...], attach: Attach, clock: ManualClock
) -> None:
    pad = attach()
    with Gamepad(clock=clock, background=False, speed=0.3) as device:
        pad.axis(axis, value)
        hand = right(run(device, clock, 0.21))
    assert hand.pose is not None
    np.testing.assert_allclose(hand.pose.pos, 0.2 * 0.3 * np.array(direction), atol=1e-9)
    np.testing.assert_allclose(hand.linear_velocity, 0.3 * np.array(direction), atol=1e-9)


@pytest.mark.parametrize(("button", "axis"), [("right", 0), ("up", 1)])
def test_the_directional_pad_rolls_and_pitches(
    button: str, axis: int, attach: Attach, clock: ManualClock
) -> None:
    pad = attach()
    with Gamepad(clock=clock, background=False, turn_speed=1.0) as device:
        pad.button(BUTTON[button])
        hand = right(run(device, clock, 0.21))
    assert hand.pose is not None
    np.testing.assert_allclose(to_rotvec(hand.pose.quat), 0.2 * np.eye(3)[axis], atol=1e-9)


def test_the_right_stick_to_the_left_turns_the_hand_counter_clockwise(
    attach: Attach, clock: ManualClock
) -> None:
    pad = attach()
    with Gamepad(clock=clock, background=False, turn_speed=1.0) as device:
        pad.axis(RIGHT_X, -1.0)
        hand = right(run(device, clock, 0.21))
    assert hand.pose is not None
    np.testing.assert_allclose(to_rotvec(hand.pose.quat), [0, 0, 0.2], atol=1e-9)


def test_a_stick_that_rests_off_centre_does_not_move_the_hand_and_release_holds_still(
    attach: Attach, clock: ManualClock
) -> None:
    pad = attach()
    with Gamepad(clock=clock, background=False) as device:
        pad.axis(LEFT_X, 0.07)
        pad.axis(LEFT_Y, 0.07)
        resting = right(run(device, clock, 0.3))
        pad.axis(LEFT_Y, -1.0)
        run(device, clock, 0.2)
        pad.axis(LEFT_Y, 0.0)
        released = right(run(device, clock, 0.01))
        later = right(run(device, clock, 0.3))
    assert resting.pose is not None
    assert released.pose is not None
    assert later.pose is not None
    np.testing.assert_array_equal(resting.pose.pos, 0.0)
    np.testing.assert_array_equal(released.pose.pos, later.pose.pos)


def test_shoulders_engage_and_make_precise_while_held(attach: Attach, clock: ManualClock) -> None:
    pad = attach()
    with Gamepad(clock=clock, background=False) as device:
        pad.button(BUTTON["right_shoulder"])
        pad.button(BUTTON["left_shoulder"])
        held = right(run(device, clock, 0.02))
        pad.button(BUTTON["right_shoulder"], False)
        released = right(run(device, clock, 0.02))
    assert held.trigger == 1.0
    assert held.buttons == {"trigger", "thumbstick"}
    assert released.trigger == 0.0
    assert released.buttons == {"thumbstick"}


def test_a_toggles_the_gripper_and_each_press_is_told_once(attach: Attach, clock: ManualClock) -> None:
    pad = attach()
    with Gamepad(clock=clock, background=False) as device:
        pad.button(BUTTON["a"])
        states = run(device, clock, 0.1)
        pad.button(BUTTON["a"], False)
        closed = right(run(device, clock, 0.1))
        pad.button(BUTTON["a"])
        opened = right(run(device, clock, 0.1))
    assert [state.hands["right"].pressed for state in states] == [{"squeeze"}] + [frozenset()] * 9
    assert (closed.squeeze, opened.squeeze) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("button", "command"),
    [
        *(("start", "start"), ("b", "success"), ("x", "failure"), ("y", "discard")),
        *(("back", "redo"), ("left_stick", "marker"), ("guide", "quit")),
    ],
)
def test_each_command_button_gives_its_command_once(
    button: str, command: str, attach: Attach, clock: ManualClock
) -> None:
    pad = attach()
    with Gamepad(clock=clock, background=False) as device:
        pad.button(BUTTON[button])
        states = run(device, clock, 0.5)
        pad.button(BUTTON[button], False)
        states += run(device, clock, 0.1)
    assert commands(states) == [command]


def test_unplugging_gives_an_event_and_replugging_goes_on_without_a_jump(
    attach: Attach, clock: ManualClock
) -> None:
    pad = attach()
    with Gamepad(clock=clock, background=False) as device:
        pad.axis(LEFT_Y, -1.0)
        pad.button(BUTTON["right_shoulder"])
        before = right(run(device, clock, 0.2))
        pad.unplug()
        gone = run(device, clock, 2.0)
        device.rumble("right", 1.0, 0.1)
        attach()
        back = run(device, clock, 1.0)
    assert [event for state in gone for event in state.events] == ["disconnected"]
    assert right(gone).pose is None
    assert not right(gone).connected
    assert right(gone).trigger == 0.0
    assert [event for state in back for event in state.events] == ["connected"]
    assert before.pose is not None
    assert right(back).pose is not None
    np.testing.assert_allclose(right(back).pose.pos, before.pose.pos, atol=1e-12)  # type: ignore[union-attr]
    assert right(back).source != before.source


def test_a_joystick_without_a_mapping_is_read_by_index_and_can_be_unplugged(
    attach: Attach, clock: ManualClock
) -> None:
    pad = attach(PLAIN, axes=6, buttons=11, hats=1)
    pad.axis(2, -1.0)
    pad.axis(5, -1.0)
    with Gamepad(clock=clock, background=False, speed=0.3, turn_speed=1.0) as device:
        pad.axis(1, -1.0)
        pad.axis(3, -1.0)
        pad.hat(1)
        pad.button(5)
        hand = right(run(device, clock, 0.11))
        pad.unplug()
        gone = run(device, clock, 0.02)
    assert hand.trigger == 1.0
    np.testing.assert_allclose(hand.linear_velocity, [0.3, 0, 0], atol=1e-3)
    np.testing.assert_allclose(hand.angular_velocity, [0, 1.0, 1.0], atol=1e-3)
    assert gone[0].events == ("disconnected",)
    assert right(gone).pose is None


def test_rumble_shakes_the_controller_of_that_hand_alone_and_no_harder_than_it_can(attach: Attach) -> None:
    pad = attach()
    with Gamepad(background=False) as device:
        device.rumble("left", 1.0, 0.05)
        assert pad.shaken == []
        device.rumble("right", 0.5, 0.05)
        device.rumble("right", 2.0, 0.05)
        assert pad.shaken == [(32767, 32767), (65535, 65535)]


def test_a_press_that_began_and_ended_between_two_reads_is_told_by_the_next(attach: Attach) -> None:
    pad = attach()
    with Gamepad(background=False) as device:
        for down in (True, False, False):
            pad.button(BUTTON["right_shoulder"], down)
            device._turn()  # what the reader thread does every 4 ms
        hand = device.read().hands["right"]
        again = device.read().hands["right"]
    assert hand.pressed == {"trigger"}
    assert hand.buttons == frozenset()
    assert again.pressed == frozenset()


def test_the_reader_thread_opens_reads_and_ends(attach: Attach) -> None:
    pad = attach()
    pad.button(BUTTON["right_shoulder"])
    with Gamepad() as device:
        deadline = time.monotonic() + 5.0
        hand = device.read().hands["right"]
        while not hand.trigger and time.monotonic() < deadline:
            time.sleep(0.005)
            hand = device.read().hands["right"]
    assert hand.trigger == 1.0


def test_no_gamepad_and_no_pygame_are_one_line_each_with_a_remedy(
    attach: Attach, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DeviceError, match="plug it in") as none:
        Gamepad().__enter__()
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(MissingDependencyError, match=r"bunraku\[gamepad\]") as missing:
        Gamepad().__enter__()
    assert "\n" not in str(none.value) + str(missing.value)


def test_a_hand_that_does_not_exist_gets_did_you_mean() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'right'"):
        Gamepad(hand="rigt")  # type: ignore[arg-type]


def test_opening_leaves_stdout_the_video_part_and_sigterm_alone() -> None:
    script = (
        "import os, signal, sys\n"
        "from bunraku.teleop_collect.devices._gamepad_sdl import Sdl\n"
        "sdl = Sdl()\n"
        "sdl.update()\n"
        "import pygame\n"
        "assert not pygame.display.get_init()\n"
        "if sys.platform != 'win32':\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    raise SystemExit(3)\n"
    )
    environment = {k: v for k, v in os.environ.items() if k not in SDL_HINTS}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout == ""
    assert done.returncode in (0, -15), done.stderr
