"""`load_motion`: a person's motion from any file that we know, recognised by what is in it.

motion = load_motion("walk.bvh")
motion = load_motion("results.npy", clip=2)                     # third sample of a model's output
motion = load_motion("generator:walk,speed=1.2,seconds=5")      # no file at all
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from bunraku import plugins
from bunraku.errors import BunrakuError, FileFormatError
from bunraku.motion import HumanMotion
from bunraku.retarget.reading.content import (
    KNOWN_FORMATS,
    Content,
    Heading,
    ReadOptions,
    Units,
    Up,
    open_content,
)


class MotionSource(Protocol):
    """A kind of file with human motion. One file in `bunraku.retarget.sources` binds `SOURCE` to one of these."""

    description: str
    """What it reads, in a few words."""

    def recognises(self, content: Content) -> bool:
        """Say whether this content is of this kind; never raises."""
        ...

    def load(self, content: Content, options: ReadOptions) -> Sequence[HumanMotion]:
        """Return the clips of the content, at least one."""
        ...


def load_motion(
    path: str | Path,
    *,
    clip: int = 0,
    up: Up = "auto",
    fps: float | None = None,
    units: Units = "auto",
    heading: Heading = "first",
    body_model: str | Path | None = None,
) -> HumanMotion:
    """Read one motion.

    Args:
        path: A file, or `generator:NAME,option=value,...`.
        clip: Which clip, of a file with several.
        up: Axis that points up in the file; `auto` looks at the person.
        fps: Frames per second, instead of what the file says.
        units: Unit of length; `auto` looks at the legs.
        heading: `first`: the person faces x in the first frame. `file`: the file's heading.
        body_model: Licensed SMPL body model for SMPL parameters.

    Raises:
        FileFormatError: If the content is of no known kind, damaged, or no person.
        BunrakuError: If there is no such file or clip.
    """
    options = ReadOptions(up, fps, units, heading, None if body_model is None else Path(body_model))
    clips = load_motions(path, options)
    if not 0 <= clip < len(clips):
        raise BunrakuError(f"{path} has {len(clips)} clips; there is no clip {clip}, they count from 0")
    return clips[clip]


def load_motions(path: str | Path, options: ReadOptions | None = None) -> Sequence[HumanMotion]:
    """Read all clips of a file; see `load_motion`."""
    options = options or ReadOptions()
    if options.fps is not None and not options.fps > 0.0:
        raise BunrakuError(f"frames per second are positive, got {options.fps:g}")
    content = open_content(path)
    return source_of(content).load(content, options)


def source_of(content: Content) -> MotionSource:
    """Return the source that knows this content.

    Raises:
        FileFormatError: If none does.
    """
    for name in plugins.names(plugins.MOTION_SOURCES):
        source: MotionSource = plugins.load(plugins.MOTION_SOURCES, name)
        if source.recognises(content):
            return source
    held = ", ".join(
        f"{key or 'an array'} {getattr(value, 'shape', '')}" for key, value in content.values.items()
    )
    what = f"it holds {held[:300]}" if held else "it is text"
    raise FileFormatError(f"{content.name} is no motion that is known: {what}; {KNOWN_FORMATS}")
