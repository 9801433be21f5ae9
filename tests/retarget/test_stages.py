"""The stages of retargeting, each against an independent reference or a property that it promises."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.interpolate
import scipy.signal
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from bunraku.errors import BunrakuError
from bunraku.retarget.stages import calibration as h
from bunraku.retarget.stages.ankle import set_ankles, shin_foot_angle
from bunraku.retarget.stages.calibration import calibrate, flat_foot_pitch
from bunraku.retarget.stages.coordinates import MODEL_QUAT, VIDEO_QUAT, centre, lift, rotate_axes, scale
from bunraku.retarget.stages.filters import savitzky_golay, weighted_moving_filter
from bunraku.retarget.stages.heading import align_yaw, hip_yaw
from bunraku.retarget.stages.limits import bound_steps, soft_clamp
from bunraku.retarget.stages.upsample import frame_times, upsample

SEEDS = st.integers(0, 2**32 - 1)


def person(frames: int = 1) -> np.ndarray:
    """Return a person standing with hanging arms, facing x, `(frames, 22, 3)`."""
    points = {
        h.PELVIS: (0, 0, 0.95), h.SPINE1: (0, 0, 1.05), h.SPINE2: (0, 0, 1.18), h.SPINE3: (0, 0, 1.25),
        h.NECK: (0, 0, 1.45), h.HEAD: (0, 0, 1.55),
        h.LEFT_COLLAR: (0, 0.08, 1.38), h.RIGHT_COLLAR: (0, -0.08, 1.38),
    }  # fmt: skip
    for side, left in ((1, True), (-1, False)):
        hip, knee, ankle, toe = (1, 4, 7, 10) if left else (2, 5, 8, 11)
        shoulder, elbow, wrist = (16, 18, 20) if left else (17, 19, 21)
        points |= {hip: (0, 0.09 * side, 0.9), knee: (0, 0.09 * side, 0.5), ankle: (0, 0.09 * side, 0.1)}
        points |= {toe: (0.13, 0.09 * side, 0.04), shoulder: (0, 0.18 * side, 1.4)}
        points |= {elbow: (0, 0.18 * side, 1.12), wrist: (0, 0.18 * side, 0.86)}
    return np.tile(np.array([points[i] for i in range(22)], dtype=float), (frames, 1, 1))


def turned(joints: np.ndarray, yaw: np.ndarray) -> np.ndarray:
    """Return key points `(T, 22, 3)` turned about the vertical by `yaw` `(T,)`."""
    return np.einsum("tij,tkj->tki", Rotation.from_euler("z", yaw[:, None]).as_matrix(), joints)


def test_model_axes_take_y_up_facing_z_to_z_up_facing_x():
    for quat, up, front in ((MODEL_QUAT, (0, 1, 0), (0, 0, 1)), (VIDEO_QUAT, (0, 0, 1), (0, 1, 0))):
        np.testing.assert_allclose(rotate_axes(up, quat), (0, 0, 1), atol=1e-12)
        np.testing.assert_allclose(rotate_axes(front, quat), (1, 0, 0), atol=1e-12)


def test_the_axis_rotation_is_scipys():
    points = np.random.default_rng(0).normal(size=(5, 22, 3))
    expected = points @ Rotation.from_quat([0.5, 0.5, 0.5, 0.5]).as_matrix().T
    np.testing.assert_allclose(rotate_axes(points), expected, atol=1e-12)


def test_centre_scale_and_lift_put_the_pelvis_at_the_waist():
    joints = person(3) + np.arange(3)[:, None, None]
    local, pelvis = centre(joints)
    np.testing.assert_allclose(pelvis, joints[:, 0])
    placed = lift(scale(local, 0.2466), (0.0, 0.0, 0.24))
    np.testing.assert_allclose(placed[:, 0], np.tile((0, 0, 0.24), (3, 1)))
    np.testing.assert_allclose(placed[:, 4] - placed[:, 1], 0.2466 * (joints[:, 4] - joints[:, 1]))


def test_a_person_walking_in_a_circle_keeps_facing_forward():
    yaw = np.linspace(0.3, 0.3 + 7.0 * np.pi, 200)
    joints = turned(person(200), yaw)
    aligned, removed, seen = align_yaw(joints)
    assert seen.all()
    np.testing.assert_allclose(removed, yaw, atol=1e-9)
    np.testing.assert_allclose(aligned, person(200), atol=1e-9)


def test_yaw_aligned_to_the_first_frame_keeps_its_heading():
    joints = turned(person(50), np.linspace(1.0, 3.0, 50))
    aligned, removed, _ = align_yaw(joints, "first")
    assert removed[0] == 0.0
    np.testing.assert_allclose(aligned, np.tile(joints[0], (50, 1, 1)), atol=1e-9)


def test_heading_is_held_over_crossed_hips_and_while_lying_on_a_side():
    joints = turned(person(30), np.linspace(0.0, 0.6, 30))
    joints[10, [1, 2]] = joints[10, [2, 1]]
    joints[20:23] = person(3) @ Rotation.from_euler("x", 90, degrees=True).as_matrix().T
    yaw, seen = hip_yaw(joints)
    assert not seen[10]
    assert not seen[20:23].any()
    np.testing.assert_allclose(yaw, np.linspace(0.0, 0.6, 30), atol=1e-9)


@given(st.integers(1, 40), st.sampled_from([(7, 3), (5, 2), (9, 4)]), SEEDS)
@settings(deadline=None, max_examples=40)
def test_savitzky_golay_is_scipys_wherever_scipy_has_enough_frames(frames, window_order, seed):
    window, order = window_order
    values = np.random.default_rng(seed).normal(size=(frames, 2, 3))
    ours = savitzky_golay(values, window, order)
    assert ours.shape == values.shape
    if frames >= window:
        np.testing.assert_allclose(ours, scipy.signal.savgol_filter(values, window, order, axis=0), atol=1e-9)


def test_savitzky_golay_refuses_an_even_window():
    with pytest.raises(BunrakuError, match="odd"):
        savitzky_golay(np.zeros((10, 3)), 6, 3)


def test_the_causal_filter_weighs_newer_frames_more():
    impulse = np.zeros((20, 1))
    impulse[8] = 1.0
    out = weighted_moving_filter(impulse, 7)[:, 0]
    np.testing.assert_allclose(out[8:15], np.arange(7, 0, -1) / 28.0)
    assert (out[:8] == 0.0).all()


def test_the_causal_filter_lags_and_the_zero_phase_one_does_not():
    ramp = np.arange(40.0)[:, None]
    assert np.allclose(weighted_moving_filter(ramp, 7)[10:-10], ramp[10:-10] - 2.0)
    assert np.allclose(weighted_moving_filter(ramp, 7, zero_phase=True)[10:-10], ramp[10:-10])


@given(st.integers(1, 30), st.integers(1, 9), st.booleans(), SEEDS)
@settings(deadline=None, max_examples=50)
def test_the_filter_never_leaves_the_range_of_its_samples(frames, window, zero_phase, seed):
    values = np.random.default_rng(seed).normal(size=(frames, 4))
    out = weighted_moving_filter(values, window, zero_phase=zero_phase)
    assert (out <= values.max(axis=0) + 1e-12).all()
    assert (out >= values.min(axis=0) - 1e-12).all()


@given(st.integers(2, 30), SEEDS)
@settings(deadline=None, max_examples=50)
def test_monotone_upsampling_is_scipys_pchip(frames, seed):
    values = np.random.default_rng(seed).normal(size=(frames, 3)).round(1)  # rounding gives equal neighbours
    ours = upsample(values, 20.0, 90.0)
    pchip = scipy.interpolate.PchipInterpolator(np.arange(frames), values, axis=0)
    np.testing.assert_allclose(ours, pchip(frame_times(frames, 20.0, 90.0)), atol=1e-12)


@given(st.integers(1, 30), SEEDS, st.sampled_from(["monotone", "linear"]))
@settings(deadline=None, max_examples=50)
def test_upsampled_frames_stay_between_their_neighbours(frames, seed, method):
    values = np.random.default_rng(seed).normal(size=(frames, 3))
    out = upsample(values, 20.0, 90.0, method)
    left = np.minimum(frame_times(frames, 20.0, 90.0).astype(int), max(frames - 2, 0))
    right = np.minimum(left + 1, frames - 1)
    assert (out >= np.minimum(values[left], values[right])).all()
    assert (out <= np.maximum(values[left], values[right])).all()


def test_a_cubic_spline_leaves_limits_that_the_monotone_cubic_keeps():
    values = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])[:, None]
    spline = scipy.interpolate.CubicSpline(np.arange(6), values)(frame_times(6, 20.0, 90.0))
    assert spline.max() > 1.05
    ours = upsample(values, 20.0, 90.0)
    assert ours.max() == 1.0
    assert ours.min() == 0.0


def test_196_frames_become_878():
    assert upsample(np.zeros((196, 28)), 20.0, 90.0).shape == (878, 28)


@given(SEEDS, st.floats(0.01, 1.0))
@settings(deadline=None, max_examples=50)
def test_bounded_steps_are_bounded_within_the_range_and_idle_where_slow(seed, bound):
    values = np.random.default_rng(seed).normal(size=(40, 3))
    out = bound_steps(values, np.full(3, bound))
    assert (np.abs(np.diff(out, axis=0)) <= bound + 1e-12).all()
    assert (out.min(axis=0) >= values.min(axis=0) - 1e-12).all()
    assert (out.max(axis=0) <= values.max(axis=0) + 1e-12).all()
    slow = values.cumsum(axis=0) * bound / np.abs(values).max()
    np.testing.assert_allclose(bound_steps(slow, np.full(3, bound)), slow, atol=1e-12)


def test_a_bounded_jump_is_neither_early_nor_late():
    step = np.repeat([[0.0], [1.0]], 10, axis=0)
    out = bound_steps(step, np.array([0.2]))[:, 0]
    np.testing.assert_allclose(out, 1.0 - out[::-1], atol=1e-12)


def test_the_soft_clamp_keeps_limits_and_has_no_kink():
    x = np.linspace(-2.0, 2.0, 40001)[:, None]
    out = soft_clamp(x, [-0.5], [1.0])
    assert out.min() > -0.5
    assert out.max() < 1.0
    slope = np.diff(out[:, 0]) / 1e-4
    assert np.abs(np.diff(slope)).max() < 0.01  # a kink would be a step of 1
    inside = (x > -0.4) & (x < 0.9)
    np.testing.assert_array_equal(out[inside], x[inside])


def bent(pitch: float, flat: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return knee, ankle and toe of a vertical shin with the foot's sole pitched by `pitch`, toes down positive."""
    toe = 0.15 * np.array([np.cos(pitch + flat), 0.0, -np.sin(pitch + flat)])
    return np.array([0.0, 0.0, 0.4]), np.zeros(3), toe


