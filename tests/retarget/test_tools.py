"""Motion tools: interpolation against scipy and within limits, joins without collisions, mirror, cut, loops."""

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bunraku.errors import BunrakuError
from bunraku.geometry import angle_between, from_rotvec, multiply
from bunraku.motion import SMPL_JOINTS, RobotMotion
from bunraku.motion_bodies import with_bodies
from bunraku.retarget.sources.generator import generate
from bunraku.retarget.tools.edit import (
    concatenate,
    cut,
    join_robot,
    mirror_human,
    mirror_robot,
    mirror_signs,
    place_root,
    resample_robot,
)
from bunraku.retarget.tools.interpolator import MotionInterpolator
from bunraku.retarget.tools.loop import close_loop, find_loop, repeat
from bunraku.retarget.tools.self_collision import SelfCollision
from bunraku.retarget.tools.spline import resample
from bunraku.robots.h1 import ROBOT

HOME = np.array(ROBOT.home)


@pytest.fixture(scope="module")
def model():
    return ROBOT.load(root="fixed").compile()


@pytest.fixture(scope="module")
def tool(model):
    lower, upper = model.jnt_range.T
    collides = SelfCollision(model, ROBOT.joints)
    return MotionInterpolator(90.0, lower=lower, upper=upper, home=HOME, collides=collides)


def robot_motion(dof, fps=90.0, root=None):
    qpos = dof if root is None else np.concatenate([root, dof], axis=1)
    return RobotMotion(qpos, ROBOT.joints, fps, "h1", "test", "Apache-2.0")


def walking(frames=270, fps=90.0, period=1.0):
    """Return a motion of period `period` [s] whose root walks, turns and bobs."""
    t = np.arange(frames)[:, None] / fps
    phase = np.random.default_rng(0).uniform(0, 6, ROBOT.dof)
    w = 2.0 * np.pi / period
    dof = HOME + 0.15 * np.sin(w * t + phase)
    quat = multiply(from_rotvec(t * [0.0, 0.0, 0.3]), from_rotvec(0.05 * np.sin(w * t) * [1.0, 0.0, 0.0]))
    pos = np.concatenate([0.3 * t, 0.02 * t * t, 0.33 + 0.01 * np.sin(2 * w * t)], axis=1)
    return robot_motion(dof, fps, np.concatenate([pos, quat], axis=1))


def test_the_spline_is_that_of_scipy():
    interpolate = pytest.importorskip("scipy.interpolate")
    knots = np.random.default_rng(0).normal(size=(30, 5))
    ours = resample(knots, 20.0, 90.0)
    spline = interpolate.CubicSpline(np.arange(30) / 20.0, knots, bc_type="natural")
    assert np.abs(ours - spline(np.arange(len(ours)) / 90.0)).max() < 1e-12


@settings(max_examples=60, deadline=None)
@given(arrays(np.float64, (12, 2), elements=st.floats(-1.0, 1.0)))
def test_the_spline_keeps_limits_between_frames_and_has_no_kink(knots):
    fine = resample(knots, 20.0, 4000.0, "cubic", [-1.0, -1.0], [1.0, 1.0])
    assert fine.min() >= -1.0
    assert fine.max() <= 1.0
    assert np.abs(fine[::200] - knots).max() < 1e-12
    speed = np.diff(fine, axis=0) * 4000.0
    # a kink would be a leap of speed that does not shrink with the step
    assert np.abs(np.diff(speed, axis=0)).max() < 20.0 * 20.0 * 24.0 / 4000.0 * 2.0


def test_a_plain_spline_would_break_the_limits():
    knots = np.array([[0.0], [1.0], [1.0], [0.0], [0.0]])
    assert resample(knots, 20.0, 2000.0).max() > 1.05
    assert resample(knots, 20.0, 2000.0, "cubic", [0.0], [1.0]).max() == 1.0
    with pytest.raises(BunrakuError, match="clip them first"):
        resample(knots, 20.0, 90.0, "cubic", [0.0], [0.5])


def test_process_is_interpolation_then_smoothing(tool):
    dof = HOME + 0.1 * np.random.default_rng(0).normal(size=(20, ROBOT.dof))
    out = tool.process(dof, 20.0)
    assert np.array_equal(out, tool.smooth(tool.interpolate(dof, 20.0)))
    assert out.shape == (int(19 * 4.5) + 1, ROBOT.dof)


