"""Obstacles: limbs bend around boxes, bones keep their lengths, and what cannot be done is named."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.errors import BunrakuError, FileFormatError
from bunraku.geometry import from_rotvec, to_matrix
from bunraku.retarget.kinematics.mujoco_backend import MujocoKinematics
from bunraku.retarget.limb import Limb
from bunraku.retarget.obstacles import avoid_boxes, bend_limb, limb_clearance, read_boxes
from bunraku.retarget.solver.tree import Tree
from bunraku.robots.h1 import ROBOT

FPS = 90.0
FRAMES = 120
BOXES = {  # in the way of an arm that is raised forward and lowered again
    "block": [0.09, 0.07, 0.30, 0.02, 0.03, 0.02, 1, 0, 0, 0],
    "shelf": [0.08, 0.09, 0.33, 0.06, 0.06, 0.004, 1, 0, 0, 0],
    "post": [0.10, 0.075, 0.30, 0.008, 0.008, 0.2, 1, 0, 0, 0],
    "tilted board": [0.10, 0.07, 0.31, 0.03, 0.05, 0.003, 0.92388, 0, 0.38268, 0],
}


def raised_arm() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    dof = np.tile(ROBOT.home, (FRAMES, 1))
    dof[:, ROBOT.joints.index("left_shoulder_pitch")] = -1.5 * np.sin(np.linspace(0.0, np.pi, FRAMES)) ** 2
    pos = np.tile([0.0, 0.0, ROBOT.home_height], (FRAMES, 1))
    return dof, pos, np.tile([1.0, 0.0, 0.0, 0.0], (FRAMES, 1))


def distance_to_box(points: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Signed distance of points `(N, 3)`, an independent formula for boxes."""
    local = (points - box[:3]) @ to_matrix(box[6:])
    nearest = np.clip(local, -box[3:6], box[3:6])
    outside = np.linalg.norm(local - nearest, axis=-1)
    depth = (box[3:6] - np.abs(local)).min(axis=-1)
    return np.where(outside > 0.0, outside, -depth)


@pytest.mark.parametrize("name", BOXES)
def test_an_arm_goes_around_a_box_and_all_else_stays(name: str) -> None:
    dof, pos, quat = raised_arm()
    box = np.array(BOXES[name], dtype=float)
    done = avoid_boxes(ROBOT, dof, pos, quat, box[None], FPS)
    assert done.touched["left_arm"] > 20, "it was in the way"
    assert done.blocked == {}
    assert done.clearance > -1e-3
    arm = [i for i, joint in enumerate(ROBOT.joints) if joint.startswith(("left_shoulder", "left_elbow"))]
    others = [i for i in range(ROBOT.dof) if i not in arm]
    np.testing.assert_array_equal(done.dof[:, others], dof[:, others])
    # by another way: points along the forearm of MuJoCo's own kinematics
    kinematics = MujocoKinematics(ROBOT)
    for row in done.dof[::6]:
        kinematics.update(row)
        root, _ = kinematics.pose("waist")
        shift = pos[0] - root
        elbow, wrist = (kinematics.pose(frame)[0] + shift for frame in ("left_force_arm", "left_hand"))
        line = elbow + np.linspace(0.0, 1.0, 30)[:, None] * (wrist - elbow)
        assert distance_to_box(line, box).min() > 0.0125  # the hand is 12.5 mm thick
    # it begins to give way in time instead of jumping
    assert np.abs(np.diff(done.dof, axis=0)).max() * FPS < 20.0


def test_without_a_touch_nothing_changes() -> None:
    dof, pos, quat = raised_arm()
    done = avoid_boxes(ROBOT, dof, pos, quat, np.array([[1.0, 0, 0, 0.1, 0.1, 0.1, 1, 0, 0, 0]]), FPS)
    np.testing.assert_array_equal(done.dof, dof)
    assert (done.touched, done.blocked) == ({}, {})
    assert done.clearance > 0.5


def test_no_boxes_at_all() -> None:
    dof, pos, quat = raised_arm()
    done = avoid_boxes(ROBOT, dof, pos, quat, np.empty((0, 10)), FPS)
    np.testing.assert_array_equal(done.dof, dof)
    assert done.clearance == np.inf


def test_where_a_limb_cannot_get_out_the_frames_are_named() -> None:
    dof, pos, quat = raised_arm()
    around_everything = np.array([[0.0, 0.0, 0.2, 0.5, 0.5, 0.5, 1, 0, 0, 0]])
    done = avoid_boxes(ROBOT, dof, pos, quat, around_everything, FPS)
    assert set(done.blocked) == {"left_leg", "right_leg", "left_arm", "right_arm"}
    assert done.blocked["left_arm"] == ((0, FRAMES - 1),)
    assert np.isfinite(done.dof).all()
    limits = ROBOT.load().compile().jnt_range
    assert np.all((done.dof >= limits[:, 0] - 1e-9) & (done.dof <= limits[:, 1] + 1e-9))


