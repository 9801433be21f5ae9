"""One episode on the report's page: a film strip and plots."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from bunraku.dataset.exchange import images_of
from bunraku.dataset.svg import lines
from bunraku.episode.episode import Episode
from bunraku.geometry import Array

FRAMES = 8
"""Pictures of a film strip."""

FRAME_SIZE = (160, 120)
"""Largest width and height of them [pixels]."""


def section(
    name: str,
    episode: Episode,
    freq: float,
    film: Mapping[str, Sequence[tuple[int, NDArray[np.uint8]]]],
    no_film: str,
    reasons: Sequence[str],
    *,
    is_open: bool,
) -> str:
    """Return the HTML of an episode.

    Args:
        name: Its name.
        episode: The episode.
        freq: Rows per second.
        film: Row and picture by camera.
        no_film: Why there are no pictures, if there are none.
        reasons: Why it stands out from the others.
        is_open: Whether it is shown unfolded.
    """
    out = f' <span class="out">stands out: {escape("; ".join(reasons))}</span>' if reasons else ""
    parts = [
        f'<details id="{escape(name)}"{" open" if is_open else ""}><summary>{escape(name)} '
        f'<span class="{escape(episode.label)}">{escape(episode.label)}</span> '
        f'<small>{len(episode)} rows, {len(episode) / freq:.1f} s</small>{out}</summary><div class="body">'
    ]
    for camera, pictures in film.items():
        shown = "".join(
            f'<figure><img alt="{escape(camera)}, row {row}" src="{_jpeg(picture)}">'
            f"<figcaption>{row / freq:.1f} s</figcaption></figure>"
            for row, picture in pictures
        )
        parts.append(f"<p><small>{escape(camera)}</small></p><div class='film'>{shown}</div>")
    if not film:
        parts.append(f'<p class="no">no pictures: {escape(no_film)}</p>')
    parts.append(f'<div class="plots">{"".join(_plots(episode, freq))}</div></div></details>\n')
    return "".join(parts)


def film_rows(count: int) -> list[int]:
    """Return the rows of an episode of `count` rows that its film strip shows, first and last among them."""
    return sorted({int(row) for row in np.linspace(0, count, min(FRAMES, count + 1)).round()})


def recorded_film(episode: Episode) -> dict[str, list[tuple[int, NDArray[np.uint8]]]]:
    """Return pictures by camera from recorded images."""
    rows = film_rows(len(episode))
    return {camera: [(row, images[row]) for row in rows] for camera, images in images_of(episode).items()}


def _jpeg(picture: NDArray[np.uint8]) -> str:
    image = Image.fromarray(picture)
    image.thumbnail(FRAME_SIZE)
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=80)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode()


def _plots(episode: Episode, freq: float) -> list[str]:
    times = np.arange(len(episode)) / freq
    streams = episode.streams
    hands = [key.removeprefix("target/") for key in streams if key.startswith("target/")]
    shown = []
    for hand in hands:
        target = streams[f"target/{hand}"]
        engaged = _stretches(streams[f"engaged/{hand}"], freq) if f"engaged/{hand}" in streams else []
        lost = _increases(streams.get(f"dropped/{hand}"), freq)
        if f"joints/{hand}" in streams:
            shown.append(
                _lines(times, streams[f"joints/{hand}"], f"joints, {hand}", "rad", "q", shaded=engaged)
            )
        shown.append(
            lines(
                times,
                {axis: target[:, i] for i, axis in enumerate("xyz")},
                f"tool target, {hand} (shaded: clutch engaged)",
                "m",
                shaded=engaged,
            )
        )
        device = streams.get(f"device/{hand}")
        if device is not None:
            speed = _speed(device[:, 3:6], freq)
            shown.append(
                lines(
                    times,
                    {"hand": speed},
                    f"speed of the {hand} hand (dashed: dropped samples)",
                    "m/s",
                    shaded=engaged,
                    marks=lost,
                )
            )
        jerk = np.full(len(target), np.nan)
        if len(target) > 3:
            jerk[3:] = np.linalg.norm(np.diff(target[:, :3], n=3, axis=0), axis=1) * freq**3
        shown.append(lines(times, {"jerk": jerk}, f"jerk of the tool target, {hand}", "m/s³", shaded=engaged))
    if not hands and episode.applied.shape[1]:
        shown.append(_lines(times, episode.applied, "applied inputs", "ctrl", "u"))
    actions = np.asarray(episode.actions, dtype=np.float64).reshape(len(episode), -1)
    shown.append(_lines(times, actions, "action", "1", "a"))
    shown.append(lines(times, {"reward": episode.rewards}, "reward", "1"))
    return shown


def _lines(times: Array, rows: NDArray[Any], title: str, unit: str, letter: str, **more: Any) -> str:
    curves = {f"{letter}{i + 1}": np.asarray(rows[:, i], dtype=np.float64) for i in range(rows.shape[1])}
    return lines(times, curves, title, unit, **more)


def _speed(path: Array, freq: float) -> Array:
    speed = np.full(len(path), np.nan)
    speed[1:] = np.linalg.norm(np.diff(path, axis=0), axis=1) * freq
    return speed


def _stretches(flags: NDArray[np.bool_], freq: float) -> list[tuple[float, float]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(first / freq, (stop - 1) / freq) for first, stop in zip(edges[::2], edges[1::2], strict=True)]


def _increases(counter: NDArray[Any] | None, freq: float) -> list[float]:
    return [] if counter is None else [(row + 1) / freq for row in np.flatnonzero(np.diff(counter) > 0)]
