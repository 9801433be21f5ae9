"""Run a policy on fresh, seeded episodes: success with its 95 % interval."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from bunraku.cli.main import EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.errors import BunrakuError


@dataclass(frozen=True, kw_only=True)
class Args:
    """Options of `evaluate`."""

    run: Annotated[Path, tyro.conf.Positional]
    """The run folder, or a policy exported to ONNX."""
    episodes: int = 100
    """Fresh episodes; at least 100 say something."""
    seed: int = 1_000_000
    """Seed of the first episode."""
    max_episode_steps: int | None = None
    """Steps of an episode; by default those of the training."""
    json: bool = False
    """Print one JSON object on stdout."""


def run(args: Args) -> int:
    """Evaluate; return the exit code."""
    if args.episodes < 1:
        raise BunrakuError(f"--episodes must be at least 1, got {args.episodes}")
    from bunraku.cli.train import need_torch

    need_torch()
    from bunraku.training.config import read_run
    from bunraku.training.evaluate import evaluate, torch_actor
    from bunraku.training.policies import load_policy

    log = None
    if args.run.suffix == ".onnx":
        from bunraku.policy import OnnxPolicy

        policy = OnnxPolicy(args.run)
        act, env, kwargs, limit = policy, policy.env_id, policy.env_kwargs, policy.max_episode_steps
    else:
        config = read_run(args.run)
        act = torch_actor(load_policy(args.run))  # type: ignore[assignment]
        env, kwargs, limit = config.env, config.env_kwargs, config.max_episode_steps
        log = args.run / f"evaluation-{args.seed}.csv"
    with Progress("evaluating", args.episodes, "episodes") as progress:
        found = evaluate(
            act,
            env,
            kwargs,
            episodes=args.episodes,
            seed=args.seed,
            max_episode_steps=args.max_episode_steps or limit,
            log=log,
            told=progress.advance,
        )
    say(
        f"{args.run}: success {100 * found.success_rate:.1f} % of {found.episodes} episodes "
        f"(95 % interval {100 * found.success_low:.1f} to {100 * found.success_high:.1f}), "
        f"return {found.mean_return:.2f}"
    )
    if args.json:
        sys.stdout.write(json.dumps({"run": str(args.run), **asdict(found)}) + "\n")
    return EXIT_OK
