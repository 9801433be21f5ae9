"""One connection to SteamVR: what it says at one moment, and pulses for its controllers.

Everything is asked anew at each read, roles above all: SteamVR gives them late, swaps them, and gives a
controller that comes back another index. All calls come from the thread that opened the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bunraku.device import HANDS, Clock, HandName
from bunraku.geometry import Array
from bunraku.teleop_collect.openvr_buttons import RELEASED, ButtonLayout, Controls, axes_of, layout_of
from bunraku.teleop_collect.openvr_runtime import connection

STANDING = 1
"""Tracking universe whose origin is the floor of the play area; velocities are in it too."""
RUNNING_OK = 200
"""The only tracking result with a measured position; 300 comes with a made-up one that is called valid."""
ROLES: Mapping[HandName, int] = {"left": 1, "right": 2}
STANDBY = 3
"""EDeviceActivityLevel of a headset that nobody wears."""
DEFAULT_FREQUENCY, LOWEST_FREQUENCY, HIGHEST_FREQUENCY = 90.0, 30.0, 500.0
MOST_EVENTS = 256
"""Events taken per read; the rest wait for the next."""

BUTTON_PRESS, QUIT, DASHBOARD_OPENED, DASHBOARD_CLOSED = 200, 700, 502, 503
STANDBY_ENTERED, STANDBY_LEFT = 106, 107
IDENTITY_EVENTS = frozenset({100, 101, 111})
"""Activated, deactivated, property changed: what is known of a device may no longer hold."""
RECENTRED = frozenset({801, 804, 808})
"""The chaperone's universe has changed, the seated or the standing zero pose was reset."""
HEADSET_INDEX = 0


@dataclass(frozen=True, slots=True)
class Identity:
    """What a controller is; it does not change while it is on."""

    serial: str
    type: str
    layout: ButtonLayout


@dataclass(frozen=True, slots=True)
class ControllerReading:
    """One controller at one moment."""

    index: int
    """SteamVR's index."""
    identity: Identity
    tracked: bool
    """Whether SteamVR has a measured pose."""
    matrix: Array
    """`(3, 4)` pose in the standing universe, as given."""
    linear_velocity: Array
    """`(3,)` [m/s]."""
    angular_velocity: Array
    """`(3,)` [rad/s]."""
    controls: Controls
    """Released while another program or the dashboard has the input."""
    listening: bool
    """Whether buttons come to this program."""
    packet: int
    """Number of the driver's last input packet; it stays 0 where no input arrives."""


@dataclass(slots=True)
class Reading:
    """What SteamVR says at one moment."""

    time: float
    """When the poses were asked for, and which moment they are for, on the device's clock [s]."""
    hands: dict[HandName, ControllerReading] = field(default_factory=dict)
    """Controllers that are on, by hand."""
    anything_connected: bool = False
    """Whether SteamVR has any device at all."""
    input_available: bool = True
    """Whether buttons come to this program."""
    events: list[str] = field(default_factory=list)
    """Names of `bunraku.device.EVENTS`, oldest first."""
    presses: list[tuple[int, int]] = field(default_factory=list)
    """Index and bit of each button that went down, whether it is still down or not."""
    quit: bool = False
    """Whether SteamVR asks this program to let go."""


