"""Show robot motions side by side, or render them to a video without a display.

The person's key points are blue, the robot's green, obstacles red wire frames.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from bunraku.cli.collect import parse_size
from bunraku.cli.main import EXIT_OK, say
from bunraku.cli.progress import Progress
from bunraku.errors import BunrakuError

if TYPE_CHECKING:
    from bunraku.retarget.scene import MotionScene


@dataclass(frozen=True)
class Args:
    """Options of `view`."""

    files: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Robot motions of `bunraku retarget`; several are shown side by side."""
    robot: tuple[str, ...] = ()
    """Robot files of robots that are not built in, one for each motion or one for all."""
    video: Path | None = None
    """Render to an .mp4, a .gif, or a folder of PNG files instead of showing it."""
    size: str = "640x480"
    """Size of the video, width x height."""
    video_fps: float = 30.0
    """Frames per second of the video."""
    speed: float = 1.0
    """Factor on the speed."""
    start: float = 0.0
    """Begin here [s]."""
    stop: float | None = None
    """End here [s]."""
    repeat: bool = True
    """Begin again at the end, in the viewer."""
    viewer: Literal["native", "web"] | None = None
    """Where to show it. Default: a window where there is a display, else the web page."""
    host: str = "127.0.0.1"
    """Address that the web page is served on."""
    port: int = 0
    """Port of the web page; 0 takes a free one."""
    json: bool = False
    """Print one JSON object on stdout."""
    force: bool = False
    """Replace an existing video."""


def run(args: Args) -> int:
    """Show or render; return the exit code."""
    from bunraku.motion import RobotMotion
    from bunraku.retarget.robot_config import load_robot
    from bunraku.retarget.scene import MotionScene

    if not args.files:
        raise BunrakuError("no motion was given; give a file that `bunraku retarget` wrote")
    if not args.speed > 0.0 or not args.video_fps > 0.0:
        raise BunrakuError("--speed and --video-fps are positive")
    motions = [RobotMotion.load(path) for path in args.files]
    names = list(args.robot) or [motion.robot for motion in motions]
    names = names * len(motions) if len(names) == 1 else names
    if len(names) != len(motions):
        raise BunrakuError(f"{len(names)} robots were given for {len(motions)} motions")
    scene = MotionScene(motions, [load_robot(name).robot for name in names])
    stop = scene.duration if args.stop is None else min(args.stop, scene.duration)
    if not 0.0 <= args.start <= stop:
        raise BunrakuError(f"--start {args.start:g} to --stop {stop:g} is not within {scene.duration:.2f} s")
    facts: dict[str, Any] = {"files": [str(path) for path in args.files], "seconds": stop - args.start}
    if args.video is not None:
        facts |= _render(scene, args, args.video, stop)
    else:
        _show(scene, args, stop)
    if args.json:
        sys.stdout.write(json.dumps(facts) + "\n")
    return EXIT_OK


def _render(scene: MotionScene, args: Args, path: Path, stop: float) -> dict[str, Any]:
    import mujoco
    import numpy as np

    from bunraku.gl import make_renderer
    from bunraku.video import count_frames, open_video

    if path.exists() and not args.force:
        raise BunrakuError(f"{path} exists; give another name, or --force to replace it")
    size = parse_size(args.size)
    times = np.arange(args.start, stop + 1e-9, args.speed / args.video_fps)
    renderer = make_renderer(scene.model, *size)
    # shadows of see-through bodies mislead, and cost most of the time without a graphics card
    renderer.scene.flags[int(mujoco.mjtRndFlag.mjRND_SHADOW)] = 0
    try:
        with (
            open_video(path, size, args.video_fps) as video,
            Progress("rendering", len(times), "frames") as progress,
        ):
            for time in times:
                scene.show(float(time))
                renderer.update_scene(scene.data, camera=scene.camera())
                video.write(renderer.render())
                progress.advance()
    finally:
        renderer.close()
    found = count_frames(path)
    if found != len(times):
        raise BunrakuError(f"{path} has {found} frames where {len(times)} were rendered; render it again")
    say(f"{path}: {found} frames at {args.video_fps:g} fps")
    return {"video": str(path), "frames": found, "fps": args.video_fps}


def _show(scene: MotionScene, args: Args, stop: float) -> None:
    from bunraku.gl import has_display
    from bunraku.rate import Rate
    from bunraku.teleop_collect.viewer.base import open_viewer
    from bunraku.teleop_collect.viewer.status import Overlay, SessionStatus

    kind = args.viewer or ("native" if has_display() else "web")
    title = "bunraku view " + ", ".join(path.name for path in args.files)
    with open_viewer(kind, host=args.host, port=args.port, title=title, azimuth=180.0) as viewer:
        if viewer.url:
            say(f"viewer: {viewer.url}")
        rate = Rate(scene.fps)
        time = args.start
        while viewer.is_open() and "quit" not in viewer.commands():
            scene.show(time)
            step = round((time - args.start) * scene.fps)
            message = f"{time:.2f} of {stop:.2f} s"
            status = SessionStatus(env_id=scene.motions[0].robot, device="motion", step=step, message=message)
            viewer.sync(scene.model, scene.data, Overlay(), status)
            time += args.speed / scene.fps
            if time > stop:
                if not args.repeat:
                    break
                time = args.start
            rate.sleep()
