"""Keys move a virtual hand, give commands, and never leave a robot driving by itself."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from bunraku.device import COMMANDS, DeviceState, HandState
from bunraku.errors import DeviceError
from bunraku.geometry import to_rotvec
from bunraku.teleop_collect import keys as table
from bunraku.teleop_collect.devices.keyboard import REPEAT_S, SPEEDS, TURN_RATIO, Keyboard
from bunraku.teleop_collect.keys import KeySource, ViewerKeys
from bunraku.teleop_collect.terminal_keys import HOLD_S, KeyDecoder, TerminalKeys
from tests.teleop_collect.manual_clock import ManualClock

TICK = 0.01
SPEED = 0.2


class FakeKeys:
    """A key source that a test types on."""

    def __init__(self, has_key_up: bool = True) -> None:
        self.has_key_up = has_key_up
        self.down: set[str] = set()
        self.new: list[str] = []

    def press(self, *names: str) -> None:
        self.down |= set(names)
        self.new.extend(names)

    def release(self, *names: str) -> None:
        self.down -= set(names)

    def tap(self, name: str) -> None:
        self.new.append(name)

    def held(self) -> frozenset[str]:
        return frozenset(self.down)

    def pressed(self) -> tuple[str, ...]:
        new, self.new = tuple(self.new), []
        return new


class FakeTypewriter:
    """A terminal that a test types into."""

    def __init__(self) -> None:
        self.typed = ""

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def take(self) -> str:
        typed, self.typed = self.typed, ""
        return typed


class Rig:
    """A keyboard device on a manual clock."""

    def __init__(self, device: Keyboard, clock: ManualClock) -> None:
        self.device, self.clock = device, clock

    def run(self, seconds: float) -> DeviceState:
        for _ in range(round(seconds / TICK)):
            self.clock.sleep(TICK)
            state = self.device.read()
        return state

    def read(self) -> DeviceState:
        return self.run(TICK)

    def hand(self) -> HandState:
        return self.read().hands["right"]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def typed() -> FakeKeys:
    return FakeKeys()


@pytest.fixture
def rig(clock: ManualClock, typed: FakeKeys) -> Iterator[Rig]:
    with Keyboard(clock=clock, keys=typed) as device:
        yield Rig(device, clock)


@pytest.fixture
def typewriter() -> FakeTypewriter:
    return FakeTypewriter()


@pytest.fixture
def terminal_rig(clock: ManualClock, typewriter: FakeTypewriter) -> Iterator[Rig]:
    with Keyboard(clock=clock, keys=TerminalKeys(clock, typewriter)) as device:
        yield Rig(device, clock)


def position(state: DeviceState) -> np.ndarray:
    pose = state.hands["right"].pose
    assert pose is not None
    return pose.pos


@pytest.mark.parametrize(
    ("key", "direction"),
    [
        ("w", (1, 0, 0)),
        ("s", (-1, 0, 0)),
        ("a", (0, 1, 0)),
        ("d", (0, -1, 0)),
        ("r", (0, 0, 1)),
        ("f", (0, 0, -1)),
    ],
)
def test_a_held_key_moves_the_hand_forward_left_and_up(
    rig: Rig, typed: FakeKeys, key: str, direction: tuple[int, int, int]
) -> None:
    rig.read()
    typed.press(key)
    rig.read()
    state = rig.run(0.5)
    np.testing.assert_allclose(position(state), SPEED * 0.5 * np.array(direction), atol=1e-9)
    velocity = state.hands["right"].linear_velocity
    np.testing.assert_allclose(velocity, SPEED * np.array(direction))


@pytest.mark.parametrize(
    ("key", "axis"),
    [
        ("left", (0, 0, 1)),
        ("right", (0, 0, -1)),
        ("up", (0, -1, 0)),
        ("down", (0, 1, 0)),
        ("e", (1, 0, 0)),
        ("q", (-1, 0, 0)),
    ],
)
def test_a_held_key_turns_the_hand_about_the_axes_of_the_room(
    rig: Rig, typed: FakeKeys, key: str, axis: tuple[int, int, int]
) -> None:
    typed.press(key)
    rig.read()
    pose = rig.run(0.5).hands["right"].pose
    assert pose is not None
    np.testing.assert_allclose(to_rotvec(pose.quat), SPEED * TURN_RATIO * 0.5 * np.array(axis), atol=1e-9)
    np.testing.assert_array_equal(pose.pos, np.zeros(3))


def test_two_keys_move_along_the_diagonal_no_faster_than_one(rig: Rig, typed: FakeKeys) -> None:
    typed.press("w", "a")
    rig.read()
    assert np.linalg.norm(position(rig.run(0.5))) == pytest.approx(SPEED * 0.5)


def test_releasing_the_key_stops_the_hand(rig: Rig, typed: FakeKeys) -> None:
    typed.press("w")
    rig.run(0.2)
    typed.release("w")
    rig.read()
    before = position(rig.read())
    np.testing.assert_array_equal(position(rig.run(0.5)), before)


def test_no_read_moves_the_hand_by_more_than_five_millimetres_in_ten_milliseconds(
    rig: Rig, typed: FakeKeys
) -> None:
    for _ in SPEEDS:
        typed.tap(table.FASTER_KEY)
    typed.press("w", "a", "r", "up", "q")
    before = position(rig.read())
    for _ in range(50):
        after = position(rig.read())
        assert np.linalg.norm(after - before) <= 0.005 * TICK / 0.01
        before = after


def test_a_stall_of_the_loop_does_not_make_the_hand_leap(
    rig: Rig, clock: ManualClock, typed: FakeKeys
) -> None:
    for _ in SPEEDS:
        typed.tap(table.FASTER_KEY)
    typed.press("w")
    before = position(rig.read())
    clock.sleep(30.0)
    assert np.linalg.norm(position(rig.read()) - before) <= 0.04


def test_shift_slows_the_hand_and_minus_and_equal_step_the_speed(rig: Rig, typed: FakeKeys) -> None:
    typed.press("w")

    def speed() -> float:
        velocity = rig.hand().linear_velocity
        assert velocity is not None
        return float(velocity[0])

    assert speed() == pytest.approx(0.2)
    typed.press("shift")
    assert speed() == pytest.approx(0.05)
    typed.release("shift")
    typed.tap("minus")
    assert speed() == pytest.approx(0.1)
    for _ in range(10):
        typed.tap("equal")
    assert speed() == pytest.approx(SPEEDS[-1])


def test_the_trigger_follows_space_where_releases_are_known(rig: Rig, typed: FakeKeys) -> None:
    assert rig.hand().trigger == 0.0
    typed.press("space")
    driving = rig.hand()
    assert (driving.trigger, driving.buttons, driving.pressed) == (1.0, {"trigger"}, {"trigger"})
    assert rig.hand().pressed == frozenset()
    typed.release("space")
    assert rig.hand().trigger == 0.0


def test_g_closes_the_gripper_and_opens_it_again(rig: Rig, typed: FakeKeys) -> None:
    squeezes = []
    for _ in range(3):
        typed.tap("g")
        squeezes.append(rig.hand().squeeze)
        rig.run(0.1)
    assert squeezes == [1.0, 0.0, 1.0]


def test_c_is_the_button_that_re_references(rig: Rig, typed: FakeKeys) -> None:
    typed.tap("c")
    assert rig.hand().pressed == {"a"}
    assert rig.hand().pressed == frozenset()


def test_every_command_has_a_key_and_is_given_once(rig: Rig, typed: FakeKeys) -> None:
    assert set(table.COMMAND_KEYS.values()) == set(COMMANDS)
    for key, command in table.COMMAND_KEYS.items():
        typed.tap(key)
        assert rig.read().commands == (command,)
        assert rig.read().commands == ()


def test_no_key_means_two_things() -> None:
    assert len(table.KEY_NAMES) == len(set(table.KEY_NAMES))


def test_tab_goes_to_the_other_hand_and_lets_go_of_the_first(clock: ManualClock) -> None:
    typed = FakeKeys()
    with Keyboard(clock=clock, keys=typed, hands=("right", "left")) as device:
        rig = Rig(device, clock)
        typed.press("space", "w")
        rig.run(0.1)
        typed.tap("tab")
        state = rig.run(0.1)
        assert state.hands["right"].trigger == 0.0
        assert state.hands["left"].trigger == 1.0
        right_before = position(state)
        state = rig.run(0.1)
        np.testing.assert_array_equal(position(state), right_before)
        left = state.hands["left"].pose
        assert left is not None
        assert left.pos[0] > 0.0


def test_in_a_terminal_space_drives_until_it_is_pressed_again(
    terminal_rig: Rig, typewriter: FakeTypewriter
) -> None:
    typewriter.typed = " "
    assert terminal_rig.hand().trigger == 1.0
    assert terminal_rig.run(3.0).hands["right"].trigger == 1.0
    typewriter.typed = " "
    assert terminal_rig.hand().trigger == 0.0


def test_in_a_terminal_keeping_space_down_does_not_make_the_clutch_chatter(
    terminal_rig: Rig, typewriter: FakeTypewriter
) -> None:
    typewriter.typed = " "
    triggers = [terminal_rig.hand().trigger]
    triggers.append(terminal_rig.run(0.66).hands["right"].trigger)
    for _ in range(40):
        typewriter.typed = " "
        triggers.append(terminal_rig.run(0.03).hands["right"].trigger)
    assert set(triggers) == {1.0}
    terminal_rig.run(REPEAT_S + TICK)
    typewriter.typed = " "
    assert terminal_rig.hand().trigger == 0.0


def test_in_a_terminal_a_typed_key_moves_for_a_moment(terminal_rig: Rig, typewriter: FakeTypewriter) -> None:
    typewriter.typed = "w"
    moved = position(terminal_rig.run(1.0))[0]
    assert moved == pytest.approx(SPEED * HOLD_S, abs=2 * SPEED * TICK)


def test_in_a_terminal_the_repetition_of_a_key_keeps_the_hand_moving(
    terminal_rig: Rig, typewriter: FakeTypewriter
) -> None:
    for _ in range(20):
        typewriter.typed = "w"
        state = terminal_rig.run(0.05)
    assert position(state)[0] == pytest.approx(SPEED * 1.0, rel=0.02)


def test_in_a_terminal_keeping_enter_down_starts_one_episode(
    terminal_rig: Rig, typewriter: FakeTypewriter
) -> None:
    commands: list[str] = []
    for _ in range(40):
        typewriter.typed = "\n"
        commands.extend(terminal_rig.read().commands)
        terminal_rig.run(0.02)
    assert commands == ["start"]


def test_a_terminal_tells_arrows_capitals_and_escape_apart() -> None:
    decoder = KeyDecoder()
    assert decoder.decode("\x1b[A\x1b[1;2DW-5\r\x1bOB", 0.0) == [
        ("up", False),
        ("left", True),
        ("w", True),
        ("minus", False),
        ("5", False),
        ("enter", False),
        ("down", False),
    ]
    assert decoder.decode("\x1b", 1.0) == []
    assert decoder.decode("[C", 1.01) == [("right", False)]
    assert decoder.decode("\x1b", 2.0) == []
    assert decoder.decode("", 2.1) == [("escape", False)]
    assert decoder.decode("\xe0H\x00K\x1b[15~ä", 3.0) == [("up", False), ("left", False)]
    assert decoder.decode("\x1bw", 4.0) == [("escape", False), ("w", False)]


def test_without_a_terminal_the_keyboard_says_where_keys_may_come_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    with open(f"{tmp_path}/nothing", "w+") as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(DeviceError, match="--viewer web"), Keyboard():
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals of this kind")
def test_a_real_terminal_gives_its_keys_and_is_put_back_as_it_was(clock: ManualClock) -> None:
    import os
    import pty
    import termios

    from bunraku.teleop_collect.terminal_keys import PosixTypewriter

    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    with TerminalKeys(clock, PosixTypewriter(theirs)) as keys:
        assert isinstance(keys, KeySource)
        inside = termios.tcgetattr(theirs)
        assert not inside[3] & (termios.ECHO | termios.ICANON)
        assert inside[3] & termios.ISIG
        assert keys.pressed() == ()
        os.write(ours, b"w\x1b[A ")
        assert keys.pressed() == ("w", "up", "space")
        assert keys.held() == {"w", "up", "space"}
        clock.sleep(HOLD_S)
        assert keys.held() == frozenset()
    assert termios.tcgetattr(theirs) == before
    os.close(ours)
    os.close(theirs)


def test_the_keys_of_a_viewer_leave_its_own_shortcuts_out_and_lose_no_tap() -> None:
    class FakeViewer:
        down: frozenset[str] = frozenset()

        def keys(self) -> frozenset[str]:
            return self.down

    viewer = FakeViewer()
    source = ViewerKeys(viewer)
    assert isinstance(source, KeySource)
    viewer.down = frozenset({"g", "enter", "w"})
    assert source.held() == {"g", "w"}
    viewer.down = frozenset({"w"})
    assert source.held() == {"w"}
    assert source.pressed() == ("g", "w")
    assert source.pressed() == ()


def test_reading_does_not_start_threads(rig: Rig) -> None:
    before = threading.active_count()
    rig.run(0.1)
    assert threading.active_count() == before