class Session:
    """A connection; `close` it, and forget it, before another one is made."""

    def __init__(self, application: int, clock: Clock) -> None:
        """Connect.

        Args:
            application: `openvr_runtime.OTHER` or `BACKGROUND`.
            clock: Returns the time [s].

        Raises:
            SteamVRError: If SteamVR cannot be used.
        """
        self._clock = clock
        self._stack = ExitStack()
        self.library, self.system = self._stack.enter_context(connection(application))
        self._poses = (self.library.TrackedDevicePose_t * self.library.k_unMaxTrackedDeviceCount)()
        self._event = self.library.VREvent_t()
        self._identities: dict[int, Identity] = {}
        self._dashboard = False
        self._input_available = True
        self._activity = -1
        self._asleep = False
        self.frequency = self._frequency()
        """Rate of the tracker [Hz]."""

    def close(self) -> None:
        """Let go of SteamVR; no call is allowed afterwards."""
        self.system = None  # its functions are unloaded by the shutdown
        self._stack.close()

    def read(self) -> Reading:
        """Ask for everything, events last: what moved the poses (a recentring) is told with them."""
        reading = Reading(self._clock())
        # 0 s ahead: the poses of this moment. Never None for the array: nothing would be filled in.
        self.system.getDeviceToAbsoluteTrackingPose(STANDING, 0.0, self._poses)
        reading.anything_connected = any(pose.bDeviceIsConnected for pose in self._poses)
        reading.input_available = self._listen()
        for hand in HANDS:
            controller = self._controller(hand, reading.input_available)
            if controller is not None:
                reading.hands[hand] = controller
        self._take_events(reading)
        self._watch_headset(reading)
        return reading

    def pulse(self, index: int, microseconds: int) -> None:
        """Give one haptic pulse.

        Args:
            index: SteamVR's index of the controller.
            microseconds: Its length, 1 to 3999: an int, larger numbers wrap around silently.
        """
        self.system.triggerHapticPulse(index, 0, microseconds)

    def acknowledge_quit(self) -> None:
        """Tell SteamVR that its quitting was heard."""
        self.system.acknowledgeQuit_Exiting()

    def text(self, index: int, property_: int) -> str:
        """Return a string property of a device, empty if it has none."""
        return str(self._property(self.system.getStringTrackedDeviceProperty, index, property_, ""))

    def number(self, index: int, property_: int) -> float | None:
        """Return a float property of a device, None if it has none."""
        value = self._property(self.system.getFloatTrackedDeviceProperty, index, property_, None)
        return None if value is None else float(value)

    def layout(self, index: int) -> tuple[str, ButtonLayout]:
        """Return the controller type of a device, and where its buttons are."""
        library = self.library
        type_ = self.text(index, library.Prop_ControllerType_String)
        axis = self._property(
            self.system.getInt32TrackedDeviceProperty, index, library.Prop_Axis0Type_Int32, None
        )
        return type_, layout_of(type_, axis)

    def poses(self) -> Any:
        """Return the poses of the last read, a ctypes array that the next read overwrites."""
        return self._poses

    def _property(self, getter: Any, index: int, property_: int, otherwise: Any) -> Any:
        try:
            return getter(index, property_)
        except (self.library.OpenVRError, KeyError):  # KeyError: an error code that the binding does not know
            return otherwise

    def _frequency(self) -> float:
        told = self.number(HEADSET_INDEX, self.library.Prop_DisplayFrequency_Float)
        if told is None or not told > 0.0:
            return DEFAULT_FREQUENCY
        return min(max(told, LOWEST_FREQUENCY), HIGHEST_FREQUENCY)

    def _listen(self) -> bool:
        """Return whether buttons come to this program; their coming back also closes the dashboard."""
        available = bool(self.system.isInputAvailable())
        if available and not self._input_available:
            self._dashboard = False
        self._input_available = available
        return available and not self._dashboard

    def _controller(self, hand: HandName, listening: bool) -> ControllerReading | None:
        index = int(self.system.getTrackedDeviceIndexForControllerRole(ROLES[hand]))
        if index >= len(self._poses):  # 4294967295: none has this role
            return None
        pose = self._poses[index]
        if not pose.bDeviceIsConnected:
            self._identities.pop(index, None)
            return None
        identity = self._identity(index)
        found, state = self.system.getControllerState(index)
        controls = RELEASED
        if found and listening:
            controls = identity.layout.read(hand, int(state.ulButtonPressed), axes_of(state))
        return ControllerReading(
            index=index,
            identity=identity,
            tracked=bool(pose.bPoseIsValid) and int(pose.eTrackingResult) == RUNNING_OK,
            matrix=np.array(pose.mDeviceToAbsoluteTracking.m, dtype=np.float64),
            linear_velocity=np.array(pose.vVelocity.v, dtype=np.float64),
            angular_velocity=np.array(pose.vAngularVelocity.v, dtype=np.float64),
            controls=controls,
            listening=listening,
            packet=int(state.unPacketNum) if found else 0,
        )

    def _identity(self, index: int) -> Identity:
        if index not in self._identities:
            serial = self.text(index, self.library.Prop_SerialNumber_String)
            type_, layout = self.layout(index)
            # Without a serial number the index has to tell one controller from the other.
            self._identities[index] = Identity(serial or f"controller {index}", type_, layout)
        return self._identities[index]

    def _take_events(self, reading: Reading) -> None:
        for _ in range(MOST_EVENTS):
            if not self.system.pollNextEvent(self._event):
                return
            self._take(int(self._event.eventType), int(self._event.trackedDeviceIndex), reading)

    def _take(self, type_: int, index: int, reading: Reading) -> None:
        if type_ == BUTTON_PRESS:
            reading.presses.append((index, int(self._event.data.controller.button)))
        elif type_ == QUIT:
            reading.quit = True
        elif type_ in RECENTRED:
            reading.events.append("recentred")
        elif type_ in (DASHBOARD_OPENED, DASHBOARD_CLOSED):
            self._dashboard = type_ == DASHBOARD_OPENED
            reading.events.append("dashboard_opened" if self._dashboard else "dashboard_closed")
        elif type_ in (STANDBY_ENTERED, STANDBY_LEFT):
            self._sleep(index, type_ == STANDBY_ENTERED, reading)
        elif type_ in IDENTITY_EVENTS:
            self._identities.pop(index, None)

    def _sleep(self, index: int, asleep: bool, reading: Reading) -> None:
        if index == HEADSET_INDEX:
            if asleep == self._asleep:
                return
            self._asleep = asleep
        elif all(controller.index != index for controller in reading.hands.values()):
            return
        reading.events.append("standby" if asleep else "resumed")

    def _watch_headset(self, reading: Reading) -> None:
        """Take a change of the headset's activity for the event, which some drivers do not send."""
        activity = int(self.system.getTrackedDeviceActivityLevel(HEADSET_INDEX))
        if activity != self._activity:
            self._activity = activity
            self._sleep(HEADSET_INDEX, activity == STANDBY, reading)