def steps(positions):
    """Return the way between frames."""
    return np.linalg.norm(np.diff(positions, axis=0), axis=1)


def brute_force(model, dof):
    """Return by a plain loop over contacts whether each frame collides."""
    data, hits = mujoco.MjData(model), []
    for q in dof:
        data.qpos[:] = q
        mujoco.mj_forward(model, data)
        hits.append(any(c.dist < 0.0 for c in data.contact))
    return np.array(hits)


def test_joins_are_clear_smooth_and_within_limits(model, tool):
    rng = np.random.default_rng(1)
    lower, upper = model.jnt_range.T
    detours = 0
    for _ in range(60):
        ends = [np.clip(HOME + 0.5 * (rng.uniform(lower, upper) - HOME), lower, upper) for _ in "ab"]
        if brute_force(model, ends).any():
            continue
        speeds = rng.normal(0.0, 1.0, (2, ROBOT.dof)) / 90.0
        first = np.clip([ends[0] - speeds[0], ends[0]], lower, upper)
        second = np.clip([ends[1], ends[1] + speeds[1]], lower, upper)
        joined = tool.join(first, second)
        detours += joined.tries > 1
        between = joined.dof[joined.start : joined.stop]
        assert not brute_force(model, between).any()
        assert (between >= lower).all()
        assert (between <= upper).all()
        assert np.array_equal(joined.dof[:2], first)
        assert np.array_equal(joined.dof[joined.stop :], second)
        # speed goes on: the step into the transition is like the one before
        free = (first[1] > lower + 0.1) & (first[1] < upper - 0.1)
        change = (between[0] - first[1]) - (first[1] - first[0])
        assert np.abs(change[free]).max() < 0.02
    assert detours > 0


def test_a_join_of_colliding_clips_is_refused(model, tool):
    inside = HOME.copy()
    inside[ROBOT.joints.index("left_shoulder_roll")] = -0.9
    lower, upper = model.jnt_range.T
    inside = np.clip(inside, lower, upper)
    rng = np.random.default_rng(0)
    while not brute_force(model, [inside])[0]:
        inside = rng.uniform(lower, upper)
    with pytest.raises(BunrakuError, match="first clip collides"):
        tool.join(inside[None], HOME[None])


def test_joined_roots_go_on_where_they_were(tool):
    first, second = walking(), walking()
    joined = join_robot(first, second, tool)
    between = len(joined) - len(first) - len(second)
    step = np.linalg.norm(np.diff(joined.root_pos[:, :2], axis=0), axis=1) * 90.0
    assert step.max() < 1.5 * np.linalg.norm(np.diff(second.root_pos[:, :2], axis=0), axis=1).max() * 90.0
    assert angle_between(joined.root_quat[1:], joined.root_quat[:-1]).max() * 90.0 < 2.0
    after = joined.root_pos[len(first) + between :]
    assert np.allclose(
        np.linalg.norm(np.diff(after, axis=0), axis=1),
        np.linalg.norm(np.diff(second.root_pos, axis=0), axis=1),
    )
    assert len(concatenate([first, second, first], tool)) > 3 * len(first)


def test_clips_of_other_joint_order_are_joined_by_name(tool):
    motion = robot_motion(np.tile(HOME, (5, 1)) + 0.01 * np.arange(ROBOT.dof))
    order = list(reversed(range(ROBOT.dof)))
    other = RobotMotion(motion.dof[:, order], tuple(ROBOT.joints[i] for i in order), 90.0, "h1")
    assert np.abs(join_robot(motion, other, tool).dof - motion.dof[0]).max() < 1e-12


def test_a_mirrored_robot_is_the_mirror_image_of_the_robot():
    model = ROBOT.load(root="free").compile()
    motion = with_bodies(walking(20), model)
    mirrored = with_bodies(mirror_robot(motion, model), model)
    for k, name in enumerate(motion.body_names):
        other = name.replace("left", "\0").replace("right", "left").replace("\0", "right")
        there = mirrored.body_pos[:, mirrored.body_names.index(other)]
        assert np.abs(there - motion.body_pos[:, k] * [1.0, -1.0, 1.0]).max() < 1e-9
    columns, signs = mirror_signs(model, ROBOT.joints)
    assert np.array_equal(np.array(columns)[columns], np.arange(ROBOT.dof))
    assert np.array_equal(signs[columns], signs)


