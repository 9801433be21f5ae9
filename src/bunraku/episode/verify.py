"""Does a recording replay? The recorded actions are given to the recorded environment, and each state is
compared with the recorded one, bit for bit.

    report = verify("reach.hdf5")
    assert report.ok, report.sentence

An environment that can be verified has, on its unwrapped self, `state` (a copy `(D,)` of MuJoCo's
`mjSTATE_INTEGRATION`) and `set_state(row)`.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np

from bunraku.episode.episode import Episode
from bunraku.episode.format import current_versions
from bunraku.episode.reader import EpisodeFile
from bunraku.errors import BunrakuError
from bunraku.geometry import Array

Start = Literal["first", "middle"] | int
"""The row to start from: `first` is 0, `middle` T // 2."""

_ONE_PROCESS_BELOW = 20
"""Starting a process costs about as much as replaying this many episodes."""


@dataclass(frozen=True, slots=True)
class EpisodeCheck:
    """How the replay of one episode went."""

    name: str
    """In the file."""
    steps: int
    """Actions replayed."""
    bit_exact: bool
    """Every state had the recorded bits."""
    first_divergence: int | None
    """Number of the action after which a state first differed."""
    max_abs_error: float
    """Largest difference of any number of any state; inf where one is not a number."""
    reset_exact: bool | None
    """Whether `reset` with the recorded seed gives the first state; None if not checked."""


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """How the replay of a file went."""

    path: str
    """The file."""
    checks: tuple[EpisodeCheck, ...]
    """One per episode."""
    version_differences: Mapping[str, tuple[str, str]]
    """Libraries that had another version when the file was begun: recorded, here."""

    @property
    def ok(self) -> bool:
        """Whether all is as recorded, the reset included."""
        return all(check.bit_exact and check.reset_exact is not False for check in self.checks)

    @property
    def sentence(self) -> str:
        """The report for the user."""
        exact = sum(check.bit_exact for check in self.checks)
        text = f"{exact} of {len(self.checks)} episodes of {self.path} replay bit for bit"
        worst = next((check for check in self.checks if not check.bit_exact), None)
        if worst is not None:
            text += (
                f"; {worst.name} first differs after action {worst.first_divergence}, by at most "
                f"{worst.max_abs_error:.3g}"
            )
        resets = [check.name for check in self.checks if check.reset_exact is False]
        if resets:
            text += f"; reset with the recorded seed gives another start for {', '.join(resets[:5])}"
            text += " and others" if len(resets) > 5 else ""
        if not self.ok and self.version_differences:
            changed = (
                f"{name} {there} (here {here})" for name, (there, here) in self.version_differences.items()
            )
            text += f"; it was recorded with {', '.join(changed)}"
        return text

    def as_json(self) -> dict[str, Any]:
        """Return the fields of `bunraku verify --json`; JSON has no inf, so an error of inf is None there."""
        first = next((check for check in self.checks if check.first_divergence is not None), None)
        return {
            "path": self.path,
            "ok": self.ok,
            "episodes": len(self.checks),
            "bit_exact": sum(check.bit_exact for check in self.checks),
            "reset_exact": sum(check.reset_exact is True for check in self.checks),
            "steps": sum(check.steps for check in self.checks),
            "max_abs_error": _finite(max((check.max_abs_error for check in self.checks), default=0.0)),
            "first_divergence": (
                None if first is None else {"episode": first.name, "step": first.first_divergence}
            ),
            "version_differences": {name: list(pair) for name, pair in self.version_differences.items()},
            "checks": [
                asdict(check) | {"max_abs_error": _finite(check.max_abs_error)} for check in self.checks
            ],
        }


def verify(
    path: str | Path,
    *,
    start: Start = "first",
    names: Sequence[str] | None = None,
    progress: Callable[[EpisodeCheck], None] | None = None,
    processes: int | None = None,
) -> VerifyReport:
    """Replay episodes of a file.

    Args:
        path: Demonstration file.
        start: The row to start from. From the first, `reset` with the recorded seed is checked as well.
        names: Episodes to replay, all by default.
        progress: Called with each episode's result when it is done.
        processes: How many work at a time; by default one for a few episodes, all cores for many. More than
            one needs a script to keep its own start under `if __name__ == "__main__":`.

    Raises:
        FileFormatError: The file is damaged.
        BunrakuError: The environment cannot be made here, or cannot be verified.
    """
    with EpisodeFile(path) as file:
        chosen = list(file.names() if names is None else names)
        recorded, here = file.versions, current_versions()
        env_id, env_kwargs = file.env_id, file.env_kwargs
    count = processes if processes is not None else _default_processes(len(chosen))
    found: list[EpisodeCheck] = []
    for check in _checks(str(path), env_id, env_kwargs, chosen, start, count):
        found.append(check)
        if progress is not None:
            progress(check)
    differences = {
        name: (recorded[name], here[name]) for name in recorded if recorded[name] != here.get(name)
    }
    return VerifyReport(str(path), tuple(found), differences)


