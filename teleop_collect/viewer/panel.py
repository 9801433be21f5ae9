"""The panel beside the scene: state, hands, numbers, episode buttons, and the keys that do the same.

It runs in the viewer process as a plugin of MuJoCo Studio. It only reads what the control loop sent, and
hands each command and each change of the keys to `say`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from mujoco.studio import messages, plugin, ux
from mujoco.studio.dear_imgui import dear_imgui as imgui
from mujoco.studio.implot import implot

from bunraku.teleop_collect import keys
from bunraku.teleop_collect.viewer.link import Command, Keys, Say
from bunraku.teleop_collect.viewer.status import HandStatus, SessionStatus

WIDTH = 350.0
_HISTORY = 300

_GREEN = imgui.Vec4(0.30, 0.78, 0.40, 1.0)
_RED = imgui.Vec4(0.93, 0.30, 0.27, 1.0)
_AMBER = imgui.Vec4(0.95, 0.66, 0.20, 1.0)

_ICONS = {
    "start": "\uf04b",
    "success": "\uf00c",
    "failure": "\uf00d",
    "discard": "\uf1f8",
    "redo": "\uf0e2",
    "marker": "\uf024",
    "quit": "\uf08b",
}
_BUTTON_ROWS = (("start",), ("success", "failure"), ("discard", "redo"), ("marker", "quit"))
_KEY_HINTS = {command: key.capitalize() for key, command in keys.COMMAND_KEYS.items()}
_TIPS = {
    "start": "Reset the scene and\nbegin to record",
    "success": "End the episode and\nkeep it as a success",
    "failure": "End the episode and\nkeep it as a failure",
    "discard": "End the episode and\nthrow it away",
    "redo": "Throw the last episode away\nand record it again",
    "marker": "Mark this moment\nin the recording",
    "quit": "End the session;\nsaved episodes stay",
}

_IMGUI_KEYS = {
    **{letter: getattr(imgui.Key, letter.upper()) for letter in "abcdefghijklmnopqrstuvwxyz"},
    **{digit: getattr(imgui.Key, f"N{digit}") for digit in "0123456789"},
    "space": imgui.Key.Space,
    "enter": imgui.Key.Enter,
    "escape": imgui.Key.Escape,
    "tab": imgui.Key.Tab,
    "minus": imgui.Key.Minus,
    "equal": imgui.Key.Equal,
    "up": imgui.Key.UpArrow,
    "down": imgui.Key.DownArrow,
    "left": imgui.Key.LeftArrow,
    "right": imgui.Key.RightArrow,
}
_SHIFT_KEYS = (imgui.Key.LeftShift, imgui.Key.RightShift)


@dataclass(frozen=True)
class StatusSnapshot(messages.Snapshot):
    """The newest numbers, on their way to the panel."""

    status: SessionStatus


class Panel(plugin.ViewerPlugin):
    """Shows the session's state, and turns buttons and keys into messages for the control process."""

    def __init__(self, say: Say, is_attended: Callable[[], bool]) -> None:
        """Make the panel.

        Args:
            say: Sends a message to the control process.
            is_attended: Says whether the window or page is there to release a key.
        """
        self._say, self._is_attended = say, is_attended
        self._held: set[str] = set()
        self._legend_shown = False
        self._status = SessionStatus(env_id="", device="")
        self._pose_age: deque[float] = deque(maxlen=_HISTORY)
        self._tick: deque[float] = deque(maxlen=_HISTORY)

    @messages.handler
    def on_status(self, snapshot: StatusSnapshot) -> None:
        """Take the newest numbers."""
        self._status = status = snapshot.status
        ages = [hand.pose_age_ms for hand in status.hands.values() if hand.tracked]
        self._pose_age.append(max(ages, default=0.0))
        self._tick.append(status.tick_us)

    @messages.handler
    def on_update(self, _: messages.UpdateEvent) -> None:
        """Report the keys, every frame while any is down, so that silence means that none is."""
        held = _held_keys() if self._is_attended() else set()
        pressed = {
            name for name in held if name in _IMGUI_KEYS and imgui.IsKeyPressed(_IMGUI_KEYS[name], False)
        }
        if held or self._held:
            self._say(Keys(frozenset(held), frozenset(pressed)))
        self._held = held
        for name in keys.COMMAND_KEYS.keys() & pressed:
            self._say(Command(keys.COMMAND_KEYS[name]))

    @messages.handler
    def on_build_gui(self, _: messages.BuildGuiEvent) -> None:
        """Lay the panel out."""
        ux.setup_theme(ux.GuiTheme.DARK)
        imgui.SetNextWindowPos(imgui.Vec2(12.0, 12.0), int(imgui.Cond.Once))
        imgui.SetNextWindowSize(imgui.Vec2(WIDTH, 0.0), int(imgui.Cond.Always))
        flags = int(imgui.WindowFlags.NoTitleBar) | int(imgui.WindowFlags.NoNav)
        visible, _ = imgui.Begin("Session", flags=flags)
        if visible:
            status = self._status
            _build_state_gui(status)
            self._build_buttons_gui()
            # Below the buttons, which must not move when the message changes.
            imgui.PushTextWrapPos(0.0)
            _colored_text(_AMBER, status.message or " ")
            imgui.PopTextWrapPos()
            imgui.SeparatorText("Hands")
            _build_hands_gui(status)
            imgui.SeparatorText("Rates")
            _build_rates_gui(status)
            _build_plot_gui("##age", "pose age [ms]", self._pose_age)
            _build_plot_gui("##tick", "tick [us]", self._tick)
            if status.device == "keyboard" and not self._legend_shown:
                self._legend_shown = True
                imgui.SetNextItemOpen(True)
            _build_legend_gui()
        imgui.End()

    def _build_buttons_gui(self) -> None:
        spacing = 8.0
        width = imgui.GetContentRegionAvail().x
        for row in _BUTTON_ROWS:
            size = imgui.Vec2((width - spacing * (len(row) - 1)) / len(row), 30.0)
            for i, command in enumerate(row):
                if i:
                    imgui.SameLine(0.0, spacing)
                label = f"{_ICONS[command]}  {command.capitalize()}  [{_KEY_HINTS[command]}]###{command}"
                if imgui.Button(label, size):
                    self._say(Command(command))
                imgui.SetItemTooltip(_TIPS[command])


