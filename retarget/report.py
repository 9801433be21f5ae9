"""A page with the figures of retargeted clips: one file, no script from elsewhere, opens in any browser."""

from __future__ import annotations

import html
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bunraku.errors import BunrakuError

Row = Mapping[str, Any]

COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("frames_in", "frames", "{:d}"),
    ("fps", "fps out", "{:g}"),
    ("ms_per_frame", "ms per frame", "{:.3f}"),
    ("ee_mean_mm", "hands, feet, head: mean mm", "{:.2f}"),
    ("ee_max_mm", "max mm", "{:.1f}"),
    ("limit_violations", "limit violations", "{:d}"),
    ("joint_jumps", "joint jumps", "{:d}"),
    ("max_joint_speed", "max joint speed rad/s", "{:.1f}"),
    ("joint_jerk", "joint jerk rad/s³", "{:.0f}"),
    ("foot_slide_cm_s", "foot sliding cm/s", "{:.2f}"),
    ("penetration_mm", "penetration mm", "{:.2f}"),
    ("float_mm", "float mm", "{:.2f}"),
    ("self_collision_share", "self-collision", "{:.1%}"),
)
"""Field, heading and format of the columns."""
_PARTS_MM = 8.0
"""Error at which a bar is full [mm]."""

_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:2rem;color:#1c2430;background:#fff}
h1{font-size:1.4rem;margin:0 0 .3rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
th,td{padding:.3rem .6rem;border-bottom:1px solid #dde3ea;text-align:right;white-space:nowrap}
th{font-weight:600;white-space:normal;vertical-align:bottom;max-width:7rem}
th:first-child,td:first-child{text-align:left;max-width:24rem;overflow:hidden;text-overflow:ellipsis}
tr.all td{font-weight:600;border-top:2px solid #1c2430}
.bad{color:#b3261e}.bar{display:inline-block;height:.6rem;background:#3b7dd8;vertical-align:middle}
.bar.max{background:#c9d9ee}p{max-width:60rem}.scroll{overflow-x:auto}
@media(prefers-color-scheme:dark){body{background:#14181d;color:#e4e9ef}th,td{border-color:#2c343d}
tr.all td{border-top-color:#e4e9ef}.bad{color:#ff8a80}.bar.max{background:#2b4468}}
"""


def write_report(rows: Sequence[Row], path: Path, *, force: bool = False) -> None:
    """Write the page.

    Args:
        rows: Figures of the clips, as `bunraku.retarget.job.run_job` returns them; a clip that failed has an `error`.
        path: The `.html` file.
        force: Replace an existing file.

    Raises:
        BunrakuError: If the file exists or cannot be written.
    """
    if path.suffix.lower() not in (".html", ".htm"):
        raise BunrakuError(f"the report is a page and ends in .html, got {path}")
    if path.exists() and not force:
        raise BunrakuError(f"{path} exists; give another name, or --force to replace it")
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished.write_text(page(rows), "utf-8")
        os.replace(unfinished, path)
    except OSError as error:
        raise BunrakuError(f"cannot write {path}: {error.strerror or error}; give another place") from error


def page(rows: Sequence[Row]) -> str:
    """Return the page as HTML."""
    good = [row for row in rows if "error" not in row]
    bad = [row for row in rows if "error" in row]
    robots = ", ".join(sorted({str(row.get("robot", "")) for row in good}))
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Retargeting report</title>",
        "<meta name=viewport content='width=device-width'>",
        f"<style>{_STYLE}</style><h1>Retargeting report</h1>",
        f"<p>{len(good)} of {len(rows)} clips; robot {html.escape(robots) or 'none'}.",
        "Errors are distances at robot size between the robot's key points and their targets. Sliding, penetration and"
        " float are those of feet in contact, and are there with a free root only.</p>",
    ]
    if good:
        parts += ["<div class=scroll><table>", _head(), *map(_line, good), _summary(good), "</table></div>"]
        parts += ["<h2>Error by body part</h2>", _body_parts(good)]
        degraded = [row for row in good if row.get("degraded_frames")]
        if degraded:
            parts += [
                "<h2>Degraded frames</h2><table><tr><th>clip<th>frames",
                *map(_degraded, degraded),
                "</table>",
            ]
    if bad:
        parts.append("<h2>Clips that failed</h2><table><tr><th>clip<th>why")
        parts += [f"<tr><td>{_name(row)}<td class=bad>{html.escape(str(row['error']))}" for row in bad]
        parts.append("</table>")
    return "\n".join(parts) + "\n"


def _head() -> str:
    return "<tr><th>clip" + "".join(f"<th>{html.escape(title)}" for _, title, _ in COLUMNS)


def _line(row: Row) -> str:
    return f"<tr><td title='{html.escape(str(row.get('source', '')), quote=True)}'>{_name(row)}" + "".join(
        f"<td>{_cell(row.get(field), form)}" for field, _, form in COLUMNS
    )


def _summary(rows: Sequence[Row]) -> str:
    """Return the line over all clips: sums of counts, largest of maxima, means over frames of the rest."""
    frames = np.array([row["frames_in"] for row in rows], dtype=float)
    counts: dict[str, Callable[[list[float]], float]] = {
        "frames_in": sum,
        "limit_violations": sum,
        "joint_jumps": sum,
        "ee_max_mm": max,
        "max_joint_speed": max,
    }
    cells = []
    for field, _, form in COLUMNS:
        have = [i for i, row in enumerate(rows) if row.get(field) is not None]
        values = [rows[i][field] for i in have]
        if not values:
            cells.append("<td>-")
            continue
        value = counts[field](values) if field in counts else float(np.average(values, weights=frames[have]))
        cells.append(f"<td>{_cell(value, form)}")
    return "<tr class=all><td>all" + "".join(cells)


def _body_parts(rows: Sequence[Row]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row.get("key_points_mm", {})))
    lines = ["<table><tr><th>key point<th>mean mm<th>max mm<th>"]
    for name in names:
        have = [row for row in rows if name in row.get("key_points_mm", {})]
        weights = [row["frames_in"] for row in have]
        mean = float(np.average([row["key_points_mm"][name]["mean"] for row in have], weights=weights))
        most = max(float(row["key_points_mm"][name]["max"]) for row in have)
        bar = f"<span class=bar style='width:{min(mean / _PARTS_MM, 1.0) * 12:.2f}rem'></span>"
        lines.append(
            f"<tr><td>{html.escape(name)}<td>{mean:.2f}<td>{most:.1f}<td style='text-align:left'>{bar}"
        )
    return "\n".join([*lines, "</table>"])


def _degraded(row: Row) -> str:
    frames = list(row["degraded_frames"])
    shown = ", ".join(map(str, frames[:30])) + (f" and {len(frames) - 30} more" if len(frames) > 30 else "")
    return f"<tr><td>{_name(row)}<td style='white-space:normal;text-align:left'>{shown}"


def _name(row: Row) -> str:
    name = Path(str(row["path"])).name
    return html.escape(name if not row.get("clip") else f"{name}#{row['clip']}")


def _cell(value: Any, form: str) -> str:
    if value is None:
        return "-"
    return form.format(int(value) if form == "{:d}" else float(value))
