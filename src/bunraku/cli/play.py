"""Show a policy at work: as a video, or in a viewer."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from bunraku.cli.collect import parse_size
from bunraku.cli.main import EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.errors import BunrakuError, did_you_mean


@dataclass(frozen=True, kw_only=True)
class Args:
    """Options of `play`."""

    policy: Annotated[str, tyro.conf.Positional]
    """A run folder, a policy exported to ONNX, or the name of an environment whose shipped policy is shown."""
    out: Path | None = None
    """An .mp4, a .gif, or a folder for PNG files; without it the episodes run in a viewer."""
    viewer: Literal["native", "web"] | None = None
    """The viewer, where there is no --out; by default a window where there is a display, else the web page."""
    episodes: int = 3
    """Episodes to show."""
    seed: int = 1_000_000
    """Seed of the first."""
    camera: str = "front"
    """Camera of the video."""
    size: str = "480x480"
    """Size of the video, width x height."""
    json: bool = False
    """Print one JSON object on stdout."""
    force: bool = False
    """Replace an existing file."""


def run(args: Args) -> int:
    """Play; return the exit code."""
    from bunraku.rollout import video_of

    if args.episodes < 1:
        raise BunrakuError(f"--episodes must be at least 1, got {args.episodes}")
    act, env, kwargs, limit = load(args.policy)
    shown = args.episodes
    if args.out is None:
        shown, successes, frames = *_show(act, env, kwargs, limit, args), 0
    else:
        if args.out.exists() and not args.force:
            raise BunrakuError(f"{args.out} exists; give another --out, or --force to replace it")
        with Progress("playing", args.episodes, "episodes") as progress:
            frames, successes = video_of(
                act, env, kwargs, args.out, episodes=args.episodes, seed=args.seed, limit=limit,
                camera=args.camera, size=parse_size(args.size), told=progress.advance,
            )  # fmt: skip
        say(f"{args.out}: {frames} frames")
    say(f"{args.policy}: {successes} of {shown} episodes ended in success")
    if args.json:
        found: dict[str, Any] = {"policy": args.policy, "path": None if args.out is None else str(args.out)}
        found |= {"episodes": shown, "successes": successes, "frames": frames}
        sys.stdout.write(json.dumps(found) + "\n")
    return EXIT_OK


def _show(
    act: Callable[[Any], Any], env: str, kwargs: dict[str, Any], limit: int | None, args: Args
) -> tuple[int, int]:
    """Run episodes in a viewer at the speed of the simulated clock; return how many there were, and successes."""
    from bunraku.gl import has_display
    from bunraku.rate import Rate
    from bunraku.rollout import make_env, run_episode
    from bunraku.teleop_collect.viewer.base import open_viewer
    from bunraku.teleop_collect.viewer.status import Overlay, SessionStatus

    made: Any = make_env(env, kwargs, limit)
    core = made.unwrapped
    kind = args.viewer or ("native" if has_display() else "web")
    shown = successes = 0
    with open_viewer(kind, title=f"bunraku play {args.policy}") as viewer:
        if viewer.url:
            say(f"viewer: {viewer.url}")
        rate = Rate(core.task.rates.control_freq)

        def each() -> bool:
            status = SessionStatus(env_id=env, device="policy", step=0, message=f"episode {shown + 1}")
            viewer.sync(core.model, core.data, Overlay({}), status)
            rate.sleep()
            return viewer.is_open() and "quit" not in viewer.commands()

        while shown < args.episodes:
            ended = run_episode(act, made, args.seed + shown, each)
            if ended is None:
                break
            shown, successes = shown + 1, successes + ended
    made.close()
    return shown, successes


def load(policy: str) -> tuple[Callable[[Any], Any], str, dict[str, Any], int | None]:
    """Return a policy as a function of one observation or many, with its environment, options and step limit.

    Args:
        policy: A run folder, an ONNX file, or an environment's name for the policy that is shipped for it.
    """
    from bunraku.policy import OnnxPolicy, shipped

    path = Path(policy)
    if path.is_dir():
        from bunraku.cli.train import need_torch

        need_torch()
        from bunraku.training.config import read_run
        from bunraku.training.evaluate import torch_actor
        from bunraku.training.policies import load_policy

        config = read_run(path)
        return torch_actor(load_policy(path)), config.env, config.env_kwargs, config.max_episode_steps
    if policy in shipped():
        path = shipped()[policy]
    elif path.suffix != ".onnx":
        raise BunrakuError(
            f"{policy} is no run folder, no ONNX file and no shipped policy{did_you_mean(policy, shipped())}"
        )
    loaded = OnnxPolicy(path)
    return loaded, loaded.env_id, loaded.env_kwargs, loaded.max_episode_steps
