"""Free root: feet stand, on the floor, and the root keeps the smooth way of the person."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from bunraku.geometry import from_rotvec, to_matrix
from bunraku.retarget import metrics
from bunraku.retarget.footing import clean_stances, compose_sole, decompose_sole, foot_targets
from bunraku.retarget.legs import Leg
from bunraku.retarget.pipeline import Options, Retargeter
from bunraku.retarget.root import Grounded, ground_offset, ground_root, resample_contact, world_soles
from bunraku.retarget.solver.tree import Tree
from bunraku.robots.h1 import ROBOT

MOTION = Path(__file__).parents[3] / "shared" / "motion" / "joints"
CLIPS = sorted(path.stem for path in MOTION.glob("*.npz"))
TOES = [10, 11]
SOLE = np.array(ROBOT.feet[0].sole)


@cache
def legs() -> tuple[Leg, ...]:
    tree = Tree.from_model(ROBOT.load().compile(), ROBOT.root_body)
    return tuple(Leg(tree, foot) for foot in ROBOT.feet)


def test_a_leg_puts_its_sole_where_it_should_be() -> None:
    rng = np.random.default_rng(1)
    for leg in legs():
        start = np.tile(ROBOT.home, (200, 1))
        wanted = start.copy()
        wanted[:, leg.links] += rng.uniform(-0.2, 0.2, (200, len(leg.links)))
        wanted[:, leg.links] = np.clip(wanted[:, leg.links], leg.lower, leg.upper)
        target = leg.corners(wanted)
        found = leg.solve(start, target)
        assert np.linalg.norm(leg.corners(found) - target, axis=-1).max() < 1e-4
        others = [i for i in range(ROBOT.dof) if i not in leg.links]
        np.testing.assert_array_equal(found[:, others], start[:, others])
        assert np.all(found[:, leg.links] >= leg.lower)
        assert np.all(found[:, leg.links] <= leg.upper)


def test_a_leg_that_cannot_reach_stays_within_its_limits_and_finite() -> None:
    leg = legs()[0]
    start = np.tile(ROBOT.home, (50, 1))
    far = leg.corners(start) + np.random.default_rng(2).uniform(-1.0, 1.0, (50, 1, 3))
    found = leg.solve(start, far)[:, leg.links]
    assert np.isfinite(found).all()
    assert np.all((found >= leg.lower) & (found <= leg.upper))


def test_a_sole_taken_apart_and_put_together_is_the_same() -> None:
    rng = np.random.default_rng(0)
    turn = to_matrix(from_rotvec(rng.uniform(-0.6, 0.6, (40, 3))))
    sole = np.einsum("tij,cj->tci", turn, SOLE) + rng.normal(size=(40, 1, 3))
    toe, *angles = decompose_sole(sole)
    np.testing.assert_allclose(compose_sole(sole, toe, np.stack(angles, axis=1)), sole, atol=1e-12)


def test_heel_up_is_positive_pitch() -> None:
    turned = np.einsum("ij,cj->ci", to_matrix(from_rotvec(np.array([0.0, 0.3, 0.0]))), SOLE)
    _, yaw, pitch, roll = decompose_sole(turned[None])
    assert (yaw[0], pitch[0], roll[0]) == (pytest.approx(0.0), pytest.approx(0.3), pytest.approx(0.0))


def test_short_gaps_and_short_contacts_are_no_steps() -> None:
    contact = np.zeros(100, dtype=bool)
    contact[10:40] = True
    contact[20:22] = False
    contact[70:72] = True
    stance = clean_stances(contact, fps=20.0 * 2)
    assert stance[10:40].all()
    assert not stance[70:72].any()


def test_contact_at_a_higher_rate_needs_both_neighbours() -> None:
    contact = np.array([[True], [True], [False]])
    assert resample_contact(contact, 20.0, 40.0, 5)[:, 0].tolist() == [True, True, True, False, False]


def test_a_drifting_standing_foot_is_held_level_on_the_floor_and_let_go_smoothly() -> None:
    frames, fps = 180, 90.0
    t = np.arange(frames) / fps
    sole = np.tile(SOLE - [0.0, 0.0, SOLE[0, 2]], (frames, 1, 1))
    sole[..., 0] += 0.02 * t[:, None]  # slides 2 cm/s
    sole[..., 2] += 0.004  # floats 4 mm
    stance = np.zeros(frames, dtype=bool)
    stance[:60] = stance[120:] = True
    sole[60:120, :, 2] += 0.03 * np.sin(np.pi * (t[60:120, None] - t[60]) * 1.5) ** 2
    sole[60:120, :, 0] += 0.05 * (t[60:120, None] - t[60])
    sole[120:, :, 0] += 0.05 * (t[120] - t[60])
    target = foot_targets(sole, stance, fps, creep=0.05)
    np.testing.assert_allclose(target[:60], np.tile(target[0], (60, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(target[120:], np.tile(target[120], (60, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(target[stance][..., 2], 0.0, atol=1e-12)
    assert target[..., 2].min() >= -1e-12
    steps = np.linalg.norm(np.diff(target, axis=0), axis=-1)
    assert steps.max() < 0.004, "no jump at the edges of the stances"


def test_a_foot_that_walks_off_while_it_should_stand_is_led_along() -> None:
    frames = 180
    sole = np.tile(SOLE - [0.0, 0.0, SOLE[0, 2]], (frames, 1, 1))
    sole[..., 0] += np.linspace(0.0, 0.5, frames)[:, None]
    target = foot_targets(sole, np.ones(frames, dtype=bool), 90.0, creep=0.02)
    away = np.linalg.norm((target - sole)[:, :, :2], axis=-1)
    assert away.max() <= 0.02 + 1e-9


def test_the_ground_is_where_standing_feet_are_or_else_the_lowest_point() -> None:
    soles = np.zeros((10, 2, 4, 3))
    soles[..., 2] = 0.03
    soles[5:, 1, :, 2] = -0.2
    stance = np.zeros((10, 2), dtype=bool)
    assert ground_offset(soles, stance) == pytest.approx(0.2)
    stance[:, 0] = True
    assert ground_offset(soles, stance) == pytest.approx(-0.03)


def test_a_robot_that_already_stands_still_is_left_alone() -> None:
    frames = 60
    dof = np.tile(ROBOT.home, (frames, 1))
    pos = np.tile([0.0, 0.0, ROBOT.home_height], (frames, 1))
    quat = np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1))
    done = ground_root(ROBOT, dof, pos, quat, np.ones((frames, 2), dtype=bool), 90.0)
    np.testing.assert_allclose(done.dof, dof, atol=1e-4)
    np.testing.assert_allclose(done.root_pos, pos, atol=1e-4)


def test_a_squat_that_sinks_bends_the_knees_instead() -> None:
    """The root goes down 4 cm and back, the joints know nothing of it."""
    frames = 180
    dof = np.tile(ROBOT.home, (frames, 1))
    pos = np.tile([0.0, 0.0, ROBOT.home_height], (frames, 1))
    pos[:, 2] -= 0.04 * np.sin(np.linspace(0.0, np.pi, frames)) ** 2
    quat = np.tile([1.0, 0.0, 0.0, 0.0], (frames, 1))
    before = metrics.penetration(world_soles(legs(), dof, pos, quat))
    # more than half of the time it is lower than it stands, so the ground is told by the standing frames only
    contact = np.zeros((frames, 2), dtype=bool)
    contact[:30] = contact[-30:] = True
    done = ground_root(ROBOT, dof, pos, quat, contact, 90.0)
    assert before.max > 35.0
    assert metrics.penetration(done.soles).max < 0.5
    knee = ROBOT.joints.index("left_knee")
    assert done.dof[90, knee] > dof[90, knee] + 0.3


@cache
def grounded(clip: str) -> tuple[Grounded, np.ndarray, np.ndarray]:
    with np.load(MOTION / f"{clip}.npz") as file:
        y_up, fps = file["joints"].astype(float), float(file["fps"])
    joints = np.stack([y_up[..., 2], y_up[..., 0], y_up[..., 1]], axis=-1)
    result = Retargeter("h1", options=Options(root="free")).solve(joints, fps)
    contact = metrics.ground_contact(joints[:, TOES], fps)
    contact = resample_contact(contact, fps, result.fps, len(result.dof))
    done = ground_root(ROBOT, result.dof, result.root_pos, result.root_quat, contact, result.fps)
    return done, contact, result.root_pos


@pytest.mark.skipif(not CLIPS, reason=f"real motion is not at {MOTION}")
@pytest.mark.parametrize("clip", CLIPS)
def test_real_motion_stands_on_the_floor_without_shaking_the_root(clip: str) -> None:
    done, contact, scaled = grounded(clip)
    fps = 90.0
    assert 100 * metrics.slide_speed(done.soles, contact, fps) <= 2.5
    assert metrics.penetration(done.soles).mean <= 1.0
    assert metrics.floating(done.soles, contact).mean <= 5.0
    assert metrics.jerk_rms(done.root_pos, fps) <= 1.3 * metrics.jerk_rms(scaled, fps)
    limits = ROBOT.load().compile().jnt_range
    assert metrics.limit_violations(done.dof, limits[:, 0], limits[:, 1]) == 0
