"""Train a policy: from demonstrations (bc), from corrections (dagger), or by reinforcement learning (rl)."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from bunraku.cli.main import EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.errors import BunrakuError, MissingDependencyError, UnknownNameError
from bunraku.registration import ENVIRONMENTS


@dataclass(frozen=True, kw_only=True)
class Bc:
    """Clone demonstrations."""

    data: Annotated[Path, tyro.conf.Positional]
    """The demonstration file."""
    out: Path
    """The new run folder."""
    seed: int = 0
    """Seed of the split, the weights and the order of rows."""
    mask: str = "success"
    """Filter list to learn from; all for every episode."""
    epochs: int = 200
    """Most passes over the rows."""
    batch_size: int = 256
    """Rows per update."""
    learning_rate: float = 1e-3
    """Adam's."""
    hidden: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers."""
    drop_idle: bool = True
    """Leave out rows in which the operator rests before the first success."""
    state_weight: float = 0.0
    """Where there are goals: weight of the observation beside the way to the goal."""
    force: bool = False
    """Replace an existing run."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Train."""
        need_torch()
        from bunraku.training.bc import BCSettings, train_bc

        settings = BCSettings(
            mask=None if self.mask == "all" else self.mask,
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            hidden=self.hidden,
            drop_idle=self.drop_idle,
            state_weight=self.state_weight,
        )
        began = time.monotonic()
        with Progress("cloning", self.epochs, "passes") as progress:
            found = train_bc(
                self.data, self.out, settings, self.seed, force=self.force, told=progress.advance
            )
        seconds = time.monotonic() - began
        say(f"{self.out}: {found['epochs']} passes over {found['rows']} rows in {seconds:.0f} s")
        return _report(
            self.json, {"run": str(self.out), "steps": found["epochs"], "seconds": seconds, **found}
        )


@dataclass(frozen=True, kw_only=True)
class Dagger:
    """Go on with a cloned policy where an operator took over from it (collect --policy)."""

    start: Annotated[Path, tyro.conf.Positional]
    """Run folder of the cloned policy."""
    data: Path
    """The demonstrations that it was cloned from."""
    corrections: Path
    """The file that was collected with --policy."""
    out: Path
    """The new run folder."""
    seed: int = 0
    """Seed of the split and the order of rows."""
    epochs: int = 100
    """Most passes over the rows."""
    learning_rate: float = 3e-4
    """Adam's."""
    force: bool = False
    """Replace an existing run."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Train."""
        need_torch()
        from bunraku.training.bc import BCSettings
        from bunraku.training.dagger import train_dagger

        settings = BCSettings(epochs=self.epochs, learning_rate=self.learning_rate)
        began = time.monotonic()
        with Progress("cloning", self.epochs, "passes") as progress:
            found = train_dagger(
                self.start, self.data, self.corrections, self.out, settings, self.seed,
                force=self.force, told=progress.advance,
            )  # fmt: skip
        seconds = time.monotonic() - began
        say(f"{self.out}: {found['corrections']} corrections among {found['rows']} rows, {seconds:.0f} s")
        return _report(
            self.json, {"run": str(self.out), "steps": found["epochs"], "seconds": seconds, **found}
        )


@dataclass(frozen=True, kw_only=True)
class Rl:
    """Learn by reinforcement; what is not given comes from the preset of the environment and the algorithm."""

    out: Path
    """The run folder."""
    env: str = "PandaReach"
    """Short name of the environment."""
    algorithm: str = "ppo"
    """ppo, sac, td3 or tqc."""
    steps: int = 40_000
    """Control steps of all simulations together."""
    seed: int = 0
    """Seed of everything."""
    option: tuple[str, ...] = ()
    """Options of the environment, as name=value."""
    set: tuple[str, ...] = ()
    """Further settings, as name=value: learning_rate, gamma, hidden, n_steps, ..."""
    num_envs: int | None = None
    """Simulations."""
    max_episode_steps: int | None = None
    """Steps of an episode."""
    start: Path | None = None
    """Run folder of behaviour cloning to go on from (ppo)."""
    demonstrations: Path | None = None
    """Demonstrations to put in the replay buffer first (sac, td3, tqc); their options of the environment are taken."""
    evaluate_every: int = 0
    """Steps between evaluations on 100 fresh episodes; 0 for none."""
    stop_at: float = 0.0
    """Success rate at which to stop; 0 for never."""
    resume: bool = False
    """Go on with the run in --out from its last checkpoint."""
    force: bool = False
    """Replace an existing run."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Train, or go on."""
        need_torch()
        from bunraku.training.config import RunConfig, read_run
        from bunraku.training.rl import RLSettings, resume_rl, train_rl

        began = time.monotonic()
        if self.resume:
            total = int(read_run(self.out).settings["steps"])
            with Progress("learning", total, "steps") as progress:
                found = resume_rl(self.out, told=progress.advance, say=say)
        else:
            kwargs, limit, settings = self._resolved()
            known = RLSettings.__dataclass_fields__
            unknown = [key for key in settings if key not in known]
            if unknown:
                raise UnknownNameError("setting", unknown[0], known)
            config = RunConfig("rl", self.env, kwargs, limit, self.seed, asdict(RLSettings(**settings)))
            with Progress("learning", self.steps, "steps") as progress:
                found = train_rl(config, self.out, force=self.force, told=progress.advance, say=say)
        seconds = time.monotonic() - began
        say(f"{self.out}: {found['steps']} steps in {seconds:.1f} s")
        return _report(self.json, {"run": str(self.out), "seconds": seconds, **found})

    def _resolved(self) -> tuple[dict[str, Any], int | None, dict[str, Any]]:
        from bunraku.training.config import read_run
        from bunraku.training.presets import environment_options, preset

        if "/" not in self.env and self.env not in ENVIRONMENTS:
            raise UnknownNameError("environment", self.env, ENVIRONMENTS)
        kwargs, limit = environment_options(self.env, self.algorithm)
        if self.start is not None:
            cloned = read_run(self.start)
            kwargs, limit = {**kwargs, **cloned.env_kwargs}, cloned.max_episode_steps
        if self.demonstrations is not None:
            from bunraku.episode.reader import EpisodeFile

            with EpisodeFile(self.demonstrations) as file:
                kwargs |= file.env_kwargs
        kwargs |= _pairs(self.option, "--option")
        settings = preset(self.env, self.algorithm) | {
            "algorithm": self.algorithm,
            "steps": self.steps,
            "evaluate_every": self.evaluate_every,
            "stop_at": self.stop_at,
            "start": str(self.start or ""),
            "demonstrations": str(self.demonstrations or ""),
        }
        if self.num_envs is not None:
            settings["num_envs"] = self.num_envs
        settings |= _pairs(self.set, "--set")
        return kwargs, limit if self.max_episode_steps is None else self.max_episode_steps, settings


Args = Bc | Dagger | Rl
"""The subcommands."""


def run(args: Args) -> int:
    """Train; return the exit code."""
    return args.run()


def _pairs(given: tuple[str, ...], option: str) -> dict[str, Any]:
    """Return name=value texts as a dictionary; values are JSON where they can be read as such, else text."""
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise BunrakuError(f"{option} takes name=value, got {text!r}")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = {"True": True, "False": False}.get(value, value)
    return found


def need_torch() -> None:
    """Raise MissingDependencyError where training is not installed."""
    try:
        import stable_baselines3  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("stable-baselines3", "training", "train") from error


def _report(as_json: bool, found: dict[str, Any]) -> int:
    if as_json:
        sys.stdout.write(json.dumps(found) + "\n")
    return EXIT_OK
