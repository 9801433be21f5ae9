"""A session of collecting: episode after episode, each on disk before the next begins.

The session knows devices, viewers and environments only by their protocols. One event model serves all devices:
`start` (or the first engagement) begins an episode; `success`, `failure` or the task's own success ends it with that
label; `discard` throws it away; `redo` throws away the newest one and records its scene again; `marker` marks a
frame; `quit` ends the session and keeps what was done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bunraku.device import Clock, Device
from bunraku.episode.episode import Episode
from bunraku.episode.format import current_versions
from bunraku.episode.interrupts import deferred_interrupts
from bunraku.episode.quality import Quality, measure
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError
from bunraku.rate import Rate
from bunraku.teleop_collect.clocks import SimulatedClock
from bunraku.teleop_collect.profile import Profile
from bunraku.teleop_collect.recorder import EpisodeRecorder
from bunraku.teleop_collect.session_status import StatusBoard
from bunraku.teleop_collect.viewer.base import SessionViewer
from bunraku.teleop_collect.wrapper import TeleopWrapper

VIEWER_FREQ = 30.0
"""Frames per second that are handed to the viewer."""

Outcome = Literal["success", "failure", "timeout", "unlabelled", "discard", "redo"]
Policy = Callable[[Mapping[str, NDArray[Any]]], NDArray[Any]]
"""Observation in, action out."""
ImageTaker = Callable[[Episode], Mapping[str, NDArray[np.uint8]]]


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """What a session does."""

    env_id: str
    """Gymnasium id, for messages and the file."""
    episodes: int = 10
    """Episodes to save."""
    seed: int = 0
    """Seed of the first scene; each further scene has the next one."""
    max_seconds: float = 60.0
    """Simulated time after which an episode ends as a timeout [s]."""
    success_hold: float = 0.3
    """How long the task's success must last to end the episode [s]."""
    wait_to_engage: bool = True
    """Whether an episode begins with the first engagement (or `start`), not at once."""
    real_time: bool = True
    """Whether steps keep to wall time."""
    operator: str = ""
    """The operator's name, for the file."""


@dataclass(slots=True)
class Summary:
    """What came of a session."""

    path: str
    """The file."""
    episodes: int = 0
    """Episodes saved in this session."""
    successes: int = 0
    """Those labelled a success."""
    failures: int = 0
    """Those labelled a failure or a timeout."""
    discarded: int = 0
    """Episodes thrown away."""
    frames: int = 0
    """Steps of the saved episodes."""
    interrupted: bool = False
    """Whether the operator ended the session before all episodes were done."""
    ticks_us: list[float] = field(default_factory=list)
    """Time of every tick, from the device's sample to the end of the step [us]."""
    ages_ms: list[float] = field(default_factory=list)
    """Median pose age per episode [ms]."""
    sim_seconds: float = 0.0
    """Simulated time that was stepped."""
    wall_seconds: float = 0.0
    """Wall time that it took."""

    def as_json(self) -> dict[str, Any]:
        """Return the fields that `collect --json` prints."""
        ticks = self.ticks_us or [float("nan")]
        ages = [age for age in self.ages_ms if np.isfinite(age)]
        return {
            "path": self.path,
            "episodes": self.episodes,
            "successes": self.successes,
            "failures": self.failures,
            "discarded": self.discarded,
            "frames": self.frames,
            "interrupted": self.interrupted,
            "tick_us_p50": round(float(np.percentile(ticks, 50)), 1) if self.ticks_us else None,
            "tick_us_p99": round(float(np.percentile(ticks, 99)), 1) if self.ticks_us else None,
            "pose_age_ms_p50": round(float(np.median(ages)), 3) if ages else None,
            "real_time_factor": round(self.sim_seconds / self.wall_seconds, 3) if self.wall_seconds else None,
        }


