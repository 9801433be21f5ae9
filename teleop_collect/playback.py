"""Shows a recorded episode in a viewer."""

from __future__ import annotations

import mujoco

from bunraku.device import HANDS, HandName
from bunraku.episode.episode import Episode
from bunraku.errors import BunrakuError
from bunraku.geometry import Pose
from bunraku.rate import Rate
from bunraku.teleop_collect.viewer.base import SessionViewer
from bunraku.teleop_collect.viewer.status import ArmOverlay, Overlay, SessionStatus

_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


def play(episode: Episode, env_id: str, viewer: SessionViewer, speed: float = 1.0) -> bool:
    """Show an episode's states at the speed they were driven.

    Args:
        episode: The episode, with the model's XML in its metadata.
        env_id: Id of its environment, for the panel.
        viewer: An opened viewer.
        speed: Factor on the speed.

    Returns:
        Whether it was shown to its end: False once the viewer is closed or told to quit.

    Raises:
        BunrakuError: If the episode has no model.
    """
    xml = episode.meta.get("mjcf")
    if not xml:
        raise BunrakuError("the episode has no model stored with it, so it cannot be shown")
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    rate = Rate(speed * float(episode.meta.get("control_freq", 50.0)))
    for row, state in enumerate(episode.states):
        if not viewer.is_open() or "quit" in viewer.commands():
            return False
        mujoco.mj_setState(model, data, state, _STATE)
        mujoco.mj_forward(model, data)
        status = SessionStatus(env_id=env_id, device="replay", step=row, message=f"replay: {episode.label}")
        viewer.sync(model, data, _overlay(episode, min(row, len(episode) - 1)), status)
        rate.sleep()
    return True


def _overlay(episode: Episode, row: int) -> Overlay:
    arms: dict[HandName, ArmOverlay] = {}
    for hand in HANDS:
        target = episode.streams.get(f"target/{hand}")
        if target is not None:
            pose = Pose.from_array(target[row])
            arms[hand] = ArmOverlay(
                target=pose, tool=pose, engaged=bool(episode.streams[f"engaged/{hand}"][row])
            )
    return Overlay(arms)
