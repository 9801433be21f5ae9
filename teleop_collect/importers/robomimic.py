"""robomimic's HDF5: `demos.hdf5` of our export, or the one `.hdf5` of a folder, or such a file itself.

States that are not MuJoCo's `mjSTATE_INTEGRATION` of the stored model (robosuite keeps time, positions and
velocities only) are kept as the stream `imported/states`: they do not replay bit for bit.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from bunraku.dataset.archive import inside, refuse_outside
from bunraku.dataset.importing import Found
from bunraku.episode.episode import LABELS, Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.errors import FileFormatError

_MISSING = (
    "applied inputs",
    "device streams",
    "wall time",
    "flags terminated and truncated (dones stand in)",
)


class Robomimic:
    """The importer."""

    extra = "export"

    @contextmanager
    def open(self, folder: Path, hz: float | None) -> Iterator[Found]:
        """Open the HDF5 file of a folder."""
        path = folder if folder.is_file() else _file_in(folder)
        with EpisodeFile(path) as file:
            file.guarded(lambda: refuse_outside(file.root, path))
            labels = _labels(file)
            rate = file.env_kwargs.get("control_freq", file.info.get("control_freq"))
            fps = hz or (None if rate is None else float(rate))
            missing = list(_MISSING)
            first = next(iter(file.names()), None)
            models = _Models()
            if first is not None:
                episode = file.load(first)
                missing += [
                    key for key in episode.meta.get("missing", []) if key in ("final_state", "next_obs")
                ]
                if not models.fits(episode):
                    missing.append("MuJoCo's integration state")
            yield Found(
                episodes=_episodes(file, labels, fps, models),
                count=len(file),
                env_id=file.env_id,
                env_kwargs=file.env_kwargs,
                fps=fps,
                missing=tuple(missing),
                masks={key: names for key, names in file.masks.items() if key not in LABELS},
            )


def _file_in(folder: Path) -> Path:
    found = sorted(path.name for path in folder.iterdir() if path.suffix in (".hdf5", ".h5"))
    if len(found) != 1:
        raise FileFormatError(f"{folder} has {len(found)} HDF5 files; give the file itself")
    return inside(folder, found[0])


def _labels(file: EpisodeFile) -> dict[str, str]:
    """Return what the filter lists say of the episodes."""
    return {name: key for key, names in file.masks.items() if key in LABELS for name in names}


def _episodes(
    file: EpisodeFile, labels: dict[str, str], fps: float | None, models: _Models
) -> Iterator[tuple[str, Episode]]:
    for name in file.names():
        episode = file.load(name)
        episode.meta.pop("missing", None)
        success = file.group(name).attrs.get("success")
        label = labels.get(name, episode.label)
        if label == "unlabelled" and success is not None:
            label = "success" if bool(success) else "failure"
        changes: dict[str, Any] = {"label": label, "sim_time": np.arange(len(episode)) / (fps or 1.0)}
        if label == "success" and not episode.success.any():
            solved = episode.terminated.copy()
            changes["success"] = solved
        if not models.fits(episode):
            changes["streams"] = {**episode.streams, "imported/states": episode.states[:-1]}
            changes["states"] = np.zeros((len(episode) + 1, 0))
        yield name, dataclasses.replace(episode, **changes)


class _Models:
    """Sizes of the states of the models of episodes, which are mostly the same one."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}

    def fits(self, episode: Episode) -> bool:
        """Say whether an episode's states are those of its model."""
        xml = episode.meta.get("mjcf", "")
        key = hash(xml)
        if key not in self._sizes:
            self._sizes[key] = _state_size(xml)
        return episode.states.shape[1] in (0, self._sizes[key])


def _state_size(xml: str) -> int:
    try:
        model = mujoco.MjModel.from_xml_string(xml)
    except ValueError:  # no model, or its meshes are not here
        return 0
    return int(mujoco.mj_stateSize(model, int(mujoco.mjtState.mjSTATE_INTEGRATION)))


IMPORTER = Robomimic()
