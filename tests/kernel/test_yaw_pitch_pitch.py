"""The closed-form inverse against MuJoCo's kinematics of an arm that is written down here once more."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bunraku.control.yaw_pitch_pitch import ArmGeometry, ReachError, angles, forward, reachable, solve
from bunraku.screw.figures import ARM

# lengths differ, so that what mixes them up is found
XML = """
<mujoco>
  <worldbody>
    <body><joint axis="0 0 1"/><geom size="0.01"/>
      <body pos="0 0 0.1"><joint axis="0 -1 0"/><geom size="0.01"/>
        <body name="elbow" pos="0.4 0 0"><joint axis="0 -1 0"/><geom size="0.01"/>
          <geom name="tip" size="0.01" pos="0.25 0 0"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
UNEVEN = ArmGeometry(0.4, 0.25, 0.1, (-np.pi, np.pi), (-np.pi, np.pi), (-3.0, 3.0))
MODEL = mujoco.MjModel.from_xml_string(XML)
coordinate = st.floats(-0.7, 0.7, allow_nan=False)
points = st.tuples(coordinate, coordinate, coordinate).map(np.array)


def pose(q: np.ndarray) -> mujoco.MjData:
    data = mujoco.MjData(MODEL)
    data.qpos[:] = q
    mujoco.mj_forward(MODEL, data)
    return data


def elbow_over_line(data: mujoco.MjData, tip: np.ndarray) -> float:
    """Height of the elbow over the line from shoulder to tip, measured in the arm's plane."""
    shoulder = np.array([0.0, 0.0, UNEVEN.shoulder_height])
    to_tip, to_elbow = tip - shoulder, data.body("elbow").xpos - shoulder
    outward = np.array([tip[0], tip[1], 0.0]) / np.hypot(tip[0], tip[1])
    flat = [np.array([v @ outward, v[2]]) for v in (to_tip, to_elbow)]
    return float(flat[0][0] * flat[1][1] - flat[0][1] * flat[1][0])


@given(points)
def test_both_solutions_put_the_tip_on_its_target_and_the_first_has_the_elbow_above(tip: np.ndarray) -> None:
    assume(np.hypot(tip[0], tip[1]) > 1e-3)
    assume(reachable(tip, UNEVEN) and reachable(tip, UNEVEN, mirror=True))
    above, below = pose(solve(tip, UNEVEN)), pose(solve(tip, UNEVEN, mirror=True))
    for data in (above, below):
        np.testing.assert_allclose(data.geom("tip").xpos, tip, atol=1e-9)
    assert elbow_over_line(above, tip) >= 0.0 >= elbow_over_line(below, tip)


@given(points)
def test_a_target_is_solved_if_and_only_if_it_is_called_reachable(tip: np.ndarray) -> None:
    for geometry in (ARM, UNEVEN):
        if reachable(tip, geometry):
            low, high = geometry.ranges.T
            assert (solve(tip, geometry) >= low - 1e-9).all()
            assert (solve(tip, geometry) <= high + 1e-9).all()
        else:
            with pytest.raises(ReachError, match="reaches from"):
                solve(tip, geometry)


@given(st.floats(-3.1, 3.1), st.floats(-2.0, 2.0), st.floats(-2.6, 2.6))
def test_forward_is_where_mujoco_has_the_tip(yaw: float, shoulder: float, elbow: float) -> None:
    q = np.array([yaw, shoulder, elbow])
    np.testing.assert_allclose(forward(q, UNEVEN), pose(q).geom("tip").xpos, atol=1e-12)


def test_leading_axes_give_what_single_targets_give() -> None:
    tips = np.array([[[0.2, 0.1, 0.2], [0.3, -0.1, 0.1]], [[0.1, 0.25, 0.3], [-0.2, 0.2, 0.15]]])
    solved = solve(tips, ARM)
    assert solved.shape == (2, 2, 3)
    for index in np.ndindex(2, 2):
        np.testing.assert_allclose(solved[index], solve(tips[index], ARM), atol=1e-15)


def test_the_figures_of_the_folded_arm_are_those_of_the_source() -> None:
    press = [0.185, 0.0, 0.159]
    q, mirrored = solve(press, ARM), solve(press, ARM, mirror=True)
    assert np.hypot(0.185, 0.159 - 0.06) == pytest.approx(0.21, abs=5e-3)
    assert np.degrees(q[2]) == pytest.approx(-139.0, abs=0.5)
    assert 0.06 + 0.3 * np.sin(q[1]) == pytest.approx(0.36, abs=5e-3)
    assert 0.06 + 0.3 * np.sin(mirrored[1]) == pytest.approx(-0.14, abs=5e-3)


@pytest.mark.parametrize(
    ("tip", "message"),
    [
        ([0.7, 0.0, 0.1], "it is 0.7011 m from the shoulder.*from 0.1553 to 0.6000 m"),
        ([0.05, 0.0, 0.06], "it is 0.0500 m from the shoulder.*from 0.1553 to 0.6000 m"),
        ([float("nan"), 0.0, 0.1], "cannot reach.*nan"),
        # near enough, but the upper arm would have to lean over too far backwards
        ([0.05, 0.0, 0.3], "the shoulder would need 1[0-9]{2}.[0-9] degrees, and its range is -120 to 120"),
    ],
)
def test_a_target_out_of_reach_is_refused_with_the_reach(tip: list[float], message: str) -> None:
    with pytest.raises(ReachError, match=message):
        solve(tip, ARM)


def test_of_several_targets_the_one_farthest_out_of_reach_is_named() -> None:
    with pytest.raises(ReachError, match=r"\(0.9, 0, 0.1\)"):
        solve([[0.2, 0.0, 0.2], [0.61, 0.0, 0.1], [0.9, 0.0, 0.1]], ARM)


def test_a_position_of_two_numbers_is_refused() -> None:
    with pytest.raises(ValueError, match=r"3 numbers.*\(2,\)"):
        solve([0.2, 0.1], ARM)


def test_without_refusal_the_arm_points_at_what_is_too_far() -> None:
    q = angles([1.0, 1.0, 0.06], ARM)
    np.testing.assert_allclose(q, [np.pi / 4.0, 0.0, 0.0], atol=1e-9)
