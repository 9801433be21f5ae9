"""Controllers of SteamVR: Pico, Quest, Valve Index, Vive and others, through the `openvr` package.

    with OpenVR() as device:
        right = device.read().hands["right"]
        if right.pose is not None:
            print(right.pose.pos, right.trigger, right.source)

Poses are in SteamVR's standing universe: x right, y up, -z forward, origin on the floor. A thread of its own
asks SteamVR at the headset's rate and never waits for a frame to be drawn; `read()` returns what it saw last.
`time` is when SteamVR was asked, for the poses of that very moment.

A pose is None unless it is measured and believable (`openvr_tracking`), and there are no buttons while the
dashboard is open; what each button is called is in `openvr_buttons`. When SteamVR quits, the device lets go
of it, says so by the event `quit`, and connects again by itself once SteamVR is back; it never starts a
SteamVR that the operator has closed. A controller that was off comes back with the event `connected`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Literal, Self

from bunraku.device import HANDS, Clock, DeviceState, HandName, OperatorView
from bunraku.errors import DeviceError
from bunraku.rate import Rate
from bunraku.teleop_collect.openvr_hand import SteamVRHand
from bunraku.teleop_collect.openvr_haptics import Haptics
from bunraku.teleop_collect.openvr_runtime import BACKGROUND, OTHER, SteamVRError
from bunraku.teleop_collect.openvr_session import DEFAULT_FREQUENCY, Reading, Session
from bunraku.teleop_collect.openvr_tracking import FROZEN_AFTER, MAX_SPEED, TrackWatch, Verdict

RECONNECT_AFTER, RECONNECT_AT_MOST = 1.0, 5.0
"""First pause between tries to find SteamVR again, and the longest [s]; each is twice the one before."""
GONE_AFTER = 3.0
"""A SteamVR without a single device for this long has died without a word [s]."""
CLOSE_TIMEOUT = 10.0
"""How long leaving waits for a SteamVR that does not answer [s]."""

_log = logging.getLogger(__name__)


class OpenVR:
    """The two hand controllers of SteamVR."""

    name = "openvr"
    frame: Literal["y_up", "z_up"] = "y_up"
    scripted = False

    def __init__(
        self,
        *,
        clock: Clock = time.perf_counter,
        seed: int = 0,
        start_steamvr: bool = True,
        frozen_after: float = FROZEN_AFTER,
        max_speed: float = MAX_SPEED,
        reconnect_after: float = RECONNECT_AFTER,
        open_timeout: float = 60.0,
        background: bool = True,
    ) -> None:
        """Take the options; SteamVR is touched on entering.

        Args:
            clock: Returns the time [s].
            seed: Not used: nothing here is random.
            start_steamvr: Whether opening starts SteamVR when it is not running.
            frozen_after: A moving controller that repeats its position for this long is not tracked [s].
            max_speed: A hand that is faster than this is not tracked [m/s].
            reconnect_after: First pause before looking for a SteamVR that has quit [s].
            open_timeout: How long opening waits for SteamVR [s].
            background: Read in a thread of its own; otherwise within `read()`, for tests and slow debugging.
        """
        self._clock = clock
        self._application = OTHER if start_steamvr else BACKGROUND
        self._frozen_after, self._max_speed = frozen_after, max_speed
        self._reconnect_after, self._open_timeout = reconnect_after, open_timeout
        self._background = background
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        """Be as new; events of an earlier opening are gone."""
        self._hands = {
            hand: SteamVRHand(hand, TrackWatch(self._frozen_after, self._max_speed)) for hand in HANDS
        }
        self._haptics = Haptics()
        self._events: list[str] = []
        self._session: Session | None = None
        self._failure: DeviceError | None = None
        self._opened = threading.Event()
        self._alone_since: float | None = None
        self._retry_at, self._pause = 0.0, self._reconnect_after

    def __enter__(self) -> Self:
        self._begin()
        self._stop = threading.Event()  # its own for each thread: one that was given up must still stop
        if not self._background:
            self._open()
            return self
        thread = threading.Thread(target=self._run, name="bunraku-openvr", daemon=True)
        thread.start()
        self._thread = thread
        try:
            self._await_opening(thread)
        except BaseException:
            self._stop.set()
            self._thread = None
            raise
        return self

    def _await_opening(self, thread: threading.Thread) -> None:
        if not self._opened.wait(self._open_timeout):
            raise DeviceError(
                f"SteamVR did not answer within {self._open_timeout:g} s; close it and start it again"
            )
        if self._failure is not None:
            thread.join()
            raise self._failure

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is None:
            self._close()
            return
        self._thread.join(CLOSE_TIMEOUT)
        if self._thread.is_alive():
            _log.warning("SteamVR did not let go within %g s", CLOSE_TIMEOUT)
        self._thread = None

    def read(self) -> DeviceState:
        """Return the newest sample of both hands; never waits for SteamVR.

        Raises:
            DeviceError: If the reader thread died (its traceback was shown).
        """
        if self._thread is not None and not self._thread.is_alive():
            raise DeviceError("the reader of openvr stopped (see the traceback above); open the device again")
        if not self._background and not self._stop.is_set():
            self._turn()
        with self._lock:
            hands = {name: hand.take() for name, hand in self._hands.items()}
            events, self._events = tuple(self._events), []
        return DeviceState(time=self._clock(), hands=hands, events=events)

    def rumble(self, hand: HandName, strength: float, seconds: float) -> None:
        """Shake a controller from the next tick on; a new rumble takes the place of the one before."""
        until = self._clock() + max(seconds, 0.0)
        with self._lock:
            self._haptics.request(hand, strength if seconds > 0.0 else 0.0, until)

    def see(self, view: OperatorView) -> None:
        """Do nothing: a person looks at the screen."""

    def tracking(self) -> Mapping[HandName, Verdict | Literal["off"]]:
        """Return what was thought of each hand's last pose: `good`, why it was refused, or `off`."""
        with self._lock:
            return {
                name: "off" if hand.controller is None else hand.watch.verdict
                for name, hand in self._hands.items()
            }

    # ---- all below is called by the one thread that talks to SteamVR ----

    def _run(self) -> None:
        stop = self._stop
        try:
            self._open()
        except DeviceError as failure:
            self._failure = failure
            return
        finally:
            self._opened.set()
        try:
            session, rate = self._session, self._rate()
            while not stop.is_set():
                self._turn()
                if self._session is not session:  # another SteamVR may have another headset
                    session, rate = self._session, self._rate()
                rate.sleep()
        finally:
            self._close()

    def _rate(self) -> Rate:
        return Rate(DEFAULT_FREQUENCY if self._session is None else self._session.frequency)

    def _open(self) -> None:
        self._session = Session(self._application, self._clock)
        self._turn()
        with self._lock:
            # Whoever opens a device finds its controllers there; that the headset sleeps is news.
            self._events = [event for event in self._events if event != "connected"]

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None

    def _turn(self) -> None:
        """Read SteamVR once, or look whether it is back."""
        if self._session is None:
            self._reconnect()
            return
        reading = self._session.read()
        with self._lock:
            self._publish(reading)
        self._pulse(self._session)
        if reading.quit:
            self._session.acknowledge_quit()
            self._let_go("quit", reading.time)
        elif self._is_gone(reading):
            self._let_go(None, reading.time)

    def _publish(self, reading: Reading) -> None:
        for event in reading.events:
            self._tell(event)
        for name, hand in self._hands.items():
            self._tell(hand.update(reading.hands.get(name), reading.presses, reading.time))

    def _tell(self, event: str | None) -> None:
        if event is not None and self._events[-1:] != [event]:  # a swap is one change, not one for each hand
            self._events.append(event)

    def _pulse(self, session: Session) -> None:
        for name, hand in self._hands.items():
            controller = hand.controller
            with self._lock:
                if controller is None:
                    self._haptics.drop(name)
                    continue
                microseconds = self._haptics.due(name, self._clock(), time.perf_counter())
            if microseconds is not None:
                session.pulse(controller.index, microseconds)
                # after the call: two arrivals are then never closer than the gap
                self._haptics.given(name, time.perf_counter())

    def _is_gone(self, reading: Reading) -> bool:
        if reading.anything_connected:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = reading.time
        return self._alone_since is not None and reading.time - self._alone_since > GONE_AFTER

    def _let_go(self, event: str | None, now: float) -> None:
        """Leave SteamVR within its 5 s of grace, and look for it later."""
        self._close()
        self._alone_since = None
        self._pause = self._reconnect_after
        self._retry_at = now + self._pause
        with self._lock:
            self._tell(event)
            for hand in self._hands.values():
                self._tell(hand.update(None, [], now))

    def _reconnect(self) -> None:
        now = self._clock()
        if now < self._retry_at:
            return
        try:
            self._session = Session(BACKGROUND, self._clock)  # never starts what the operator has closed
        except SteamVRError:
            self._pause = min(2.0 * self._pause, RECONNECT_AT_MOST)
            self._retry_at = now + self._pause


DEVICE = OpenVR
