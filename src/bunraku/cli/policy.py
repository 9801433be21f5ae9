"""Export a policy to ONNX, or compare runs on one page."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from bunraku.cli.main import EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.cli.train import need_torch
from bunraku.errors import BunrakuError


@dataclass(frozen=True, kw_only=True)
class Export:
    """Write a run's policy, with its normalisation, as ONNX, and check it against PyTorch on 1,000 observations."""

    run_folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """The run folder."""
    out: Path | None = None
    """The ONNX file; RUN/policy.onnx by default."""
    force: bool = False
    """Replace an existing file."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Export."""
        need_torch()
        from bunraku.training.config import read_run
        from bunraku.training.policies import ONNX, export_onnx, load_policy

        config, policy = read_run(self.run_folder), load_policy(self.run_folder)
        out = self.out or self.run_folder / ONNX
        if out.exists() and not self.force:
            raise BunrakuError(f"{out} exists; give another --out, or --force to replace it")
        difference = export_onnx(policy, config, out)
        size = out.stat().st_size
        say(f"{out}: {size} bytes, differs from PyTorch by at most {difference:.1e} on 1,000 observations")
        if self.json:
            found = {"run": str(self.run_folder), "path": str(out), "size_bytes": size}
            sys.stdout.write(json.dumps({**found, "max_abs_error": difference}) + "\n")
        return EXIT_OK


@dataclass(frozen=True, kw_only=True)
class Compare:
    """Evaluate runs on the same fresh episodes and put them on one HTML page, with their curves and videos."""

    run_folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN RUN")]
    """The run folders."""
    out: Path
    """Folder for index.html and the videos."""
    episodes: int = 100
    """Fresh episodes per run."""
    seed: int = 1_000_000
    """Seed of the first."""
    video: bool = True
    """Whether to render three episodes of each run."""
    force: bool = False
    """Replace an existing page."""
    json: bool = False
    """Print one JSON object on stdout."""

    def run(self) -> int:
        """Compare."""
        need_torch()
        from bunraku.training.compare import compare

        if self.episodes < 1:
            raise BunrakuError(f"--episodes must be at least 1, got {self.episodes}")
        with Progress("comparing", len(self.run_folders), "runs") as progress:
            found = compare(
                self.run_folders,
                self.out,
                episodes=self.episodes,
                seed=self.seed,
                video=self.video,
                force=self.force,
                told=progress.advance,
                say=say,
            )
        for run in found.runs:
            say(
                f"{run.run}: success {100 * run.evaluation.success_rate:.1f} %, return {run.evaluation.mean_return:.2f}"
            )
        say(f"page: {found.page}")
        if self.json:
            runs = [{"run": run.run, **asdict(run.evaluation), "video": run.video} for run in found.runs]
            sys.stdout.write(json.dumps({"page": found.page, "runs": runs}) + "\n")
        return EXIT_OK


Args = Export | Compare
"""The subcommands."""


def run(args: Args) -> int:
    """Do it; return the exit code."""
    return args.run()
