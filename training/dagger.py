"""DAgger: a cloned policy learns from where an operator took over from it (Ross, Gordon and Bagnell, 2011).

    collect --env PandaReach --policy RUN/policy.onnx --out corrections.hdf5
    bunraku train dagger RUN --data demonstrations.hdf5 --corrections corrections.hdf5 --out RUN2

The policy goes on from its weights, on the first demonstrations and the corrections together: the states that it
comes to by itself are then among those that it knows an answer to.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bunraku.episode.reader import EpisodeFile
from bunraku.errors import BunrakuError
from bunraku.training.bc import BCSettings, clone
from bunraku.training.config import RunConfig, check_writable, read_run
from bunraku.training.dataset import Demonstrations, check_same_task, load_demonstrations
from bunraku.training.policies import load_policy


def train_dagger(
    run: Path,
    data: Path,
    corrections: Path,
    out: Path,
    settings: BCSettings,
    seed: int = 0,
    *,
    force: bool = False,
    told: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Go on with a cloned policy.

    Args:
        run: Run folder of the policy.
        data: The demonstrations that it was cloned from.
        corrections: What was collected with it and an operator; only the operator's rows count, of all episodes.
        out: The new run folder.
        settings: How to clone.
        seed: Seed of the split and the order of the rows.
        force: Replace an existing run.
        told: Called after each pass.

    Returns:
        Passes, best validation error, rows, and how many of the rows are corrections.

    Raises:
        BunrakuError: The files are not of the policy's environment, or the operator never took over.
    """
    check_writable(out, force=force)
    before = read_run(run)
    for path in (data, corrections):
        with EpisodeFile(path) as file:
            check_same_task(file, path, before)
    first = load_demonstrations(data, settings.mask, drop_idle=settings.drop_idle)
    corrected = load_demonstrations(corrections, None, drop_idle=settings.drop_idle, interventions=True)
    if not len(corrected.actions):
        raise BunrakuError(f"the operator never took over in {corrections}; take hold where the policy errs")
    config = RunConfig(
        "dagger", before.env, before.env_kwargs, before.max_episode_steps, seed,
        {**asdict(settings), "start": str(run), "data": str(data), "corrections": str(corrections)},
    )  # fmt: skip
    found = clone(
        _together(first, corrected), config, settings, out, start=load_policy(run), force=force, told=told
    )
    return found | {"corrections": len(corrected.actions)}


def _together(first: Demonstrations, second: Demonstrations) -> Demonstrations:
    return Demonstrations(
        np.concatenate([first.observations, second.observations]),
        np.concatenate([first.actions, second.actions]),
        np.concatenate([first.episode, second.episode + first.episode[-1] + 1]),
        first.env_id,
        first.env_kwargs,
        max(first.longest, second.longest),
    )
