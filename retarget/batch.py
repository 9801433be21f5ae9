"""Many clips on all cores: resumable, and one bad clip never stops the rest.

Each finished clip leaves its motion and, beside it, its figures (`.json`) with the settings that made it. A run that
finds both does not make the clip again. A worker that dies takes only its clip with it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bunraku.errors import BunrakuError, FileFormatError
from bunraku.retarget.job import Job, JobSettings, run_job
from bunraku.retarget.load import load_motions
from bunraku.retarget.reading.content import GENERATOR, ReadOptions, may_hold_several

SUFFIXES = (".npy", ".npz", ".pkl", ".pt", ".pth", ".bvh")
"""What a folder is searched for."""
Row = dict[str, Any]


def find_files(paths: Sequence[str]) -> list[tuple[str, Path]]:
    """Return files and the names of their results without suffix, relative to the output folder.

    Folders are searched with their subfolders, which the results keep.

    Raises:
        BunrakuError: If a path does not exist, or a folder holds no motion file.
    """
    found: list[tuple[str, Path]] = []
    for text in paths:
        path = Path(text)
        if text.startswith(GENERATOR):
            words = text.removeprefix(GENERATOR).replace(",", "_").replace("=", "").replace("/", "")
            found.append((text, Path(words)))
        elif path.is_dir():
            files = sorted(f for f in path.rglob("*") if f.suffix.lower() in SUFFIXES and f.is_file())
            if not files:
                raise BunrakuError(f"the folder {path} holds no motion file: {', '.join(SUFFIXES)}")
            found += [(str(f), f.relative_to(path).with_suffix("")) for f in files]
        elif path.exists():
            found.append((text, Path(path.stem)))
        else:
            raise BunrakuError(f"{path} does not exist")
    return _distinct(found)


def _distinct(found: list[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Give results that would have the same name their file's suffix in it."""
    names = [name for _, name in found]
    out = []
    for path, name in found:
        if names.count(name) > 1:
            name = name.with_name(f"{name.name}_{Path(path).suffix.removeprefix('.')}")
        out.append((path, name))
    if len({name for _, name in out}) < len(out):
        raise BunrakuError("two of the files would have results of the same name; retarget them one by one")
    return out


def find_jobs(
    files: Iterable[tuple[str, Path]], out: Path, suffix: str, reading: ReadOptions
) -> tuple[list[Job], list[Row]]:
    """Return the clips of the files, and rows for the files that cannot be read."""
    jobs: list[Job] = []
    failed: list[Row] = []
    for path, name in files:
        count = 1
        try:
            if may_hold_several(path):
                count = len(load_motions(path, reading))
        except (BunrakuError, ValueError, OSError, MemoryError) as error:
            failed.append(_failure(path, 0, error))
            continue
        for clip in range(count):
            numbered = name if count == 1 else name.with_name(f"{name.name}_{clip:03d}")
            jobs.append(Job(path, clip, out / numbered.with_name(numbered.name + suffix)))
    return jobs, failed


def run_jobs(
    jobs: Sequence[Job],
    settings: JobSettings,
    *,
    workers: int | None = None,
    force: bool = False,
    progress: Callable[[Row], None] = lambda row: None,
) -> list[Row]:
    """Retarget clips; return one row for each, in order: its figures, or an `error`.

    Args:
        jobs: The clips.
        settings: What they have in common.
        workers: Processes; one for each core that this process may use by default.
        force: Make clips again that are there.
        progress: Called with each row as it comes.

    Raises:
        BunrakuError: If a result is there that other settings made.
    """
    rows: dict[int, Row] = {}
    waiting: list[int] = []
    for index, job in enumerate(jobs):
        row = None if force else finished(job, settings)
        if row is None:
            waiting.append(index)
        else:
            rows[index] = row
            progress(row)

    def done(index: int, row: Row) -> None:
        rows[index] = row
        progress(row)

    count = workers or usable_cores()
    if count == 1 or len(waiting) <= 1:
        for index in waiting:
            done(index, _guarded(jobs[index], settings, force))
    else:
        _in_processes(jobs, settings, waiting, min(count, len(waiting)), force, done)
    return [rows[index] for index in range(len(jobs))]


