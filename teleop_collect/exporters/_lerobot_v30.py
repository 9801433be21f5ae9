"""LeRobot v3.0: many episodes per parquet file and per video."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bunraku.dataset.exchange import Source, images_of
from bunraku.errors import BunrakuError
from bunraku.teleop_collect.exporters._encoder import Encoder
from bunraku.teleop_collect.exporters._lerobot_features import (
    IMAGES,
    check_same,
    features_of,
    rows_of,
    whole_fps,
)
from bunraku.teleop_collect.exporters._statistics import ImageCounts, RowsOnDisk, vector_statistics

CHUNKS, DATA_MB, VIDEO_MB = 1000, 100, 200
"""Files per folder, and sizes from which a new file is begun."""
EPISODES_BLOCK = 50
"""Rows of the table of episodes that are held in memory."""
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
VIDEO_PATH = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
EPISODES_PATH = "meta/episodes/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"


def write(source: Source, out: Path) -> None:
    """Write the dataset into a folder."""
    fps = whole_fps(source)
    data, videos = _DataFiles(out), _VideoFiles(out, fps, lossless=source.options.lossless)
    statistics: dict[str, RowsOnDisk | ImageCounts] = {}
    features: dict[str, Any] = {}
    listed = _Listed(out / EPISODES_PATH.format(chunk_index=0, file_index=0))
    first = 0
    try:
        for number, (name, episode) in enumerate(source.episodes()):
            rows = rows_of(episode, number, first, fps)
            images = {f"{IMAGES}.{camera}": frames[:-1] for camera, frames in images_of(episode).items()}
            found = features_of(episode, rows, fps, lossless=source.options.lossless)
            features = features or found
            check_same(features, found, name)
            row: dict[str, Any] = {
                "episode_index": number,
                "tasks": [source.task],
                "length": len(episode),
                **data.append(rows),
                "dataset_from_index": first,
                "dataset_to_index": first + len(episode),
                **videos.append(images),
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
            }
            for key, array in rows.items():
                if key not in statistics:
                    statistics[key] = RowsOnDisk(out / f"{key}.rows", array.shape[1])
                statistics[key].append(array)
                row |= {f"stats/{key}/{stat}": value for stat, value in vector_statistics(array).items()}
            for key, frames in images.items():
                counts = ImageCounts()
                counts.append(frames)
                whole = statistics.setdefault(key, ImageCounts())
                assert isinstance(whole, ImageCounts)
                whole.add(counts)
                row |= {f"stats/{key}/{stat}": value for stat, value in counts.statistics().items()}
            listed.append(row)
            first += len(episode)
        data.close()
        videos.close()
        listed.close()
        summed = {key: part.statistics() for key, part in statistics.items()}
    finally:
        videos.stop()
        for part in statistics.values():
            if isinstance(part, RowsOnDisk):
                part.close()
    _write_meta(out, source, fps, features, listed.count, first)
    (out / "meta/stats.json").write_text(json.dumps(summed, indent=2), encoding="utf-8")


def _write_meta(
    out: Path, source: Source, fps: int, features: dict[str, Any], episodes: int, frames: int
) -> None:
    videos = any(feature["dtype"] == "video" for feature in features.values())
    info = {
        "codebase_version": "v3.0",
        "robot_type": source.file.env_id,
        "total_episodes": episodes,
        "total_frames": frames,
        "total_tasks": 1,
        "chunks_size": CHUNKS,
        "data_files_size_in_mb": DATA_MB,
        "video_files_size_in_mb": VIDEO_MB,
        "fps": fps,
        "splits": {"train": f"0:{episodes}"},
        "data_path": DATA_PATH,
        "video_path": VIDEO_PATH if videos else None,
        "features": features,
    }
    (out / "meta/info.json").write_text(json.dumps(info, indent=4), encoding="utf-8")
    tasks = pa.table({"task_index": pa.array([0], pa.int64()), "task": [source.task]})
    # the index of a pandas frame, which is what readers ask for
    pandas_note = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": [
            {"name": "task_index", "field_name": "task_index", "pandas_type": "int64", "numpy_type": "int64",
             "metadata": None},
            {"name": "task", "field_name": "task", "pandas_type": "unicode", "numpy_type": "object",
             "metadata": None},
        ],
        "pandas_version": "2.0.0",
    }  # fmt: skip
    pq.write_table(
        tasks.replace_schema_metadata({"pandas": json.dumps(pandas_note)}), out / "meta/tasks.parquet"
    )


class _Listed:
    """The table of episodes, written in blocks: their statistics are large."""

    def __init__(self, path: Path) -> None:
        self._path, self.count = path, 0
        self._rows: list[dict[str, Any]] = []
        self._writer: pq.ParquetWriter | None = None
        path.parent.mkdir(parents=True)

    def append(self, row: dict[str, Any]) -> None:
        self._rows.append(row)
        self.count += 1
        if len(self._rows) == EPISODES_BLOCK:
            self._flush()

    def close(self) -> None:
        self._flush()
        if self._writer is not None:
            self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            schema = None if self._writer is None else self._writer.schema
            table = pa.Table.from_pylist(self._rows, schema=schema)
            self._writer = self._writer or pq.ParquetWriter(self._path, table.schema)
            self._writer.write_table(table)
            self._rows = []


class _Position:
    """Chunk and file of the next file."""

    def __init__(self) -> None:
        self.chunk, self.file = 0, 0

    def advance(self) -> None:
        self.file += 1
        if self.file == CHUNKS:
            self.chunk, self.file = self.chunk + 1, 0


class _DataFiles:
    """Parquet files, one row group per episode."""

    def __init__(self, out: Path) -> None:
        self._out, self._at = out, _Position()
        self._writer: pq.ParquetWriter | None = None
        self._path = out

    def append(self, rows: dict[str, NDArray[Any]]) -> dict[str, int]:
        if self._writer is not None and self._path.stat().st_size > DATA_MB * 1e6:
            self.close()
            self._at.advance()
        table = pa.table({key: column(array) for key, array in rows.items()})
        if self._writer is None:
            self._path = self._out / DATA_PATH.format(chunk_index=self._at.chunk, file_index=self._at.file)
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._writer = pq.ParquetWriter(self._path, table.schema, compression="snappy")
        self._writer.write_table(table, row_group_size=table.num_rows)
        return {"data/chunk_index": self._at.chunk, "data/file_index": self._at.file}

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class _VideoFiles:
    """Videos, one series of files per camera, encoded in the background: at most one episode behind."""

    def __init__(self, out: Path, fps: int, *, lossless: bool) -> None:
        self._out, self._fps, self._lossless = out, fps, lossless
        self._open: dict[str, tuple[_Position, Encoder]] = {}
        self._under_way: dict[str, tuple[Future[None], int]] = {}
        self._pool = ThreadPoolExecutor(thread_name_prefix="encode")

    def append(self, images: dict[str, NDArray[np.uint8]]) -> dict[str, Any]:
        row: dict[str, Any] = {}
        for key, frames in images.items():
            self._wait(key)
            at, encoder = self._encoder(key, frames)
            begin = encoder.frames
            end = begin + len(frames)
            self._under_way[key] = self._pool.submit(encoder.write, frames), end
            row |= {
                f"videos/{key}/chunk_index": at.chunk,
                f"videos/{key}/file_index": at.file,
                f"videos/{key}/from_timestamp": begin / self._fps,
                f"videos/{key}/to_timestamp": end / self._fps,
            }
        return row

    def close(self) -> None:
        for key, (_, encoder) in self._open.items():
            self._wait(key)
            encoder.close()
        self._open.clear()

    def stop(self) -> None:
        """End the threads, whatever happened."""
        self._pool.shutdown(cancel_futures=True)

    def _wait(self, key: str) -> None:
        if key not in self._under_way:
            return
        done, expected = self._under_way.pop(key)
        done.result()
        written = self._open[key][1].frames
        if written != expected:
            raise BunrakuError(f"{key}: {written} frames written of {expected} rows")

    def _encoder(self, key: str, frames: NDArray[np.uint8]) -> tuple[_Position, Encoder]:
        at, encoder = self._open.get(key, (_Position(), None))
        if encoder is not None and encoder.bytes > VIDEO_MB * 1e6:
            encoder.close()
            at.advance()
            encoder = None
        if encoder is None:
            height, width = frames.shape[1:3]
            path = self._out / VIDEO_PATH.format(video_key=key, chunk_index=at.chunk, file_index=at.file)
            encoder = Encoder(path, (width, height), self._fps, lossless=self._lossless)
            self._open[key] = at, encoder
        return at, encoder


def column(array: NDArray[Any]) -> pa.Array:
    """Return a parquet column: numbers where a row has one, lists of fixed size where it has several."""
    if array.shape[1] == 1:
        return pa.array(array[:, 0])
    return pa.FixedSizeListArray.from_arrays(pa.array(array.ravel()), array.shape[1])