def test_a_mirrored_person_waves_with_the_other_hand():
    right, left = generate("wave", side="right"), generate("wave", side="left")
    assert np.abs(mirror_human(right).joints - left.joints).max() < 1e-9
    assert np.array_equal(mirror_human(mirror_human(right)).joints, right.joints)


def test_cut_keeps_what_belongs_to_the_frames():
    motion = cut(generate("walk", fps=30.0), 1.0, 2.0)
    assert len(motion) == 31
    assert motion.fps == 30.0
    robot = cut(walking(), 0.5, 1.0)
    assert np.array_equal(robot.qpos, walking().qpos[45:91])
    with pytest.raises(BunrakuError, match="cannot cut"):
        cut(robot, 0.2, 9.0)


def test_resampling_keeps_the_motion():
    motion = walking()
    back = resample_robot(resample_robot(motion, 180.0), 90.0)
    assert np.abs(back.dof - motion.dof).max() < 1e-12
    assert angle_between(back.root_quat, motion.root_quat).max() < 1e-6


@pytest.mark.parametrize("period", [0.8, 1.0, 1.2])
def test_the_cycle_of_a_gait_is_found(period):
    loop = find_loop(walking(400, period=period))
    assert abs((loop.stop - loop.start) / 90.0 - period) < 0.03
    assert loop.error < 0.01


def test_standing_before_and_after_a_gait_is_not_taken_for_its_cycle():
    t = np.arange(720)[:, None] / 90.0
    phase = np.random.default_rng(0).uniform(0, 6, ROBOT.dof)
    walks = np.clip(np.minimum(t - 1.0, 7.0 - t), 0.0, 1.0)
    loop = find_loop(robot_motion(HOME + 0.15 * walks * np.sin(2.0 * np.pi * t + phase)))
    assert abs(loop.stop - loop.start - 90) <= 2
    assert loop.start > 90


def test_a_closed_loop_repeats_without_a_seam():
    motion = walking(400)
    noisy = robot_motion(motion.dof + np.linspace(0.0, 0.1, 400)[:, None], 90.0, motion.qpos[:, :7])
    cycle = close_loop(noisy, find_loop(noisy))
    assert np.abs(cycle.dof[0] - cycle.dof[-1]).max() < 1e-12
    long = repeat(cycle, 4)
    assert len(long) == 4 * (len(cycle) - 1) + 1
    assert np.abs(np.diff(long.dof, axis=0)).max() < 1.5 * np.abs(np.diff(cycle.dof, axis=0)).max()
    step = np.linalg.norm(np.diff(long.root_pos, axis=0), axis=1)
    assert step.max() < 1.5 * np.median(step)
    assert np.linalg.norm(long.root_pos[-1, :2] - long.root_pos[0, :2]) > 0.5


def test_standing_still_is_no_cycle():
    with pytest.raises(BunrakuError, match="stands still"):
        find_loop(robot_motion(np.tile(HOME, (200, 1))))
    with pytest.raises(BunrakuError, match="no cycle of"):
        find_loop(robot_motion(np.tile(HOME, (20, 1))))


@given(st.floats(-3.0, 3.0), st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
@settings(max_examples=30, deadline=None)
def test_placing_a_root_moves_it_rigidly_on_the_floor(yaw, x, y):
    root = walking(20).qpos[:, :7]
    at = np.concatenate([[x, y, 9.0], from_rotvec([0.0, 0.0, yaw])])
    placed = place_root(root, at)
    assert np.abs(placed[0, :2] - [x, y]).max() < 1e-9
    assert np.array_equal(placed[:, 2], root[:, 2])
    assert np.allclose(
        np.linalg.norm(np.diff(placed[:, :3], axis=0), axis=1),
        np.linalg.norm(np.diff(root[:, :3], axis=0), axis=1),
    )


def test_names_of_the_key_points_are_symmetric():
    assert {n.replace("left", "right") for n in SMPL_JOINTS if "left" in n} <= set(SMPL_JOINTS)
