"""The stand-in SteamVR itself: it must be what the binding expects, and as unkind as the real one."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.teleop_collect.steamvr.build import SOURCE, cannot_run
from tests.teleop_collect.steamvr.matrices import pose_matrix
from tests.teleop_collect.steamvr.runtime import StandInRuntime


def run_program(
    program: str, before_input: Callable[[], object] = lambda: None
) -> subprocess.CompletedProcess[str]:
    """Run a program that sees the same SteamVR; give it a line of input after something was done."""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        before_input()
        out, err = process.communicate("go\n", timeout=60)
    return subprocess.CompletedProcess(program, process.returncode, out, err)


def test_each_function_is_in_the_slot_where_the_binding_looks(vrclient: Path) -> None:
    import openvr

    slots = [name.lower() for name, _ in openvr.IVRSystem_FnTable._fields_]
    served = re.findall(r"^  serve\((\d+), (\w+)\);", SOURCE.read_text(), flags=re.MULTILINE)
    assert openvr.IVRSystem_Version == "IVRSystem_023"
    assert len(slots) == 47
    assert len(served) == 19
    short = {"GetBoolProperty", "GetFloatProperty", "GetInt32Property", "GetStringProperty"}
    for slot, function in served:
        name = function.replace("Property", "TrackedDeviceProperty") if function in short else function
        name = {"AcknowledgeQuit": "AcknowledgeQuit_Exiting"}.get(name, name)
        assert slots[int(slot)] == name.lower()


def test_structures_have_the_sizes_of_the_binding(vrclient: Path) -> None:
    import ctypes

    import openvr

    assert ctypes.sizeof(openvr.TrackedDevicePose_t) == 80
    assert ctypes.sizeof(openvr.VRControllerState_t) == 60
    assert ctypes.sizeof(openvr.VREvent_t) == 60


def test_a_function_that_is_not_served_tells_its_number_instead_of_a_bare_crash(vr: StandInRuntime) -> None:
    ended = run_program("import openvr; openvr.init(3).getRecommendedRenderTargetSize()")
    assert ended.returncode != 0
    assert "IVRSystem function 0 is not served" in ended.stderr


def test_an_interface_that_is_lacking_shuts_the_session_down(vr: StandInRuntime) -> None:
    ended = run_program(
        "import openvr\nopenvr.init(3)\n"
        "try:\n    openvr.VROverlay()\nexcept openvr.OpenVRError as e:\n    print('number 105' in str(e))"
    )
    assert ended.stdout.strip() == "True"
    assert vr.control.shutdowns == 1


@pytest.mark.parametrize(("origin", "zero"), [(1, None), (0, "seated_to_standing"), (2, "raw_to_standing")])
def test_poses_are_predicted_and_in_the_universe_that_was_asked_for(
    vr: StandInRuntime, origin: int, zero: str | None
) -> None:
    vr.controller("right", index=1, noise=0.0)
    vr.move("right", (0.0, 1.0, 0.0), velocity=(2.0, 0.0, 0.0), angular_velocity=(0.0, 1.0, 0.0))
    ended = run_program(
        "import openvr\nsystem = openvr.init(3)\n"
        f"pose = system.getDeviceToAbsoluteTrackingPose({origin}, 0.5, [])[1]\n"
        "print([list(row) for row in pose.mDeviceToAbsoluteTracking.m])"
    )
    expected = np.eye(4)
    expected[:3] = pose_matrix((1.0, 1.0, 0.0), (0.0, 0.5, 0.0))
    if zero is not None:
        standing_zero = np.eye(4)
        standing_zero[:3] = np.reshape(getattr(vr.control, zero), (3, 4))
        expected = np.linalg.inv(standing_zero) @ expected
    np.testing.assert_allclose(json.loads(ended.stdout), expected[:3], atol=1e-6)


def test_events_from_before_connecting_are_not_seen_and_roles_name_no_device(vr: StandInRuntime) -> None:
    vr.controller("left")
    vr.controller("right")
    vr.swap_roles()
    ended = run_program(
        "import openvr, sys\nsystem, event = openvr.init(3), openvr.VREvent_t()\n"
        "print(system.pollNextEvent(event), flush=True)\nsys.stdin.readline()\n"
        "while system.pollNextEvent(event):\n"
        "    print(event.eventType, event.trackedDeviceIndex, event.eventAgeSeconds >= 0.0)",
        before_input=lambda: vr.until(lambda: vr.control.polls > 0, "a poll") or vr.swap_roles(),
    )
    assert ended.stdout.splitlines() == ["False", "108 4294967295 True"]


def test_a_test_that_dies_while_writing_does_not_hang_the_program(vr: StandInRuntime) -> None:
    vr.controller("right")
    vr.control.sequence += 1
    ended = run_program(
        "import openvr\nopenvr.init(3).getDeviceToAbsoluteTrackingPose(1, 0.0, [])\nprint('done')"
    )
    vr.control.sequence += 1
    assert ended.stdout == "done\n"
    assert vr.control.gave_up > 0
    vr.control.gave_up = 0


def test_a_control_file_of_another_layout_is_refused(vr: StandInRuntime) -> None:
    vr.control.size += 8
    ended = run_program("import openvr; openvr.init(3)")
    assert ended.returncode != 0
    assert "disagree on the control file" in ended.stderr


def test_in_ci_a_machine_that_cannot_run_these_tests_fails_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="must not be skipped"):
        cannot_run("no compiler")
    monkeypatch.delenv("CI")
    with pytest.raises(pytest.skip.Exception):
        cannot_run("no compiler")
