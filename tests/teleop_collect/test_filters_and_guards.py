"""Filters, guards, frames and profiles by themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.errors import BunrakuError
from bunraku.geometry import IDENTITY_QUAT, Pose, angle_between, from_rotvec
from bunraku.teleop_collect.filters import LowPass, OneEuro, make_filter, time_constant
from bunraku.teleop_collect.frames import device_to_world, facing_from_stroke
from bunraku.teleop_collect.guards import PoseGuard
from bunraku.teleop_collect.profile import Profile, load_profile, save_profile


def at(x: float, y: float = 0.0, z: float = 0.0) -> Pose:
    return Pose(np.array([x, y, z]), IDENTITY_QUAT.copy())


def test_the_low_pass_is_the_one_with_factor_0_3_at_90_hz() -> None:
    low_pass = LowPass(time_constant(0.3, 90.0))
    low_pass.reset(at(0.0), 0.0)
    assert low_pass.update(at(1.0), 1 / 90).pos[0] == pytest.approx(0.3)
    assert low_pass.update(at(1.0), 2 / 90).pos[0] == pytest.approx(1.0 - 0.7**2)


@given(st.lists(st.floats(1e-3, 0.05), min_size=1, max_size=20))
def test_the_low_pass_is_the_same_filter_at_any_rate(intervals: list[float]) -> None:
    """A step input, sampled any way: the same exponential at the same time."""
    low_pass = LowPass()
    low_pass.reset(at(0.0), 0.0)
    time, pose = 0.0, at(0.0)
    for dt in intervals:
        time += dt
        pose = low_pass.update(at(1.0), time)
    assert pose.pos[0] == pytest.approx(1.0 - np.exp(-time / low_pass.tau), rel=1e-9)


def test_orientation_takes_the_short_way_whatever_the_sign() -> None:
    quat = from_rotvec(np.array([0.0, 0.0, 0.2]))
    for kind in ("low_pass", "one_euro"):
        smooth = make_filter(kind)
        smooth.reset(at(0.0), 0.0)
        out = smooth.update(Pose(np.zeros(3), -quat), 0.01)
        assert 0.0 < float(angle_between(IDENTITY_QUAT, out.quat)) < 0.2


def test_one_euro_is_steadier_at_rest_and_quicker_in_motion_than_the_low_pass() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(0.0, 1e-3, (200, 3))

    def spread_and_lag(smooth: LowPass | OneEuro) -> tuple[float, float]:
        rest = [smooth.update(Pose(n, IDENTITY_QUAT), k / 90).pos for k, n in enumerate(noise)]
        smooth.reset(at(0.0), 0.0)
        lag = 0.0
        for k in range(90):
            x = 1.0 * k / 90
            lag = x - smooth.update(at(x), k / 90).pos[0]
        return float(np.std(rest[50:])), lag

    euro_spread, euro_lag = spread_and_lag(OneEuro())
    low_spread, low_lag = spread_and_lag(LowPass())
    assert euro_spread < low_spread
    assert euro_lag < low_lag


def test_a_single_wild_sample_is_dropped_and_the_last_good_one_stays() -> None:
    guard = PoseGuard()
    guard.check(at(0.0), 0.0)
    out = guard.check(at(1.0), 0.011)
    assert out.verdict == "dropped"
    assert out.pose is not None
    assert out.pose.pos[0] == 0.0
    assert guard.check(at(0.001), 0.022).verdict == "good"
    assert guard.dropped == 1


def test_a_new_place_that_lasts_is_believed_and_asks_for_a_new_reference() -> None:
    guard = PoseGuard()
    guard.check(at(0.0), 0.0)
    verdicts = [guard.check(at(1.0), 0.011 * k).verdict for k in range(1, 40)]
    first = verdicts.index("rebased")
    assert verdicts[:first] == ["dropped"] * first
    assert verdicts[first + 1 :] == ["good"] * (len(verdicts) - first - 1)
    assert 0.2 < 0.011 * (first + 1) < 0.35


@settings(max_examples=50)
@given(st.integers(0, 2**31))
def test_whatever_comes_the_guard_gives_finite_poses_with_steps_of_at_most_15_cm_unless_it_says_so(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    guard = PoseGuard()
    last: Pose | None = None
    time = 0.0
    for _ in range(100):
        time += float(rng.uniform(0.0, 0.05))
        pose: Pose | None = at(*rng.uniform(-0.2, 0.2, 3))
        if rng.uniform() < 0.2:
            pose = None
        elif rng.uniform() < 0.2:
            pose = Pose(np.array([np.nan, 0, 0]), IDENTITY_QUAT)
        out = guard.check(pose, time)
        if out.pose is not None:
            assert np.isfinite(out.pose.as_array()).all()
            if last is not None and out.verdict != "rebased":
                assert np.linalg.norm(out.pose.pos - last.pos) <= 0.15 + 1e-9
            last = out.pose


def test_a_sample_that_was_seen_already_is_stale_not_new() -> None:
    guard = PoseGuard()
    guard.check(at(0.0), 1.0)
    assert guard.check(at(0.02), 1.0).verdict == "stale"


@given(st.floats(-180, 180), st.floats(-3, 3), st.floats(-3, 3))
def test_calibrated_facing_makes_a_stroke_ahead_go_along_x(heading: float, x: float, y: float) -> None:
    start = np.array([x, y, 1.0])
    angle = np.deg2rad(heading)
    end = start + 0.2 * np.array([np.cos(angle), np.sin(angle), 0.0])
    convert = device_to_world("z_up", facing_from_stroke(start, end))
    moved = convert(Pose(end, IDENTITY_QUAT)).pos - convert(Pose(start, IDENTITY_QUAT)).pos
    assert np.allclose(moved, [0.2, 0.0, 0.0], atol=1e-9)


def test_a_profile_survives_saving_and_loading(tmp_path: Path) -> None:
    profile = Profile(facing_deg=12.5, scale=0.8, height=1.6, filter="one_euro", buttons={"b": "failure"})
    loaded = load_profile(str(save_profile(profile, str(tmp_path / "anna.toml"))))
    assert (loaded.facing_deg, loaded.scale, loaded.height, loaded.filter) == (12.5, 0.8, 1.6, "one_euro")
    assert loaded.buttons["b"] == "failure"
    assert loaded.hand_scale == pytest.approx(0.8 * 1.75 / 1.6)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("scale = -1.0", "scale"),
        ("scales = 1.0", "did you mean 'scale'"),
        ('filter = "low"', "filter"),
        ("filter = 3", "filter"),
        ("[buttons]\nq = 'success'", "button"),
        ("[buttons]\nb = 'succes'", "did you mean 'success'"),
        ("scale = ", "cannot read"),
    ],
)
def test_a_bad_profile_is_refused_with_the_value_named(tmp_path: Path, text: str, names: str) -> None:
    path = tmp_path / "p.toml"
    path.write_text(text)
    with pytest.raises(BunrakuError, match=names):
        load_profile(str(path))


def test_a_missing_profile_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(BunrakuError, match="--save-profile"):
        load_profile(str(tmp_path / "none.toml"))
