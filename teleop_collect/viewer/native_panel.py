"""The panel of the native window: text, buttons and plots by MuJoCo's classic renderer."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import mujoco
import numpy as np

from bunraku.teleop_collect import keys
from bunraku.teleop_collect.viewer.status import HandStatus, SessionStatus

WIDTH = 350
_MARGIN = 12
_BUTTON_HEIGHT = 32
_PLOT_HEIGHT = 110
_HISTORY = 300
_ROWS = (("start",), ("success", "failure"), ("discard", "redo"), ("marker", "quit"))
_KEY_OF = {command: key.capitalize() for key, command in keys.COMMAND_KEYS.items()}

_FONT = int(mujoco.mjtFont.mjFONT_NORMAL)
_BOLD = int(mujoco.mjtFont.mjFONT_BIG)
_TOP_LEFT = int(mujoco.mjtGridPos.mjGRID_TOPLEFT)
_TOP = int(mujoco.mjtGridPos.mjGRID_TOP)

Point = tuple[float, float]
Rgb = tuple[float, float, float]
_BACK: Rgb = (0.13, 0.14, 0.16)
_BUTTON: Rgb = (0.28, 0.29, 0.34)
_HOVERED: Rgb = (0.38, 0.42, 0.52)
_TEXT: Rgb = (0.93, 0.94, 0.95)


class NativePanel:
    """Shows the session's state and says which button a click hits."""

    def __init__(self) -> None:
        """Start with nothing to show."""
        self._status = SessionStatus(env_id="", device="")
        self._plots = (_Plot("pose age [ms]"), _Plot("tick [us]"))
        self._buttons: dict[str, mujoco.MjrRect] = {}
        self._area = mujoco.MjrRect(0, 0, 0, 0)

    def update(self, status: SessionStatus) -> None:
        """Take the newest numbers."""
        self._status = status
        ages = [hand.pose_age_ms for hand in status.hands.values() if hand.tracked]
        self._plots[0].add(max(ages, default=0.0))
        self._plots[1].add(status.tick_us)

    def command_at(self, point: Point) -> str | None:
        """Return the command of the button at a point of the picture, from the bottom left."""
        return next((name for name, area in self._buttons.items() if _is_inside(point, area)), None)

    def covers(self, point: Point) -> bool:
        """Say whether a point of the picture lies on the panel."""
        return _is_inside(point, self._area)

    def draw(self, view: mujoco.MjrRect, context: mujoco.MjrContext, pointer: Point) -> None:
        """Draw the panel at the left of `view`."""
        self._area = mujoco.MjrRect(0, 0, WIDTH, view.height)
        mujoco.mjr_rectangle(self._area, *_BACK, 1.0)
        top = self._draw_buttons(view.height - _MARGIN, context, pointer)
        names, values = zip(*_lines(self._status), strict=True)
        area = mujoco.MjrRect(0, 0, WIDTH, top)
        mujoco.mjr_overlay(_FONT, _TOP_LEFT, area, "\n".join(names), "\n".join(values), context)
        for i, plot in enumerate(self._plots):
            plot.draw(mujoco.MjrRect(0, i * _PLOT_HEIGHT, WIDTH, _PLOT_HEIGHT), context)
        if self._status.message:
            scene = mujoco.MjrRect(WIDTH, 0, max(view.width - WIDTH, 1), view.height)
            mujoco.mjr_overlay(_BOLD, _TOP, scene, self._status.message, "", context)

    def _draw_buttons(self, top: int, context: mujoco.MjrContext, pointer: Point) -> int:
        """Draw the buttons below `top`; return where they end."""
        self._buttons = {}
        for row in _ROWS:
            top -= _BUTTON_HEIGHT
            width = (WIDTH - _MARGIN * (len(row) + 1)) // len(row)
            for i, command in enumerate(row):
                area = mujoco.MjrRect(_MARGIN + i * (width + _MARGIN), top, width, _BUTTON_HEIGHT)
                color = _HOVERED if _is_inside(pointer, area) else _BUTTON
                label = f"{command.capitalize()} [{_KEY_OF[command]}]"
                mujoco.mjr_label(area, _FONT, label, *color, 1.0, *_TEXT, context)
                self._buttons[command] = area
            top -= _MARGIN // 2
        return top


class _Plot:
    """A short history of one number."""

    def __init__(self, title: str) -> None:
        self._values: deque[float] = deque(maxlen=_HISTORY)
        self._figure = figure = mujoco.MjvFigure()
        mujoco.mjv_defaultFigure(figure)
        figure.title = title
        figure.flg_legend, figure.flg_extend = 0, 0
        figure.flg_ticklabel[:] = (0, 1)
        figure.gridsize[:] = (2, 3)
        figure.yformat = "%.0f"
        figure.figurergba[:] = (*_BACK, 1.0)
        figure.linergb[0] = (0.45, 0.62, 0.95)

    def add(self, value: float) -> None:
        self._values.append(value)

    def draw(self, area: mujoco.MjrRect, context: mujoco.MjrContext) -> None:
        count = len(self._values)
        values = np.array(self._values)
        line = np.stack([np.arange(_HISTORY - count, _HISTORY), values], axis=1).ravel()
        self._figure.linepnt[0] = count
        self._figure.linedata[0, : 2 * count] = line
        top = max(1.2 * float(values.max(initial=0.0)), 1.0)
        self._figure.range[:] = ((0.0, _HISTORY), (0.0, top))
        mujoco.mjr_figure(area, self._figure, context)


def _lines(status: SessionStatus) -> Sequence[tuple[str, str]]:
    """Return the panel's text: a name and a value in each line."""
    state = f"RECORDING, step {status.step}" if status.recording else "ready"
    lines = [
        ("environment", status.env_id),
        ("device", status.device),
        (f"episode {status.episode}", state),
        ("saved", f"{status.saved} ({status.successes} success, {status.failures} failure)"),
        ("discarded", f"{status.discarded}"),
    ]
    lines += [(name, _hand(hand)) for name, hand in status.hands.items()]
    lines += [
        ("control", f"{status.control_hz:.0f} Hz, tick {status.tick_us:.0f} us"),
        ("samples", f"{status.device_hz:.0f} Hz, {status.dropped} dropped"),
        ("real time", f"{status.real_time_factor:.2f} x"),
    ]
    if status.device == "keyboard":
        lines += [("", ""), *keys.LEGEND]
    return lines


def _hand(hand: HandStatus) -> str:
    if not hand.tracked:
        return "lost"
    state = "driving" if hand.engaged else "still"
    buttons = " ".join(sorted(hand.buttons))
    return f"{state} {hand.pose_age_ms:.0f} ms  grip {hand.squeeze:.1f}  {buttons}"


def _is_inside(point: Point, area: mujoco.MjrRect) -> bool:
    return (
        area.left <= point[0] < area.left + area.width and area.bottom <= point[1] < area.bottom + area.height
    )
