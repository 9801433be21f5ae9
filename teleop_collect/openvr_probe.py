"""What SteamVR and its controllers are doing right now, for `bunraku doctor`.

    report = probe(seconds=2.0)
    if not report.ok:
        print(report.detail, report.remedy)
    for controller in report.controllers:
        print(controller.role, controller.model, controller.rate, controller.problems())

It never starts SteamVR. Move nothing and press a few buttons while it looks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from bunraku.device import Clock, HandName
from bunraku.geometry import Array
from bunraku.rate import Rate
from bunraku.teleop_collect.openvr_buttons import ButtonLayout, axes_of
from bunraku.teleop_collect.openvr_runtime import BACKGROUND, SteamVRError
from bunraku.teleop_collect.openvr_session import HEADSET_INDEX, RUNNING_OK, STANDBY, Session

CONTROLLER_CLASS = 2
PROBE_FREQUENCY = 250.0
"""How often poses are asked for [Hz]: more often than any headset tracks."""
STILL_WINDOW = 0.5
"""Jitter is that of the stillest part of this length [s]: nobody holds still for longer on request."""

Role = Literal["left", "right", "none"]


@dataclass(frozen=True, slots=True)
class ControllerReport:
    """One controller that is on."""

    index: int
    """SteamVR's index."""
    role: Role
    """The hand that SteamVR takes it for."""
    model: str
    controller_type: str
    serial: str
    valid_share: float
    """Share of the reads that had a measured pose, 0 to 1."""
    rate: float
    """How often its pose changed [Hz]; where SteamVR extrapolates, that is how often it was asked."""
    jitter_mm: float | None
    """Root mean square distance from the mean in the stillest half second [mm], None if untracked."""
    buttons: tuple[str, ...]
    """Names of the buttons that were down at some time."""
    packet_moving: bool
    """Whether input packets arrived; without them the buttons stay dead."""
    battery: float | None
    """Charge, 0 to 1, if it tells."""

    def problems(self) -> list[str]:
        """Return what would keep this controller from driving, each with its remedy."""
        found = []
        if self.role == "none":
            found.append("it is in neither hand; press a button of it, or turn both controllers off and on")
        if self.valid_share < 0.9:
            found.append("its pose is often lost; bring it into the headset's view, and light the room")
        if not self.packet_moving:
            found.append(
                "no input arrives; press a button, close the dashboard, or choose the controller's default "
                "binding in SteamVR > Settings > Controllers"
            )
        if self.battery is not None and self.battery < 0.15:
            found.append(f"its battery is at {100 * self.battery:.0f} %; charge it")
        return found


@dataclass(frozen=True, slots=True)
class SteamVRReport:
    """SteamVR at the time of the probe."""

    ok: bool
    """Whether SteamVR answers."""
    detail: str
    """One line: what was found, or what failed."""
    remedy: str = ""
    """What to do when it failed."""
    error_code: int | None = None
    """The EVRInitError."""
    runtime_version: str = ""
    headset: str = ""
    """Model of the headset."""
    headset_asleep: bool = False
    """Whether nobody wears the headset, so that its tracking may stop."""
    input_available: bool = False
    """Whether buttons come to programs, not to the dashboard."""
    controllers: tuple[ControllerReport, ...] = ()
    """Those that are on, by index."""


@dataclass(slots=True)
class _Watched:
    """What is gathered about one controller."""

    role: Role
    type: str
    layout: ButtonLayout
    reads: int = 0
    tracked: int = 0
    changes: int = 0
    last: bytes = b""
    places: list[Array] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    buttons: set[str] = field(default_factory=set)
    packets: set[int] = field(default_factory=set)


