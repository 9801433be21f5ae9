"""Every format, read back as its own readers do."""

from dataclasses import fields, make_dataclass

import mujoco
import numpy as np
import pytest

from bunraku import plugins
from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.geometry import from_rotvec
from bunraku.motion import RobotMotion
from bunraku.motion_bodies import model_qpos
from bunraku.retarget.export import export_motion
from bunraku.robots.h1 import ROBOT


@pytest.fixture(scope="module")
def model():
    return ROBOT.load(root="free").compile()


@pytest.fixture(scope="module")
def motion():
    t = np.arange(91)[:, None] / 90.0
    dof = np.array(ROBOT.home) + 0.2 * np.sin(3.0 * t + np.arange(ROBOT.dof))
    pos = np.concatenate([0.4 * t, 0.0 * t, 0.33 + 0.0 * t], axis=1)
    qpos = np.concatenate([pos, from_rotvec(t * [0.2, 0.1, 1.0]), dof], axis=1)
    return RobotMotion(qpos, ROBOT.joints, 90.0, "h1", "a walk", "Apache-2.0")


def test_every_format_writes_a_file_and_refuses_to_overwrite(tmp_path, motion, model):
    names = plugins.names(plugins.MOTION_EXPORTERS)
    assert names == ["beyondmimic", "csv", "locomujoco", "npz"]
    for name in names:
        exporter = plugins.load(plugins.MOTION_EXPORTERS, name)
        assert exporter.description
        path = export_motion(motion, model, name, tmp_path / f"{name}{exporter.suffix}")
        assert path.stat().st_size > 0
        with pytest.raises(BunrakuError, match="--force"):
            export_motion(motion, model, name, path)
        export_motion(motion, model, name, path, force=True)
    assert len(list(tmp_path.iterdir())) == len(names)
    with pytest.raises(UnknownNameError, match="did you mean 'csv'"):
        export_motion(motion, model, "cvs", tmp_path / "a.csv")
    with pytest.raises(BunrakuError, match=r"end in \.csv"):
        export_motion(motion, model, "csv", tmp_path / "a.txt")


def test_our_own_file(tmp_path, motion, model):
    back = RobotMotion.load(export_motion(motion, model, "npz", tmp_path / "a.npz"))
    assert np.array_equal(back.qpos, motion.qpos)
    assert back.body_names == tuple(model.body(i).name for i in range(1, model.nbody))


def test_csv_as_beyondmimics_converter_reads_it(tmp_path, motion, model):
    rows = np.loadtxt(export_motion(motion, model, "csv", tmp_path / "a.csv"), delimiter=",")
    assert np.abs(rows[:, :3] - motion.root_pos).max() < 1e-8
    assert np.abs(rows[:, 3:7][:, [3, 0, 1, 2]] - motion.root_quat).max() < 1e-8
    assert np.abs(rows[:, 7:] - motion.dof).max() < 1e-8
    first = (tmp_path / "a.csv").read_text().splitlines()[0]
    assert first.removeprefix("# ").split(",")[7:] == list(ROBOT.joints)


def test_beyondmimic_frames_are_consistent(tmp_path, motion, model):
    with np.load(export_motion(motion, model, "beyondmimic", tmp_path / "a.npz"), allow_pickle=False) as data:
        file = dict(data)
    frames = len(file["joint_pos"])
    assert file["fps"].shape == (1,)
    assert float(file["fps"][0]) == 50.0
    assert frames == 51
    # a reader that matches by position: joints and bodies of the model, depth first, without world and root joint
    assert list(file["joint_names"]) == [model.joint(i).name for i in range(1, model.njnt)]
    assert list(file["body_names"]) == [model.body(i).name for i in range(1, model.nbody)]
    data = mujoco.MjData(model)
    for t in (0, 20, 50):
        data.qpos[:3], data.qpos[3:7] = file["body_pos_w"][t, 0], file["body_quat_w"][t, 0]
        data.qpos[7:] = file["joint_pos"][t]
        mujoco.mj_kinematics(model, data)
        assert np.abs(data.xpos[1:] - file["body_pos_w"][t]).max() < 1e-5
    speed = np.gradient(file["joint_pos"].astype(float), 0.02, axis=0)
    assert np.abs(speed - file["joint_vel"]).max() < 1e-3
    drift = np.gradient(file["body_pos_w"].astype(float), 0.02, axis=0)
    assert np.abs(drift - file["body_lin_vel_w"]).max() < 1e-3
    # the root turns at a constant rate about a constant axis
    assert np.abs(file["body_ang_vel_w"][:, 0] - [0.2, 0.1, 1.0]).max() < 1e-2


INFO = ("joint_names", "model", "frequency", "body_names", "site_names", "metadata")
MODEL = (
    "njnt",
    "jnt_type",
    "nbody",
    "body_rootid",
    "body_weldid",
    "body_mocapid",
    "body_pos",
    "body_quat",
    "body_ipos",
)
MODEL += ("body_iquat", "nsite", "site_bodyid", "site_pos", "site_quat")
DATA = ("qpos", "qvel", "xpos", "xquat", "cvel", "subtree_com", "site_xpos", "site_xmat", "split_points")


def test_locomujoco_as_its_reader_sorts_it(tmp_path, motion, model):
    """Sort the keys as LocoMuJoCo 1.0 does: into its three records, by their fields; any other key is an error."""
    records = {
        name: make_dataclass(name, names)
        for name, names in (("Info", INFO), ("Model", MODEL), ("Data", DATA))
    }
    sorted_keys: dict = {name: {} for name in records}
    with np.load(export_motion(motion, model, "locomujoco", tmp_path / "a.npz"), allow_pickle=False) as file:
        for key, value in file.items():
            home = [n for n, record in records.items() if key in {field.name for field in fields(record)}]
            assert len(home) == 1, key
            sorted_keys[home[0]][key] = value
    assert set(sorted_keys["Model"]) == set(MODEL)
    assert set(sorted_keys["Data"]) == set(DATA)
    info, data = sorted_keys["Info"], sorted_keys["Data"]
    # its qpos columns follow from joint types in order: 7 for a free joint, 1 for the others
    columns, start = {}, 0
    for name, kind in zip(info["joint_names"].tolist(), sorted_keys["Model"]["jnt_type"], strict=True):
        width = 7 if int(kind) == int(mujoco.mjtJoint.mjJNT_FREE) else 1
        columns[name] = slice(start, start + width)
        start += width
    assert start == data["qpos"].shape[1]
    assert np.array_equal(data["qpos"][:, columns["root"]], motion.qpos[:, :7])
    assert np.array_equal(data["qpos"][:, columns["left_knee"]][:, 0], motion.select(["left_knee"])[:, 0])
    assert info["frequency"].tolist() == 90.0
    assert data["split_points"].tolist() == [0, 91]
    assert data["xpos"].shape == (91, model.nbody, 3)
    # integrating the velocities leads from frame to frame
    qpos = model_qpos(motion, model)
    q = qpos[44].copy()
    mujoco.mj_integratePos(model, q, data["qvel"][45], 2.0 / 90.0)
    assert np.abs(q - qpos[46]).max() < 1e-9