def _held_keys() -> set[str]:
    held = {name for name, key in _IMGUI_KEYS.items() if imgui.IsKeyDown(key)}
    if any(imgui.IsKeyDown(key) for key in _SHIFT_KEYS):
        held.add("shift")
    return held


def _colored_text(color: imgui.Vec4, text: str) -> None:
    imgui.PushStyleColor(int(imgui.Col.Text), color)
    imgui.TextUnformatted(text)
    imgui.PopStyleColor()


def _build_state_gui(status: SessionStatus) -> None:
    imgui.TextUnformatted(f"{status.env_id}   {status.device}")
    if status.recording:
        _colored_text(_RED, f"\uf111  RECORDING   episode {status.episode}   step {status.step}")
    else:
        _colored_text(_AMBER, f"\uf10c  READY   next episode {status.episode}")
    counts = f"saved {status.saved}    success {status.successes}    failure {status.failures}"
    imgui.TextUnformatted(f"{counts}    discarded {status.discarded}")


def _build_hands_gui(status: SessionStatus) -> None:
    flags = int(imgui.TableFlags.SizingStretchProp) | int(imgui.TableFlags.NoPadOuterX)
    if not imgui.BeginTable("##hands", 5, flags):
        return
    fixed, stretch = int(imgui.TableColumnFlags.WidthFixed), int(imgui.TableColumnFlags.WidthStretch)
    columns = (("", fixed), ("state", stretch), ("age", fixed), ("trigger", stretch), ("grip", stretch))
    for title, width in columns:
        imgui.TableSetupColumn(title, width)
    imgui.TableHeadersRow()
    for name, hand in status.hands.items():
        _build_hand_row_gui(name, hand)
    imgui.EndTable()
    held = [f"{name} {button}" for name, hand in status.hands.items() for button in sorted(hand.buttons)]
    imgui.TextDisabled("buttons  " + ("  ".join(held) or "none"))


def _build_hand_row_gui(name: str, hand: HandStatus) -> None:
    imgui.TableNextRow()
    imgui.TableNextColumn()
    imgui.TextUnformatted(name)
    imgui.TableNextColumn()
    if not hand.tracked:
        _colored_text(_RED, "lost")
    elif hand.engaged:
        _colored_text(_GREEN, "driving")
    else:
        imgui.TextUnformatted("still")
    imgui.TableNextColumn()
    imgui.TextUnformatted(f"{hand.pose_age_ms:4.0f} ms" if hand.tracked else "-")
    for value in (hand.trigger, hand.squeeze):
        imgui.TableNextColumn()
        imgui.ProgressBar(value, imgui.Vec2(-1.0, imgui.GetTextLineHeight()), f"{value:.2f}")


def _build_rates_gui(status: SessionStatus) -> None:
    rows = (
        ("control", f"{status.control_hz:.0f} Hz", "device", f"{status.device_hz:.0f} Hz"),
        ("tick", f"{status.tick_us:.0f} us", "real time", f"{status.real_time_factor:.2f} x"),
        ("dropped", f"{status.dropped}", "", ""),
    )
    flags = int(imgui.TableFlags.SizingStretchSame) | int(imgui.TableFlags.NoPadOuterX)
    if imgui.BeginTable("##rates", 4, flags):
        for row in rows:
            imgui.TableNextRow()
            for i, text in enumerate(row):
                imgui.TableNextColumn()
                (imgui.TextUnformatted if i % 2 else imgui.TextDisabled)(text)
        imgui.EndTable()


def _build_plot_gui(plot_id: str, label: str, values: deque[float]) -> None:
    flags = int(implot.Flags.NoLegend) | int(implot.Flags.NoInputs) | int(implot.Flags.NoMouseText)
    imgui.TextDisabled(label)
    if not implot.BeginPlot(plot_id, imgui.Vec2(-1.0, 70.0), flags):
        return
    hidden = int(implot.AxisFlags.NoTickLabels) | int(implot.AxisFlags.NoGridLines)
    implot.SetupAxes("", "", hidden, 0)
    top = max(max(values, default=0.0) * 1.2, 1.0)
    implot.SetupAxesLimits(0.0, _HISTORY, 0.0, top, int(implot.Cond.Always))
    start = _HISTORY - len(values)
    implot.PlotLine("##line", list(range(start, _HISTORY)), list(values))
    implot.EndPlot()


def _build_legend_gui() -> None:
    if not imgui.CollapsingHeader("Keys that move the hand"):
        return
    flags = int(imgui.TableFlags.SizingStretchSame) | int(imgui.TableFlags.NoPadOuterX)
    if imgui.BeginTable("##legend", 4, flags):
        for key, meaning in keys.LEGEND:
            imgui.TableNextColumn()
            imgui.TextUnformatted(key)
            imgui.TableNextColumn()
            imgui.TextDisabled(meaning)
        imgui.EndTable()
