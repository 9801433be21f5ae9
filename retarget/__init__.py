"""From human motion to robot motion.

    from bunraku.retarget import Retargeter, load_motion

    robot = Retargeter("h1").retarget(load_motion("walk.bvh"))
    robot.save("walk_h1.npz")

The names below are loaded when they are first used, so that importing this package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bunraku.retarget.load import load_motion
    from bunraku.retarget.pipeline import Options, Retargeter
    from bunraku.retarget.tools.interpolator import MotionInterpolator

__all__ = ["MotionInterpolator", "Options", "Retargeter", "load_motion"]

_HOMES = {
    "MotionInterpolator": "bunraku.retarget.tools.interpolator",
    "Options": "bunraku.retarget.pipeline",
    "Retargeter": "bunraku.retarget.pipeline",
    "load_motion": "bunraku.retarget.load",
}


def __getattr__(name: str) -> Any:
    """Load one of `__all__` from the module that holds it."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
