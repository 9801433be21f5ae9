"""Fixtures: a stand-in SteamVR, compiled once per session, and an openvr device on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bunraku.teleop_collect.devices.openvr import OpenVR
from tests.teleop_collect.manual_clock import ManualClock
from tests.teleop_collect.steamvr.build import build
from tests.teleop_collect.steamvr.runtime import StandInRuntime


@pytest.fixture(scope="session")
def vrclient(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled stand-in for SteamVR's client library."""
    return build(tmp_path_factory.mktemp("vrclient"))


@pytest.fixture
def vr(tmp_path: Path, vrclient: Path) -> Iterator[StandInRuntime]:
    """A running SteamVR with a headset and no controllers."""
    with StandInRuntime(tmp_path / "steamvr", vrclient) as runtime:
        yield runtime


@pytest.fixture
def clock() -> ManualClock:
    """A clock that the test moves."""
    return ManualClock()


@pytest.fixture
def device(vr: StandInRuntime, clock: ManualClock) -> Iterator[OpenVR]:
    """A device with its reader thread, on the test's clock; wait for it with `vr.step()`."""
    with OpenVR(clock=clock) as opened:
        yield opened


@pytest.fixture
def inline(vr: StandInRuntime, clock: ManualClock) -> Iterator[OpenVR]:
    """A device without a thread: each `read()` is one tick of the reader."""
    with OpenVR(clock=clock, background=False) as opened:
        yield opened
