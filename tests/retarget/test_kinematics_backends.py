"""Both kinematics backends agree, and agree with finite differences; self-contacts and distances are MuJoCo's."""

from functools import cache

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku import plugins
from bunraku.errors import UnknownNameError
from bunraku.geometry import Pose, from_rotvec
from bunraku.humanoid import HumanoidSpec, humanoids
from bunraku.retarget.kinematics.base import Kinematics
from bunraku.retarget.kinematics.mujoco_backend import MujocoKinematics

units = st.floats(0.0, 1.0)
numbers = st.floats(-2.0, 2.0)


@cache
def by_mujoco(name: str) -> MujocoKinematics:
    return MujocoKinematics(plugins.load(plugins.ROBOTS, name))


@cache
def by_pinocchio(name: str) -> Kinematics:
    pytest.importorskip("pinocchio", reason="the second backend needs the package pin")
    from bunraku.retarget.kinematics.pinocchio_backend import PinocchioKinematics

    return PinocchioKinematics(plugins.load(plugins.ROBOTS, name))


def angles(kinematics: Kinematics, shares: list[float]) -> np.ndarray:
    n = len(kinematics.joints)
    return kinematics.lower + np.resize(shares, n) * (kinematics.upper - kinematics.lower)


@pytest.mark.parametrize("name", humanoids())
@settings(max_examples=30, deadline=None)
@given(
    shares=st.lists(units, min_size=28, max_size=28),
    pos=st.lists(numbers, min_size=3, max_size=3),
    turn=st.lists(numbers, min_size=3, max_size=3),
    moved=st.booleans(),
)
def test_backends_agree_on_poses_jacobians_and_limits(
    name: str, shares: list[float], pos: list[float], turn: list[float], moved: bool
) -> None:
    ours, other = by_mujoco(name), by_pinocchio(name)
    assert ours.joints == other.joints
    np.testing.assert_allclose(ours.lower, other.lower, atol=1e-9)
    np.testing.assert_allclose(ours.upper, other.upper, atol=1e-9)
    robot: HumanoidSpec = plugins.load(plugins.ROBOTS, name)
    dof = angles(ours, shares)
    standing = Pose(np.array(ours.model.body(robot.root_body).pos), np.array([1.0, 0.0, 0.0, 0.0]))
    root = Pose(np.array(pos), from_rotvec(np.array(turn))) if moved else standing
    ours.update(dof, root)
    other.update(dof, root if moved else None)
    for frame in robot.frames.values():
        for mine, theirs in zip(ours.pose(frame), other.pose(frame), strict=True):
            np.testing.assert_allclose(mine, theirs, atol=1e-9, err_msg=frame)
        np.testing.assert_allclose(ours.jacobian(frame), other.jacobian(frame), atol=1e-9, err_msg=frame)


@pytest.mark.parametrize("name", humanoids())
def test_the_jacobian_is_the_derivative_of_the_pose(name: str) -> None:
    kinematics = by_mujoco(name)
    rng = np.random.default_rng(0)
    dof = angles(kinematics, list(rng.uniform(size=28)))
    root = Pose(np.array([0.3, -0.2, 0.5]), from_rotvec(np.array([0.2, 0.4, -0.9])))
    kinematics.update(dof, root)
    jacobian = kinematics.jacobian("head")
    step = 1e-6
    for column in range(len(dof)):
        ends = []
        for sign in (1.0, -1.0):
            moved = dof.copy()
            moved[column] += sign * step
            kinematics.update(moved, root)
            ends.append(kinematics.pose("head"))
        (ahead, turned_ahead), (behind, turned_behind) = ends
        np.testing.assert_allclose((ahead - behind) / (2 * step), jacobian[:3, column], atol=1e-7)
        turn = turned_ahead @ turned_behind.T / (2 * step)
        spin = 0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]])
        np.testing.assert_allclose(spin, jacobian[3:, column], atol=1e-7)


@pytest.mark.parametrize("name", humanoids())
def test_unknown_frames_are_named(name: str) -> None:
    for kinematics in (by_mujoco(name), by_pinocchio(name)):
        with pytest.raises(UnknownNameError, match="did you mean 'head'"):
            kinematics.pose("haed")


def test_standing_touches_nothing_and_crossed_hands_are_in_each_other() -> None:
    kinematics = by_mujoco("h1")
    robot: HumanoidSpec = plugins.load(plugins.ROBOTS, "h1")
    standing = np.array(robot.home)
    crossed = standing.copy()
    for joint, value in (("left_shoulder_roll", -0.5), ("right_shoulder_roll", 0.5)):
        crossed[robot.joints.index(joint)] = value
    for side in ("left", "right"):
        crossed[robot.joints.index(f"{side}_shoulder_pitch")] = -1.5
        crossed[robot.joints.index(f"{side}_elbow")] = 0.0
    depths = kinematics.self_depths(np.stack([standing, crossed]))
    assert depths[0] == 0.0
    assert depths[1] > 0.005


def test_distances_are_those_of_the_contacts_and_their_gradients_those_of_differences() -> None:
    kinematics = by_mujoco("h1")
    pairs = kinematics.self_pairs()
    names = {frozenset(kinematics.model.geom(int(g)).name for g in pair) for pair in pairs}
    assert frozenset({"left_hand", "right_hand"}) in names
    assert frozenset({"left_thigh", "waist"}) not in names  # excluded in the model
    assert frozenset({"left_calf", "left_thigh"}) not in names  # neighbours
    rng = np.random.default_rng(5)
    checked = 0
    for _ in range(30):
        dof = angles(kinematics, list(rng.uniform(size=28)))
        kinematics.update(dof)
        distance, gradient = kinematics.self_distances(pairs, reach=0.05)
        assert max(0.0, -distance.min()) == pytest.approx(kinematics.self_depth(), abs=1e-6)
        direction = rng.normal(size=28)
        ahead, behind = (dof + sign * 1e-6 * direction for sign in (1.0, -1.0))
        kinematics.update(ahead)
        far, _ = kinematics.self_distances(pairs, reach=0.05)
        kinematics.update(behind)
        near, _ = kinematics.self_distances(pairs, reach=0.05)
        # boxes have edges, where the gradient jumps: round pairs only
        round_pair = (kinematics.model.geom_type[pairs] != int(mujoco.mjtGeom.mjGEOM_BOX)).all(axis=1)
        inside = round_pair & (distance < 0.049) & (np.abs(distance) > 1e-3)
        slope = (far - near)[inside] / 2e-6
        agrees = np.isclose(slope, gradient[inside] @ direction, atol=1e-4)
        checked += int(agrees.sum())
        assert agrees.mean() > 0.9  # two capsules that cross have a kink where the nearest points change
    assert checked > 50
