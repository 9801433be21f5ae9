"""LeRobot v2.1: one parquet file and one video per episode, and lists of JSON lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bunraku.dataset.exchange import Source, images_of
from bunraku.teleop_collect.exporters._encoder import Encoder
from bunraku.teleop_collect.exporters._lerobot_features import (
    IMAGES,
    check_same,
    features_of,
    rows_of,
    whole_fps,
)
from bunraku.teleop_collect.exporters._lerobot_v30 import column
from bunraku.teleop_collect.exporters._statistics import ImageCounts, vector_statistics

CHUNK = 1000
"""Episodes per folder."""
DATA_PATH = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
VIDEO_PATH = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
_STATS = ("min", "max", "mean", "std", "count")


def write(source: Source, out: Path) -> None:
    """Write the dataset into a folder."""
    fps, lossless = whole_fps(source), source.options.lossless
    features: dict[str, Any] = {}
    first = count = 0
    (out / "meta").mkdir()
    with (
        open(out / "meta/episodes.jsonl", "w", encoding="utf-8") as episodes,
        open(out / "meta/episodes_stats.jsonl", "w", encoding="utf-8") as statistics,
    ):
        for number, (name, episode) in enumerate(source.episodes()):
            rows = rows_of(episode, number, first, fps)
            found = features_of(episode, rows, fps, lossless=lossless)
            features = features or found
            check_same(features, found, name)
            place = {"episode_chunk": number // CHUNK, "episode_index": number}
            path = out / DATA_PATH.format(**place)
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table({key: column(array) for key, array in rows.items()}), path)
            stats: dict[str, Any] = {key: vector_statistics(array) for key, array in rows.items()}
            for camera, images in images_of(episode).items():
                key = f"{IMAGES}.{camera}"
                height, width = images.shape[1:3]
                video = out / VIDEO_PATH.format(video_key=key, **place)
                encoder = Encoder(video, (width, height), fps, lossless=lossless)
                encoder.write(images[:-1])
                encoder.close()
                counts = ImageCounts()
                counts.append(images[:-1])
                stats[key] = counts.statistics()
            _line(episodes, {"episode_index": number, "tasks": [source.task], "length": len(episode)})
            kept = {key: {name: part[name] for name in _STATS} for key, part in stats.items()}
            _line(statistics, {"episode_index": number, "stats": kept})
            first += len(episode)
            count = number + 1
    with open(out / "meta/tasks.jsonl", "w", encoding="utf-8") as tasks:
        _line(tasks, {"task_index": 0, "task": source.task})
    cameras = sum(feature["dtype"] == "video" for feature in features.values())
    info = {
        "codebase_version": "v2.1",
        "robot_type": source.file.env_id,
        "total_episodes": count,
        "total_frames": first,
        "total_tasks": 1,
        "total_videos": cameras * count,
        "total_chunks": -(-count // CHUNK),
        "chunks_size": CHUNK,
        "fps": fps,
        "splits": {"train": f"0:{count}"},
        "data_path": DATA_PATH,
        "video_path": VIDEO_PATH if cameras else None,
        "features": features,
    }
    (out / "meta/info.json").write_text(json.dumps(info, indent=4), encoding="utf-8")


def _line(file: Any, value: dict[str, Any]) -> None:
    file.write(json.dumps(value, ensure_ascii=False) + "\n")
