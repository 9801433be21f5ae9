"""Records the stroke from which an operator's facing is found."""

from __future__ import annotations

import time
from collections.abc import Callable

from bunraku.device import Device, HandName
from bunraku.errors import DeviceError
from bunraku.geometry import Array
from bunraku.teleop_collect.clutch import ENGAGE_AT, RELEASE_AT
from bunraku.teleop_collect.frames import device_to_world


def record_stroke(
    device: Device,
    hand: HandName,
    *,
    timeout: float = 60.0,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Array, Array]:
    """Wait until the trigger is pressed and released; return the hand's positions at both moments.

    Args:
        device: An opened device.
        hand: The hand.
        timeout: How long to wait [s].
        clock: Returns the time [s].
        sleep: Waits.

    Returns:
        Start and end `(3,)`, in the Z-up device frame [m].

    Raises:
        DeviceError: If nothing comes in time.
    """
    to_z_up = device_to_world(device.frame)
    start: Array | None = None
    end: Array | None = None
    deadline = clock() + timeout
    while clock() < deadline:
        state = device.read().hands.get(hand)
        if state is not None and state.pose is not None:
            pos = to_z_up(state.pose).pos
            if state.trigger >= ENGAGE_AT:
                start = pos if start is None else start
                end = pos
        if start is not None and end is not None and state is not None and state.trigger <= RELEASE_AT:
            return start, end
        sleep(0.01)
    raise DeviceError(
        f"no stroke of the {hand} hand within {timeout:g} s; check that the controller is tracked with: bunraku doctor"
    )
