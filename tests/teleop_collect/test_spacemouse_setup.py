"""Setting a SpaceMouse up: what is refused and how, inverted and checked axes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable

import pytest

from bunraku.errors import BunrakuError, DeviceError, MissingDependencyError, UnknownNameError
from bunraku.teleop_collect.devices.spacemouse import AXES, SpaceMouse
from tests.teleop_collect.fake_hid import FakeBus, FakeHidDevice, FakeMouse
from tests.teleop_collect.manual_clock import ManualClock

try:
    import easyhid
    import pyspacemouse
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


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_no_mouse_no_permission_and_no_library_are_one_line_each_with_a_remedy(
    platform: str, plug: Plug, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    bus = plug()
    lines = [refusal(DeviceError)]
    bus.mice.append(FakeMouse())
    bus.mice[0].permitted = False
    lines.append(refusal(DeviceError))

    def without_hidapi(*_: object) -> None:
        raise AttributeError("undefined symbol: hid_enumerate")

    monkeypatch.setattr(easyhid, "Enumeration", without_hidapi)
    lines.append(refusal(DeviceError))
    monkeypatch.setitem(sys.modules, "pyspacemouse", None)
    lines.append(refusal(MissingDependencyError))
    remedies = [
        "plug it in",
        {"linux": "udev", "win32": "3DxWare"}[platform],
        "install it with",
        "bunraku[spacemouse]",
    ]
    for line, remedy in zip(lines, remedies, strict=True):
        assert remedy in line
        assert "\n" not in line


def refusal(error: type[BunrakuError]) -> str:
    with pytest.raises(error) as caught:
        SpaceMouse().__enter__()
    return str(caught.value)


def test_options_that_do_not_exist_get_did_you_mean() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'yaw'"):
        SpaceMouse(invert=("jaw",))


def test_an_inverted_axis_turns_round(mouse: FakeMouse, clock: ManualClock) -> None:
    with SpaceMouse(clock=clock, background=False, invert=("yaw",)) as device:
        mouse.turn(about_down=350)
        device.read()
        hand = device.read().hands["right"]
    assert hand.angular_velocity is not None
    assert hand.angular_velocity[2] > 0.0


def test_the_axis_check_tells_right_wrong_and_missing_axes(mouse: FakeMouse, clock: ManualClock) -> None:
    reports = iter(
        [
            lambda: mouse.push(toward=-300),
            lambda: mouse.push(right=-300, toward=-60),
            lambda: None,
            lambda: mouse.turn(about_toward=-300),
            lambda: mouse.turn(about_toward=-300),
            lambda: mouse.turn(about_down=300),
        ]
    )
    asked: list[str] = []

    def operator(prompt: str) -> None:
        mouse.push()
        mouse.turn()
        asked.append(prompt)
        next(reports)()

    with SpaceMouse(clock=clock, background=False) as device:
        results = device.check_axes(operator, seconds=10.0, sleep=clock.sleep)
    assert list(results) == list(AXES)
    assert len(asked) == 6
    assert {axis: result.ok for axis, result in results.items()} == {
        "x": True,
        "y": True,
        "z": False,
        "roll": True,
        "pitch": False,
        "yaw": False,
    }
    assert not results["z"].seen
    assert results["pitch"].axis == "roll"
    assert results["yaw"].axis == "yaw"
    assert results["yaw"].value < 0.0
    assert clock.now - 100.0 < 10.5


def test_the_fake_bus_has_the_shape_of_the_real_one() -> None:
    for name in ("open", "close", "read", "set_nonblocking"):
        real = inspect.signature(getattr(easyhid.HIDDevice, name)).parameters
        fake = inspect.signature(getattr(FakeHidDevice, name)).parameters
        assert list(real) == list(fake)
        assert [p.default for p in real.values()] == [p.default for p in fake.values()]
    real_attributes = set(easyhid.HIDDevice.__init__.__code__.co_names)
    attributes = {name for name in vars(FakeHidDevice(FakeMouse(), ValueError)) if not name.startswith("_")}
    assert attributes <= real_attributes
    real_find = list(inspect.signature(easyhid.Enumeration.find).parameters)
    assert real_find[:3] == list(inspect.signature(FakeBus.find).parameters)
    assert list(inspect.signature(pyspacemouse.SpaceMouseDevice).parameters) == ["info", "device"]
