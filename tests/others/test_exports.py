"""What we export is loaded by the targets' own readers, value by value, at the borders of episodes too."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunraku.dataset.exchange import ExportOptions, export
from bunraku.episode.episode import Episode
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError
from bunraku.plugins import EXPORTERS, load
from tests.kernel.episode_samples import make_episode
from tests.others.foreign import foreign_python, run

FPS = 20
STEPS = [7, 12, 5, 9]
LABELS = ["success", "failure", "success", "timeout"]
SIZE = 64

# torchvision's CPU build is not in the registry, so the environment has a torch of its own
LEROBOT = (
    ["torch==2.14.1", "torchvision==0.29.1"],
    ["--no-deps", "lerobot==0.4.4", "torchcodec==0.17.0", "accelerate", "psutil", "safetensors", "draccus==0.10.0"],
    ["datasets>=4,<4.2", "numpy<2.3", "pandas", "jsonlines", "packaging", "einops", "deepdiff", "huggingface-hub<1",
     "termcolor", "imageio", "pyyaml-include<2", "mergedeep", "toml", "typing-inspect"],
)  # fmt: skip


def picture(step: int, seed: int) -> np.ndarray:
    """A smooth picture that is different in every row and episode."""
    y, x = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    waves = [np.sin(3 * x + 0.4 * step + c) * np.cos(2 * y + seed) for c in range(3)]
    return np.uint8(127 + 100 * np.stack(waves, axis=-1))


def with_images(episode: Episode, seed: int) -> Episode:
    images = np.stack([picture(step, seed) for step in range(len(episode) + 1)])
    return dataclasses.replace(episode, observations={**episode.observations, "front_image": images})


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return [with_images(make_episode(steps=STEPS[i], seed=i, label=LABELS[i]), i) for i in range(4)]


@pytest.fixture(scope="module")
def recorded(episodes: list[Episode], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "demos.hdf5"
    with EpisodeWriter(path, "test/Images-v0", {"control_freq": FPS}) as writer:
        for episode in episodes:
            writer.append(episode)
    return path


def exported(recorded: Path, form: str, out: Path, **options: Any) -> Path:
    assert export(recorded, load(EXPORTERS, form), out, ExportOptions(**options)) == (4, sum(STEPS))
    return out


READ_ROBOMIMIC = """
import sys
import numpy as np
import robomimic.utils.obs_utils as ObsUtils
from robomimic.utils.dataset import SequenceDataset
path, out = sys.argv[1:]
keys = ["observation", "desired_goal", "front_image"]
ObsUtils.initialize_obs_utils_with_obs_specs({"obs": {"low_dim": keys[:2], "rgb": keys[2:]}})
dataset = SequenceDataset(hdf5_path=path, obs_keys=keys, dataset_keys=["actions", "rewards", "dones"], seq_length=1,
                          load_next_obs=True, hdf5_cache_mode=None, filter_by_attribute="success")
rows = [dataset[i] for i in range(len(dataset))]
found = {name: np.array([row[name][0] for row in rows]) for name in ("actions", "rewards", "dones")}
for group in ("obs", "next_obs"):
    for key in keys:
        found[f"{group}/{key}"] = np.array([row[group][key][0] for row in rows])
np.savez(out, **found)
"""


def test_robomimic_reads_the_export(
    recorded: Path, episodes: list[Episode], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    torch = [] if importlib.util.find_spec("torch") else [["torch==2.13.0"]]
    python = foreign_python(
        request, "robomimic", *torch, ["tqdm", "termcolor"], ["--no-deps", "robomimic==0.3.0"]
    )
    folder = exported(recorded, "robomimic", tmp_path / "out")
    run(python, READ_ROBOMIMIC, folder / "demos.hdf5", tmp_path / "read.npz")
    these = [episodes[0], episodes[2]]
    with np.load(tmp_path / "read.npz") as read:
        np.testing.assert_array_equal(read["actions"], np.concatenate([e.actions for e in these]))
        for key in ("observation", "desired_goal", "front_image"):
            for group, part in (("obs", slice(None, -1)), ("next_obs", slice(1, None))):
                expected = np.concatenate([e.observations[key][part] for e in these])
                np.testing.assert_allclose(read[f"{group}/{key}"], expected, rtol=1e-6)


READ_LEROBOT = """
import sys, json
import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset
root, out = sys.argv[1:]
dataset = LeRobotDataset("someone/something", root=root)
found = {}
for key in dataset[0]:
    if key != "task":
        found[key] = np.array([dataset[i][key].numpy() for i in range(len(dataset))])
