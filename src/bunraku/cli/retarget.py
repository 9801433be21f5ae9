"""Turn human motion into robot motion: files, folders, or generated motion such as `generator:walk,speed=1.2`.

A file gives one motion; a folder, several files or several clips give a folder of motions, made on all cores. A run
that is started again goes on where it stopped. `--report page.html` writes a page with all figures.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from bunraku.cli.main import EXIT_CHECK_FAILED, EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.errors import BunrakuError


@dataclass(frozen=True)
class Args:
    """Options of `retarget`."""

    paths: Annotated[tuple[str, ...], tyro.conf.Positional]
    """Files or folders with human motion, or `generator:NAME,option=value,...`."""
    robot: str = "h1"
    """A humanoid (`bunraku robots list`; `h1` is bunraku's own small one), or a robot file."""
    out: Path | None = None
    """The file, or the folder for several clips. Default: named after the input and the robot, here."""
    to: str = "npz"
    """Format of the results: npz, csv, beyondmimic, locomujoco."""
    root: Literal["fixed", "free"] = "fixed"
    """`fixed`: the robot hangs by its waist. `free`: it goes where the person goes, feet on the floor."""
    method: Literal["file", "live", "source"] = "file"
    """`file`: search over the whole clip. `live`: one forward sweep. `source`: with the lagging filter as well."""
    fps: float = 90.0
    """Frames per second of the result."""
    max_speed: float | None = None
    """Hard bound on joint speeds [rad/s]."""
    robot_speed: bool = False
    """Bound each joint by the robot's own speed limit."""
    max_acceleration: float | None = None
    """Hard bound on joint accelerations [rad/s^2]."""
    calmness: float = 0.0
    """Weight of a second pass over the whole clip that minimises acceleration; 50 is a good start."""
    self_collision: bool = True
    """Let joints give way where the robot would be in itself; not with `--method source`."""
    avoid: Path | None = None
    """JSON list of boxes (`pos`, `half`, maybe `quat`; metres) that arms and legs are bent around."""
    clip: int | None = None
    """Only this clip of a file with several; all by default."""
    up: Literal["auto", "x", "y", "z", "-x", "-y", "-z"] = "auto"
    """Axis that points up in the files; `auto` looks at the person."""
    file_fps: float | None = None
    """Frames per second of the files, instead of what they say."""
    units: Literal["auto", "m", "cm", "mm", "inch"] = "auto"
    """Unit of length in the files; `auto` looks at the legs."""
    body_model: Path | None = None
    """Licensed SMPL body model, for SMPL parameters."""
    workers: int | None = None
    """Processes; one for each core by default."""
    report: Path | None = None
    """Write a page (.html) with the figures of all clips."""
    json: bool = False
    """Print one JSON object on stdout."""
    force: bool = False
    """Replace existing files."""


def run(args: Args) -> int:
    """Retarget; return the exit code."""
    from bunraku import plugins
    from bunraku.retarget.batch import find_files, find_jobs, run_jobs
    from bunraku.retarget.job import JobSettings
    from bunraku.retarget.obstacles import read_boxes
    from bunraku.retarget.reading.content import ReadOptions
    from bunraku.retarget.report import check_report_path, write_report

    if not args.paths:
        raise BunrakuError("nothing to retarget was given; give a file, a folder, or generator:walk")
    if args.workers is not None and args.workers < 1:
        raise BunrakuError(f"--workers is at least 1, got {args.workers}")
    if args.report is not None:
        check_report_path(args.report, force=args.force)
    suffix = plugins.load(plugins.MOTION_EXPORTERS, args.to).suffix
    settings = JobSettings(
        robot=args.robot,
        options=_options(args),
        reading=ReadOptions(args.up, args.file_fps, args.units, "first", args.body_model),
        to=args.to,
        boxes=() if args.avoid is None else tuple(map(tuple, read_boxes(args.avoid).tolist())),
    )
    files = find_files(args.paths)
    jobs, failed = find_jobs(files, Path(), suffix, settings.reading)
    if args.clip is not None:
        jobs = [job for job in jobs if job.clip == args.clip]
        if not jobs and not failed:
            raise BunrakuError(f"there is no clip {args.clip}; clips count from 0")
    robot = Path(args.robot).stem
    if len(files) == 1 and len(jobs) + len(failed) == 1 and not os.path.isdir(args.paths[0]):
        return _one(args, jobs, failed, settings, files[0][1].name, robot, suffix)
    folder = args.out or Path(f"retargeted_{robot}")
    if folder.is_file():
        raise BunrakuError(f"{folder} is a file; several clips need a folder, give another --out")
    jobs = [replace(job, out=folder / job.out) for job in jobs]
    rows = list(failed)
    with Progress("retargeting", len(jobs), "clips") as progress:
        rows += run_jobs(
            jobs, settings, workers=args.workers, force=args.force, progress=lambda row: progress.advance()
        )
    bad = [row for row in rows if "error" in row]
    for row in bad:
        say(f"{row['path']}#{row['clip']}: {row['error']}")
    good = [row for row in rows if "error" not in row]
    say(f"{folder}: {len(good)} of {len(rows)} clips" + (f", {len(bad)} failed" if bad else ""))
    if args.report is not None:
        write_report(rows, args.report, force=args.force)
    if args.json:
        sys.stdout.write(json.dumps({"out": str(folder), "failed": len(bad), "clips": rows}) + "\n")
    return EXIT_CHECK_FAILED if bad else EXIT_OK


def _one(
    args: Args,
    jobs: list[Any],
    failed: list[dict[str, Any]],
    settings: Any,
    name: str,
    robot: str,
    suffix: str,
) -> int:
    """Retarget one clip; its errors are the command's."""
    from bunraku.retarget.job import run_job
    from bunraku.retarget.report import write_report

    if failed:
        raise BunrakuError(failed[0]["error"])
    job = replace(jobs[0], out=args.out or Path(f"{name}_{robot}{suffix}"))
    if job.out.exists() and not args.force:
        raise BunrakuError(f"{job.out} exists; give another --out, or --force to replace it")
    row = run_job(job, settings, args.force)
    say(
        f"{job.out}: {row['frames_in']} frames to {row['frames_out']} at {row['fps']:g} fps,"
        f" {row['ms_per_frame']:.3f} ms per frame, hands, feet and head {row['ee_mean_mm']:.2f} mm"
    )
    for note in row["notes"]:
        say(f"  {note}")
    if row["degraded_frames"]:
        say(f"  {len(row['degraded_frames'])} frames are degraded")
    for limb, runs in row.get("limbs_blocked", {}).items():
        frames = ", ".join(f"{first} to {last}" for first, last in runs)
        say(f"  {limb} cannot get around the obstacles in frames {frames}")
    if args.report is not None:
        write_report([row], args.report, force=args.force)
    if args.json:
        sys.stdout.write(json.dumps(row) + "\n")
    return EXIT_OK


def _options(args: Args) -> Any:
    from bunraku.retarget.pipeline import Options

    base = Options.source() if args.method == "source" else Options()
    if args.method == "live":
        base = replace(base, search="forward")
    if not args.fps > 0.0:
        raise BunrakuError(f"--fps is positive, got {args.fps:g}")
    return replace(base, root=args.root, fps=args.fps, max_speed=args.max_speed, robot_speed=args.robot_speed)