def make_env(env_id: str, env_kwargs: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Return the recorded environment, without a step limit.

    Raises:
        BunrakuError: It cannot be made, or has no `state` and `set_state`.
    """
    kwargs = {
        key: value for key, value in env_kwargs.items() if key not in ("render_mode", "max_episode_steps")
    }
    try:
        env = gymnasium.make(env_id, disable_env_checker=True, max_episode_steps=-1, **kwargs)
    except (gymnasium.error.Error, ImportError, TypeError, ValueError) as error:
        raise BunrakuError(f"the recorded environment {env_id!r} cannot be made here: {error}") from error
    if not (hasattr(env.unwrapped, "state") and hasattr(env.unwrapped, "set_state")):
        env.close()
        raise BunrakuError(f"{env_id!r} has no state and set_state, which replaying it exactly needs")
    return env


def replay(
    env: gymnasium.Env[Any, Any], episode: Episode, name: str = "", start: Start = "first"
) -> EpisodeCheck:
    """Replay one episode in an environment of `make_env`.

    Raises:
        BunrakuError: The states are not those of this environment.
    """
    row = {"first": 0, "middle": len(episode) // 2}.get(start, start) if isinstance(start, str) else start
    if not isinstance(row, int) or not 0 <= row < len(episode):
        raise BunrakuError(
            f"cannot start {name} at {start!r}: give 'first', 'middle' or 0 to {len(episode) - 1}"
        )
    world: Any = env.unwrapped
    seed = episode.meta.get("seed")
    env.reset(seed=seed, options=episode.meta.get("reset_options"))
    recorded = episode.states
    first = np.asarray(world.state)
    if first.shape != recorded[0].shape:
        raise BunrakuError(
            f"{name} has states of {recorded.shape[1]} numbers, its environment {len(first)} here; it was "
            "recorded with another version of the environment or of MuJoCo"
        )
    # an episode whose beginning was cut off does not start where a reset does
    at_reset = row == 0 and seed is not None and not episode.meta.get("trimmed", {}).get("first_row")
    reset_exact = _same_bits(first, recorded[0]) if at_reset else None
    world.set_state(recorded[row].copy())
    divergence: int | None = None
    largest = 0.0
    for step in range(row, len(episode)):
        if not np.isfinite(episode.actions[step]).all():
            # no environment takes such an action, so it was not driven with it, and what follows cannot be compared
            return EpisodeCheck(
                name,
                len(episode) - row,
                False,
                step if divergence is None else divergence,
                np.inf,
                reset_exact,
            )
        env.step(episode.actions[step])
        state = np.asarray(world.state)
        if not _same_bits(state, recorded[step + 1]):
            divergence = step if divergence is None else divergence
            largest = max(largest, _difference(state, recorded[step + 1]))
    return EpisodeCheck(name, len(episode) - row, divergence is None, divergence, largest, reset_exact)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _same_bits(a: Array, b: Array) -> bool:
    return a.tobytes() == b.tobytes()


def _difference(a: Array, b: Array) -> float:
    """Return the largest difference; numbers of equal bits, NaN included, do not differ."""
    different = np.ascontiguousarray(a).view(np.uint64) != np.ascontiguousarray(b).view(np.uint64)
    apart = np.abs(a[different] - b[different])
    return float(np.where(np.isnan(apart), np.inf, apart).max(initial=0.0))


def _default_processes(episodes: int) -> int:
    if episodes < _ONE_PROCESS_BELOW:
        return 1
    return min(os.cpu_count() or 1, episodes // (_ONE_PROCESS_BELOW // 2))


def _checks(
    path: str, env_id: str, env_kwargs: dict[str, Any], names: list[str], start: Start, processes: int
) -> Iterable[EpisodeCheck]:
    if processes <= 1 or len(names) <= 1:
        env = make_env(env_id, env_kwargs)
        try:
            with EpisodeFile(path) as file:
                for name in names:
                    yield replay(env, file.load(name), name, start)
        finally:
            env.close()
        return
    size = max(1, len(names) // (4 * processes))
    parts = [names[i : i + size] for i in range(0, len(names), size)]
    # Not fork: MuJoCo and HDF5 hold threads and locks that a forked child would inherit half.
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(min(processes, len(parts)), mp_context=context) as pool:
            for result in pool.map(_work, *zip(*((path, part, start) for part in parts), strict=True)):
                if isinstance(result, str):
                    pool.shutdown(cancel_futures=True)
                    raise BunrakuError(result)
                yield from result
    except BrokenProcessPool as error:
        raise BunrakuError(
            "the worker processes could not start; keep the start of the script under "
            'if __name__ == "__main__":, '
            "or give processes=1"
        ) from error


_worker_env: dict[str, gymnasium.Env[Any, Any]] = {}


def _work(path: str, names: list[str], start: Start) -> list[EpisodeCheck] | str:
    """Replay episodes in a worker, which keeps its environment; return the message of a `BunrakuError`."""
    try:
        with EpisodeFile(path) as file:
            if path not in _worker_env:
                _worker_env[path] = make_env(file.env_id, file.env_kwargs)
            return [replay(_worker_env[path], file.load(name), name, start) for name in names]
    except BunrakuError as error:
        return str(error)