class Session:
    """Collects episodes."""

    def __init__(
        self,
        env: Any,
        device: Device,
        viewer: SessionViewer,
        writer: EpisodeWriter,
        options: SessionOptions,
        *,
        clock: Clock,
        profile: Profile | None = None,
        take_images: ImageTaker | None = None,
        announce: Callable[[str], None] = lambda line: None,
        on_episode: Callable[[Episode], None] = lambda episode: None,
        policy: Policy | None = None,
    ) -> None:
        """Connect the parts, all of them opened.

        Args:
            env: An environment of bunraku, without a step limit.
            device: The device.
            viewer: The viewer.
            writer: The file.
            options: What to do.
            clock: The clock that the device was made with; a `SimulatedClock` is moved with every step.
            profile: The operator's profile.
            take_images: Renders an episode's cameras before it is saved: arrays `(T + 1, h, w, 3)` by observation key.
            announce: Told a line when something happened that a person should read.
            on_episode: Given each episode that was saved.
            policy: Drives while the operator does not; the stream `intervention` says where the operator did.
        """
        self.options, self.device, self.viewer, self.writer = options, device, viewer, writer
        self.env = TeleopWrapper(env, device, clock=clock, profile=profile)
        self.sim = env.unwrapped.sim
        self.task = env.unwrapped.task
        self.clock = clock
        self.summary = Summary(str(writer.path))
        self.board = StatusBoard(options.env_id, device.name, self.task)
        self._profile, self._policy = profile or Profile(), policy
        self._take_images, self._announce, self._on_episode = take_images, announce, on_episode
        self._control_freq = self.task.rates.control_freq
        self._step = self.task.rates.step
        self._rate: Rate | None = None
        self._next_frame = 0.0
        self._quit = False

    def run(self) -> Summary:
        """Collect until all episodes are saved or the operator quits; Ctrl-C ends cleanly.

        Returns:
            What came of it; everything counted there is on disk.
        """
        attempt = self._first_attempt()
        try:
            while self.summary.episodes < self.options.episodes and not self._quit:
                outcome = self._episode(self.options.seed + attempt)
                attempt += {"redo": -1 if self._redone else 0}.get(outcome, 1)
        except KeyboardInterrupt:
            self._announce("interrupted")
        self.summary.interrupted = self.summary.episodes < self.options.episodes
        return self.summary

    def _first_attempt(self) -> int:
        """Scenes go on after the newest in the file, so that none is recorded twice."""
        last = self.writer.last_seed
        return 0 if last is None else max(0, last + 1 - self.options.seed)

    # One episode.

    def _episode(self, seed: int) -> Outcome:
        self._redone = False
        observation, _ = self.env.reset(seed=seed)
        self._observation = observation
        recorder = EpisodeRecorder(observation, self.env.unwrapped.state)  # type: ignore[attr-defined]
        self.board.begin_episode()
        self._rate = Rate(self._control_freq) if self.options.real_time else None
        outcome = self._wait() if self.options.wait_to_engage else None
        try:
            if outcome is None:
                outcome = self._drive(recorder)
        except (KeyboardInterrupt, BunrakuError):
            # what the operator has done so far is kept, and says so
            if len(recorder):
                self._save(recorder, "unlabelled", seed)
            raise
        return self._conclude(recorder, outcome, seed)

    def _wait(self) -> Outcome | None:
        """Wait for `start` or the first engagement; the scene stands still."""
        self.board.message = "Hold the trigger to begin"
        while True:
            self._tick()
            step = self.env.read()
            commands = (*step.commands, *self.viewer.commands())
            self.board.update(step, 0, 0.0, recording=False)
            self._show()
            if self._ends_session(commands):
                return "discard"
            if "redo" in commands:
                return "redo"
            if step.engaged or "start" in commands:
                self.board.message = ""
                return None

    def _drive(self, recorder: EpisodeRecorder) -> Outcome:
        """Step until the episode ends."""
        limit = round(self.options.max_seconds * self._control_freq)
        hold = max(1, round(self.options.success_hold * self._control_freq))
        held = 0
        began = time.perf_counter()
        while len(recorder) < limit:
            self._tick()
            sim_time = float(self.sim.data.time)
            result = self.env.step(None if self._policy is None else self._policy(self._observation))
            self._observation = result[0]
            step = result[4]["teleop"]
            tick_us = 1e6 * (time.perf_counter() - step.started)
            commands = (*step.commands, *self.viewer.commands())
            recorder.add(
                sim_time=sim_time,
                step=step,
                joints={arm.hand: arm.commanded_joints() for arm in self.task.arms()},
                applied=self.sim.ctrl.copy(),
                tick_us=tick_us,
                marker="marker" in commands,
                result=result,
                state=self.env.unwrapped.state,  # type: ignore[attr-defined]
            )
            self.summary.ticks_us.append(tick_us)
            self.summary.sim_seconds += self._step
            self.summary.wall_seconds += (now := time.perf_counter()) - began
            began = now
            self.board.update(step, len(recorder), tick_us, recording=True)
            self._show()
            held = held + 1 if result[4].get("is_success") else 0
            outcome = self._outcome(commands, result, held >= hold)
            if outcome is not None:
                return outcome
        return "timeout"

    def _outcome(self, commands: tuple[str, ...], result: tuple[Any, ...], success: bool) -> Outcome | None:
        for word in ("discard", "redo", "failure", "success"):
            if word in commands:
                return word
        if success:
            return "success"
        if result[2]:
            return "success" if result[4].get("is_success") else "failure"
        if result[3]:
            return "timeout"
        return "unlabelled" if self._ends_session(commands) else None

    def _ends_session(self, commands: tuple[str, ...]) -> bool:
        if "quit" in commands or not self.viewer.is_open():
            self._quit = True
        return self._quit

    def _conclude(self, recorder: EpisodeRecorder, outcome: Outcome, seed: int) -> Outcome:
        if outcome == "redo" and not len(recorder):
            self._redo_last()
        elif outcome in ("discard", "redo"):
            if len(recorder):
                self.summary.discarded += 1
                self._announce(f"episode discarded after {len(recorder) / self._control_freq:.1f} s")
        elif len(recorder):
            self._save(recorder, outcome, seed)
            self._confirm(outcome)
        return outcome

    def _redo_last(self) -> None:
        """Take the newest episode of this session out of the file and go back to its scene."""
        if not self.summary.episodes:
            self._announce("nothing to redo: no episode was saved in this session")
            return
        name = self.writer.discard_last()
        label, steps = self._saved.pop()
        self.summary.episodes -= 1
        self.summary.frames -= steps
        self.summary.successes -= label == "success"
        self.summary.failures -= label in ("failure", "timeout")
        self.summary.discarded += 1
        self._redone = True
        self._announce(f"{name} taken back; recording its scene again")

    @property
    def _saved(self) -> list[tuple[str, int]]:
        """Label and length of each episode saved in this session."""
        return self.board.saved

    def _save(self, recorder: EpisodeRecorder, label: str, seed: int) -> None:
        # Ctrl-C waits: an episode that is driven is kept, and one that is on disk is counted and announced
        with deferred_interrupts():
            self._save_now(recorder, label, seed)

    def _save_now(self, recorder: EpisodeRecorder, label: str, seed: int) -> None:
        episode = recorder.finish(
            label,
            {
                "seed": seed,
                "reset_options": {},
                "versions": current_versions(),
                "device": self.device.name,
                "device_frame": self.device.frame,
                "operator": self.options.operator,
                "profile": asdict(self._profile) | {"buttons": dict(self._profile.buttons)},
                "control_freq": self._control_freq,
                "mjcf": self.task.mjcf,
            },
        )
        quality = measure(episode, self._control_freq)
        episode.meta["quality"] = {k: (v if v == v else None) for k, v in asdict(quality).items()}
        if self._take_images is not None:
            episode.observations.update(self._take_images(episode))
        name = self.writer.append(episode)
        self._count(label, len(episode), quality)
        self._announce(f"saved {name}: {label:8s} {quality.line()}")
        self._on_episode(episode)

    def _count(self, label: str, steps: int, quality: Quality) -> None:
        summary = self.summary
        summary.episodes += 1
        summary.frames += steps
        summary.successes += label == "success"
        summary.failures += label in ("failure", "timeout")
        summary.ages_ms.append(quality.pose_age_ms)
        self._saved.append((label, steps))

    def _confirm(self, outcome: Outcome) -> None:
        strength, seconds = (0.9, 0.25) if outcome == "success" else (0.4, 0.5)
        for arm in self.task.arms():
            self.device.rumble(arm.hand, strength, seconds)

    # Time and pictures.

    def _tick(self) -> None:
        """Wait for, or go to, the next control step."""
        if isinstance(self.clock, SimulatedClock):
            self.clock.advance(self._step)
        if self._rate is not None:
            self._rate.sleep()

    def _show(self) -> None:
        """Hand the scene to the viewer, 30 times a second."""
        now = time.perf_counter()
        if now < self._next_frame:
            return
        self._next_frame = now + 1.0 / VIEWER_FREQ
        env = self.env.unwrapped
        self.viewer.sync(env.model, env.data, self.board.overlay(), self.board.status(self.summary))  # type: ignore[attr-defined]
