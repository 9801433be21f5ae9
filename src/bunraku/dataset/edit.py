"""Editing demonstration files: always into a new file, the inputs stay as they are.

Seeds, labels, filter lists, versions and raw streams go along. Lengths, filter lists by label, the index and
the measures of quality are made anew where they change.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np

from bunraku.dataset.newfile import NewFile
from bunraku.dataset.rows import cut, thin
from bunraku.dataset.where import Condition, facts
from bunraku.episode.codec import read_episode
from bunraku.episode.episode import LABELS
from bunraku.episode.format import differences, to_json
from bunraku.episode.quality import measure
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.verify import make_env
from bunraku.errors import BunrakuError, UnknownNameError

Told = Callable[[], None]
"""Called once for each episode that is done."""

IDLE_ACTUATION = 1e-5
"""A row in which no actuator's input moves by more than this share of its largest value is idle."""


def _nothing() -> None:
    pass


def merge(paths: Sequence[str | Path], out: str | Path, *, force: bool = False, told: Told = _nothing) -> int:
    """Put the episodes of several files into one; return their number.

    Raises:
        BunrakuError: They hold different environments, rates, cameras or shapes; says which differ.
    """
    with ExitStack() as stack:
        files = [stack.enter_context(EpisodeFile(path)) for path in paths]
        for file in files[1:]:
            found = differences(_identity(files[0]), _identity(file))
            if found:
                raise BunrakuError(
                    f"{files[0].path} and {file.path} cannot be merged: {'; '.join(found)} "
                    f"(there: {files[0].path.name}, here: {file.path.name})"
                )
        with NewFile(out, files[0], inputs=[file.path for file in files], force=force) as new:
            for file in files:
                for name in file.names():
                    new.copy(file, name)
                    told()
            return len(new)


def select(
    path: str | Path, names: Sequence[str], out: str | Path, *, force: bool = False, told: Told = _nothing
) -> int:
    """Write a file of some episodes of another; return their number."""
    with EpisodeFile(path) as file, NewFile(out, file, force=force) as new:
        for name in names:
            new.copy(file, name)
            told()
        return len(new)


def matching(path: str | Path, where: str) -> list[str]:
    """Return the names of the episodes that a condition holds for."""
    condition = Condition(where)
    with EpisodeFile(path) as file:
        return [name for name, known in facts(file).items() if condition(known)]


def without(path: str | Path, names: Sequence[str]) -> list[str]:
    """Return the names of all other episodes.

    Raises:
        UnknownNameError: One of the names is not in the file.
    """
    with EpisodeFile(path) as file:
        known = file.names()
        for name in names:
            if name not in known:
                raise UnknownNameError(f"episode of {path}", name, known)
        return [name for name in known if name not in set(names)]


def parts(
    path: str | Path, ratio: float, by: Literal["episode", "operator"], seed: int
) -> tuple[list[str], list[str]]:
    """Return the names of two parts, drawn at random: `ratio` of the episodes, or of the operators, and the rest.

    Raises:
        BunrakuError: The ratio is out of range, or there is too little to be split.
    """
    if not 0.0 < ratio < 1.0:
        raise BunrakuError(f"--ratio must lie between 0 and 1, got {ratio}")
    with EpisodeFile(path) as file:
        known = facts(file)
    key = "operator" if by == "operator" else "number"
    kinds = sorted({fact[key] for fact in known.values()})
    if len(kinds) < 2:
        raise BunrakuError(f"{path} has {len(kinds)} {by}, which cannot be split in two; use another --by")
    order = np.random.default_rng(seed).permutation(len(kinds))
    count = min(max(1, round(ratio * len(kinds))), len(kinds) - 1)
    first = {kinds[i] for i in order[:count]}
    return (
        [name for name, fact in known.items() if fact[key] in first],
        [name for name, fact in known.items() if fact[key] not in first],
    )


def split(
    path: str | Path,
    train: Sequence[str],
    valid: Sequence[str],
    out: str | Path,
    *,
    force: bool = False,
    told: Told = _nothing,
) -> None:
    """Write a copy with the two parts as filter lists `train` and `valid`, as robomimic names them."""
    with EpisodeFile(path) as file, NewFile(out, file, force=force) as new:
        for name in file.names():
            new.copy(file, name)
            told()
        for key, names in (("train", train), ("valid", valid)):
            new.add_mask(key, [new.new_name(file, name) for name in names])


def relabel(
    path: str | Path,
    names: Sequence[str],
    label: str,
    out: str | Path,
    *,
    force: bool = False,
    told: Told = _nothing,
) -> int:
    """Write a copy in which some episodes have another label; return their number."""
    if label not in LABELS:
        raise UnknownNameError("label", label, LABELS)
    without(path, names)
    with EpisodeFile(path) as file, NewFile(out, file, force=force) as new:
        for name in file.names():
            group = new.copy(file, name)
            if name in names:
                group.attrs["label"], group.attrs["success"] = label, label == "success"
            told()
    return len(names)


def trim(
    path: str | Path, out: str | Path, *, keep: int = 0, force: bool = False, told: Told = _nothing
) -> tuple[int, list[str]]:
    """Write a copy without the idle rows at the beginnings and ends of episodes.

    A row is idle if the inputs of the actuators do not change in it. What is left replays bit for bit, since
    each row has its state.

    Args:
        path: The file.
        out: The new file.
        keep: Idle rows to leave at either end.
        force: Replace an existing file.
        told: Called after each episode.

    Returns:
        Rows that were cut off, and the names of episodes that are idle throughout, which stay as they are.
    """
    removed, idle = 0, []
    with EpisodeFile(path) as file, NewFile(out, file, force=force) as new:
        freq = file.control_freq
        for name in file.names():
            group = file.group(name)
            first, stop = _busy(group, keep)
            count = int(group.attrs["num_samples"])
            if stop <= first:
                idle.append(name)
                first, stop = 0, count
            if (first, stop) == (0, count):
                new.copy(file, name)
            else:
                changed = new.begin(file, name)
                cut(group, changed, first, stop)
                _measure_again(changed, freq)
                removed += count - (stop - first)
            told()
    return removed, idle


