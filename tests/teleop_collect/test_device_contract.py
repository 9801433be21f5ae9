"""What every registered device keeps to; a device is tested here because its file exists."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunraku import plugins
from bunraku.device import BUTTONS, COMMANDS, EVENTS, HANDS, Device, DeviceState
from bunraku.errors import BunrakuError, DeviceError, MissingDependencyError, UnknownNameError
from bunraku.teleop_collect.devices import names, open_device
from tests.teleop_collect.fake_hid import FakeBus, FakeMouse
from tests.teleop_collect.manual_clock import ManualClock
from tests.teleop_collect.recorded_stream import as_episode, recording, saved
from tests.teleop_collect.virtual_pad import VirtualPad, load_sdl

NAMES = plugins.names(plugins.DEVICES)
REMEDY_WORDS = (
    *("install", "plug", "start", "give", "choose", "allow", "open", "run ", "close", "turn on"),
    "--device",
)
"""One of these stands in every refusal: it tells a person what to do."""


@pytest.fixture(autouse=True)
def no_steamvr(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nobody find a SteamVR of this machine."""
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "USERPROFILE", "LOCALAPPDATA", "APPDATA"):
        monkeypatch.setenv(variable, str(tmp_path))
    for variable in ("VR_OVERRIDE", "VR_PATHREG_OVERRIDE", "VR_CONFIG_PATH", "VR_LOG_PATH"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def stand_in(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stack: ExitStack) -> dict[str, Any]:
    if name == "replay":
        return {"path": saved(tmp_path, as_episode(recording(), {"device": "gamepad"}))}
    if name == "spacemouse":
        try:
            easyhid = importlib.import_module("easyhid")
        except (ImportError, OSError, TypeError):  # not installed, or Windows without hidapi
            return {}
        monkeypatch.setattr(easyhid, "Enumeration", FakeBus(easyhid.HIDException, FakeMouse()))
    if name == "gamepad" and importlib.util.find_spec("pygame") and (sdl := load_sdl()) is not None:
        controller = importlib.import_module("pygame._sdl2.controller")
        controller.init()
        stack.callback(controller.quit)
        stack.callback(VirtualPad(sdl).unplug)
    return {}


@pytest.fixture
def entered(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An open device, or a skip where there is neither hardware nor a stand-in for it."""
    with ExitStack() as stack:
        options = stand_in(name, tmp_path, monkeypatch, stack)
        try:
            device = stack.enter_context(open_device(name, **options))
        except (DeviceError, MissingDependencyError) as refusal:
            pytest.skip(str(refusal))
        yield device


def check_state(state: DeviceState) -> None:
    """Check everything that holds for any state of any device."""
    assert np.isfinite(state.time)
    assert set(state.hands) <= set(HANDS)
    assert set(state.events) <= set(EVENTS)
    assert set(state.commands) <= set(COMMANDS)
    for hand in state.hands.values():
        assert np.isfinite(hand.time)
        assert 0.0 <= hand.trigger <= 1.0
        assert 0.0 <= hand.squeeze <= 1.0
        assert np.abs(hand.thumbstick).max() <= 1.0
        assert hand.buttons | hand.pressed <= set(BUTTONS)
        if hand.pose is not None:
            assert hand.connected
            assert np.isfinite(hand.pose.pos).all()
            assert np.linalg.norm(hand.pose.quat) == pytest.approx(1.0)


def test_the_class_tells_its_name_its_frame_and_whether_a_person_is_behind_it(name: str) -> None:
    device = plugins.load(plugins.DEVICES, name)
    assert device.name == name
    assert device.frame in ("y_up", "z_up")
    assert isinstance(device.scripted, bool)
    assert device.__doc__


def test_constructing_takes_clock_and_seed_and_touches_nothing(name: str) -> None:
    factory = plugins.load(plugins.DEVICES, name)
    parameters = inspect.signature(factory).parameters
    required = [p.name for p in parameters.values() if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    assert set(required) <= {"clock"}
    before = set(sys.modules)
    device = factory(clock=ManualClock(), seed=3)
    assert isinstance(device, Device)
    libraries = {module.partition(".")[0] for module in set(sys.modules) - before}
    assert not libraries & {"openvr", "pygame", "pyspacemouse", "easyhid", "h5py"}


def test_without_hardware_a_device_opens_or_says_in_one_line_what_to_do(name: str) -> None:
    device = open_device(name)
    try:
        with device:
            pass
    except (DeviceError, MissingDependencyError) as refusal:
        line = str(refusal)
        assert "\n" not in line
        assert any(word in line for word in REMEDY_WORDS), line


def test_a_refused_device_can_be_asked_again_with_the_same_answer(name: str) -> None:
    answers = []
    for _ in range(2):
        try:
            with open_device(name):
                answers.append("opened")
        except BunrakuError as refusal:
            answers.append(str(refusal))
    assert answers[0] == answers[1]


def test_reading_before_anything_happened_makes_nothing_up(entered: Any) -> None:
    first, second = entered.read(), entered.read()
    for state in (first, second):
        check_state(state)
    assert second.time >= first.time


def test_rumbling_never_raises(entered: Any) -> None:
    for hand in HANDS:
        for strength, seconds in ((0.0, 0.0), (0.5, 0.05), (1.0, 0.01)):
            entered.rumble(hand, strength, seconds)


def test_a_device_that_does_not_exist_gets_did_you_mean() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'gamepad'"):
        open_device("game_pad")
    assert names() == NAMES


def test_an_option_that_does_not_exist_gets_did_you_mean() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'speed'"):
        open_device("gamepad", sped=1.0)
