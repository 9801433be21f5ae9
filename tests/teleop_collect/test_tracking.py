"""How closely the simulated tool follows a moving hand."""

from __future__ import annotations

import numpy as np
import pytest

from bunraku.geometry import Pose, angle_between, from_rotvec
from bunraku.teleop_collect.profile import Profile
from tests.teleop_collect.fake_device import Rig


@pytest.mark.parametrize("control_freq", [20.0, 50.0, 100.0, 200.0])
def test_at_a_tenth_of_a_metre_per_second_the_tool_is_within_2_mm_and_half_a_degree_of_the_target(
    control_freq: float,
) -> None:
    """The hand draws a tilted circle while it turns; scale 1, so that the tool moves as fast as the hand."""
    rig = Rig(profile=Profile(scale=1.0), control_freq=control_freq)
    rig.engage()
    radius, speed = 0.08, 0.1
    distance, angle = [], []
    for k in range(round(8.0 / rig.dt)):
        phase = speed / radius * k * rig.dt
        pos = radius * np.array([1.0 - np.cos(phase), np.sin(phase), 0.5 * np.sin(phase)])
        turn = 0.15 * np.array([np.sin(phase), np.sin(2 * phase), np.sin(phase)])
        rig.device.pose["right"] = Pose(pos, from_rotvec(turn))
        target = rig.step()["teleop"].hands["right"].target
        tool = rig.arm.tool()
        if k * rig.dt > 0.5:
            distance.append(float(np.linalg.norm(tool.pos - target.pos)))
            angle.append(float(angle_between(tool.quat, target.quat)))
    assert max(distance) < 2e-3
    assert np.rad2deg(max(angle)) < 0.5


def test_at_rest_the_tool_is_within_half_a_millimetre_and_a_tenth_of_a_degree() -> None:
    rig = Rig()
    rig.engage()
    rng = np.random.default_rng(3)
    for _ in range(10):
        rig.move(rng.uniform(-0.12, 0.12, 3), turn=rng.uniform(-0.3, 0.3, 3))
        target = rig.step(50)["teleop"].hands["right"].target
        tool = rig.arm.tool()
        assert float(np.linalg.norm(tool.pos - target.pos)) < 5e-4
        assert np.rad2deg(float(angle_between(tool.quat, target.quat))) < 0.1


def test_the_target_moves_smoothly_inside_a_control_step() -> None:
    """At 20 Hz control, five ticks share the motion of a step; no tick takes it all."""
    rig = Rig(control_freq=20.0)
    rig.engage()
    control = rig.arm
    control.act(np.array([0.4, 0, 0, 0, 0, 0, 1.0]))
    x = [float(p[0]) for p in control._positions]
    steps = np.diff([float(rig.arm.target().pos[0]) - 0.02, *x])
    assert np.allclose(steps, 0.004, atol=1e-12)
