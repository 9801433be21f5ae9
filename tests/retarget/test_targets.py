"""Targets: bone directions at robot lengths from the robot's own anchors, and orientations without a rest bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from bunraku.errors import BunrakuError
from bunraku.retarget.solver.problem import FrameTask, Problem
from bunraku.retarget.solver.source_table import WEIGHTS, source_tasks
from bunraku.retarget.solver.tree import Tree
from bunraku.retarget.stages import calibration as h
from bunraku.retarget.stages.calibration import Calibration, calibrate
from bunraku.retarget.stages.table import target_table
from bunraku.retarget.stages.targets import clip_targets
from tests.retarget import mini_humanoid
from tests.retarget.test_stages import person

TREE = Tree.from_model(mini_humanoid.model(), "waist")
PROBLEM = Problem.build(TREE, mini_humanoid.tasks())
ROBOT_BONES = {
    "left_knee": (mini_humanoid.THIGH,),
    "left_ankle": (mini_humanoid.THIGH, mini_humanoid.CALF),
    "right_wrist": (mini_humanoid.UPPER_ARM, mini_humanoid.FOREARM),
}
HUMAN_BONES = {"left_knee": (1, 4), "left_ankle": (1, 4, 7), "right_wrist": (17, 19, 21)}


def targets(joints, headings=None, rest=None, heads=None, whole_pelvis=False):
    """Return offsets, rotations, root rotations and lacking directions of key points `(T, 22, 3)`."""
    table = target_table(PROBLEM, whole_pelvis=whole_pelvis)
    frames, tasks = len(joints), len(PROBLEM.tasks)
    out = np.empty((frames, tasks, 3)), np.empty((frames, tasks, 3, 3)), np.empty((frames, 3, 3))
    lacking = np.zeros(frames, dtype=np.int64)
    rest = np.array(Calibration(0.0, 0.0, 0.0, 0.0, 0.0) if rest is None else rest)
    headings = np.zeros(frames) if headings is None else headings
    given = np.eye(3)[None] if heads is None else heads
    clip_targets(table, rest, joints, headings, given, heads is not None, *out, lacking)
    return *out, lacking


def people(frames: int, seed: int = 0) -> np.ndarray:
    """Return random but non-degenerate key points `(frames, 22, 3)`."""
    return np.random.default_rng(seed).normal(size=(frames, 22, 3))


@pytest.mark.parametrize("name", HUMAN_BONES)
def test_limbs_have_the_persons_directions_and_the_robots_lengths(name):
    joints = people(20)
    offsets, _, _, lacking = targets(joints)
    expected = np.zeros((20, 3))
    for start, end, length in zip(HUMAN_BONES[name], HUMAN_BONES[name][1:], ROBOT_BONES[name], strict=False):
        bone = joints[:, end] - joints[:, start]
        expected += length * bone / np.linalg.norm(bone, axis=-1, keepdims=True)
    np.testing.assert_allclose(offsets[:, PROBLEM.index(name)], expected, atol=1e-12)
    assert not lacking.any()


@pytest.mark.parametrize("size", [0.3, 1.0, 2.5])
def test_targets_do_not_depend_on_the_persons_size_or_place(size):
    joints = people(5)
    for here, there in zip(targets(joints), targets(size * joints + [3.0, -1.0, 2.0]), strict=True):
        np.testing.assert_allclose(here, there, atol=1e-12)


def test_targets_do_not_depend_on_the_heading():
    joints, yaw = people(6), np.linspace(-3.0, 3.0, 6)
    turn = Rotation.from_euler("z", yaw[:, None]).as_matrix()
    turned = np.einsum("tij,tkj->tki", turn, joints)
    for here, there in zip(targets(joints)[:2], targets(turned, yaw)[:2], strict=True):
        np.testing.assert_allclose(here, there, atol=1e-12)


def test_with_a_free_root_targets_do_not_depend_on_how_the_pelvis_is_turned():
    joints = people(6)
    turn = Rotation.random(6, random_state=1).as_matrix()
    turned = np.einsum("tij,tkj->tki", turn, joints)
    here, there = targets(joints, whole_pelvis=True), targets(turned, whole_pelvis=True)
    np.testing.assert_allclose(here[0], there[0], atol=1e-12)
    np.testing.assert_allclose(here[1], there[1], atol=1e-12)
    np.testing.assert_allclose(turn @ here[2], there[2], atol=1e-12)


def test_all_rotations_are_rotations():
    _, rotations, roots, _ = targets(people(30), rest=(0.3, 0.5, -0.2, 0.4, 0.4), whole_pelvis=True)
    for matrices in (rotations.reshape(-1, 3, 3), roots):
        squares = matrices @ matrices.transpose(0, 2, 1)
        np.testing.assert_allclose(squares, np.broadcast_to(np.eye(3), squares.shape), atol=1e-9)
        np.testing.assert_allclose(np.linalg.det(matrices), 1.0, atol=1e-9)


def test_the_chest_looks_where_spine3_and_the_collars_say():
    joints = people(10)
    _, rotations, _, _ = targets(joints)
    collars = joints[:, h.LEFT_COLLAR], joints[:, h.RIGHT_COLLAR]
    up = 0.5 * (collars[0] + collars[1]) - joints[:, h.SPINE3]
    up /= np.linalg.norm(up, axis=-1, keepdims=True)
    forward = np.cross(collars[0] - collars[1], up)
    forward /= np.linalg.norm(forward, axis=-1, keepdims=True)
    expected = np.stack([forward, np.cross(up, forward), up], axis=-1)
    np.testing.assert_allclose(rotations[:, PROBLEM.index("chest")], expected, atol=1e-12)


def standing(lean_head: float) -> np.ndarray:
    """Return a standing person `(3, 22, 3)` whose skeleton has its head before the neck by `lean_head` [rad]."""
    joints = person(3)
    away = np.array([np.sin(lean_head), 0.0, np.cos(lean_head)])
    joints[:, h.HEAD] = joints[:, h.NECK] + 0.1 * away
    return joints


@pytest.mark.parametrize("lean", [-0.2, 0.0, 0.7])
def test_a_standing_person_makes_a_straight_robot_whatever_the_skeletons_rest(lean):
    joints = standing(lean)
    offsets, rotations, _, _ = targets(joints, rest=calibrate(joints))
    for name in ("chest", "head", "left_ankle", "right_ankle"):
        np.testing.assert_allclose(rotations[1, PROBLEM.index(name)], np.eye(3), atol=1e-9)
    np.testing.assert_allclose(offsets[1, PROBLEM.index("head")], (0, 0, mini_humanoid.HEAD), atol=1e-9)


def test_a_given_head_rotation_is_that_of_the_head_in_the_chest():
    joints = people(4)
    local = Rotation.random(4, random_state=2).as_matrix()
    offsets, rotations, _, _ = targets(joints, heads=local)
    head = rotations[:, PROBLEM.index("chest")] @ local
    np.testing.assert_allclose(rotations[:, PROBLEM.index("head")], head, atol=1e-12)
    np.testing.assert_allclose(
        offsets[:, PROBLEM.index("head")], mini_humanoid.HEAD * head[:, :, 2], atol=1e-12
    )


def test_a_bone_without_a_direction_keeps_that_of_the_frame_before():
    joints = people(3)
    joints[1, 4] = joints[1, 1]
    offsets, _, _, lacking = targets(joints)
    assert lacking.tolist() == [0, 1, 0]
    knee = PROBLEM.index("left_knee")
    np.testing.assert_array_equal(offsets[1, knee], offsets[0, knee])
    assert np.isfinite(offsets).all()


def test_cmu_skeletons_whose_collars_lie_at_spine3_still_have_a_chest():
    joints = standing(0.0)
    joints[:, [h.LEFT_COLLAR, h.RIGHT_COLLAR]] = joints[:, [h.SPINE3]]
    _, rotations, _, lacking = targets(joints)
    assert not lacking.any()
    np.testing.assert_allclose(rotations[0, PROBLEM.index("chest")], np.eye(3), atol=1e-9)


def test_a_limb_with_a_hand_but_no_elbow_is_refused():
    tasks = [task for task in mini_humanoid.tasks() if task.name != "left_elbow"]
    with pytest.raises(BunrakuError, match="left_elbow"):
        target_table(Problem.build(TREE, tasks))


def test_an_anchor_off_the_limb_is_refused():
    with pytest.raises(BunrakuError, match="right_thigh"):
        Problem.build(TREE, [FrameTask("left_wrist", "left_hand", 1.0, 0.0, "right_thigh")])


def test_the_source_table_has_its_weights():
    from bunraku.robots.h1 import ROBOT

    tasks = {task.name: task for task in source_tasks(ROBOT.frames)}
    assert {name: (t.position, t.orientation) for name, t in tasks.items()} == dict(WEIGHTS)
    assert (tasks["chest"].body, tasks["chest"].anchor) == ("chest", None)
    assert (tasks["left_wrist"].body, tasks["left_wrist"].anchor) == ("left_hand", "left_upper_arm")
    assert (tasks["right_ankle"].body, tasks["right_ankle"].anchor) == ("right_foot", "right_thigh")
    assert tasks["head"].anchor == "neck_linkage"
