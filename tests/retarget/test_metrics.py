"""Each metric on a case worked out by hand."""

import json

import numpy as np
import pytest

from bunraku.geometry import from_rotvec
from bunraku.retarget import metrics as m


def standing_soles(frames: int, feet: int = 2) -> np.ndarray:
    """Soles of 80 x 40 mm on the floor, feet 64 mm apart."""
    sole = np.array([[0.05, 0.02, 0], [0.05, -0.02, 0], [-0.03, -0.02, 0], [-0.03, 0.02, 0]])
    return np.stack([np.tile(sole + [0, 0.064 * f, 0], (frames, 1, 1)) for f in range(feet)], axis=1)


def test_key_point_errors_are_millimetres_per_part() -> None:
    target = np.zeros((2, 2, 3))
    robot = target.copy()
    robot[0, 0] = [0.003, 0.004, 0.0]  # 5 mm in one of two frames
    robot[:, 1] = [0.0, 0.0, 0.002]
    errors = m.key_point_errors(robot, target, ["left_wrist", "head"])
    assert errors["left_wrist"] == m.Spread(pytest.approx(2.5), pytest.approx(5.0))
    assert errors["head"] == m.Spread(pytest.approx(2.0), pytest.approx(2.0))
    both = m.pooled(errors, m.END_EFFECTORS)
    assert (both.mean, both.max) == (pytest.approx(2.25), pytest.approx(5.0))


def test_key_points_and_names_must_match() -> None:
    with pytest.raises(ValueError, match="do not match"):
        m.key_point_errors(np.zeros((2, 2, 3)), np.zeros((2, 2, 3)), ["head"])


def test_orientation_error_is_the_angle_between() -> None:
    identity = np.tile([1.0, 0.0, 0.0, 0.0], (2, 1))
    turned = from_rotvec(np.array([[0.0, 0.0, 0.0], [0.0, 0.4, 0.0]]))
    error = m.orientation_error(-turned, identity)  # -q is the same rotation
    assert (error.mean, error.max) == (pytest.approx(0.2), pytest.approx(0.4))


def test_limit_violations_count_frames_beyond_the_tolerance() -> None:
    dof = np.array([[0.0, 0.0], [1.0 + 5e-5, 0.0], [1.0 + 2e-4, -1.5], [0.0, -1.1]])
    assert m.limit_violations(dof, [-1, -1], [1, 1]) == 2


def test_joint_jumps_count_steps_over_half_a_radian_at_20_fps() -> None:
    dof = np.array([[0.0, 0.0], [0.6, 0.0], [0.6, 0.4], [0.0, 1.0]])
    assert m.joint_jumps(dof, fps=20.0) == 3


@pytest.mark.parametrize("fps", [20.0, 40.0, 80.0, 100.0])
def test_joint_jumps_of_the_same_motion_are_the_same_at_any_rate(fps: float) -> None:
    time = np.arange(0.0, 1.0 + 1e-9, 1 / fps)
    ramp = np.interp(time, [0.0, 0.5, 0.55, 1.0], [0.0, 0.0, 0.8, 0.8])[:, None]
    assert m.joint_jumps(ramp, fps) == 1
    assert m.joint_jumps(0.5 * ramp, fps) == 0


def test_joint_speed_and_jerk() -> None:
    time = np.arange(6)[:, None] / 10.0
    assert m.max_joint_speed(2.0 * time, fps=10.0) == pytest.approx(2.0)
    assert m.jerk_rms(time**3, fps=10.0) == pytest.approx(6.0)
    assert m.jerk_rms(np.hstack([time**3, 0 * time]), fps=10.0) == pytest.approx(6.0 / np.sqrt(2))
    assert m.max_joint_speed(time[:1], fps=10.0) == 0.0
    assert m.jerk_rms(time[:3], fps=10.0) == 0.0


