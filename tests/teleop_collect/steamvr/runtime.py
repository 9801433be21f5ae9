"""A SteamVR that a test operates: headset, controllers, events and failures, behind the real `openvr` wheel.

    def test_something(vr: StandInRuntime) -> None:          # the fixture of conftest.py
        vr.controller("right", pose=pose_matrix((0.2, 1.1, -0.4)))
        with OpenVR() as device:                             # its reader thread asks this runtime
            vr.press("right", "trigger")
            vr.step()                                        # the device has seen all of the above
            hand = device.read().hands["right"]

**Lock-step.** `step()` returns when the reader has begun its second read of poses after the call, so that
one whole tick of it, poses, buttons and events, was read and published after everything that the test wrote.
No test waits for a time to pass. A device that is opened with `background=False` reads within `read()`; then
`step()` is not needed (and would wait in vain). While no program is connected (after `quit()`), use
`until()`.

**Time.** Give the device a `ManualClock` and move it by hand: the sample times, the freeze detector, the
speed check and the back-off of reconnecting use that clock. The reader's pace uses the real one.

**Poses** are `(3, 4)` or `(4, 4)` matrices (`pose_matrix` makes them), positions `(3,)`, or a `Pose`, in
OpenVR's standing universe: x right, y up, -z forward, metres. Like a real tracker the runtime never repeats
a pose exactly: it alternates by `noise` (1 micrometre) on x. `freeze()` takes the noise away, and a device
takes a controller that has moved for a while and then repeats itself to the bit for frozen.

**A device's own checks**: it does not believe steps of more than 11 cm or 1.1 rad between two reads at 90 Hz.

**As unkind as SteamVR**: events from before the program connected are not seen; devices that are already on
are not announced; a role change names no device; a controller that comes back may have another index; with
the dashboard open the buttons read zero.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from bunraku.device import HandName
from bunraku.geometry import Pose
from tests.teleop_collect.steamvr import control as layout
from tests.teleop_collect.steamvr.installation import Installation
from tests.teleop_collect.steamvr.kinds import KINDS
from tests.teleop_collect.steamvr.matrices import as_matrix, pose_matrix

HEADSET, CONTROLLER = 1, 2
ROLES: dict[HandName | None, int] = {None: 0, "left": 1, "right": 2}
RUNNING_OK, OUT_OF_RANGE, ROTATION_ONLY, UNINITIALIZED = 200, 201, 300, 1
NOBODY = 0xFFFFFFFF
PATIENCE = 30.0
"""A program that does nothing for this long has failed the test [s]."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """A haptic pulse that arrived at a controller."""

    time: float
    """When [s]."""
    device: int
    """Index of the controller."""
    axis: int
    microseconds: int
    too_soon: bool
    """Whether it came within 5 ms of the one before, which SteamVR does not allow."""


class StandInRuntime:
    """One installed and running SteamVR with a headset; a context manager that sets the environment to it."""

    def __init__(self, folder: Path, library: Path, *, frequency: float = 90.0) -> None:
        """Install it under a folder.

        Args:
            folder: An empty folder.
            library: The compiled vrclient.so.
            frequency: Refresh rate of the headset [Hz], 0 for a headset that does not tell.
        """
        self.installation = Installation(folder, library)
        self.control = layout.create(self.installation.control_file)
        self._kinds: dict[int, str] = {}
        with layout.writing(self.control) as c:
            c.server_running = c.headset_present = c.input_available = c.system_known = 1
            c.frequency, c.version = frequency, b"2.12.14"
            layout.fill(c.raw_to_standing, pose_matrix((0.5, 1.5, -0.5), (0.0, 0.7, 0.0)))
            layout.fill(c.seated_to_standing, pose_matrix((0.1, 1.2, 0.3), (0.0, -0.4, 0.0)))
        self._put(0, HEADSET, serial="HMD-1", model="Stand-in headset", type_="stand_in_headset")
        self.move_device(0, pose_matrix((0.0, 1.7, 0.0)))

    def __enter__(self) -> Self:
        self._environment = dict(os.environ)
        self.installation.set_environment()
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        for name in Installation.VARIABLES:
            os.environ.pop(name, None)
            if name in self._environment:
                os.environ[name] = self._environment[name]
        assert exc_type is not None or self.control.gave_up == 0, "the program waited too long for the test"

    # ---- controllers ----

    def controller(
        self,
        hand: HandName | None,
        index: int | None = None,
        pose: Pose | ArrayLike | None = None,
        *,
        kind: str = "touch",
        serial: str | None = None,
        noise: float = 1e-6,
        battery: float = -1.0,
    ) -> int:
        """Switch a new controller on, tracked, with nothing pressed; return its index.

        Args:
            hand: The hand that SteamVR takes it for, or None for no role yet.
            index: Its index, 1 to 15; the first free one by default.
            pose: Where it is; half a metre in front of the headset, to its side, by default.
            kind: One of `kinds.KINDS`.
            serial: Its serial number; `<KIND>-<HAND>` by default.
            noise: By how much its position alternates from read to read [m].
            battery: Charge, 0 to 1; negative for a controller that does not tell.
        """
        devices = self.control.devices
        index = index or next(i for i in range(1, layout.DEVICES) if not devices[i].device_class)
        shape = KINDS[kind]
        self._kinds[index] = kind
        serial = f"{kind}-{hand}".upper() if serial is None else serial
        self._put(
            index, CONTROLLER, serial=serial, model=shape.model, type_=shape.type, stick_type=shape.stick_type
        )
        with layout.writing(self.control):
            devices[index].role = ROLES[hand]
            devices[index].noise, devices[index].battery = noise, battery
        side = {"left": -0.2, "right": 0.2, None: 0.0}[hand]
        self.move_device(index, (side, 1.2, -0.5) if pose is None else pose)
        self.event(100, index)
        self.event(108)
        return index

    def index_of(self, hand: HandName) -> int:
        """Return the index of the controller in a hand."""
        return next(i for i, d in enumerate(self.control.devices) if d.role == ROLES[hand])

    def move(
        self,
        hand: HandName,
        pose: Pose | ArrayLike,
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        angular_velocity: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """Put a hand's controller somewhere, tracked, with its velocities [m/s, rad/s]."""
        self.move_device(self.index_of(hand), pose, velocity, angular_velocity)

    def move_device(
        self,
        index: int,
        pose: Pose | ArrayLike,
        velocity: ArrayLike = (0.0, 0.0, 0.0),
        angular_velocity: ArrayLike = (0.0, 0.0, 0.0),
    ) -> None:
        """Put the device of an index somewhere, as `move` does."""
        with layout.writing(self.control) as c:
            device = c.devices[index]
            layout.fill(device.matrix, as_matrix(pose))
            layout.fill(device.velocity, velocity)
            layout.fill(device.angular, angular_velocity)

    def freeze(self, hand: HandName) -> None:
        """Let the pose repeat itself to the bit from now on, while the flags say that all is well."""
        with layout.writing(self.control) as c:
            c.devices[self.index_of(hand)].noise = 0.0

    def lose(self, hand: HandName, result: int = OUT_OF_RANGE, *, valid: bool = False) -> None:
        """Let tracking fail; the matrix stays as it was. `valid` is the flag that SteamVR may still give."""
        with layout.writing(self.control) as c:
            device = c.devices[self.index_of(hand)]
            device.result, device.valid = result, valid

    def find(self, hand: HandName) -> None:
        """Let tracking work again."""
        self.lose(hand, RUNNING_OK, valid=True)

    def switch_off(self, hand: HandName, *, keep_role: bool = False) -> int:
        """Switch a controller off; its slot keeps its class. Returns the index."""
        index = self.index_of(hand)
        with layout.writing(self.control) as c:
            device = c.devices[index]
            device.connected, device.valid, device.result = 0, 0, UNINITIALIZED
            if not keep_role:
                device.role = 0
        self.event(101, index)
        return index

    def switch_on(self, hand: HandName, index: int, new_index: int | None = None) -> None:
        """Switch the controller that was at `index` on again, at another index if one is given."""
        with layout.writing(self.control) as c:
            if new_index is not None:
                c.devices[new_index] = c.devices[index]
                self._kinds[new_index] = self._kinds[index]
            device = c.devices[index if new_index is None else new_index]
            device.connected, device.valid, device.result, device.role = 1, 1, RUNNING_OK, ROLES[hand]
        self.event(100, index if new_index is None else new_index)
        self.event(108)

    def corrupt(self, hand: HandName, value: float) -> None:
        """Put a number, such as NaN, into the rotation of a hand's controller."""
        with layout.writing(self.control) as c:
            c.devices[self.index_of(hand)].matrix[0] = value

    def set_role(self, index: int, hand: HandName | None) -> None:
        """Let SteamVR take a controller for another hand, without an event."""
        with layout.writing(self.control) as c:
            c.devices[index].role = ROLES[hand]

    def swap_roles(self) -> None:
        """Let SteamVR take each controller for the other hand."""
        with layout.writing(self.control) as c:
            for device in c.devices:
                device.role = {0: 0, 1: 2, 2: 1}[device.role]
        self.event(108)

    # ---- buttons ----

    def press(self, hand: HandName, *buttons: str, events: bool = True) -> None:
        """Hold buttons down, analog ones to the end."""
        self._buttons(hand, buttons, 1.0, events)

    def release(self, hand: HandName, *buttons: str, events: bool = True) -> None:
        """Let buttons go."""
        self._buttons(hand, buttons, 0.0, events)

    def tap(self, hand: HandName, *buttons: str) -> None:
        """Press and release so fast that no read sees it: only the events tell."""
        index = self.index_of(hand)
        with layout.writing(self.control) as c:
            c.devices[index].packet += 2
        for type_ in (200, 201):
            for button in buttons:
                self.event(type_, index, KINDS[self._kinds[index]].bits[button][0])

    def analog(self, hand: HandName, name: str, x: float, y: float = 0.0) -> None:
        """Set a trigger, squeeze, thumbstick or trackpad to a value without its button."""
        index = self.index_of(hand)
        axis = KINDS[self._kinds[index]].axes[name]
        with layout.writing(self.control) as c:
            device = c.devices[index]
            device.axis[2 * axis], device.axis[2 * axis + 1] = x, y
            device.packet += 1

    def legacy_input(self, hand: HandName, available: bool) -> None:
        """Take a driver's legacy bindings away: its buttons read zero for ever."""
        with layout.writing(self.control) as c:
            c.devices[self.index_of(hand)].has_state = available

    # ---- the system ----

    def event(self, type_: int, device: int = NOBODY, button: int = 0) -> None:
        """Post an event."""
        with layout.writing(self.control) as c:
            slot = c.events[c.event_count % layout.EVENTS]
            slot.posted, slot.type = time.clock_gettime_ns(time.CLOCK_MONOTONIC), type_
            slot.device, slot.button = device, button
            c.event_count += 1

    def recentre(self, shift: ArrayLike = (0.0, 0.0, 0.3), event: int = 808) -> None:
        """Move the origin: every pose shifts at once, and the event is posted."""
        with layout.writing(self.control) as c:
            for device in c.devices:
                device.matrix[3::4] = (np.array(device.matrix[3::4]) + shift).tolist()
        self.event(event)

    def open_dashboard(self) -> None:
        """Open the dashboard: it takes the input."""
        self._set(dashboard=1, input_available=0)
        self.event(502)

    def close_dashboard(self) -> None:
        """Close the dashboard."""
        self._set(dashboard=0, input_available=1)
        self.event(503)

    def input_available(self, available: bool) -> None:
        """Let another program take the input, without an event."""
        self._set(input_available=int(available))

    def headset_activity(self, level: int) -> None:
        """Set the headset's activity level: 1 worn, 0 idle, 3 standby."""
        with layout.writing(self.control) as c:
            c.devices[0].activity = level

    def lose_everything(self) -> None:
        """Let the server die without a word: nothing is connected any more."""
        with layout.writing(self.control) as c:
            for device in c.devices:
                device.connected, device.valid, device.result = 0, 0, UNINITIALIZED

    def quit(self) -> None:
        """Quit SteamVR."""
        self._set(server_running=0)
        self.event(700)

    def start(self) -> None:
        """Start SteamVR again."""
        self._set(server_running=1)

    def refuse(self, error: int) -> None:
        """Answer every init with an error code; 0 for none."""
        self._set(init_error=error)

    def grow_old(self) -> None:
        """Be a SteamVR that does not have IVRSystem_023."""
        self._set(system_known=0)

    def hold(self, held: bool) -> None:
        """Let reads of poses wait, for 10 s at most, until they are let go."""
        self._set(hold=int(held))

    # ---- what the program did ----

    @property
    def pulses(self) -> list[Pulse]:
        """All haptic pulses, oldest first (the last 1,024)."""
        count = self.control.pulse_count
        records = [
            self.control.pulses[i % layout.PULSES] for i in range(max(0, count - layout.PULSES), count)
        ]
        return [Pulse(1e-9 * r.time, r.device, r.axis, r.microseconds, bool(r.too_soon)) for r in records]

    def step(self, reads: int = 2) -> None:
        """Wait until the program has begun this many reads of poses from now on."""
        target = self.control.pose_reads + reads
        self.until(lambda: self.control.pose_reads >= target, "a read of poses")

    def until(self, happened: Callable[[], bool], what: str = "it") -> None:
        """Wait until something has happened; fail if it does not."""
        give_up = time.monotonic() + PATIENCE
        while not happened():
            assert time.monotonic() < give_up, f"waited {PATIENCE:.0f} s for {what}"
            time.sleep(0.0005)

    # ---- parts ----

    def _put(
        self, index: int, class_: int, *, serial: str, model: str, type_: str, stick_type: int = 0
    ) -> None:
        with layout.writing(self.control) as c:
            c.devices[index] = layout.Device(
                device_class=class_,
                connected=1,
                valid=1,
                result=RUNNING_OK,
                has_state=1,
                activity=1,
                stick_type=stick_type,
                battery=-1.0,
                serial=serial.encode(),
                model=model.encode(),
                type=type_.encode(),
            )

    def _set(self, **values: int) -> None:
        with layout.writing(self.control) as c:
            for name, value in values.items():
                setattr(c, name, value)

    def _buttons(self, hand: HandName, buttons: tuple[str, ...], value: float, tell: bool) -> None:
        index = self.index_of(hand)
        kind = KINDS[self._kinds[index]]
        with layout.writing(self.control) as c:
            device = c.devices[index]
            for name in buttons:
                for bit in kind.bits[name]:
                    mask = 1 << bit
                    device.pressed = device.pressed | mask if value else device.pressed & ~mask
                if name in ("trigger", "squeeze") and name in kind.axes:
                    device.axis[2 * kind.axes[name]] = value
            device.packet += 1
        for bit in (bit for name in buttons for bit in kind.bits[name] if tell):
            self.event(200 if value else 201, index, bit)
