"""Minari's layout (0.5): `main_data.hdf5` and `metadata.json` in a folder `data`.

`minari.load_dataset` finds it under `MINARI_DATASETS_PATH`; the folder given as `--out` is the dataset's own,
named after its id, such as `panda-reach-v0`. Images are stored raw, without JPEG's losses.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np

from bunraku.dataset.exchange import Source
from bunraku.episode.episode import Episode
from bunraku.episode.format import to_json
from bunraku.errors import BunrakuError

VERSION = "0.5.4"
_ID = re.compile(r"(.*-v\d+)$")


class Minari:
    """The exporter."""

    extra = "export"
    versions = ("0.5",)

    def export(self, source: Source, out: Path) -> None:
        """Write `data/main_data.hdf5` and `data/metadata.json`."""
        folder = out / "data"
        folder.mkdir()
        steps, spaces = 0, None
        with h5py.File(folder / "main_data.hdf5", "w") as h5:
            for number, (_, episode) in enumerate(source.episodes()):
                group = h5.create_group(f"episode_{number}")
                _write(group, episode, number)
                steps += len(episode)
                spaces = spaces or _spaces(source, episode)
        if spaces is None:
            raise BunrakuError(f"{source.file.path} has no episode to export")
        observation_space, action_space, spec = spaces
        size = (folder / "main_data.hdf5").stat().st_size / 1e6
        described = {
            "total_episodes": len(source.names),
            "total_steps": steps,
            "data_format": "hdf5",
            "observation_space": json.dumps(observation_space),
            "action_space": json.dumps(action_space),
            "env_spec": spec,
            "dataset_id": source.options.fields.get("dataset_id", _dataset_id(source)),
            "minari_version": VERSION,
            "author": [source.options.fields[key] for key in ("author",) if key in source.options.fields],
            "author_email": [],
            "code_permalink": source.options.fields.get("code_permalink", ""),
            "algorithm_name": "human teleoperation",
            "description": source.task,
            "requirements": ["bunraku"],
            "dataset_size": round(size, 1),
            "jpeg_encoding": False,
        }
        (folder / "metadata.json").write_text(json.dumps(described, indent=2), encoding="utf-8")


def _write(group: h5py.Group, episode: Episode, number: int) -> None:
    group.attrs["id"], group.attrs["total_steps"] = number, len(episode)
    seed = episode.meta.get("seed")
    if isinstance(seed, int) and 0 <= seed < 2**63:
        group.attrs["seed"] = seed
    for name in ("sum", "mean", "std", "min", "max"):
        group.attrs[f"rewards_{name}"] = float(getattr(episode.rewards, name)())
    for key, array in episode.observations.items():
        group.create_dataset(
            f"observations/{key}", data=array, maxshape=(None, *array.shape[1:]), chunks=True
        )
    # the last row ends the episode even where the recording was stopped by hand
    truncated = episode.truncated.copy()
    truncated[-1] |= not episode.terminated[-1]
    rows: dict[str, np.ndarray] = {
        "actions": np.asarray(episode.actions, dtype=np.float32),
        "rewards": np.asarray(episode.rewards, dtype=np.float64),
        "terminations": episode.terminated,
        "truncations": truncated,
        "infos/success": np.concatenate([[False], episode.success]),
    }
    for key, values in rows.items():
        group.create_dataset(key, data=values, maxshape=(None, *values.shape[1:]), chunks=True)


def _spaces(source: Source, episode: Episode) -> tuple[dict[str, Any], dict[str, Any], str | None]:
    """Return the spaces and the environment's spec; those of the environment where it can be made here."""
    images = {key for key, array in episode.observations.items() if array.dtype == np.uint8}
    known: dict[str, Any] = {}
    spec = None
    if source.file.env_id in gymnasium.registry:
        env = gymnasium.make(source.file.env_id, disable_env_checker=True, **_plain_kwargs(source))
        if isinstance(env.observation_space, gymnasium.spaces.Dict):
            known = dict(env.observation_space.spaces)
        spec = env.spec.to_json() if env.spec is not None else None
        env.close()
    parts: dict[str, Any] = {}
    for key, array in sorted(episode.observations.items()):
        space: Any = known.get(key)
        if key in images:
            parts[key] = _box(array.dtype, array.shape[1:], 0, 255)
        elif isinstance(space, gymnasium.spaces.Box) and space.shape == array.shape[1:]:
            parts[key] = _box(array.dtype, array.shape[1:], space.low, space.high)
        else:
            parts[key] = _box(array.dtype, array.shape[1:], -np.inf, np.inf)
    actions = _box(np.dtype(np.float32), episode.actions.shape[1:], -1.0, 1.0)
    return {"type": "Dict", "subspaces": parts}, actions, spec


def _plain_kwargs(source: Source) -> dict[str, Any]:
    return {key: value for key, value in source.file.env_kwargs.items() if key != "render_mode"}


def _box(dtype: Any, shape: tuple[int, ...], low: Any, high: Any) -> dict[str, Any]:
    limits = [np.broadcast_to(np.asarray(limit, dtype=dtype), shape).tolist() for limit in (low, high)]
    return json.loads(
        to_json(
            {"type": "Box", "dtype": str(dtype), "shape": list(shape), "low": limits[0], "high": limits[1]}
        )
    )


def _dataset_id(source: Source) -> str:
    name = source.file.env_id.rsplit("/", 1)[-1]
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()
    return words if _ID.match(words) else f"{words}-v0"


EXPORTER = Minari()