found["tasks"] = np.array([dataset[i]["task"] for i in range(len(dataset))])
for key, stats in dataset.meta.stats.items():
    for name, value in stats.items():
        found[f"stats/{key}/{name}"] = np.asarray(value)
one = LeRobotDataset("someone/something", root=root, episodes=[1])
found["second"] = np.array([one[i]["action"].numpy() for i in range(len(one))])
np.savez(out, **found)
"""


@pytest.fixture(scope="module")
def lerobot_python(request: pytest.FixtureRequest) -> str:
    if sys.version_info[:2] != (3, 11):
        pytest.skip("lerobot 0.4.4 is tested with Python 3.11, for which the registry has its torchvision")
    return foreign_python(request, "lerobot", *LEROBOT)


@pytest.mark.parametrize("lossless", [False, True])
def test_lerobot_reads_the_export(
    recorded: Path, episodes: list[Episode], tmp_path: Path, lerobot_python: str, lossless: bool
) -> None:
    folder = exported(recorded, "lerobot", tmp_path / "out", lossless=lossless, task="reach the goal")
    run(lerobot_python, READ_LEROBOT, folder, tmp_path / "read.npz", env={"HF_HUB_OFFLINE": "1"})
    with np.load(tmp_path / "read.npz") as read:
        actions = np.concatenate([e.actions for e in episodes])
        state = np.concatenate([e.observations["observation"][:-1] for e in episodes])
        goal = np.concatenate([e.observations["desired_goal"][:-1] for e in episodes])
        np.testing.assert_array_equal(read["action"], actions)
        np.testing.assert_array_equal(read["observation.state"], state.astype(np.float32))
        np.testing.assert_array_equal(read["observation.desired_goal"], goal.astype(np.float32))
        np.testing.assert_array_equal(read["episode_index"], np.repeat(range(4), STEPS))
        np.testing.assert_array_equal(read["frame_index"], np.concatenate([np.arange(n) for n in STEPS]))
        np.testing.assert_allclose(read["timestamp"], read["frame_index"] / FPS, atol=1e-4)
        np.testing.assert_array_equal(np.flatnonzero(read["next.done"]), np.cumsum(STEPS) - 1)
        np.testing.assert_array_equal(read["second"], episodes[1].actions)
        assert set(read["tasks"]) == {"reach the goal"}
        # images: channels first, in [0, 1]
        images = np.concatenate([e.observations["front_image"][:-1] for e in episodes])
        shown = np.moveaxis(read["observation.images.front"], 1, -1) * 255.0
        error = ((shown - images) ** 2).mean(axis=(1, 2, 3))
        if lossless:
            assert error.max() < 1e-6
        else:
            assert 10 * np.log10(255**2 / error.max()) > 35.0
        np.testing.assert_allclose(
            read["stats/action/mean"], actions.mean(axis=0, dtype=np.float64), rtol=1e-9
        )
        np.testing.assert_allclose(read["stats/action/q90"], np.quantile(actions.astype(float), 0.9, axis=0))
        scaled = images / 255.0
        for name in ("mean", "std", "min", "max"):
            expected = getattr(scaled, name)(axis=(0, 1, 2))
            np.testing.assert_allclose(
                read[f"stats/observation.images.front/{name}"].ravel(), expected, atol=1e-9
            )


def test_the_older_lerobot_layout_has_a_file_for_each_episode(
    recorded: Path, episodes: list[Episode], tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    folder = exported(recorded, "lerobot", tmp_path / "out", version="2.1")
    info = json.loads((folder / "meta/info.json").read_text())
    assert (info["codebase_version"], info["total_frames"], info["total_videos"]) == ("v2.1", sum(STEPS), 4)
    for number, episode in enumerate(episodes):
        table = parquet.read_table(folder / info["data_path"].format(episode_chunk=0, episode_index=number))
        np.testing.assert_array_equal(np.stack(table["action"].to_numpy()), episode.actions)
    lines = [json.loads(line) for line in (folder / "meta/episodes.jsonl").read_text().splitlines()]
    assert [line["length"] for line in lines] == STEPS


def test_minari_reads_the_export(
    recorded: Path, episodes: list[Episode], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minari = pytest.importorskip("minari")
    exported(recorded, "minari", tmp_path / "images-v0")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = minari.load_dataset("images-v0")
    assert (dataset.total_episodes, dataset.total_steps) == (4, sum(STEPS))
    for read, episode in zip(dataset.iterate_episodes(), episodes, strict=True):
        np.testing.assert_array_equal(read.actions, episode.actions)
        np.testing.assert_array_equal(read.rewards, episode.rewards)
        np.testing.assert_array_equal(read.terminations, episode.terminated)
        assert read.terminations[-1] or read.truncations[-1]
        for key, array in episode.observations.items():
            np.testing.assert_array_equal(read.observations[key], array)
    assert dataset.observation_space["front_image"].shape == (SIZE, SIZE, 3)
    assert [int(group.attrs["seed"]) for group in _groups(tmp_path)] == [0, 1, 2, 3]


def _groups(folder: Path) -> list[Any]:
    import h5py

    h5 = h5py.File(folder / "images-v0/data/main_data.hdf5")
    return [h5[f"episode_{i}"] for i in range(4)]


def test_zarr_reads_the_export(recorded: Path, episodes: list[Episode], tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    root = zarr.open_group(str(exported(recorded, "zarr", tmp_path / "out") / "replay_buffer.zarr"), mode="r")
    np.testing.assert_array_equal(root["meta/episode_ends"][:], np.cumsum(STEPS))
    expected = {
        "action": [e.actions for e in episodes],
        "state": [e.observations["observation"][:-1] for e in episodes],
        "desired_goal": [e.observations["desired_goal"][:-1] for e in episodes],
        "front": [e.observations["front_image"][:-1] for e in episodes],
    }
    for key, parts in expected.items():
        np.testing.assert_array_equal(root[f"data/{key}"][:], np.concatenate(parts))
    assert root["meta/episode_ends"].metadata.zarr_format == 2


def test_bad_numbers_and_existing_folders_are_refused(tmp_path: Path) -> None:
    path, out = tmp_path / "bad.hdf5", tmp_path / "out"
    episode = make_episode()
    episode.actions[3, 1] = np.nan
    with EpisodeWriter(path, "test/Images-v0", {"control_freq": FPS}) as writer:
        writer.append(episode)
    with pytest.raises(BunrakuError, match=r"demo_0 .* actions .* not finite"):
        export(path, load(EXPORTERS, "zarr"), out, ExportOptions())
    assert not out.exists()
    out.mkdir()
    (out / "precious").write_text("")
    with pytest.raises(BunrakuError, match="not empty"):
        export(path, load(EXPORTERS, "zarr"), out, ExportOptions())
    assert (out / "precious").exists()


def test_the_command_answers_in_json(recorded: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "bunraku.cli.main",
        "dataset",
        "export",
        str(recorded),
        "--to",
        "robomimic",
    ]
    command += ["--out", str(tmp_path / "out"), "--mask", "success", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    expected = {"format": "robomimic", "path": str(tmp_path / "out"), "episodes": 2, "frames": 12}
    assert json.loads(done.stdout) == expected
