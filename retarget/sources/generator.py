"""Generated motion, so that everything works with no file: `generator:walk,speed=1.0,seconds=6,seed=3`.

A seed other than 0 makes a person of another size who moves a little differently; the same text gives the same motion
to the last bit.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.motion import HumanMotion
from bunraku.retarget.generate.body import Person
from bunraku.retarget.generate.motions import MOTIONS
from bunraku.retarget.reading.content import GENERATOR, Content, ReadOptions

_COMMON = ("seconds", "fps", "seed", "size")
_VARIED = 0.15
"""Relative spread of the amounts that a seed changes."""


class GeneratorSource:
    """Makes motion from formulas."""

    description = f"generated motion: {GENERATOR}NAME,option=value,... with NAME one of {', '.join(MOTIONS)}"

    def recognises(self, content: Content) -> bool:
        """Say whether generated motion is asked for."""
        return content.name.startswith(GENERATOR)

    def load(self, content: Content, options: ReadOptions) -> Sequence[HumanMotion]:
        """Return the motion."""
        name, *words = content.name.removeprefix(GENERATOR).split(",")
        given: dict[str, str] = {}
        for word in words:
            key, equals, value = word.partition("=")
            if not equals:
                raise BunrakuError(f"{content.name}: {word!r} is not option=value")
            given[key.strip()] = value.strip()
        if options.fps is not None:
            given["fps"] = str(options.fps)
        return [generate(name.strip(), **{key: _value(key, value) for key, value in given.items()})]


def generate(
    name: str,
    *,
    seconds: float = 5.0,
    fps: float = 30.0,
    seed: int = 0,
    size: float | None = None,
    **amounts: Any,
) -> HumanMotion:
    """Generate a motion.

    Args:
        name: One of `bunraku.retarget.generate.motions.MOTIONS`.
        seconds: Duration with the rests before and after [s].
        fps: Frames per second.
        seed: 0 for the plain motion; others vary the person's size and the amounts that are not given.
        size: Factor on the default person's size.
        amounts: Parameters of the motion, such as `speed`.

    Raises:
        UnknownNameError: If there is no such motion or parameter.
        BunrakuError: If a value is out of what a person can do.
    """
    if name not in MOTIONS:
        raise UnknownNameError("generated motion", name, MOTIONS)
    function = MOTIONS[name]
    known = {
        k: p.default for k, p in inspect.signature(function).parameters.items() if k not in ("person", "fps")
    }
    for key in amounts:
        if key not in known:
            raise UnknownNameError(f"option of {GENERATOR}{name}", key, [*known, *_COMMON])
    if not (fps > 0.0 and seconds > 0.0 and seconds * fps < 1e6):
        raise BunrakuError(f"{seconds:g} s at {fps:g} fps is no motion; both are positive")
    rng = np.random.default_rng(seed)
    if seed:
        for key, default in known.items():
            vary = 1.0 + _VARIED * rng.uniform(-1.0, 1.0)
            if isinstance(default, float) and name != "reach":
                amounts.setdefault(key, default * vary)
    if size is None:
        size = 1.0 if seed == 0 else 1.0 + 0.5 * _VARIED * rng.uniform(-1.0, 1.0)
    if not 0.3 <= size <= 2.0:
        raise BunrakuError(f"size is between 0.3 and 2, got {size:g}")
    person = Person(round(seconds * fps) + 1, size)
    text = ",".join([name, *(f"{key}={value}" for key, value in sorted(amounts.items()))])
    return HumanMotion(
        joints=function(person, fps, **amounts),
        fps=fps,
        source=f"{GENERATOR}{text},seconds={seconds:g},fps={fps:g},seed={seed},size={size:.4f}",
        licence="Apache-2.0",
        notes=("generated",),
    )


def _value(key: str, text: str) -> Any:
    if key == "side":
        return text
    try:
        return int(text) if key in ("seed", "repeats") else float(text)
    except ValueError as error:
        raise BunrakuError(f"{GENERATOR} option {key}={text!r} is no number") from error


SOURCE = GeneratorSource()
