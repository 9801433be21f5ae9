"""What an operator once did, again: plays the raw device stream of a demonstration file.

    with Replay(clock=clock, path="demos.hdf5", episode="demo_3") as device:
        state = device.read()      # the first recorded step; the next call gives the second

One `read()` is one recorded step, however much time has passed: the stream drives clutch, filters and
inverse kinematics as it did when it was recorded, so that these can be changed and compared on the same
hands. Sample times are moved onto the clock of this run so that each sample is as old as it was then. After
the last step the hands are not tracked, and the command "quit" comes once.

Streams of the file: `device/left` and `device/right` `(T, 22)` (`HAND_ARRAY_FIELDS`), `device/events` and
`device/commands` `(T,)` (bits of `EVENTS` and `COMMANDS`), and `device/time` `(T,)`, when the device was
read [s]. Without `device/time` the newest sample of each step counts as just taken.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from bunraku import plugins
from bunraku.device import (
    COMMANDS,
    EVENTS,
    HAND_ARRAY_FIELDS,
    HANDS,
    Clock,
    DeviceState,
    HandName,
    HandState,
    OperatorView,
    bits_to_names,
)
from bunraku.errors import DeviceError
from bunraku.geometry import Array


class Replay:
    """Plays one recorded episode, one step per `read()`."""

    name = "replay"
    frame: Literal["y_up", "z_up"] = "z_up"
    """Axes of the recorded device, known once the file is open."""
    scripted = True

    def __init__(
        self,
        *,
        clock: Clock = time.perf_counter,
        seed: int = 0,
        path: str | None = None,
        episode: str | int = 0,
    ) -> None:
        """Take the options; the file is opened on entering.

        Args:
            clock: Returns the time [s].
            seed: Not used: nothing here is random.
            path: A demonstration file.
            episode: Name of an episode, such as "demo_3", or its place in the file, from 0.
        """
        self._clock, self._path, self._episode = clock, path, episode
        self._hands: dict[HandName, Array] = {}
        self._bits: dict[str, NDArray[np.int64]] = {}
        self._read_times: Array = np.zeros(0)
        self._step = 0

    def __enter__(self) -> Self:
        if self._path is None:
            raise DeviceError(
                "the device replay has nothing to play; give it a demonstration file, as in path=demos.hdf5"
            )
        if not Path(self._path).is_file():
            raise DeviceError(
                f"the device replay cannot find {self._path}; give it an existing demonstration file"
            )
        # Imported late, because no other device needs HDF5.
        from bunraku.episode.reader import EpisodeFile

        with EpisodeFile(self._path) as file:
            name = _episode_name(self._path, file.names(), self._episode)
            episode = file.load(name)
        where = f"{name} of {self._path}"
        self._take(episode.streams, len(episode), where)
        self.frame = _recorded_frame(episode.meta, where)
        self._step = 0
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._hands.clear()

    def read(self) -> DeviceState:
        """Return the next recorded step; after the last, hands that are not tracked."""
        now, step = self._clock(), self._step
        self._step += 1
        if step >= len(self._read_times):
            hands = {name: HandState(time=now, connected=False) for name in self._hands}
            ended = step == len(self._read_times)
            return DeviceState(time=now, hands=hands, commands=("quit",) if ended else ())
        shift = now - float(self._read_times[step])
        played: dict[HandName, HandState] = {}
        for name, rows in self._hands.items():
            sample = HandState.from_array(rows[step])
            played[name] = dataclasses.replace(sample, time=sample.time + shift, source="replay")
        return DeviceState(
            time=now,
            hands=played,
            events=self._names("device/events", step, EVENTS),
            commands=self._names("device/commands", step, COMMANDS),
        )

    def rumble(self, hand: HandName, strength: float, seconds: float) -> None:
        """Do nothing: there is no hand to feel it."""

    def see(self, view: OperatorView) -> None:
        """Do nothing: a recording does not look."""

    def _names(self, stream: str, step: int, order: tuple[str, ...]) -> tuple[str, ...]:
        names = bits_to_names(int(self._bits[stream][step]), order)
        return tuple(name for name in order if name in names)

    def _take(self, streams: Mapping[str, NDArray[Any]], steps: int, where: str) -> None:
        """Take the device's streams out of those of an episode; see the module for their shapes."""
        for hand in HANDS:
            rows = streams.get(f"device/{hand}")
            if rows is not None:
                if rows.shape != (steps, len(HAND_ARRAY_FIELDS)):
                    raise DeviceError(
                        f"device/{hand} in {where} has shape {rows.shape}, expected "
                        f"{(steps, len(HAND_ARRAY_FIELDS))}; record it anew with this version of bunraku"
                    )
                self._hands[hand] = np.asarray(rows, dtype=np.float64)
        if not self._hands:
            raise DeviceError(
                f"{where} holds no device stream (it was not recorded from a device); choose an episode that "
                "collect recorded"
            )
        self._bits = {
            name: np.asarray(streams.get(name, np.zeros(steps)), dtype=np.int64)
            for name in ("device/events", "device/commands")
        }
        newest = np.max([rows[:, 0] for rows in self._hands.values()], axis=0)
        self._read_times = np.asarray(streams.get("device/time", newest), dtype=np.float64)


def _episode_name(path: str, names: list[str], wanted: str | int) -> str:
    """Return the name of the episode that was asked for by name or place."""
    if isinstance(wanted, int) or wanted.isdecimal():
        place = int(wanted)
        if not 0 <= place < len(names):
            raise DeviceError(f"{path} has no episode {place}; it has {len(names)}, counted from 0")
        return names[place]
    return wanted


def _recorded_frame(meta: Mapping[str, Any], where: str) -> Literal["y_up", "z_up"]:
    """Return the frame of the recorded device: as stored, or that of the device of the stored name."""
    device = meta.get("device")
    told = device if isinstance(device, Mapping) else {"name": device, "frame": meta.get("device_frame")}
    frame, name = told.get("frame"), told.get("name")
    if frame is None and name in plugins.names(plugins.DEVICES):
        frame = plugins.load(plugins.DEVICES, name).frame
    if frame == "y_up":
        return "y_up"
    if frame == "z_up":
        return "z_up"
    raise DeviceError(
        f"{where} does not tell which way its device's axes point (device {name!r}); choose an episode that "
        "collect recorded"
    )


DEVICE = Replay