def probe(
    seconds: float = 2.0,
    *,
    clock: Clock = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> SteamVRReport:
    """Look at SteamVR for a while; never raises for what is wrong with it.

    Args:
        seconds: For how long [s].
        clock: Returns the time [s].
        sleep: Waits for a number of seconds.

    Raises:
        DeviceError: If this process has an openvr device open.
    """
    try:
        session = Session(BACKGROUND, clock)
    except SteamVRError as error:
        return SteamVRReport(ok=False, detail=error.detail, remedy=error.remedy, error_code=error.code)
    try:
        return _report(session, seconds, clock, sleep)
    finally:
        session.close()


def _report(session: Session, seconds: float, clock: Clock, sleep: Callable[[float], None]) -> SteamVRReport:
    watched: dict[int, _Watched] = {}
    rate = Rate(PROBE_FREQUENCY, clock, sleep)
    start = clock()
    available = False
    while clock() - start < seconds:
        reading = session.read()
        available |= reading.input_available
        for index, pose in enumerate(session.poses()):
            if pose.bDeviceIsConnected and session.system.getTrackedDeviceClass(index) == CONTROLLER_CLASS:
                _watch(session, watched, index, pose, reading.time)
        rate.sleep()
    elapsed = max(clock() - start, 1e-9)
    controllers = tuple(_summary(session, i, w, elapsed) for i, w in sorted(watched.items()))
    version = session.system.getRuntimeVersion()
    return SteamVRReport(
        ok=True,
        detail=f"SteamVR {version}, {len(controllers)} controller{'' if len(controllers) == 1 else 's'}",
        remedy="" if controllers else "turn the controllers on and hold them in the headset's view",
        runtime_version=version,
        headset=session.text(HEADSET_INDEX, session.library.Prop_ModelNumber_String),
        headset_asleep=int(session.system.getTrackedDeviceActivityLevel(HEADSET_INDEX)) == STANDBY,
        input_available=available,
        controllers=controllers,
    )


def _watch(session: Session, watched: dict[int, _Watched], index: int, pose: Any, now: float) -> None:
    if index not in watched:
        watched[index] = _Watched("none", *session.layout(index))
    it = watched[index]
    it.role = _role(session, index)
    it.reads += 1
    matrix = np.array(pose.mDeviceToAbsoluteTracking.m, dtype=np.float64)
    if pose.bPoseIsValid and int(pose.eTrackingResult) == RUNNING_OK and np.isfinite(matrix).all():
        it.tracked += 1
        it.changes += bool(it.last) and matrix.tobytes() != it.last
        it.last = matrix.tobytes()
        it.places.append(matrix[:, 3])
        it.times.append(now)
    found, state = session.system.getControllerState(index)
    if found:
        it.packets.add(int(state.unPacketNum))
        hand: HandName = "left" if it.role == "left" else "right"
        it.buttons |= it.layout.read(hand, int(state.ulButtonPressed), axes_of(state)).buttons


def _role(session: Session, index: int) -> Role:
    roles: dict[int, Role] = {1: "left", 2: "right"}
    return roles.get(int(session.system.getControllerRoleForTrackedDeviceIndex(index)), "none")


def _summary(session: Session, index: int, it: _Watched, elapsed: float) -> ControllerReport:
    library = session.library
    return ControllerReport(
        index=index,
        role=it.role,
        model=session.text(index, library.Prop_ModelNumber_String),
        controller_type=it.type,
        serial=session.text(index, library.Prop_SerialNumber_String),
        valid_share=it.tracked / it.reads,
        rate=it.changes / elapsed,
        jitter_mm=_jitter(np.array(it.times), np.array(it.places)),
        buttons=tuple(sorted(it.buttons)),
        packet_moving=it.packets != {0} and bool(it.packets),
        battery=session.number(index, library.Prop_DeviceBatteryPercentage_Float),
    )


def _jitter(times: Array, places: Array) -> float | None:
    """Return the least root mean square deviation [mm] of positions `(n, 3)` in any `STILL_WINDOW`."""
    if len(times) < 10:
        return None
    window = min(STILL_WINDOW, float(times[-1] - times[0]))
    last = np.searchsorted(times, times + window, side="right")
    deviations = [
        np.sqrt(places[first:end].var(axis=0).sum())
        for first, end in enumerate(last)
        if times[first] + window <= times[-1] and end - first >= 5
    ]
    return 1e3 * float(min(deviations)) if deviations else None
