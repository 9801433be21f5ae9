"""Verifying a file against plain `env.step` of the same actions, in one process and on all cores."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from timing import Result, in_turn

from bunraku.dataset.newfile import NewFile
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.verify import make_env, replay, verify

SAMPLE = Path(__file__).parents[1] / "datasets/reach_sample.hdf5"
COPIES = 20
REQUIRED = 0.9


def run(repeats: int = 9) -> list[Result]:
    """Run the benchmark."""
    return [_one_core(repeats), _all_cores(max(3, repeats // 3))]


def _one_core(repeats: int) -> Result:
    with EpisodeFile(SAMPLE) as file:
        env = make_env(file.env_id, file.env_kwargs)
        episodes = list(file)
    rows = sum(len(episode) for episode in episodes)

    def ours() -> None:
        for episode in episodes:
            assert replay(env, episode).bit_exact

    def plain() -> None:
        for episode in episodes:
            _step(env, episode)

    return in_turn("verify, one process", ours, plain, per=rows, repeats=repeats, required=REQUIRED)


def _all_cores(repeats: int) -> Result:
    cores = os.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.hdf5"
        with EpisodeFile(SAMPLE) as file, NewFile(path, file) as new:
            rows = COPIES * int(file.index["num_samples"].sum())
            names = [name for _ in range(COPIES) for name in file.names()]
            for name in names:
                new.copy(file, name)
        numbered = [f"demo_{i}" for i in range(len(names))]
        parts = [numbered[i::cores] for i in range(cores)]

        def ours() -> None:
            assert verify(path, processes=cores).ok

        def plain() -> None:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(cores, mp_context=context) as pool:
                list(pool.map(step_all, [str(path)] * cores, parts))

        name = f"verify, {cores} processes"
        return in_turn(name, ours, plain, per=rows, repeats=repeats, required=REQUIRED)


def step_all(path: str, names: list[str]) -> None:
    """Step through episodes of a file, in a process of its own."""
    with EpisodeFile(path) as file:
        env = make_env(file.env_id, file.env_kwargs)
        for name in names:
            _step(env, file.load(name))
        env.close()


def _step(env, episode) -> None:  # type: ignore[no-untyped-def]
    env.reset(seed=episode.meta["seed"], options=episode.meta.get("reset_options"))
    for action in episode.actions:
        env.step(action)
