"""LeRobot datasets, v3.0: rows by pyarrow, videos by PyAV, one episode in memory at a time."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bunraku.dataset.archive import inside
from bunraku.dataset.importing import Found, make_episode
from bunraku.episode.episode import Episode
from bunraku.errors import BunrakuError, FileFormatError, MissingDependencyError
from bunraku.teleop_collect.importers._frames import FrameReader

_MISSING = (
    "the observation after the last action (the last one stands in)",
    "MuJoCo states and model",
    "the environment's arguments",
    "seeds",
    "applied inputs",
    "device streams",
    "wall time",
    "labels other than success",
)
_STATE, _IMAGES, _OBSERVATION = "observation.state", "observation.images.", "observation."
_BATCH = 1024
"""Rows read at a time."""


class LeRobot:
    """The importer."""

    extra = "export"

    @contextmanager
    def open(self, folder: Path, hz: float | None) -> Iterator[Found]:
        """Open the folder with `meta`, `data` and `videos`."""
        try:
            import pyarrow as pa
        except ImportError as error:
            raise MissingDependencyError("pyarrow", "the import from LeRobot", self.extra) from error
        info = _info(folder)
        fps = float(hz or info["fps"])
        with ExitStack() as stack:
            readers = {
                key: FrameReader()
                for key, feature in info["features"].items()
                if feature.get("dtype") == "video"
            }
            for reader in readers.values():
                stack.callback(reader.close)
            try:
                yield Found(
                    episodes=_episodes(folder, info, readers, fps),
                    count=int(info["total_episodes"]),
                    env_id=str(info.get("robot_type") or ""),
                    env_kwargs={},
                    fps=fps,
                    missing=_MISSING,
                    notes=("images have been through a video's compression",) if readers else (),
                )
            except (pa.ArrowException, KeyError) as error:
                reason = str(error).splitlines()[0]
                raise FileFormatError(f"{folder} is damaged ({reason}); take it from a copy") from error


def _info(folder: Path) -> dict[str, Any]:
    path = inside(folder, "meta/info.json")
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
        version = info["codebase_version"]
        complete = info["fps"] > 0 and isinstance(info["features"], dict) and info["total_episodes"] >= 0
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{path} is damaged ({error}); take it from a copy") from error
    if version != "v3.0":
        raise FileFormatError(
            f"{folder} has LeRobot's layout {version}; v3.0 can be imported, convert it first"
        )
    if not complete:
        raise FileFormatError(f"{path} lacks fps, features or total_episodes; take it from a copy")
    return info


def _episodes(
    folder: Path, info: dict[str, Any], readers: dict[str, FrameReader], fps: float
) -> Iterator[tuple[str, Episode]]:
    tasks = _tasks(folder)
    rows = _rows_by_episode(folder)
    for described in _listed(folder):
        number, length = int(described["episode_index"]), int(described["length"])
        found, columns = next(rows, (-1, {}))
        if found != number or len(columns["episode_index"]) != length:
            raise FileFormatError(f"{folder}: the rows of episode {number} are missing or not {length}")
        images = {}
        for key, reader in readers.items():
            place = {
                "video_key": key,
                "chunk_index": described[f"videos/{key}/chunk_index"],
                "file_index": described[f"videos/{key}/file_index"],
            }
            video = inside(folder, info["video_path"].format(**place))
            begin = float(described[f"videos/{key}/from_timestamp"])
            images[key] = reader.read(video, begin, length, float(info["fps"]))
        yield f"episode {number}", _episode(columns, images, tasks, fps)


def _episode(
    columns: dict[str, NDArray[Any]], images: dict[str, NDArray[Any]], tasks: dict[int, str], fps: float
) -> Episode:
    observations = {}
    for key, array in {**columns, **images}.items():
        if key.startswith(_OBSERVATION):
            observations[_name(key)] = np.concatenate([array, array[-1:]])
    done = columns["next.done"].astype(bool) if "next.done" in columns else None
    count = len(columns["action"])
    success = columns["next.success"].astype(bool) if "next.success" in columns else np.zeros(count, bool)
    action = columns["action"]
    further: dict[str, Any] = {"rewards": columns["next.reward"]} if "next.reward" in columns else {}
    task = tasks.get(int(columns["task_index"][0]), "")
    truncated = np.zeros(count, dtype=bool) if done is None else done & ~success
    return make_episode(
        observations,
        action[:, None] if action.ndim == 1 else action,
        fps,
        label="success" if success[-1] else "unlabelled",
        meta={"task": task},
        success=success,
        terminated=success & (False if done is None else done),
        truncated=truncated,
        **further,
    )


def _name(key: str) -> str:
    if key == _STATE:
        return "observation"
    if key.startswith(_IMAGES):
        return f"{key.removeprefix(_IMAGES)}_image"
    return key.removeprefix(_OBSERVATION).replace(".", "/")


def _listed(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of `meta/episodes`, without their statistics."""
    import pyarrow.parquet as pq

    for path in _parquets(folder, "meta/episodes"):
        with pq.ParquetFile(path) as file:
            names = [name for name in file.schema_arrow.names if not name.startswith("stats/")]
            for batch in file.iter_batches(_BATCH, columns=names):
                yield from batch.to_pylist()


def _rows_by_episode(folder: Path) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
    """Yield the number and columns of each episode, in the order of the data files."""
    import pyarrow.parquet as pq

    held: list[dict[str, NDArray[Any]]] = []
    current = -1
    for path in _parquets(folder, "data"):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH):
                columns = {name: _array(batch.column(name)) for name in batch.schema.names}
                numbers = columns["episode_index"]
                cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1), len(numbers)]
                for first, stop in pairwise(cuts):
                    number = int(numbers[first])
                    if number != current and held:
                        yield current, _joined(held)
                        held = []
                    current = number
                    held.append({name: array[first:stop] for name, array in columns.items()})
    if held:
        yield current, _joined(held)


def _joined(parts: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _array(column: Any) -> NDArray[Any]:
    """Return a column as `(n,)`, `(n, m)`, or `(n, height, width, 3)` for pictures stored in it."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_struct(kind):
        pictures = [io.BytesIO(row["bytes"]) for row in column.to_pylist()]
        return np.stack([np.asarray(Image.open(picture).convert("RGB")) for picture in pictures])
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        return np.array(column.to_pylist(), dtype=_number_type(kind))
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _number_type(kind: Any) -> Any:
    while hasattr(kind, "value_type"):
        kind = kind.value_type
    return kind.to_pandas_dtype()


def _tasks(folder: Path) -> dict[int, str]:
    import pyarrow.parquet as pq

    table = pq.read_table(inside(folder, "meta/tasks.parquet")).to_pydict()
    texts = table.get("task", table.get("__index_level_0__", []))
    return dict(zip(table["task_index"], texts, strict=True))


def _parquets(folder: Path, below: str) -> list[Path]:
    """Return the parquet files below a folder, in order."""
    root = inside(folder, below)
    found = sorted(path.relative_to(folder).as_posix() for path in root.glob("chunk-*/file-*.parquet"))
    if not found:
        raise BunrakuError(f"{folder} has no parquet files below {below}; the dataset is incomplete")
    return [inside(folder, name) for name in found]


IMPORTER = LeRobot()
