"""A device stream as a demonstration file holds it, made of random numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bunraku.device import COMMANDS, EVENTS, DeviceState, HandState, names_to_bits
from bunraku.episode.episode import Episode
from bunraku.episode.writer import EpisodeWriter
from bunraku.geometry import Pose, from_rotvec

STEPS = 12


def sample(rng: np.random.Generator, step: int, age: float) -> HandState:
    """Return a sample of a step; every fourth is not tracked."""
    pose = Pose(rng.normal(size=3), from_rotvec(rng.normal(size=3)))
    return HandState(
        time=50.0 + 0.02 * step - age,
        pose=None if step % 4 == 3 else pose,
        linear_velocity=rng.normal(size=3),
        trigger=float(rng.random()),
        squeeze=float(step % 2),
        thumbstick=(0.25, -0.5),
        buttons=frozenset({"trigger"}),
        pressed=frozenset({"a"} if step == 5 else ()),
    )


def recording(seed: int = 0) -> list[DeviceState]:
    """Return what a device said at each of `STEPS` steps of 20 ms."""
    rng = np.random.default_rng(seed)
    return [
        DeviceState(
            time=50.0 + 0.02 * step,
            hands={"left": sample(rng, step, 0.004), "right": sample(rng, step, rng.uniform(0.001, 0.03))},
            events=("recentred",) if step == 2 else (),
            commands=("start",) if step == 0 else ("marker", "redo") if step == 7 else (),
        )
        for step in range(STEPS)
    ]


def as_episode(states: list[DeviceState], meta: dict[str, Any], **streams: Any) -> Episode:
    count = len(states)
    device = {
        "device/left": np.array([s.hands["left"].to_array() for s in states]),
        "device/right": np.array([s.hands["right"].to_array() for s in states]),
        "device/events": np.array([names_to_bits(s.events, EVENTS) for s in states]),
        "device/commands": np.array([names_to_bits(s.commands, COMMANDS) for s in states]),
        "device/time": np.array([s.time for s in states]),
    }
    return Episode(
        observations={"observation": np.zeros((count + 1, 2))},
        states=np.zeros((count + 1, 3)),
        actions=np.zeros((count, 2), dtype=np.float32),
        applied=np.zeros((count, 2)),
        rewards=np.zeros(count),
        terminated=np.zeros(count, dtype=bool),
        truncated=np.zeros(count, dtype=bool),
        success=np.zeros(count, dtype=bool),
        sim_time=0.02 * np.arange(count),
        wall_time=1.7e9 + 0.02 * np.arange(count),
        streams={k: v for k, v in (device | streams).items() if v is not None},
        label="success",
        meta={"mjcf": "<mujoco/>", **meta},
    )


def saved(tmp_path: Path, *episodes: Episode) -> str:
    path = tmp_path / "demos.hdf5"
    with EpisodeWriter(path, "bunraku/PandaReach-v0") as writer:
        for episode in episodes:
            writer.append(episode)
    return str(path)
