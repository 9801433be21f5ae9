"""What the control loop tells a viewer: where things are in the scene, and how the session goes.

All of it is frozen, so that a viewer may keep and send it on from another thread. Poses and positions are in
world coordinates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bunraku.device import HandName
from bunraku.geometry import Array, Pose


@dataclass(frozen=True, slots=True)
class ArmOverlay:
    """Marks that are drawn for one arm."""

    target: Pose
    """Where the operator asks the tool to be, after filters and limits."""
    tool: Pose
    """Where the tool is."""
    goal: Pose | None = None
    """Where the task wants the tool, if the task has such a pose."""
    engaged: bool = False
    """Whether the hand drives the arm."""
    unreachable: bool = False
    """Whether the arm cannot reach what the operator asks for."""
    precision: bool = False
    """Whether the hand's motion is scaled down."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """Marks that are drawn over the scene."""

    arms: Mapping[HandName, ArmOverlay] = field(default_factory=dict)
    """One entry for each hand that has an arm."""
    workspace_center: Array | None = None
    """Centre of the box that targets are kept in, `(3,)` [m]; None draws no box."""
    workspace_half_size: Array | None = None
    """Half of the box's edges along x, y, z, `(3,)` [m]; None draws no box."""


@dataclass(frozen=True, slots=True)
class HandStatus:
    """State of one hand's controller."""

    tracked: bool = False
    """Whether its pose is known now."""
    engaged: bool = False
    """Whether it drives its arm."""
    trigger: float = 0.0
    """Analog trigger, 0 to 1."""
    squeeze: float = 0.0
    """Analog grip, 0 to 1."""
    buttons: frozenset[str] = frozenset()
    """Names of `bunraku.device.BUTTONS` held down."""
    pose_age_ms: float = 0.0
    """Age of the pose when it was used [ms]."""


@dataclass(frozen=True, slots=True)
class SessionStatus:
    """How the session goes, for the panel."""

    env_id: str
    """Id of the environment."""
    device: str
    """Name of the device."""
    hands: Mapping[HandName, HandStatus] = field(default_factory=dict)
    """One entry for each hand that has an arm."""
    recording: bool = False
    """Whether an episode is being recorded."""
    episode: int = 0
    """Index of the current episode, or of the next one."""
    step: int = 0
    """Steps recorded in the current episode."""
    saved: int = 0
    """Episodes on disk."""
    successes: int = 0
    """Saved episodes labelled a success."""
    failures: int = 0
    """Saved episodes labelled a failure."""
    discarded: int = 0
    """Episodes that were thrown away."""
    control_hz: float = 0.0
    """Control steps per second, measured [Hz]."""
    device_hz: float = 0.0
    """New device samples per second, measured [Hz]."""
    tick_us: float = 0.0
    """Time from reading the device to the action, of the newest tick [us]."""
    real_time_factor: float = 1.0
    """Simulated over wall time."""
    dropped: int = 0
    """Device samples that the guards dropped so far."""
    message: str = ""
    """What to tell the operator now; empty for nothing."""
