"""Checkpoints of reinforcement learning: all that a resumed run needs, complete or not there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from bunraku.errors import BunrakuError, FileFormatError

STATE = "checkpoint.json"
"""Names the files of the newest complete checkpoint."""


def save_checkpoint(model: Any, out: Path) -> None:
    """Save the algorithm, its optimisers and its replay buffer; the old checkpoint counts until this is complete.

    Raises:
        BunrakuError: It cannot be written; the old one is kept.
    """
    steps = int(model.num_timesteps)
    name, buffer = f"checkpoint-{steps:09d}.zip", ""
    try:
        # under another name first: the checkpoint of the same step may be the one that counts
        model.save(out / "checkpoint.new.zip")
        if getattr(model, "replay_buffer", None) is not None:
            buffer = f"replay-{steps:09d}.pkl"
            model.save_replay_buffer(out / "replay.new.pkl")
            os.replace(out / "replay.new.pkl", out / buffer)
        os.replace(out / "checkpoint.new.zip", out / name)
        unfinished = out / (STATE + ".new")
        unfinished.write_text(json.dumps({"steps": steps, "model": name, "buffer": buffer}), encoding="utf-8")
        os.replace(unfinished, out / STATE)
    except (OSError, RuntimeError) as error:
        # torch says RuntimeError where the disk is full
        for unfinished in out.glob("*.new*"):
            unfinished.unlink()
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise BunrakuError(
            f"{out}: the checkpoint of step {steps} cannot be written ({reason}); the one before is kept: make room "
            "and go on with --resume"
        ) from error
    for pattern, kept in (("checkpoint-*.zip", name), ("replay-*.pkl", buffer)):
        for old in out.glob(pattern):
            if old.name != kept:
                old.unlink()


def read_state(out: Path) -> dict[str, Any]:
    """Return `steps`, `model` and `buffer` (file names) of the newest checkpoint.

    Raises:
        BunrakuError: There is none, or it cannot be read.
    """
    path = out / STATE
    if not path.exists():
        raise BunrakuError(f"{out} has no checkpoint yet; train it anew with --force")
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        return {
            "steps": int(state["steps"]),
            "model": str(state["model"]),
            "buffer": str(state["buffer"]),
        }
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{path} cannot be read ({error}); train the run anew with --force") from error


def remove_old(out: Path) -> None:
    """Remove what an earlier run left in a folder, so that nothing of it is taken for the new one's."""
    for pattern in ("checkpoint*", "replay-*.pkl", "policy.*", "evaluation-*.csv", "log-*/*", "progress.csv"):
        for old in out.glob(pattern):
            old.unlink()