@pytest.mark.parametrize("pitch", [-0.4, 0.0, 0.3])
@pytest.mark.parametrize("sign", [1, -1])
def test_the_ankle_turns_as_the_persons(pitch, sign):
    flat, joints = 0.4, np.zeros((1, 22, 3))
    joints[0, [4, 7, 10]] = bent(pitch, flat)
    dof = np.full((1, 3), 9.0)
    limits = np.array([[-0.9, 0.7]])
    set_ankles(dof, joints, np.array([[1, sign, 4, 7, 10]]), np.array([flat]), limits)
    assert dof[0, 1] == pytest.approx(sign * pitch, abs=1e-9)
    assert (dof[0, [0, 2]] == 9.0).all()


def test_the_angle_between_shin_and_foot_is_that_of_arccos():
    rng = np.random.default_rng(3)
    for knee, ankle, toe in rng.normal(size=(20, 3, 3)):
        shin, foot = ankle - knee, toe - ankle
        cosine = shin @ foot / np.linalg.norm(shin) / np.linalg.norm(foot)
        assert shin_foot_angle(knee, ankle, toe) == pytest.approx(np.arccos(cosine), abs=1e-9)


def test_the_neutral_foot_is_found_in_a_clip_that_starts_on_tiptoe():
    flat = 0.43
    pitches = np.concatenate([np.full(10, 0.8), np.zeros(40), np.linspace(0.0, 0.9, 10)])
    _, ankle, toe = (np.array(a) for a in zip(*(bent(p, flat) for p in pitches), strict=True))
    shift = -toe * [0, 0, 1]  # the toes stay on the ground
    assert flat_foot_pitch(ankle + shift, toe + shift) == pytest.approx(flat, abs=1e-6)


def test_calibration_finds_the_rest_pitches_of_a_skeleton_in_any_heading():
    joints = person(20)
    lean = Rotation.from_euler("y", 0.6).as_matrix()
    joints[:, h.HEAD] = joints[:, h.NECK] + lean @ (joints[0, h.HEAD] - joints[0, h.NECK])
    joints = turned(joints, np.linspace(0, 3, 20))
    rest = calibrate(joints)
    assert rest.head == pytest.approx(0.6, abs=1e-9)
    assert rest.chest == pytest.approx(0.0, abs=1e-9)
    assert rest.spine == pytest.approx(0.0, abs=1e-9)
    assert rest.left_foot == pytest.approx(np.arctan2(0.06, 0.13), abs=1e-9)