def _in_processes(
    jobs: Sequence[Job],
    settings: JobSettings,
    waiting: list[int],
    workers: int,
    force: bool,
    done: Callable[[int, Row], None],
) -> None:
    """Run clips in processes; those that were under way when a worker died are tried again, each on its own."""
    left = list(waiting)
    while left:
        left, suspects = _until_broken(jobs, settings, left, workers, force, done)
        for index in suspects:
            _, dead = _until_broken(jobs, settings, [index], 1, force, done)
            if dead:
                reason = BunrakuError("the process died on this clip (out of memory?)")
                done(index, _failure(jobs[index].path, jobs[index].clip, reason))


def _until_broken(
    jobs: Sequence[Job],
    settings: JobSettings,
    indices: list[int],
    workers: int,
    force: bool,
    done: Callable[[int, Row], None],
) -> tuple[list[int], list[int]]:
    """Run clips until all are done or a worker dies; return those not begun and those that were under way."""
    # a fresh interpreter: threads of a library do not survive a fork
    context = multiprocessing.get_context("spawn")
    queue = list(reversed(indices))
    under_way: dict[Future[Row], int] = {}
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        try:
            while queue or under_way:
                # few at a time, so that memory stays flat and an interruption ends soon
                while queue and len(under_way) < 2 * workers:
                    index = queue.pop()
                    under_way[pool.submit(_guarded, jobs[index], settings, force)] = index
                for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                    row = future.result()
                    done(under_way.pop(future), row)
        except BrokenProcessPool:
            return list(reversed(queue)), sorted(under_way.values())
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [], []


def _guarded(job: Job, settings: JobSettings, force: bool) -> Row:
    """Run one clip; what is wrong with it becomes its row."""
    try:
        row = run_job(job, settings, force)
        _write_json(figures_path(job.out), {"settings": fingerprint(job, settings), **row})
        return row
    except (BunrakuError, ValueError, ArithmeticError, LookupError, OSError, MemoryError) as error:
        return _failure(job.path, job.clip, error)


def _failure(path: str, clip: int, error: BaseException) -> Row:
    return {"path": path, "clip": clip, "error": " ".join(str(error).split()) or type(error).__name__}


def finished(job: Job, settings: JobSettings) -> Row | None:
    """Return the figures of a clip that is there already, or None.

    Raises:
        BunrakuError: If the result is there, but of other settings or another file.
    """
    path = figures_path(job.out)
    if not job.out.exists():
        return None
    try:
        row: Row = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BunrakuError(
            f"{job.out} exists, but not its figures {path.name}; remove it, or --force to replace it"
        ) from error
    if row.pop("settings", None) != json.loads(json.dumps(fingerprint(job, settings))):
        raise BunrakuError(
            f"{job.out} was made with other settings or from another file; give another --out, or --force"
        )
    return row


def fingerprint(job: Job, settings: JobSettings) -> Row:
    """Return what a result depends on: the settings, and size and time of the file."""
    facts = json.loads(json.dumps(asdict(settings), default=str))
    if not job.path.startswith(GENERATOR):
        stat = os.stat(job.path)
        facts["file"] = [stat.st_size, stat.st_mtime_ns]
    return {**facts, "path": job.path, "clip": job.clip}


def figures_path(out: Path) -> Path:
    """Return where the figures of a result are."""
    return out.with_name(f"{out.name}.json")


def read_figures(folder: Path) -> list[Row]:
    """Return the figures of all results in a folder.

    Raises:
        BunrakuError: If there are none.
        FileFormatError: If a file is damaged.
    """
    rows = []
    for path in sorted(folder.rglob("*.json")):
        try:
            row = json.loads(path.read_text("utf-8"))
        except ValueError as error:
            raise FileFormatError(f"{path} is damaged: {error}; retarget its clip again") from error
        if isinstance(row, dict) and "ee_mean_mm" in row:
            rows.append(row)
    if not rows:
        raise BunrakuError(f"{folder} holds no figures of retargeted clips")
    return rows


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _write_json(path: Path, row: Row) -> None:
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.unfinished")
    unfinished.write_text(json.dumps(row, indent=1) + "\n", "utf-8")
    os.replace(unfinished, path)
