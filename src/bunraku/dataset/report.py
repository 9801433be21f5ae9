"""A page that shows what a file holds: `index.html`, which needs nothing else and opens offline.

Episodes are read one at a time and written at once, so memory does not grow with their number. Pictures are
those that were recorded, else rendered from the states; where there is no OpenGL, the page says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from bunraku.dataset.exchange import NewFolder
from bunraku.dataset.outliers import MEASURES, outliers
from bunraku.dataset.report_episode import FRAME_SIZE, film_rows, recorded_film, section
from bunraku.dataset.report_page import FOOT, head
from bunraku.dataset.summary import Summary, summarise
from bunraku.dataset.svg import bars, lines
from bunraku.dataset.where import facts
from bunraku.episode.episode import Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.render import EpisodeScene
from bunraku.errors import BunrakuError
from bunraku.gl import GraphicsError

_RUNNING = 10
"""Episodes of the running share of successes."""

_LATENCY_EDGES = np.linspace(0.0, 100.0, 51)
_TICK_EDGES = np.linspace(0.0, 2000.0, 51)

Film = dict[str, list[tuple[int, NDArray[np.uint8]]]]


@dataclass(frozen=True, slots=True)
class Written:
    """What `write_report` made."""

    path: str
    """The page."""
    episodes: int
    """Episodes of the file."""
    shown: int
    """Episodes with a section of their own."""
    outliers: dict[str, list[str]]
    """Why episodes stand out."""
    pictures: bool
    """Whether there are film strips."""
    note: str
    """Why there are none."""


def write_report(
    path: str | Path,
    out: str | Path,
    *,
    cameras: Sequence[str] = (),
    limit: int = 100,
    force: bool = False,
    told: Callable[[], None] = lambda: None,
) -> Written:
    """Write the page into a new folder.

    Args:
        path: Demonstration file.
        out: The folder.
        cameras: Cameras to render where no images were recorded; the model's first by default.
        limit: Episodes with a section of their own: those that stand out, and others at even distances.
        force: Replace an existing folder.
        told: Called after each episode that is shown.

    Raises:
        BunrakuError: The file holds no episode, or the folder cannot be written.
    """
    if limit < 1:
        raise BunrakuError(f"--limit must be 1 or more, got {limit}")
    summary = summarise(path)
    with EpisodeFile(path) as file:
        if not len(file):
            raise BunrakuError(f"{path} holds no episode, so there is nothing to report")
        known = facts(file)
        strange = outliers(known)
        freq = file.control_freq
        shown = _chosen(list(known), strange, limit)
        with NewFolder(out, force=force) as folder, ExitStack() as stack:
            page = stack.enter_context(open(folder / "index.html", "w", encoding="utf-8"))
            camera = stack.enter_context(_Camera(cameras))
            page.write(head(escape(Path(path).name)))
            _write_head(page, summary, known, strange)
            page.write(_latencies(file))
            page.write(f"<h2>Episodes</h2>{_left_out(len(known), len(shown))}")
            for number, name in enumerate(shown):
                episode = file.load(name)
                film = camera.film(episode)
                page.write(
                    section(
                        name,
                        episode,
                        freq,
                        film,
                        camera.note,
                        strange.get(name, []),
                        is_open=number == 0 or name in strange,
                    )
                )
                told()
            page.write(FOOT)
    index = Path(out) / "index.html"
    return Written(str(index), len(known), len(shown), strange, not camera.note, camera.note)


class _Camera:
    """Pictures of episodes; the first failure to render is remembered, and nothing more is tried."""

    def __init__(self, cameras: Sequence[str]) -> None:
        self._cameras, self._scene = cameras, EpisodeScene(FRAME_SIZE)
        self.note = ""

    def __enter__(self) -> _Camera:
        return self

    def __exit__(self, *_: object) -> None:
        self._scene.close()

    def film(self, episode: Episode) -> Film:
        recorded = recorded_film(episode)
        if recorded or self.note:
            return recorded
        try:
            return self._rendered(episode)
        except GraphicsError as error:
            self.note = str(error)
        except BunrakuError as error:
            if self._cameras:
                raise
            self.note = str(error)
        return {}

    def _rendered(self, episode: Episode) -> Film:
        cameras = list(self._cameras) or self._scene.cameras(episode)[:1]
        if not cameras:
            raise BunrakuError("the recorded model has no camera")
        film: Film = {camera: [] for camera in cameras}
        for row, camera, image in self._scene.images(episode, cameras, rows=film_rows(len(episode))):
            film[camera].append((row, image.copy()))
        return film


def _chosen(names: list[str], strange: Mapping[str, Any], limit: int) -> list[str]:
    if len(names) <= limit:
        return names
    wanted = [name for name in names if name in strange][:limit]
    others = [name for name in names if name not in strange]
    places: Any = np.linspace(0, len(others) - 1, limit - len(wanted)).round().astype(int) if others else []
    kept = {*wanted, *(others[i] for i in places)}
    return [name for name in names if name in kept]


def _left_out(total: int, shown: int) -> str:
    return "" if shown == total else f"<p><small>{shown} of {total} are shown; --limit shows more</small></p>"


def _write_head(
    page: TextIO, summary: Summary, known: Mapping[str, Mapping[str, Any]], strange: Mapping[str, list[str]]
) -> None:
    def counts(of: Mapping[str, int]) -> str:
        return ", ".join(f"{key or '(none)'}: {count}" for key, count in of.items()) or "none"

    rows = {
        "environment": summary.env_id,
        "episodes": f"{summary.episodes}, {summary.steps} rows"
        + ("" if summary.seconds is None else f", {summary.seconds:.1f} s"),
        "rate": "unknown" if summary.control_freq is None else f"{summary.control_freq:g} Hz",
        "labels": counts(summary.labels),
        "devices": counts(summary.devices),
        "operators": counts(summary.operators),
        "cameras": ", ".join(summary.cameras) or "none recorded",
        "size": f"{summary.size_bytes / 1e6:.2f} MB",
        "versions": ", ".join(f"{key} {value}" for key, value in summary.versions.items()) or "unknown",
    }
    page.write(f"<h1>{escape(Path(summary.path).name)}</h1><dl>")
    for key, value in rows.items():
        page.write(f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>")
    page.write(f"<dt>stand out</dt><dd>{len(strange)} of {len(known)}</dd></dl>")
    solved = np.array([fact["success"] for fact in known.values()], dtype=np.float64)
    numbers = np.arange(len(solved), dtype=np.float64)
    sums = np.concatenate([[0.0], np.cumsum(solved)])
    running = np.array(
        [(sums[i + 1] - sums[max(0, i + 1 - _RUNNING)]) / min(i + 1, _RUNNING) for i in range(len(solved))]
    )
    seconds = np.array([fact["seconds"] for fact in known.values()], dtype=np.float64)
    page.write('<h2>Over the session</h2><div class="over">')
    curves = {"of the last ten": running, "so far": sums[1:] / (numbers + 1)}
    page.write(lines(numbers, curves, "share of successes over episodes", "1"))
    page.write(lines(numbers, {"seconds": seconds}, "length over episodes", "s"))
    page.write("</div><h2>Measures</h2><div class='scroll'><table><tr><th>episode</th><th>label</th>")
    page.write("".join(f"<th>{measure.replace('_', ' ')}</th>" for measure in MEASURES) + "<th></th></tr>")
    for name, fact in known.items():
        cells = "".join(f"<td>{_number(fact.get(measure))}</td>" for measure in MEASURES)
        why = escape("; ".join(strange.get(name, [])))
        label = escape(str(fact["label"]))
        page.write(
            f'<tr><td><a href="#{escape(name)}">{escape(name)}</a></td><td class="{label}">{label}</td>{cells}'
            f'<td class="why out">{why}</td></tr>'
        )
    page.write("</table></div>")


def _number(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) and np.isfinite(value) else "-"


def _latencies(file: EpisodeFile) -> str:
    """Return histograms of the age of poses at use, and of the time of a tick, over all episodes."""
    ages, ticks = np.zeros(len(_LATENCY_EDGES) - 1), np.zeros(len(_TICK_EDGES) - 1)

    def add() -> None:
        for name in file.names():
            streams = file.group(name).get("streams")
            if streams is None:
                continue
            for dataset in streams.get("pose_age", {}).values():
                ages[:] += _counted(1e3 * dataset[()], _LATENCY_EDGES)
            if "tick_us" in streams:
                ticks[:] += _counted(streams["tick_us"][()], _TICK_EDGES)

    file.guarded(add)
    return (
        '<h2>Latency</h2><div class="over">'
        + bars(_LATENCY_EDGES, ages, "age of the pose at use (last bar: and more)", "ms")
        + bars(_TICK_EDGES, ticks, "time from sample to end of step (last bar: and more)", "µs")
        + "</div>"
    )


def _counted(values: NDArray[Any], edges: NDArray[Any]) -> NDArray[Any]:
    return np.histogram(np.clip(values[np.isfinite(values)], edges[0], edges[-1]), edges)[0]