def resample(
    path: str | Path,
    hz: float,
    out: str | Path,
    *,
    actions: str | None = None,
    force: bool = False,
    told: Told = _nothing,
) -> tuple[int, int]:
    """Write a copy with fewer rows per second.

    An action of a speed (`ee_delta_*`, `joint_delta`) becomes the mean of those it stands for, which moves as
    far; one of a position (`joint_pos`, a gripper) the last of them. The result does not replay bit for bit: it
    is another control rate.

    Args:
        path: The file.
        hz: The new rate [Hz]: the old one divided by a whole number.
        out: The new file.
        actions: `mean` or `last` for environments that are not known here, or one word per component, separated
            by commas.
        force: Replace an existing file.
        told: Called after each episode.

    Returns:
        Rows of one new row, and rows left over at the ends of episodes, which are cut off.

    Raises:
        BunrakuError: The rate is not reached by a whole number, or an episode is too short.
    """
    left_over = 0
    with EpisodeFile(path) as file:
        old, every = file.control_freq, _divisor(file, hz)
        size = int(json.loads(to_json(file.signature)).get("actions", "0").split("x")[0])
        how = actions or _how(file, size)
        _check_how(how, size)
        changed = {"env_args": dict(json.loads(file.root["data"].attrs.get("env_args", "{}")))}
        changed["env_args"]["env_kwargs"] = {**file.env_kwargs, "control_freq": hz}
        changed["info"] = {**file.info, "control_freq": hz}
        texts = {key: to_json(value) for key, value in changed.items()}
        with NewFile(out, file, force=force, changed=texts) as new:
            for name in file.names():
                group = file.group(name)
                count = int(group.attrs["num_samples"])
                if count < every:
                    raise BunrakuError(
                        f"{name} of {path} has {count} rows, fewer than the {every} that make one at {hz:g} Hz; "
                        "delete it first"
                    )
                target = new.begin(file, name)
                thin(group, target, every, how, {"from_hz": old, "to_hz": hz, "actions": how})
                _measure_again(target, hz)
                left_over += count % every
                told()
    return every, left_over


def _identity(file: EpisodeFile) -> dict[str, Any]:
    flat: dict[str, Any] = {"environment": file.env_id, **file.env_kwargs}
    flat |= {key: value for key, value in file.info.items() if key not in flat}
    return flat | {f"shape of {key}": shape for key, shape in file.signature.items()}


def _divisor(file: EpisodeFile, hz: float) -> int:
    rate = file.control_freq
    every = rate / hz if hz > 0.0 else 0.0
    if every < 1.0 or abs(every - round(every)) > 1e-9:
        possible = ", ".join(f"{rate / n:g}" for n in range(1, 9))
        raise BunrakuError(f"{rate:g} Hz cannot become {hz:g} Hz by leaving rows out; possible: {possible}")
    return round(every)


def _how(file: EpisodeFile, size: int) -> str:
    mode = str(file.env_kwargs.get("control_mode", ""))
    if not mode:
        raise BunrakuError(
            f"{file.path} does not say what its actions mean (control_mode in env_kwargs); give --actions mean "
            "for speeds, last for positions"
        )
    words = ["last" if mode == "joint_pos" else "mean"] * size
    env = make_env(file.env_id, file.env_kwargs)
    try:
        world: Any = env.unwrapped
        for arm in world.task.arms():
            if arm.has_gripper:
                words[arm.action_slice.stop - 1] = "last"
    finally:
        env.close()
    return ",".join(words)


def _check_how(how: str, size: int) -> None:
    words = how.split(",")
    if len(words) not in (1, size) or set(words) - {"mean", "last"}:
        raise BunrakuError(f"--actions is mean, last, or {size} of these separated by commas; got {how!r}")


def _busy(group: h5py.Group, keep: int) -> tuple[int, int]:
    """Return the rows from the first to the last in which an actuator's input moves, and `keep` more."""
    if "applied" not in group:
        raise BunrakuError(f"{group.file.filename} has no applied inputs, by which idle rows are found")
    applied = group["applied"][()]
    count = len(applied)
    moved = np.abs(np.diff(applied, axis=0)) > IDLE_ACTUATION * np.maximum(np.abs(applied).max(axis=0), 1e-9)
    rows = np.flatnonzero(moved.any(axis=1)) + 1
    if not len(rows):
        return 0, 0
    return max(0, int(rows[0]) - keep), min(count, int(rows[-1]) + 1 + keep)


def _measure_again(group: h5py.Group, control_freq: float) -> None:
    """Store the measures of quality of a changed episode, if it was driven by a hand."""
    meta: Mapping[str, Any] = json.loads(group.attrs.get("meta", "{}"))
    if "quality" not in meta:
        return
    episode = read_episode(group, group.file.filename, 1 << 40)
    quality = measure(episode, control_freq)
    fields = {key: getattr(quality, key) for key in quality.__dataclass_fields__}
    group.attrs["meta"] = to_json({**meta, "quality": {**meta["quality"], **fields}})
