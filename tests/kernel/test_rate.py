"""The fixed-rate loop, on a clock that the test moves."""

from __future__ import annotations

import pytest

from bunraku.rate import Rate


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make(clock: Clock, frequency: float = 50.0) -> Rate:
    return Rate(frequency, clock.time, clock.sleep)


def test_work_is_taken_off_the_wait_and_errors_do_not_add_up(clock: Clock) -> None:
    rate = make(clock)
    for tick in range(1, 1001):
        clock.now += 0.001 * (tick % 17)
        assert rate.sleep() == 0.0
        assert clock.now == pytest.approx(100.0 + 0.02 * tick, abs=1e-9)
    assert rate.stats() == {"ticks": 1000, "late": 0, "late_ms_max": 0.0}


def test_a_little_late_keeps_the_schedule(clock: Clock) -> None:
    rate = make(clock)
    clock.now += 0.025
    assert rate.sleep() == pytest.approx(0.005)
    assert clock.slept == []
    rate.sleep()
    assert clock.now == pytest.approx(100.04)


def test_far_behind_starts_anew_instead_of_racing(clock: Clock) -> None:
    rate = make(clock)
    clock.now += 1.0
    assert rate.sleep() == pytest.approx(0.98)
    for tick in range(1, 4):
        assert rate.sleep() == 0.0
        assert clock.now == pytest.approx(101.0 + 0.02 * tick)


def test_statistics_keep_the_count_and_the_worst(clock: Clock) -> None:
    rate = make(clock)
    for work in (0.01, 0.03, 0.005, 0.5, 0.01):
        clock.now += work
        rate.sleep()
    stats = rate.stats()
    assert (stats["ticks"], stats["late"]) == (5, 2)
    assert stats["late_ms_max"] == pytest.approx(480.0)


@pytest.mark.parametrize("frequency", [0.0, -1.0, float("nan")])
def test_a_frequency_that_is_none_is_refused(clock: Clock, frequency: float) -> None:
    with pytest.raises(ValueError, match="frequency must be positive"):
        make(clock, frequency)
