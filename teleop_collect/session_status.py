"""Keeps what the viewer's panel shows: measured rates, the state of hands, and marks in the scene."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from bunraku.device import HandName
from bunraku.task import Task
from bunraku.teleop_collect.teleoperator import TeleopStep
from bunraku.teleop_collect.viewer.status import ArmOverlay, HandStatus, Overlay, SessionStatus

if TYPE_CHECKING:
    from bunraku.teleop_collect.session import Summary

WINDOW = 0.5
"""Rates are measured over this time [s]."""


class StatusBoard:
    """The state of a session as a person wants to see it."""

    def __init__(self, env_id: str, device: str, task: Task) -> None:
        """Start with nothing measured."""
        self._env_id, self._device, self._task = env_id, device, task
        self.message = ""
        self.saved: list[tuple[str, int]] = []
        self._step: TeleopStep | None = None
        self._length, self._tick_us, self._recording = 0, 0.0, False
        self._since = time.perf_counter()
        self._steps = self._samples = 0
        self._last_sample: dict[HandName, float] = {}
        self._control_hz = self._device_hz = 0.0
        self._factor = 1.0

    def begin_episode(self) -> None:
        """Forget the last episode."""
        self._length, self._recording = 0, False

    def update(self, step: TeleopStep, length: int, tick_us: float, *, recording: bool) -> None:
        """Take in a control step.

        Args:
            step: The step of teleoperation.
            length: Steps recorded so far.
            tick_us: Time of the tick [us].
            recording: Whether the step was recorded.
        """
        self._step, self._length, self._tick_us, self._recording = step, length, tick_us, recording
        self._steps += 1
        for hand, sample in step.state.hands.items():
            if sample.time != self._last_sample.get(hand):
                self._last_sample[hand] = sample.time
                self._samples += 1
        now = time.perf_counter()
        elapsed = now - self._since
        if elapsed >= WINDOW:
            hands = max(1, len(step.state.hands))
            self._control_hz, self._device_hz = self._steps / elapsed, self._samples / hands / elapsed
            self._factor = self._control_hz / self._task.rates.control_freq
            self._since, self._steps, self._samples = now, 0, 0

    def overlay(self) -> Overlay:
        """Return the marks in the scene."""
        arms = self._task.arms()
        marks: dict[HandName, ArmOverlay] = {}
        for arm in arms:
            report = self._step.hands[arm.hand] if self._step else None
            marks[arm.hand] = ArmOverlay(
                target=report.target if report else arm.target(),
                tool=arm.tool(),
                goal=arm.goal(),
                engaged=bool(report and report.engaged),
                unreachable=bool(report and report.unreachable),
                precision=bool(report and report.precision),
            )
        boxes = [arm.workspace() for arm in arms]
        low = np.min([center - half for center, half in boxes], axis=0)
        high = np.max([center + half for center, half in boxes], axis=0)
        return Overlay(marks, 0.5 * (low + high), 0.5 * (high - low))

    def status(self, summary: Summary) -> SessionStatus:
        """Return what the panel shows."""
        step = self._step
        hands: dict[HandName, HandStatus] = {}
        if step is not None:
            for hand, report in step.hands.items():
                hands[hand] = HandStatus(
                    tracked=report.tracked,
                    engaged=report.engaged,
                    trigger=report.sample.trigger,
                    squeeze=report.sample.squeeze,
                    buttons=report.sample.buttons,
                    pose_age_ms=0.0 if np.isnan(report.age) else 1e3 * report.age,
                )
        return SessionStatus(
            env_id=self._env_id,
            device=self._device,
            hands=hands,
            recording=self._recording,
            episode=len(self.saved),
            step=self._length,
            saved=summary.episodes,
            successes=summary.successes,
            failures=summary.failures,
            discarded=summary.discarded,
            control_hz=self._control_hz,
            device_hz=self._device_hz,
            tick_us=self._tick_us,
            real_time_factor=self._factor,
            dropped=sum(report.dropped for report in step.hands.values()) if step else 0,
            message=self.message,
        )
