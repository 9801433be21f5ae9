"""Other projects' datasets into ours, as far as their content allows; what they lack is named.

An importer is one file in `bunraku.teleop_collect.importers` (or an entry point of the group
`bunraku.importers`) that binds `IMPORTER` to an object of `Importer`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import h5py
import numpy as np
from numpy.typing import NDArray

from bunraku.dataset.archive import opened_folder
from bunraku.dataset.newfile import cannot_write, refuse_existing
from bunraku.episode.episode import Episode
from bunraku.episode.format import MASK
from bunraku.episode.lock import sync_folder
from bunraku.episode.repair import set_mask
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError


@dataclass(slots=True)
class Found:
    """A dataset of another format, open."""

    episodes: Iterator[tuple[str, Episode]]
    """Name there, and episode; each is read when its turn comes."""
    count: int
    """Number of episodes."""
    env_id: str
    """Id of the environment, empty where the dataset does not say."""
    env_kwargs: dict[str, Any]
    """Its arguments, as far as they are known."""
    fps: float | None
    """Rows per second, None where the dataset does not say."""
    missing: tuple[str, ...]
    """What our format has and this one lacks."""
    masks: Mapping[str, list[str]] = field(default_factory=dict)
    """Filter lists by key: names there."""
    notes: tuple[str, ...] = ()
    """What else the user should know."""


class Importer(Protocol):
    """Reads another project's format."""

    extra: str
    """The extra that brings what it needs."""

    def open(self, folder: Path, hz: float | None) -> AbstractContextManager[Found]:
        """Open the dataset in a folder.

        Args:
            folder: The dataset; nothing outside of it is read.
            hz: Rows per second where the dataset does not say.
        """
        ...


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What `import_from` did."""

    episodes: int
    """Episodes imported."""
    frames: int
    """Their rows."""
    missing: tuple[str, ...]
    """What the format lacks."""
    notes: tuple[str, ...]
    """What else the user should know."""


def import_from(
    source: str | Path,
    name: str,
    importer: Importer,
    out: str | Path,
    *,
    env_id: str = "",
    hz: float | None = None,
    force: bool = False,
    told: Callable[[int], None] = lambda count: None,
) -> ImportReport:
    """Write a file of ours from a dataset of another format.

    Args:
        source: Folder or archive of the dataset.
        name: Name of the format, for the record.
        importer: What reads it.
        out: The new file.
        env_id: Id of the environment, where the dataset names another or none.
        hz: Rows per second, where the dataset does not say.
        force: Replace an existing file.
        told: Called after each episode with the number of all.

    Raises:
        FileFormatError: The dataset is damaged, or leads out of its folder.
        BunrakuError: It does not say its rate or environment, or the output cannot be written.
    """
    source, out = Path(source), Path(out)
    refuse_existing(out, [source], force=force)
    unfinished = out.absolute().with_name(f"{out.name}.{os.getpid()}.new")
    names: dict[str, str] = {}
    frames = 0
    try:
        with opened_folder(source) as folder, importer.open(folder, hz) as found:
            environment, fps = env_id or found.env_id, hz or found.fps
            if not environment:
                raise BunrakuError(f"{source} does not name its environment; give --env")
            if fps is None:
                raise BunrakuError(f"{source} does not say its rows per second; give --hz")
            note = {"format": name, "missing": list(found.missing)}
            kwargs = {**found.env_kwargs, "control_freq": fps}
            info = {"control_freq": fps, "imported": note}
            with EpisodeWriter(unfinished, environment, kwargs, info=info, resume=False) as writer:
                for there, episode in found.episodes:
                    episode.meta["imported"] = {**note, "name": there}
                    names[there] = writer.append(episode)
                    frames += len(episode)
                    told(found.count)
            _add_masks(unfinished, found.masks, names)
            os.replace(unfinished, out)
            sync_folder(out.absolute().parent)
            return ImportReport(len(names), frames, found.missing, found.notes)
    except OSError as error:
        raise cannot_write(out, error) from error
    finally:
        unfinished.unlink(missing_ok=True)


def make_episode(
    observations: Mapping[str, NDArray[Any]],
    actions: NDArray[Any],
    fps: float | None,
    *,
    label: str = "unlabelled",
    meta: Mapping[str, Any] | None = None,
    **arrays: NDArray[Any],
) -> Episode:
    """Return an episode of what another format knows; the rest is empty.

    Args:
        observations: `(T + 1, ...)` by key.
        actions: `(T, A)`.
        fps: Rows per second.
        label: Its label.
        meta: Its metadata.
        arrays: Further fields of `Episode`.
    """
    rows = len(actions)
    flags = np.zeros(rows, dtype=bool)
    rest: dict[str, Any] = {
        "states": np.zeros((rows + 1, 0)),
        "applied": np.zeros((rows, 0)),
        "rewards": np.zeros(rows),
        "terminated": flags,
        "truncated": flags,
        "success": flags,
        "sim_time": np.arange(rows) / (fps or 1.0),
        "wall_time": np.full(rows, np.nan),
    }
    return Episode(
        observations=dict(observations), actions=actions, label=label, meta=dict(meta or {}), **rest | arrays
    )


def _add_masks(path: Path, masks: Mapping[str, list[str]], names: Mapping[str, str]) -> None:
    with h5py.File(path, "r+") as h5:
        for key, listed in masks.items():
            if key not in h5[MASK]:
                set_mask(h5[MASK], key, [names[name].encode() for name in listed if name in names])
    with open(path, "r+b") as file:
        os.fsync(file.fileno())
