"""A hand that integrates what an operator commands."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunraku.geometry import conjugate, multiply, to_rotvec
from bunraku.teleop_collect.virtual_hand import VirtualHand, response, stick_response
from tests.teleop_collect.manual_clock import ManualClock

vectors = st.tuples(*[st.floats(-3.0, 3.0)] * 3)


@given(st.lists(st.tuples(st.floats(-1.0, 5.0), vectors, vectors), max_size=20))
def test_no_call_moves_the_hand_further_than_its_bounds_whatever_the_clock_does(
    calls: list[tuple[float, tuple[float, ...], tuple[float, ...]]],
) -> None:
    clock = ManualClock()
    hand = VirtualHand(clock)
    for elapsed, linear, angular in calls:
        before = hand.pose
        clock.sleep(elapsed)
        moved = before.inverse() @ hand.move(linear, angular)
        assert np.linalg.norm(moved.pos) <= 0.02 + 1e-12
        assert np.linalg.norm(to_rotvec(moved.quat)) <= 0.1 + 1e-9
        assert np.linalg.norm(hand.pose.quat) == pytest.approx(1.0)


def test_turning_is_about_the_operators_axes_not_the_hands() -> None:
    clock = ManualClock()
    hand = VirtualHand(clock, max_turn=2.0)
    hand.move(np.zeros(3), [0.0, 0.0, np.pi / 2])
    clock.sleep(1.0)
    hand.move(np.zeros(3), [0.0, 0.5, 0.0])
    before = hand.pose
    clock.sleep(1.0)
    hand.move(np.zeros(3), np.zeros(3))
    turned = multiply(hand.pose.quat, conjugate(before.quat))
    np.testing.assert_allclose(to_rotvec(turned), [0.0, 0.5, 0.0], atol=1e-12)


def test_a_frozen_hand_stays_where_it_was_and_forgets_the_time_that_passed() -> None:
    clock = ManualClock()
    hand = VirtualHand(clock)
    hand.move([0.1, 0.0, 0.0], np.zeros(3))
    clock.sleep(0.1)
    hand.move([0.1, 0.0, 0.0], np.zeros(3))
    clock.sleep(5.0)
    hand.freeze()
    hand.move([0.1, 0.0, 0.0], np.zeros(3))
    np.testing.assert_allclose(hand.pose.pos, [0.01, 0.0, 0.0])
    np.testing.assert_array_equal(hand.linear_velocity, [0.1, 0.0, 0.0])


@given(st.floats(-2.0, 2.0), st.floats(0.0, 0.5), st.floats(0.0, 1.0))
def test_the_response_is_odd_silent_at_rest_rising_and_full_at_the_stop(
    d: float, deadband: float, cubic: float
) -> None:
    value = float(response(d, deadband, cubic))
    assert value == -float(response(-d, deadband, cubic))
    assert abs(value) <= 1.0 + 1e-12
    if abs(d) <= deadband:
        assert value == 0.0
    assert float(response(abs(d) + 0.01, deadband, cubic)) >= abs(value) - 1e-12
    assert float(response(1.0, deadband, cubic)) == pytest.approx(1.0)


def test_a_stick_keeps_its_direction() -> None:
    stick = np.array([0.3, -0.4])
    shaped = stick_response(stick, 0.1, 0.5)
    assert np.cross(np.append(stick, 0.0), np.append(shaped, 0.0))[2] == pytest.approx(0.0, abs=1e-15)
    assert shaped @ stick > 0.0
    np.testing.assert_array_equal(stick_response([0.05, 0.05], 0.1, 0.5), 0.0)
