"""Export to LeRobot with two cameras of 256x256, against its encoder alone on the same frames.

The images are recorded ones, so nothing is rendered during the export. Ours also reads and unpacks them, counts
their values for the statistics, and writes all other columns; it may take 1.2 times as long.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from timing import Result, in_turn

from bunraku.dataset.exchange import ExportOptions, export
from bunraku.episode.episode import Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.render import EpisodeScene
from bunraku.episode.writer import EpisodeWriter
from bunraku.plugins import EXPORTERS, load
from bunraku.teleop_collect.exporters._encoder import Encoder

SAMPLE = Path(__file__).parents[1] / "datasets/reach_sample.hdf5"
SIZE = 256
CAMERAS = ("front", "wrist")
ROWS = 60
COPIES = 6
FIELDS = ("actions", "applied", "rewards", "terminated", "truncated", "success", "sim_time", "wall_time")


def run(repeats: int = 5) -> list[Result]:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "images.hdf5"
        with EpisodeFile(SAMPLE) as file:
            episodes = COPIES * [_with_images(file.load(name)) for name in file.names()[:2]]
            fps = file.control_freq
            with EpisodeWriter(path, file.env_id, file.env_kwargs, info=file.info) as writer:
                for episode in episodes:
                    writer.append(episode)
        frames = len(CAMERAS) * sum(len(episode) for episode in episodes)

        def ours() -> None:
            export(path, load(EXPORTERS, "lerobot"), folder / "out", ExportOptions(), force=True)

        def encoder_alone() -> None:
            encoders = {
                camera: Encoder(folder / f"{camera}.mp4", (SIZE, SIZE), fps, lossless=False)
                for camera in CAMERAS
            }
            for episode in episodes:
                for camera, encoder in encoders.items():
                    encoder.write(episode.observations[f"{camera}_image"][:-1])
            for encoder in encoders.values():
                encoder.close()

        return [in_turn("export", ours, encoder_alone, per=frames, repeats=repeats, required=1 / 1.2)]


def _with_images(episode: Episode) -> Episode:
    """Return the beginning of an episode with rendered images."""
    episode = dataclasses.replace(
        episode,
        observations={key: array[: ROWS + 1] for key, array in episode.observations.items()},
        streams={key: array[:ROWS] for key, array in episode.streams.items()},
        states=episode.states[: ROWS + 1],
        **{name: getattr(episode, name)[:ROWS] for name in FIELDS},
    )
    with EpisodeScene((SIZE, SIZE)) as scene:
        for camera in CAMERAS:
            episode.observations |= {
                f"{name}_image": images for name, images in scene.observed(episode, [camera]).items()
            }
    return episode
