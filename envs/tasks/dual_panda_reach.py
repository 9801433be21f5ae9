"""Dual Panda reach: two Pandas side by side at one table, a goal for each, a hand for each."""

from __future__ import annotations

from bunraku.envs.tasks.panda_reach import ArmPlace, PandaReach


class DualPandaReach(PandaReach):
    """Reach two goals with two arms at once.

    Description:
        Two Franka Pandas stand side by side at one table, each with a goal of its own. The task is done when
        both tools are at their goals at once; all else is as in `PandaReach`.

    Action Space:
        A box of [-1, 1]: the left arm's part, then the right arm's, each as in `PandaReach`.

    Observation Space:
        A dictionary of boxes (float64). `observation`, `achieved_goal` and `desired_goal` hold the left arm's
        part, then the right arm's, each as in `PandaReach`.

    Rewards:
        `reward_type="sparse"`: 0 when both goals are reached, else -1. `"dense"`: the mean of the arms'
        rewards.

    Starting State:
        As in `PandaReach` for each arm; the boxes of goals do not overlap. `options`: `goal` (2, 3),
        `goal_quat` (2, 4) and `qpos` (2, 7), the left arm's row first.

    Episode End:
        Truncated after 200 steps by default; terminated only with `terminate_on_success=True`, or when MuJoCo
        finds the simulation unstable.

    Arguments:
        Those of `PandaReach`, for both arms.

    Version History:
        v0: first version.
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
