"""Dual Panda reach: two Pandas side by side at one table, a goal for each, a hand for each."""

from __future__ import annotations

from bunraku.envs.tasks.panda_reach import ArmPlace, PandaReach


class DualPandaReach(PandaReach):
    """Reach two goals with two arms; see `PandaReach` for spaces, rewards and options.

    The left arm's part comes first in actions, observations and goals. The task is done when both tools are
    at their goals at once.
    """

    places = (
        ArmPlace("left", (0.0, 0.4, 0.0), (0.3, 0.12, 0.08), (0.6, 0.65, 0.55),
                 (0.15, 0.02, 0.015), (0.85, 1.05, 0.95)),
        ArmPlace("right", (0.0, -0.4, 0.0), (0.3, -0.65, 0.08), (0.6, -0.12, 0.55),
                 (0.15, -1.05, 0.015), (0.85, -0.02, 0.95)),
    )  # fmt: skip
    table_half_width = 0.85
    camera_distance = 1.35


TASK = DualPandaReach
