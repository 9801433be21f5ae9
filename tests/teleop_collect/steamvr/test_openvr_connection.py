"""The openvr device and its SteamVR: opening, refusals and remedies, quitting and coming back, haptics."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from bunraku.errors import DeviceError
from bunraku.teleop_collect.devices.openvr import OpenVR
from bunraku.teleop_collect.openvr_runtime import BACKGROUND, OTHER, REMEDIES, SteamVRError
from bunraku.teleop_collect.openvr_session import Session
from tests.teleop_collect.manual_clock import ManualClock
from tests.teleop_collect.steamvr.runtime import StandInRuntime

REFUSALS: list[tuple[str, Callable[[StandInRuntime], None], int, str, str]] = [
    ("never installed", lambda vr: vr.installation.uninstall(), 110, "PathRegistryNotFound", "install Steam"),
    (
        "registry cut",
        lambda vr: vr.installation.garble_registry(),
        110,
        "PathRegistryNotFound",
        "start SteamVR",
    ),
    ("folder moved", lambda vr: vr.installation.move_away(), 100, "InstallationNotFound", "Verify"),
    ("no binaries", lambda vr: vr.installation.lose_binaries(), 101, "InstallationCorrupt", "Verify"),
    ("no client", lambda vr: vr.installation.lose_client(), 102, "VRClientDLLNotFound", "Verify"),
    ("too old", lambda vr: vr.grow_old(), 105, "InterfaceNotFound", "update SteamVR"),
    ("no headset", lambda vr: vr.refuse(108), 108, "HmdNotFound", "switch the headset on"),
    ("none on USB", lambda vr: vr.refuse(126), 126, "HmdNotFoundPresenceFailed", "streaming program"),
    ("server fails", lambda vr: vr.refuse(301), 301, "IPC_ConnectFailed", "start it again"),
    ("newer code", lambda vr: vr.refuse(9999), 9999, "does not know", "start it again"),
]


@pytest.mark.parametrize(
    ("spoil", "code", "name", "remedy"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS]
)
@pytest.mark.parametrize("background", [True, False])
def test_a_refusal_is_one_line_with_name_code_and_remedy(
    vr: StandInRuntime,
    spoil: Callable[[StandInRuntime], None],
    code: int,
    name: str,
    remedy: str,
    background: bool,
) -> None:
    spoil(vr)
    device = OpenVR(background=background)
    for _ in range(2):
        with pytest.raises(SteamVRError) as caught, device:
            pass
        line = str(caught.value)
        assert "\n" not in line
        assert caught.value.code == code
        for part in (name, f"({code})", remedy):
            assert part in line


def test_a_steamvr_that_does_not_run_is_started_unless_told_otherwise(vr: StandInRuntime) -> None:
    vr.control.server_running = 0
    with pytest.raises(SteamVRError, match=r"\(121\).*start SteamVR"), OpenVR(start_steamvr=False):
        pass
    assert vr.control.server_running == 0
    with OpenVR():
        assert vr.control.application == OTHER
        assert vr.control.server_running == 1


def test_a_refusal_that_was_mended_opens_the_next_time(vr: StandInRuntime) -> None:
    device = OpenVR()
    vr.refuse(108)
    with pytest.raises(SteamVRError), device:
        pass
    vr.refuse(0)
    vr.controller("right")
    with device:
        assert device.read().hands["right"].pose is not None


def test_without_the_openvr_package_the_remedy_is_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvr", None)
    with pytest.raises(SteamVRError, match="pip install openvr"), OpenVR():
        pass


def test_on_a_processor_that_the_package_has_no_library_for_it_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class NoLibrary:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
            if name == "openvr":
                raise OSError("libopenvr_api_64.so: cannot open shared object file\nwrong ELF class")
            return None

    monkeypatch.delitem(sys.modules, "openvr", raising=False)
    monkeypatch.setattr(sys, "meta_path", [NoLibrary, *sys.meta_path])
    with (
        pytest.raises(SteamVRError, match=r"no library for this machine.*x86-64.*--device") as caught,
        OpenVR(),
    ):
        pass
    assert "\n" not in str(caught.value)


def test_every_remedy_is_one_line_that_tells_what_to_do() -> None:
    assert set(REMEDIES) == {100, 101, 102, 105, 108, 110, 121, 126}
    for remedy in REMEDIES.values():
        assert "\n" not in remedy
        assert any(word in remedy for word in ("start", "install", "Verify", "switch", "update"))


def test_a_second_device_in_one_program_is_refused_and_the_first_goes_on(vr: StandInRuntime) -> None:
    vr.controller("right")
    with OpenVR() as first:
        with pytest.raises(DeviceError, match="connected to SteamVR already; close the other"), OpenVR():
            pass
        vr.step()
        assert first.read().hands["right"].pose is not None
    with OpenVR() as second:
        assert second.read().hands["right"].pose is not None


def test_opening_and_closing_again_and_again_leaves_nothing_behind(vr: StandInRuntime) -> None:
    vr.controller("right")
    device = OpenVR()
    for _ in range(10):
        with device:
            assert device.read().hands["right"].pose is not None
    assert (vr.control.inits, vr.control.shutdowns) == (10, 10)


def test_a_steamvr_that_does_not_answer_is_given_up(vr: StandInRuntime) -> None:
    vr.hold(True)
    with pytest.raises(DeviceError, match=r"did not answer within 0\.01 s"), OpenVR(open_timeout=0.01):
        pass
    vr.hold(False)
    vr.until(lambda: "bunraku-openvr" not in [t.name for t in threading.enumerate()], "its thread to end")
    assert vr.control.shutdowns == vr.control.inits == 1
    with OpenVR() as device:
        assert device.read().events == ()


@pytest.mark.parametrize(
    ("told", "used"),
    [(72.0, 72.0), (0.0, 90.0), (-1.0, 90.0), (float("nan"), 90.0), (5.0, 30.0), (1e5, 500.0)],
)
def test_the_reader_runs_at_the_headsets_rate(
    tmp_path: Path, vrclient: Path, told: float, used: float
) -> None:
    with StandInRuntime(tmp_path / "vr", vrclient, frequency=told):
        session = Session(BACKGROUND, ManualClock())
        try:
            assert session.frequency == used
        finally:
            session.close()


def test_after_quitting_the_device_comes_back_by_itself_and_never_starts_steamvr(
    vr: StandInRuntime, inline: OpenVR, clock: ManualClock
) -> None:
    vr.controller("right", index=3)
    inline.read()
    vr.press("right", "trigger")
    vr.quit()
    state = inline.read()
    assert state.events == ("quit", "disconnected")
    hand = state.hands["right"]
    assert (hand.connected, hand.pose, hand.trigger, hand.buttons) == (False, None, 0.0, frozenset())
    assert (vr.control.acknowledged, vr.control.shutdowns) == (1, 1)
    tries = []
    for _ in range(200):
        clock.sleep(0.1)
        inline.read()
        tries.append(vr.control.attempts - 1)
    assert vr.control.server_running == 0
    assert (tries[8], tries[14], tries[28], tries[34], tries[68], tries[76]) == (0, 1, 1, 2, 2, 3)
    assert tries[-1] <= 6, "it looks every 5 s at most"
    vr.start()
    clock.sleep(5.0)
    inline.read()
    assert vr.control.application == BACKGROUND
    state = inline.read()
    assert state.events == ("connected",)
    assert state.hands["right"].pose is not None
    assert state.hands["right"].pressed == frozenset()


def test_the_reader_thread_survives_a_restart_of_steamvr(
    vr: StandInRuntime, device: OpenVR, clock: ManualClock
) -> None:
    vr.controller("right", index=3)
    vr.step()
    device.read()
    vr.quit()
    vr.until(lambda: vr.control.shutdowns == 1, "the device to let go")
    vr.start()
    vr.switch_on("right", vr.switch_off("right"), new_index=6)
    clock.sleep(1.0)
    vr.until(lambda: vr.control.inits == 2, "the device to come back")
    vr.step()
    state = device.read()
    assert state.events == ("quit", "disconnected", "connected")
    assert state.hands["right"].pose is not None


def test_a_server_that_dies_without_a_word_is_left_and_looked_for(
    vr: StandInRuntime, inline: OpenVR, clock: ManualClock
) -> None:
    vr.controller("right")
    inline.read()
    vr.lose_everything()
    assert inline.read().events == ("disconnected",)
    clock.sleep(2.9)
    inline.read()
    assert vr.control.shutdowns == 0
    clock.sleep(0.2)
    inline.read()
    assert vr.control.shutdowns == 1
    clock.sleep(1.0)
    inline.read()
    assert vr.control.inits == 2


@pytest.mark.parametrize("frequency", [90.0, 500.0])
def test_a_rumble_is_a_pulse_every_tick_at_least_5_ms_apart(
    tmp_path: Path, vrclient: Path, clock: ManualClock, frequency: float
) -> None:
    with StandInRuntime(tmp_path / "vr", vrclient, frequency=frequency) as vr:
        index = vr.controller("right")
        vr.controller("left")
        with OpenVR(clock=clock) as device:
            device.rumble("right", 0.5, 0.1)
            vr.until(lambda: len(vr.pulses) >= 8, "8 pulses")
            clock.sleep(0.2)
            vr.step()
            given = len(vr.pulses)
            vr.step(10)
            assert len(vr.pulses) == given, "the rumble is over"
        assert {(p.device, p.axis, p.microseconds) for p in vr.pulses} == {(index, 0, 2000)}
        assert not any(p.too_soon for p in vr.pulses)


@pytest.mark.parametrize(
    ("strength", "microseconds"), [(1.0, 3999), (7.0, 3999), (0.1, 400), (0.0001, None), (0.0, None)]
)
def test_strength_is_the_length_of_a_pulse(
    vr: StandInRuntime, inline: OpenVR, strength: float, microseconds: int | None
) -> None:
    vr.controller("left")
    inline.read()
    inline.rumble("left", strength, 0.02)
    inline.read()
    assert [p.microseconds for p in vr.pulses] == ([] if microseconds is None else [microseconds])


@pytest.mark.parametrize(("strength", "seconds"), [(0.5, 0.0), (0.5, -1.0), (float("nan"), 1.0), (-1.0, 1.0)])
def test_a_rumble_of_nothing_gives_no_pulse(
    vr: StandInRuntime, inline: OpenVR, strength: float, seconds: float
) -> None:
    vr.controller("right")
    inline.read()
    inline.rumble("right", strength, seconds)
    inline.read()
    assert vr.pulses == []


def test_a_rumble_shorter_than_a_tick_is_still_felt(
    vr: StandInRuntime, inline: OpenVR, clock: ManualClock
) -> None:
    vr.controller("right")
    inline.read()
    inline.rumble("right", 0.5, 0.001)
    clock.sleep(0.011)
    inline.read()
    assert len(vr.pulses) == 1


def test_a_rumble_for_a_controller_that_is_off_is_forgotten(vr: StandInRuntime, inline: OpenVR) -> None:
    inline.rumble("right", 0.5, 10.0)
    inline.read()
    vr.controller("right")
    for _ in range(3):
        inline.read()
    assert vr.pulses == []


def run_program(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program of its own that sees the same SteamVR."""
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_program_that_forgets_to_close_the_device_ends_without_a_crash(vr: StandInRuntime) -> None:
    vr.controller("right")
    ended = run_program(
        "from bunraku.teleop_collect.devices.openvr import OpenVR\n"
        "device = OpenVR().__enter__()\n"
        "assert device.read().hands['right'].pose is not None\n"
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_shutdowns_by_others_after_closing_and_after_quitting_do_not_crash(vr: StandInRuntime) -> None:
    vr.controller("right")
    vr.event(700)  # before it connects: not seen
    ended = run_program(
        "import openvr\n"
        "from bunraku.teleop_collect.devices.openvr import OpenVR\n"
        "for _ in range(3):\n"
        "    with OpenVR(background=False) as device:\n"
        "        device.read()\n"
        "    openvr.shutdown()\n"
        "    openvr.shutdown()\n"
        "device = OpenVR(background=False)\n"
        "with device:\n"
        "    device.read()\n"
        "device.__exit__(None, None, None)\n"
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_error_leaves_the_device_closed(vr: StandInRuntime) -> None:
    with pytest.raises(ZeroDivisionError), OpenVR():
        1 / 0  # noqa: B018
    assert vr.control.shutdowns == 1
