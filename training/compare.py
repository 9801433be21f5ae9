"""Runs side by side: the same fresh episodes, learning curves and videos, on one HTML page that needs nothing else."""

from __future__ import annotations

import csv
import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bunraku.errors import BunrakuError, MissingDependencyError
from bunraku.gl import GraphicsError
from bunraku.rollout import video_of
from bunraku.training.config import RunConfig, read_run
from bunraku.training.evaluate import Evaluation, evaluate, torch_actor
from bunraku.training.policies import load_policy

COLORS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")
WIDTH, HEIGHT, MARGIN = 640, 240, 48
CURVES: dict[str, str] = {
    "evaluation/success_rate": "success in evaluations",
    "rollout/success_rate": "success while learning",
    "rollout/ep_rew_mean": "return while learning",
    "validation_error": "validation error",
}
"""Columns of the logs that are drawn, and what they are called."""
STEPS = ("time/total_timesteps", "epoch")
"""Columns that count; the first that a log has is the x axis."""


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """What was found out about one run."""

    run: str
    """Its folder."""
    config: RunConfig
    """How it was made."""
    evaluation: Evaluation
    """On the fresh episodes."""
    curves: dict[str, list[tuple[float, float]]]
    """Points by column."""
    video: str | None
    """File name beside the page, None without one."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The page."""

    page: str
    """Its path."""
    runs: tuple[ComparedRun, ...]
    """The runs, as given."""


def compare(
    runs: Sequence[Path],
    out: Path,
    *,
    episodes: int = 100,
    seed: int = 1_000_000,
    video: bool = True,
    force: bool = False,
    told: Callable[[], None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
) -> Comparison:
    """Evaluate runs and write the page.

    Args:
        runs: Run folders, two or more.
        out: Folder of the page.
        episodes: Fresh episodes per run; all runs get the same.
        seed: Seed of the first.
        video: Whether to film three episodes of each; where there is no OpenGL this is said and left out.
        force: Replace an existing page.
        told: Called after each run.
        say: Told what was left out.

    Raises:
        BunrakuError: A folder is no run, the page exists, or the folder cannot be written.
    """
    if len(runs) < 2:
        raise BunrakuError("give at least two run folders to compare")
    page = out / "index.html"
    if page.exists() and not force:
        raise BunrakuError(f"{page} exists; give another --out, or --force to replace it")
    configs = [read_run(run) for run in runs]
    policies = [load_policy(run) for run in runs]
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BunrakuError(f"cannot write {out}: {error.strerror}; give another --out") from error
    found = []
    for number, (run, config, policy) in enumerate(zip(runs, configs, policies, strict=True)):
        act = torch_actor(policy)
        evaluation = evaluate(
            act, config.env, config.env_kwargs, episodes=episodes, seed=seed,
            max_episode_steps=config.max_episode_steps,
        )  # fmt: skip
        name = f"run-{number}.mp4" if video else None
        if name is not None:
            try:
                video_of(
                    act, config.env, config.env_kwargs, out / name, episodes=3, seed=seed,
                    limit=config.max_episode_steps, size=(320, 320),
                )  # fmt: skip
            except (GraphicsError, MissingDependencyError) as error:
                say(f"no videos: {error}")
                name, video = None, False
        found.append(ComparedRun(str(run), config, evaluation, read_curves(run), name))
        told()
    page.write_text(_page(found), encoding="utf-8")
    return Comparison(str(page), tuple(found))


def read_curves(run: Path) -> dict[str, list[tuple[float, float]]]:
    """Return the learning curves of a run by column: points of step and value, also over resumed parts."""
    points: dict[str, dict[float, float]] = {}
    for log in sorted([*run.glob("log-*/progress.csv"), *run.glob("progress.csv")]):
        with open(log, newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                step = next((row[key] for key in STEPS if row.get(key)), None)
                for key in CURVES:
                    if step is not None and row.get(key):
                        # a resumed run repeats what was lost; the newer line counts
                        points.setdefault(key, {})[float(step)] = float(row[key])
    return {key: sorted(values.items()) for key, values in points.items()}


def _page(runs: Sequence[ComparedRun]) -> str:
    rows = "".join(
        f"<tr><td><b style='color:{_color(i)}'>&#9632;</b> {html.escape(run.run)}</td>"
        f"<td>{html.escape(run.config.method)} {html.escape(str(run.config.settings.get('algorithm', '')))}</td>"
        f"<td>{html.escape(run.config.env)} {html.escape(str(run.config.env_kwargs))}</td>"
        f"<td>{100 * run.evaluation.success_rate:.1f} % ({100 * run.evaluation.success_low:.1f} to "
        f"{100 * run.evaluation.success_high:.1f})</td><td>{run.evaluation.mean_return:.2f}</td>"
        f"<td>{run.evaluation.episodes}</td></tr>"
        for i, run in enumerate(runs)
    )
    charts = "".join(
        f"<h2>{label}</h2>{chart([run.curves.get(key, []) for run in runs])}"
        for key, label in CURVES.items()
        if any(run.curves.get(key) for run in runs)
    )
    videos = "".join(
        f"<figure><video src='{run.video}' controls loop muted></video><figcaption>{html.escape(run.run)}"
        "</figcaption></figure>"
        for run in runs
        if run.video
    )
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><title>bunraku policy compare</title><style>"
        "body{font:15px sans-serif;margin:2em;max-width:70em}td,th{padding:.3em 1em .3em 0;text-align:left}"
        "figure{display:inline-block;margin:0 1em 1em 0}video{width:320px}</style>"
        "<h1>Runs compared</h1><table><tr><th>run</th><th>method</th><th>environment</th>"
        f"<th>success (95 % interval)</th><th>return</th><th>episodes</th></tr>{rows}</table>{charts}{videos}</html>\n"
    )


def chart(curves: Sequence[Sequence[tuple[float, float]]]) -> str:
    """Return curves as an SVG, each in its run's colour; points are (x, y)."""
    xs = [x for curve in curves for x, _ in curve]
    ys = [y for curve in curves for _, y in curve]
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)
    width, height = WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN

    def place(x: float, y: float) -> str:
        across = (x - left) / ((right - left) or 1.0)
        up = (y - low) / ((high - low) or 1.0)
        return f"{MARGIN + width * across:.1f},{MARGIN + height * (1.0 - up):.1f}"

    lines = "".join(
        f"<polyline fill='none' stroke='{_color(i)}' stroke-width='2' points='{' '.join(place(*p) for p in curve)}'/>"
        for i, curve in enumerate(curves)
        if curve
    )
    return (
        f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' width='{WIDTH}' height='{HEIGHT}'>"
        f"<rect x='{MARGIN}' y='{MARGIN}' width='{width}' height='{height}' fill='none' stroke='#ccc'/>{lines}"
        f"<text x='{MARGIN}' y='{HEIGHT - MARGIN + 18}'>{left:g}</text>"
        f"<text x='{WIDTH - MARGIN}' y='{HEIGHT - MARGIN + 18}' text-anchor='end'>{right:g}</text>"
        f"<text x='{MARGIN - 6}' y='{HEIGHT - MARGIN}' text-anchor='end'>{low:.3g}</text>"
        f"<text x='{MARGIN - 6}' y='{MARGIN + 6}' text-anchor='end'>{high:.3g}</text></svg>"
    )


def _color(number: int) -> str:
    return COLORS[number % len(COLORS)]
