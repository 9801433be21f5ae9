"""Collects the rows of one episode while it is driven."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bunraku.device import COMMANDS, EVENTS, HandName, HandState, names_to_bits
from bunraku.episode.episode import Episode
from bunraku.geometry import Array
from bunraku.teleop_collect.teleoperator import TeleopStep


class EpisodeRecorder:
    """Rows of one episode: observations and states T + 1, all else T."""

    def __init__(self, observation: Mapping[str, NDArray[Any]], state: Array) -> None:
        """Begin with the reset observation and state."""
        self._observations: dict[str, list[NDArray[Any]]] = {k: [v] for k, v in observation.items()}
        self._states = [state]
        self._rows: dict[str, list[Any]] = {}
        self._hands: list[HandName] = []

    def __len__(self) -> int:
        """Return the number of steps so far."""
        return len(self._states) - 1

    def add(
        self,
        *,
        sim_time: float,
        step: TeleopStep,
        joints: Mapping[str, Array],
        applied: Array,
        tick_us: float,
        marker: bool,
        result: tuple[Mapping[str, NDArray[Any]], float, bool, bool, Mapping[str, Any]],
        state: Array,
    ) -> None:
        """Add one step.

        Args:
            sim_time: Simulated time before the action [s].
            step: How the action came about.
            joints: Commanded joint angles per hand `(n,)` after the step [rad].
            applied: MuJoCo's `ctrl` `(nu,)` at the end of the step.
            tick_us: Time from the device's sample to the end of the step [us].
            marker: Whether the operator set a marker.
            result: What `env.step` returned.
            state: Integration state `(D,)` after the step.
        """
        observation, reward, terminated, truncated, info = result
        for key, value in observation.items():
            self._observations[key].append(value)
        self._states.append(state)
        row: dict[str, Any] = {
            # a policy's, where the operator did not intervene
            "actions": info.get("action", step.action),
            "applied": applied,
            "rewards": reward,
            "terminated": terminated,
            "truncated": truncated,
            "success": bool(info.get("is_success", False)),
            "sim_time": sim_time,
            "wall_time": time.time(),
            "streams/device/time": step.state.time,
            "streams/device/events": names_to_bits(step.state.events, EVENTS),
            "streams/device/commands": names_to_bits(step.commands, COMMANDS),
            "streams/tick_us": tick_us,
            "streams/marker": marker,
            "streams/intervention": bool(info.get("intervention", True)),
        }
        self._hands = self._hands or sorted({*step.state.hands, *step.hands})
        for hand in self._hands:
            sample = step.state.hands.get(hand, HandState(time=step.state.time, connected=False))
            row[f"streams/device/{hand}"] = sample.to_array()
        for hand, report in step.hands.items():
            row[f"streams/target/{hand}"] = report.target.as_array()
            row[f"streams/gripper/{hand}"] = report.gripper
            row[f"streams/joints/{hand}"] = joints[hand]
            row[f"streams/engaged/{hand}"] = report.engaged
            row[f"streams/tracked/{hand}"] = report.tracked
            row[f"streams/precision/{hand}"] = report.precision
            row[f"streams/unreachable/{hand}"] = report.unreachable
            row[f"streams/pose_age/{hand}"] = report.age
            row[f"streams/dropped/{hand}"] = report.dropped
            row[f"streams/clutches/{hand}"] = report.clutches
        for key, value in row.items():
            self._rows.setdefault(key, []).append(value)

    def finish(self, label: str, meta: Mapping[str, Any]) -> Episode:
        """Return the episode.

        Args:
            label: One of `bunraku.episode.episode.LABELS`.
            meta: Facts about the episode.
        """
        columns = {key: np.asarray(values) for key, values in self._rows.items()}
        streams = {
            key.removeprefix("streams/"): columns.pop(key)
            for key in list(columns)
            if key.startswith("streams/")
        }
        return Episode(
            observations={key: np.asarray(values) for key, values in self._observations.items()},
            states=np.asarray(self._states),
            streams=streams,
            label=label,
            meta=dict(meta),
            **columns,
        )


def csv_rows(episode: Episode) -> tuple[list[str], Sequence[Sequence[float]]]:
    """Return header and rows of the debugging trace: per frame the target and the joint solution of each hand."""
    header, columns = ["sim_time"], [episode.sim_time[:, None]]
    for key in sorted(episode.streams):
        kind, _, hand = key.partition("/")
        if kind == "target":
            header += [f"{hand}_{name}" for name in ("x", "y", "z", "qw", "qx", "qy", "qz")]
        elif kind == "joints":
            header += [f"{hand}_q{i + 1}" for i in range(episode.streams[key].shape[1])]
        else:
            continue
        columns.append(episode.streams[key])
    return header, np.hstack(columns).tolist()
