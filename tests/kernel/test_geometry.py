"""Rotations and poses: group axioms, round trips, leading axes, the way from headset to robot."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

from bunraku import geometry as geo
from bunraku.geometry import Array, Pose

pytestmark = pytest.mark.filterwarnings("error")

X, Y, Z = np.eye(3)
ANGLES = st.floats(-np.pi, np.pi)
# through the rotation vector, so that turns by exactly 0 and pi and ones by 1e-9 come up often
ROTVECS = arrays(np.float64, 3, elements=st.sampled_from([0.0, 1e-9, -1e-7, 1.0, np.pi, -2.0]) | ANGLES)
QUATS = ROTVECS.map(geo.from_rotvec)
VECTORS = arrays(np.float64, 3, elements=st.floats(-10.0, 10.0))
POSES = st.builds(Pose, VECTORS, QUATS)


def turn(axis: Array, angle: float) -> Array:
    return geo.from_rotvec(angle * axis)


def assert_same_rotation(a: Array, b: Array, atol: float = 1e-9) -> None:
    """Compare as rotations: q and -q are the same."""
    assert_allclose(geo.to_matrix(a), geo.to_matrix(b), atol=atol)


def assert_same_pose(a: Pose, b: Pose) -> None:
    assert_allclose(a.pos, b.pos, atol=1e-9)
    assert_same_rotation(a.quat, b.quat)


@given(QUATS, QUATS, QUATS)
def test_quaternions_are_a_group(a: Array, b: Array, c: Array) -> None:
    one = geo.IDENTITY_QUAT
    assert_allclose(geo.multiply(a, geo.multiply(b, c)), geo.multiply(geo.multiply(a, b), c), atol=1e-12)
    assert_allclose(geo.multiply(a, one), a, atol=1e-12)
    assert_allclose(geo.multiply(one, a), a, atol=1e-12)
    assert_allclose(geo.multiply(a, geo.conjugate(a)), one, atol=1e-12)
    assert_allclose(np.linalg.norm(geo.multiply(a, b)), 1.0, atol=1e-12)


@given(POSES, POSES, POSES)
def test_poses_are_a_group(a: Pose, b: Pose, c: Pose) -> None:
    assert_same_pose(a @ (b @ c), (a @ b) @ c)
    assert_same_pose(a @ Pose.identity(), a)
    assert_same_pose(Pose.identity() @ a, a)
    assert_same_pose(a @ a.inverse(), Pose.identity())
    assert_same_pose(a.inverse() @ a, Pose.identity())


@given(QUATS, QUATS, VECTORS)
def test_quaternions_act_as_their_matrices_do(a: Array, b: Array, vec: Array) -> None:
    assert_allclose(geo.rotate(a, vec), geo.to_matrix(a) @ vec, atol=1e-12)
    assert_allclose(geo.to_matrix(geo.multiply(a, b)), geo.to_matrix(a) @ geo.to_matrix(b), atol=1e-12)
    assert_allclose(np.linalg.det(geo.to_matrix(a)), 1.0, atol=1e-12)


@given(POSES, POSES, VECTORS)
def test_applying_a_product_is_applying_its_factors_in_turn(a: Pose, b: Pose, point: Array) -> None:
    assert_allclose((a @ b).apply(point), a.apply(b.apply(point)), atol=1e-9)
    assert_allclose(a.inverse().apply(a.apply(point)), point, atol=1e-9)


@settings(max_examples=300)
@given(QUATS)
def test_a_rotation_survives_matrix_and_rotation_vector(quat: Array) -> None:
    from_matrix = geo.from_matrix(geo.to_matrix(quat))
    assert from_matrix[0] >= 0.0
    assert_same_rotation(from_matrix, quat)
    rotvec = geo.to_rotvec(quat)
    assert np.linalg.norm(rotvec) <= np.pi + 1e-12
    assert_same_rotation(geo.from_rotvec(rotvec), quat)


@given(ROTVECS)
def test_a_rotation_vector_below_half_a_turn_comes_back_as_it_was(rotvec: Array) -> None:
    length = np.linalg.norm(rotvec)
    rotvec = rotvec * min(1.0, 3.0 / max(length, 1e-300))
    assert_allclose(geo.to_rotvec(geo.from_rotvec(rotvec)), rotvec, rtol=1e-9, atol=1e-15)


@given(QUATS, ROTVECS)
def test_the_angle_between_is_that_of_the_turn_between(quat: Array, rotvec: Array) -> None:
    angle = float(np.linalg.norm(rotvec)) % (2.0 * np.pi)
    turned = geo.multiply(quat, geo.from_rotvec(rotvec))
    assert_allclose(geo.angle_between(quat, turned), min(angle, 2.0 * np.pi - angle), atol=1e-7)
    assert_allclose(geo.angle_between(quat, -turned), geo.angle_between(turned, quat), atol=1e-7)


def test_a_float32_matrix_of_a_controller_gives_a_unit_quaternion() -> None:
    matrix = geo.to_matrix(turn(Z, 0.7)).astype(np.float32)
    quat = geo.from_matrix(matrix)
    assert_allclose(np.linalg.norm(quat), 1.0, atol=1e-15)
    assert_same_rotation(quat, turn(Z, 0.7), atol=1e-6)


@given(arrays(np.float64, (2, 5, 3), elements=ANGLES), arrays(np.float64, (5, 3), elements=ANGLES))
def test_leading_axes_broadcast(many: Array, few: Array) -> None:
    a, b = geo.from_rotvec(many), geo.from_rotvec(few)
    fraction = np.linspace(0.0, 1.0, 5)
    pose_a, pose_b = Pose(many, a), Pose(few, b)
    for i in range(2):
        for j in range(5):
            one = (i, j)
            assert_allclose(geo.multiply(a, b)[one], geo.multiply(a[one], b[j]), atol=0)
            assert_allclose(geo.rotate(a, few)[one], geo.rotate(a[one], few[j]), atol=1e-15)
            assert_allclose(geo.to_rotvec(a)[one], geo.to_rotvec(a[one]), atol=1e-15)
            assert_allclose(
                geo.from_matrix(geo.to_matrix(a))[one], geo.from_matrix(geo.to_matrix(a[one])), atol=0
            )
            assert_allclose(geo.angle_between(a, b)[one], geo.angle_between(a[one], b[j]), atol=1e-15)
            assert_allclose(geo.nlerp(a, b, fraction)[one], geo.nlerp(a[one], b[j], fraction[j]), atol=1e-15)
            both = Pose(pose_a.pos[one], pose_a.quat[one]) @ Pose(pose_b.pos[j], pose_b.quat[j])
            assert_allclose((pose_a @ pose_b).as_array()[one], both.as_array(), atol=1e-14)


@given(QUATS, ROTVECS, st.floats(0.0, 1.0))
def test_interpolation_takes_the_short_arc_whatever_the_signs(quat: Array, rotvec: Array, t: float) -> None:
    other = geo.multiply(geo.from_rotvec(0.95 * rotvec / max(1.0, np.linalg.norm(rotvec) / np.pi)), quat)
    whole = float(geo.angle_between(quat, other))
    for sign in (1.0, -1.0):
        between = geo.nlerp(quat, sign * other, t)
        assert_allclose(np.linalg.norm(between), 1.0, atol=1e-12)
        # on the arc: what is left and what is done make up the whole
        done, left = float(geo.angle_between(quat, between)), float(geo.angle_between(between, other))
        assert_allclose(done + left, whole, atol=1e-6)
    assert_same_rotation(geo.nlerp(quat, -other, 0.0), quat)
    assert_same_rotation(geo.nlerp(quat, -other, 1.0), other)


def test_a_hand_that_moves_in_the_headset_frame_moves_likewise_in_the_robots() -> None:
    level = geo.IDENTITY_QUAT
    for moved, expected in ((Y, Z), (-Z, X), (X, -Y)):  # up, forward, to the right
        assert_allclose(geo.y_up_to_z_up(Pose(moved, level)).pos, expected, atol=1e-15)


@given(ANGLES)
def test_a_turn_of_the_hand_is_the_same_turn_in_the_robots_frame(angle: float) -> None:
    for device_axis, robot_axis in ((Y, Z), (-Z, X), (X, -Y)):  # yaw, roll, pitch
        converted = geo.y_up_to_z_up(Pose(np.zeros(3), turn(device_axis, angle)))
        assert_same_rotation(converted.quat, turn(robot_axis, angle))


@given(POSES, POSES)
def test_changing_the_frame_of_a_product_is_the_product_of_the_changed(a: Pose, b: Pose) -> None:
    assert_same_pose(geo.y_up_to_z_up(a @ b), geo.y_up_to_z_up(a) @ geo.y_up_to_z_up(b))
    assert_same_pose(geo.change_frame(geo.conjugate(geo.Y_UP_TO_Z_UP_QUAT), geo.y_up_to_z_up(a)), a)


def test_the_frame_change_is_a_right_handed_rotation_that_nobody_can_overwrite() -> None:
    assert geo.is_rotation(geo.Y_UP_TO_Z_UP, 1e-15)
    about_x, about_z = geo.to_matrix(turn(X, np.pi / 2)), geo.to_matrix(turn(Z, -np.pi / 2))
    assert_allclose(about_z @ about_x, geo.Y_UP_TO_Z_UP, atol=1e-15)
    assert_allclose(geo.to_matrix(geo.Y_UP_TO_Z_UP_QUAT), geo.Y_UP_TO_Z_UP, atol=1e-15)
    for constant in (geo.Y_UP_TO_Z_UP, geo.IDENTITY_QUAT):
        with pytest.raises(ValueError, match="read-only"):
            constant[0] = 1.0


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((3, 3)),
        1.1 * np.eye(3),
        np.diag([1.0, 1.0, -1.0]),
        np.full((3, 3), np.nan),
        np.diag([1.0, np.inf, 1.0]),
        np.eye(3) + 0.05 * np.ones((3, 3)),
    ],
)
def test_what_is_no_rotation_is_refused(matrix: Array) -> None:
    assert not geo.is_rotation(matrix)


@given(QUATS)
def test_every_rotation_matrix_is_accepted_even_in_float32(quat: Array) -> None:
    assert geo.is_rotation(geo.to_matrix(quat).astype(np.float32))


@given(arrays(np.float64, (3, 2, 4), elements=st.floats(-1.0, 1.0)))
def test_the_order_of_other_libraries_converts_both_ways(quat: Array) -> None:
    assert_allclose(geo.to_xyzw(geo.from_xyzw(quat)), quat, atol=0)
    assert geo.from_xyzw([1.0, 2.0, 3.0, 0.5]).tolist() == [0.5, 1.0, 2.0, 3.0]
    assert geo.to_xyzw([0.5, 1.0, 2.0, 3.0]).tolist() == [1.0, 2.0, 3.0, 0.5]


@given(POSES)
def test_poses_convert_to_arrays_and_matrices_and_back(pose: Pose) -> None:
    assert_same_pose(Pose.from_array(pose.as_array()), pose)
    homogeneous = np.eye(4)
    homogeneous[:3, :3], homogeneous[:3, 3] = geo.to_matrix(pose.quat), pose.pos
    assert_same_pose(Pose.from_matrix(homogeneous), pose)
    assert_same_pose(Pose.from_matrix(homogeneous[:3]), pose)


def test_conversion_from_an_array_does_not_share_memory_with_it() -> None:
    array = np.array([1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0])
    pose = Pose.from_array(array)
    array[:] = 9.0
    assert pose.pos.tolist() == [1.0, 2.0, 3.0]
