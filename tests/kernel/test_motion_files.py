"""Motion files: round trips, names instead of positions, velocities that are derivatives, messages."""

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bunraku.errors import BunrakuError, FileFormatError, UnknownNameError
from bunraku.geometry import from_rotvec, multiply
from bunraku.motion import SMPL_JOINTS, SMPL_PARENTS, HumanMotion, RobotMotion
from bunraku.motion_bodies import angular_velocity, model_qpos, with_bodies
from bunraku.robots.h1 import ROBOT


def robot_motion(frames=20, fps=50.0, free=True, seed=0):
    """Return a smooth motion of h1 whose root turns and rocks."""
    t = np.arange(frames)[:, None] / fps
    phase = np.random.default_rng(seed).uniform(0, 6, ROBOT.dof)
    dof = np.array(ROBOT.home) + 0.2 * np.sin(3.0 * t + phase)
    if not free:
        return RobotMotion(dof, ROBOT.joints, fps, "h1", "test", "Apache-2.0")
    yaw = from_rotvec(t * [0.0, 0.0, 2.5])
    quat = multiply(yaw, from_rotvec(0.2 * np.sin(4.0 * t) * [1.0, 0.0, 0.0]))
    pos = np.concatenate([0.3 * t, 0.1 * np.sin(t), 0.3 + 0.0 * t], axis=1)
    return RobotMotion(
        np.concatenate([pos, quat, dof], axis=1), ROBOT.joints, fps, "h1", "test", "Apache-2.0"
    )


def test_a_tree_of_22_names_with_parents_first():
    assert len(SMPL_JOINTS) == len(set(SMPL_JOINTS)) == len(SMPL_PARENTS) == 22
    assert all(parent < joint for joint, parent in enumerate(SMPL_PARENTS))
    assert [
        SMPL_JOINTS[SMPL_PARENTS[SMPL_JOINTS.index(j)]] for j in ("left_wrist", "head", "right_foot")
    ] == [
        "left_elbow",
        "neck",
        "right_ankle",
    ]


@pytest.mark.parametrize("free", [True, False])
def test_a_robot_motion_survives_its_file(tmp_path, free):
    motion = robot_motion(free=free)
    motion = with_bodies(motion, ROBOT.load(root="free" if free else "fixed").compile())
    motion.save(tmp_path / "m.npz")
    back = RobotMotion.load(tmp_path / "m.npz")
    assert np.array_equal(back.qpos, motion.qpos)
    assert (back.joint_names, back.fps, back.robot) == (motion.joint_names, 50.0, "h1")
    assert back.body_names == motion.body_names
    assert np.abs(back.body_pos - motion.body_pos).max() < 1e-6
    with np.load(tmp_path / "m.npz", allow_pickle=False) as file:
        assert np.array_equal(file["dof"], motion.dof)
        assert np.array_equal(file["root_quat"], motion.root_quat)


def test_a_human_motion_survives_its_file(tmp_path):
    joints = np.random.default_rng(0).normal(size=(5, 22, 3))
    joints[2, 3] = np.nan
    motion = HumanMotion(joints, 20.0, source="a", licence="b", notes=("c", "d"))
    motion.save(tmp_path / "h.npz")
    back = HumanMotion.load(tmp_path / "h.npz")
    assert np.array_equal(back.joints, joints, equal_nan=True)
    assert (back.source, back.licence, back.notes, back.head_quat) == ("a", "b", ("c", "d"), None)


def test_joints_are_matched_by_name():
    motion = robot_motion()
    names = [ROBOT.joints[5], ROBOT.joints[2]]
    assert np.array_equal(motion.select(names), motion.dof[:, [5, 2]])
    with pytest.raises(UnknownNameError, match="did you mean"):
        motion.select([ROBOT.joints[0][:-1]])
    order = list(reversed(range(ROBOT.dof)))
    shuffled = RobotMotion(
        np.concatenate([motion.qpos[:, :7], motion.dof[:, order]], axis=1),
        tuple(ROBOT.joints[i] for i in order),
        50.0,
        "h1",
    )
    model = ROBOT.load(root="free").compile()
    assert np.array_equal(model_qpos(shuffled, model), model_qpos(motion, model))


def test_body_velocities_are_those_of_mujoco():
    motion = robot_motion(frames=400, fps=1000.0)
    model = ROBOT.load(root="free").compile()
    motion = with_bodies(motion, model)
    qpos, data = model_qpos(motion, model), mujoco.MjData(model)
    t = 200
    mujoco.mj_differentiatePos(model, data.qvel, 2.0 / motion.fps, qpos[t - 1], qpos[t + 1])
    data.qpos[:] = qpos[t]
    mujoco.mj_forward(model, data)
    for k, name in enumerate(motion.body_names):
        velocity = np.zeros(6)
        kind = int(mujoco.mjtObj.mjOBJ_XBODY)
        mujoco.mj_objectVelocity(model, data, kind, model.body(name).id, velocity, 0)
        assert np.abs(motion.body_ang_vel[t, k] - velocity[:3]).max() < 1e-3
        assert np.abs(motion.body_lin_vel[t, k] - velocity[3:]).max() < 1e-3


@given(st.floats(0.1, 3.0), st.floats(20.0, 200.0))
def test_angular_velocity_does_not_leap_where_rotation_vectors_wrap(speed, fps):
    t = np.arange(int(8.0 / speed * fps))[:, None] / fps
    quat = from_rotvec(t * speed * np.array([0.0, 0.6, 0.8])) * np.where(t % 0.3 < 0.15, 1.0, -1.0)
    assert np.abs(angular_velocity(quat, fps) - speed * np.array([0.0, 0.6, 0.8])).max() < 1e-6


def test_what_is_wrong_is_named(tmp_path):
    with pytest.raises(BunrakuError, match=r"\(N, 22, 3\)"):
        HumanMotion(np.zeros((4, 23, 3)), 20.0)
    with pytest.raises(BunrakuError, match="no key point"):
        HumanMotion(np.full((4, 22, 3), np.nan), 20.0)
    with pytest.raises(BunrakuError, match="not finite in frame 3"):
        RobotMotion(np.array([[0.0], [0.0], [0.0], [np.inf]]), ("a",), 20.0, "r")
    with pytest.raises(BunrakuError, match="positive"):
        RobotMotion(np.zeros((2, 1)), ("a",), 0.0, "r")
    motion = RobotMotion(np.zeros((2, 1)), ("a",), 20.0, "r")
    motion.save(tmp_path / "m.npz")
    with pytest.raises(BunrakuError, match="--force"):
        motion.save(tmp_path / "m.npz")
    with pytest.raises(FileFormatError, match="robot/1"):
        HumanMotion.load(tmp_path / "m.npz")
    data = (tmp_path / "m.npz").read_bytes()
    (tmp_path / "t.npz").write_bytes(data[: len(data) // 2])
    with pytest.raises(FileFormatError, match="truncated"):
        RobotMotion.load(tmp_path / "t.npz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.npz", "t.npz"]
