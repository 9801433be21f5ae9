"""What the tip and the screw do in each frame of the demonstration.

wanted = timeline((0.185, 0.0))      # one Wanted per frame
wanted[110].tip, wanted[350].turn
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bunraku.geometry import Array
from bunraku.screw import figures

Stage = Literal["approach", "press", "turn", "lift", "hold"]

_RISE_END = 20
"""The approach first rises, then goes across; the source says the order but not when."""
_CLEAR = 395
"""The lift first rises, then withdraws."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """One frame."""

    stage: Stage
    """Its part of the demonstration."""
    tip: Array
    """Where the arm's tip shall be `(3,)` [m]."""
    turn: float
    """Angle of the screw and of the bit [rad]."""


def timeline(screw_xy: tuple[float, float] = figures.SCREW_XY) -> list[Wanted]:
    """Return all frames, for a screw that stands at `screw_xy` [m]."""
    return [_frame(frame, screw_xy) for frame in range(figures.FRAMES)]


def _frame(frame: int, screw_xy: tuple[float, float]) -> Wanted:
    home = np.array(figures.HOME)
    raised = np.array([*figures.HOME[:2], figures.STANDBY_HEIGHT])
    standby = np.array([*screw_xy, figures.STANDBY_HEIGHT])
    pressed = np.array([*screw_xy, figures.PRESS_HEIGHT])
    driven = np.array([*screw_xy, figures.tip_height(figures.SCREW_TURN)])
    if frame < figures.APPROACH_END:
        if frame < _RISE_END:
            return Wanted("approach", _between(home, raised, frame, 0, _RISE_END), 0.0)
        return Wanted("approach", _between(raised, standby, frame, _RISE_END, figures.APPROACH_END), 0.0)
    if frame < figures.PRESS_END:
        return Wanted(
            "press", _between(standby, pressed, frame, figures.APPROACH_END, figures.PRESS_END), 0.0
        )
    if frame <= figures.TURN_END:
        share = (frame - figures.PRESS_END) / (figures.TURN_END - figures.PRESS_END)
        turn = share * figures.SCREW_TURN
        return Wanted("turn", np.array([*screw_xy, figures.tip_height(turn)]), turn)
    stage: Stage = "lift" if frame < figures.LIFT_END else "hold"
    if frame < _CLEAR:
        tip = _between(driven, standby, frame, figures.TURN_END, _CLEAR)
    else:
        tip = _between(standby, raised, min(frame, figures.LIFT_END), _CLEAR, figures.LIFT_END)
    return Wanted(stage, tip, figures.SCREW_TURN)


def _between(start: Array, end: Array, frame: int, first: int, last: int) -> Array:
    return start + (end - start) * ((frame - first) / (last - first))