@settings(max_examples=25, deadline=None)
@given(
    center=st.tuples(*[st.floats(-0.1, 0.1)] * 3),
    half=st.tuples(*[st.floats(0.003, 0.04)] * 3),
    turn=st.tuples(*[st.floats(-2.0, 2.0)] * 3),
)
def test_bones_keep_their_lengths_and_the_limb_its_start_whatever_the_box(
    center: tuple[float, ...], half: tuple[float, ...], turn: tuple[float, ...]
) -> None:
    t = np.linspace(0.0, 1.0, 40)[:, None]
    start = np.tile([0.0, 0.0, 0.12], (40, 1))
    middle = start + 0.076 * np.hstack([np.sin(t), 0 * t, -np.cos(t)])
    end = middle + 0.047 * np.hstack([np.sin(2 * t), 0 * t, -np.cos(2 * t)])
    points = np.stack([start, middle, end], axis=1)
    box = np.concatenate([center, half, from_rotvec(np.array(turn))])
    bent = bend_limb(points, box[None], radius=0.014, beyond=0.02, fps=FPS)
    assert np.isfinite(bent).all()
    np.testing.assert_array_equal(bent[:, 0], points[:, 0])
    lengths = np.linalg.norm(np.diff(bent, axis=1), axis=-1)
    np.testing.assert_allclose(lengths, [[0.076, 0.047]] * 40, atol=1e-9)


def test_clearance_is_that_of_a_ball_and_a_box() -> None:
    points = np.array([[[0.0, 0.0, 1.0], [0.0, 0.0, 0.5], [0.0, 0.0, 0.3]]])
    box = np.array([[0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 1, 0, 0, 0]])
    assert limb_clearance(points, box, radius=0.05, beyond=0.0)[0] == pytest.approx(0.15)
    assert limb_clearance(points, box, radius=0.05, beyond=0.1)[0] == pytest.approx(0.05)


def test_a_limb_reaches_its_targets() -> None:
    limb = Limb(
        Tree.from_model(ROBOT.load().compile(), "waist"), "left_upper_arm", "left_force_arm", "left_hand"
    )
    rng = np.random.default_rng(0)
    start = np.tile(ROBOT.home, (100, 1))
    moved = start.copy()
    arm = [ROBOT.joints.index(f"left_{joint}") for joint in ("shoulder_pitch", "shoulder_roll", "elbow")]
    moved[:, arm] += rng.uniform(-0.2, 0.2, (100, 3))
    moved[:, 0] += 0.3  # the chest is not the arm's to move
    start[:, 0] += 0.3
    found = limb.solve(start, limb.points(moved)[:, 1:])
    assert np.linalg.norm(limb.points(found) - limb.points(moved), axis=-1).max() < 1e-3
    np.testing.assert_array_equal(found[:, :3], start[:, :3])


def test_boxes_are_read_with_their_turn_normalised(tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    boxes = [
        {"pos": [0, 0, 1], "half": [0.1, 0.2, 0.3]},
        {"pos": [1, 0, 0], "half": [1, 1, 1], "quat": [2, 0, 0, 0]},
    ]
    path.write_text(json.dumps(boxes))
    read = read_boxes(path)
    np.testing.assert_allclose(read, [[0, 0, 1, 0.1, 0.2, 0.3, 1, 0, 0, 0], [1, 0, 0, 1, 1, 1, 1, 0, 0, 0]])
    path.write_text("[]")
    assert read_boxes(path).shape == (0, 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("{}", "list of boxes"),
        ('[{"pos": [0, 0, 0]}]', "box 0 has pos, half"),
        ('[{"pos": [0, 0, 0], "half": [1, 1, 1], "size": 3}]', "box 0 has pos, half"),
        ('[{"pos": [0, 0], "half": [1, 1, 1]}]', "pos is 3 numbers"),
        ('[{"pos": [0, 0, NaN], "half": [1, 1, 1]}]', "pos is 3 numbers"),
        ('[{"pos": [0, 0, 0], "half": [1, 0, 1]}]', "above 0"),
        ('[{"pos": [0, 0, 0], "half": [1, 1, 1], "quat": [0, 0, 0, 0]}]', "quat is not 0"),
    ],
)
def test_a_wrong_box_file_says_what_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_boxes(path)
    with pytest.raises(BunrakuError, match="no obstacle file"):
        read_boxes(tmp_path / "gone.json")