def test_a_toe_stands_where_it_is_low_and_slow_on_both_sides() -> None:
    x = np.array([0.0, 0.0, 0.0, 0.1, 0.2, 0.2, 0.2])
    z = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2])
    toes = np.stack([x, 0 * x, z], axis=-1)[:, None]
    assert m.ground_contact(toes, fps=20.0)[:, 0].tolist() == [True, True, False, False, False, True, False]


def test_contact_is_relative_to_the_ground_of_the_clip() -> None:
    toes = np.zeros((10, 2, 3))
    toes[:, 1, 2] = 0.3
    assert m.ground_contact(toes + [0, 0, 1.7], fps=20.0).tolist() == [[True, False]] * 10


def test_sliding_is_the_speed_of_what_touches_while_in_contact() -> None:
    soles = standing_soles(3)
    soles[1:, 0, :, 0] += 0.001  # the left foot moves 1 mm once
    contact = np.ones((3, 2), dtype=bool)
    assert m.slide_speed(soles, contact, fps=20.0) == pytest.approx(0.02 / 4)  # 1 of 4 steps at 2 cm/s
    assert m.sliding_share(soles, contact, fps=20.0, threshold=0.01) == pytest.approx(0.25)
    contact[0, 0] = False
    assert m.slide_speed(soles, contact, fps=20.0) == 0.0
    assert m.slide_speed(soles, np.zeros((3, 2), dtype=bool), fps=20.0) == 0.0


def test_a_lifting_heel_over_a_standing_toe_does_not_slide() -> None:
    soles = standing_soles(2, feet=1)
    soles[:, 0, 2:, 2] = 0.02  # the rear corners are up
    soles[1, 0, 2:, 0] += 0.01
    assert m.slide_speed(soles, np.ones((2, 1), dtype=bool), fps=20.0) == pytest.approx(0.0)
    assert m.touching_corners(soles)[0, 0].tolist() == [True, True, False, False]


def test_penetration_is_the_depth_of_the_lowest_sole_over_all_frames() -> None:
    soles = standing_soles(2)
    soles[0, 1, 0, 2] = -0.004
    soles[1, ..., 2] += 0.1
    depth = m.penetration(soles)
    assert (depth.mean, depth.max) == (pytest.approx(2.0), pytest.approx(4.0))


def test_float_is_the_height_of_feet_in_contact() -> None:
    soles = standing_soles(2)
    soles[:, 0, :, 2] += 0.006
    soles[:, 1, :, 2] += 0.5
    contact = np.array([[True, False], [True, False]])
    height = m.floating(soles, contact)
    assert (height.mean, height.max) == (pytest.approx(6.0), pytest.approx(6.0))
    assert m.floating(soles, np.zeros((2, 2), dtype=bool)).mean == 0.0


def test_self_collisions_deeper_than_five_millimetres_count() -> None:
    assert m.self_collision_share([0.0, 0.004, 0.006, 0.02]) == 0.5
    assert m.self_collision_share([]) == 0.0


def test_the_report_is_one_json_object_with_the_promised_names() -> None:
    report = m.MotionReport(
        frames_in=20,
        frames_out=90,
        fps=90.0,
        ms_per_frame=0.1,
        ee_mean_mm=float("nan"),
        ee_max_mm=2.0,
        limit_violations=np.int64(0),  # type: ignore[arg-type]
        joint_jumps=1,
        max_joint_speed=3.0,
        joint_jerk=4.0,
        key_points_mm={"head": m.Spread(1.0, 2.0)},
    )
    read = json.loads(json.dumps(report.to_json(), allow_nan=False))
    promised = (
        "frames_in frames_out fps ms_per_frame ee_mean_mm ee_max_mm limit_violations joint_jumps max_joint_speed"
        " foot_slide_cm_s penetration_mm self_collision_share"
    )
    assert set(promised.split()) <= set(read)
    assert read["ee_mean_mm"] is None
    assert read["key_points_mm"] == {"head": {"mean": 1.0, "max": 2.0}}
