"""robomimic's own `SequenceDataset` loads what we record, value by value.

Its data reader needs only torch, tqdm and termcolor.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bunraku.episode.writer import EpisodeWriter
from tests.kernel.episode_samples import make_episode
from tests.others.foreign import foreign_python, run

ROBOMIMIC = "0.3.0"
STEPS = [7, 12, 5, 9]
LABELS = ["success", "failure", "success", "timeout"]

LOAD = """
import json, sys
import numpy as np
import robomimic.utils.obs_utils as ObsUtils
from robomimic.utils.dataset import SequenceDataset

path, out = sys.argv[1:]
keys = ["observation", "desired_goal"]
ObsUtils.initialize_obs_utils_with_obs_specs({"obs": {"low_dim": keys}})
found = {}
for case, mask, cache in [("all", None, "all"), ("success", "success", None), ("low_dim", None, "low_dim")]:
    dataset = SequenceDataset(
        hdf5_path=path, obs_keys=keys, dataset_keys=["actions", "rewards", "dones"], seq_length=1,
        load_next_obs=True, hdf5_cache_mode=cache, hdf5_use_swmr=True, filter_by_attribute=mask,
    )
    rows = [dataset[i] for i in range(len(dataset))]
    found[f"{case}/demos"] = np.array(dataset.demos)
    for name in ("actions", "rewards", "dones"):
        found[f"{case}/{name}"] = np.array([row[name][0] for row in rows])
    for group in ("obs", "next_obs"):
        for key in keys:
            found[f"{case}/{group}/{key}"] = np.array([row[group][key][0] for row in rows])
np.savez(out, **found)
"""


@pytest.fixture(scope="module")
def robomimic_python(request: pytest.FixtureRequest) -> str:
    torch = [] if importlib.util.find_spec("torch") else [["torch==2.13.0"]]
    needed = [*torch, ["tqdm", "termcolor"], ["--no-deps", f"robomimic=={ROBOMIMIC}"]]
    return foreign_python(request, "robomimic", *needed)


def test_robomimics_sequence_dataset_loads_what_was_recorded(robomimic_python: str, tmp_path: Path) -> None:
    path, out = tmp_path / "demos.hdf5", tmp_path / "loaded.npz"
    episodes = [make_episode(steps=STEPS[i], seed=i, label=LABELS[i]) for i in range(4)]
    with EpisodeWriter(path, "bunraku/PandaReach-v0", {"control_freq": 50}) as writer:
        names = [writer.append(episode) for episode in episodes]

    run(robomimic_python, LOAD, path, out)

    with np.load(out) as loaded:
        for case, chosen in (("all", [0, 1, 2, 3]), ("low_dim", [0, 1, 2, 3]), ("success", [0, 2])):
            assert loaded[f"{case}/demos"].tolist() == [names[i] for i in chosen]

            def check(name: str, parts: list[Any], case: str = case) -> None:
                found, expected = loaded[f"{case}/{name}"], np.concatenate(parts)
                # robomimic keeps numbers in single precision when it caches them.
                assert found.dtype in (np.float32, expected.dtype)
                np.testing.assert_array_equal(found.reshape(expected.shape), expected.astype(found.dtype))

            these = [episodes[i] for i in chosen]
            check("actions", [episode.actions for episode in these])
            check("rewards", [episode.rewards for episode in these])
            check("dones", [np.append(episode.success[:-1], True).astype(np.int64) for episode in these])
            for key in ("observation", "desired_goal"):
                check(f"obs/{key}", [episode.observations[key][:-1] for episode in these])
                check(f"next_obs/{key}", [episode.observations[key][1:] for episode in these])
