"""Every kind of file becomes the same motion: metres, Z up, x forward; what cannot be read is named."""

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku import plugins
from bunraku.errors import BunrakuError, FileFormatError, UnknownNameError
from bunraku.geometry import from_rotvec, rotate, to_matrix
from bunraku.motion import SMPL_JOINTS, HumanMotion
from bunraku.retarget.load import load_motion, load_motions
from bunraku.retarget.reading.axes import TO_Z_UP
from bunraku.retarget.reading.skeleton import REST_OFFSETS, forward_kinematics
from bunraku.retarget.sources.generator import generate

MOTION = Path(__file__).parents[2] / ".." / "shared" / "motion"
real_motion = pytest.mark.skipif(
    not MOTION.is_dir(), reason="the real motion clips are not here (../shared/motion)"
)
WALK = generate("walk", seconds=3.0)


def in_axes(up: str) -> np.ndarray:
    """Return the walk in a file's axes."""
    return WALK.joints @ TO_Z_UP[up]


def save(path: Path, array, **others) -> Path:
    np.savez(path, joints=array, **others) if path.suffix == ".npz" else np.save(path, array)
    return path


@pytest.mark.parametrize("up", ["x", "y", "z", "-x", "-y", "-z"])
def test_up_axis_is_seen(tmp_path, up):
    motion = load_motion(save(tmp_path / "a.npz", in_axes(up), fps=30.0))
    assert np.abs(motion.joints - WALK.joints).max() < 1e-9
    assert motion.fps == 30.0


def test_y_up_is_the_quaternion_of_the_source():
    assert np.allclose(TO_Z_UP["y"], to_matrix([0.5, 0.5, 0.5, 0.5]))


@pytest.mark.parametrize("scale", [100.0, 1000.0, 1 / 0.0254, 0.45 / 0.0254])
def test_units_are_seen(tmp_path, scale):
    motion = load_motion(save(tmp_path / "a.npy", in_axes("y") * scale))
    assert np.abs(motion.joints - WALK.joints).max() < 1e-9


@settings(max_examples=30, deadline=None)
@given(st.floats(-np.pi, np.pi), st.sampled_from([0.7, 1.0, 1.15]))
def test_any_heading_and_size_ends_up_facing_x(tmp_path_factory, yaw, size):
    turned = rotate(from_rotvec([0.0, 0.0, yaw]), WALK.joints * size) @ TO_Z_UP["y"]
    motion = load_motion(save(tmp_path_factory.mktemp("a") / "a.npy", turned))
    assert np.abs(motion.joints - WALK.joints * size).max() < 1e-9


def test_left_handed_axes_are_turned_right(tmp_path):
    mirrored = in_axes("y") * [1.0, 1.0, -1.0]
    motion = load_motion(save(tmp_path / "a.npy", mirrored))
    assert np.abs(motion.joints - WALK.joints).max() < 1e-9
    assert any("left-handed" in note for note in motion.notes)


def test_lying_most_of_the_time_is_not_mistaken_for_another_up_axis(tmp_path):
    lying = rotate(from_rotvec([0.0, -np.pi / 2, 0.0]), WALK.joints[:1] - WALK.joints[:1, :1])
    lying = lying + [0.0, 0.0, -lying[..., 2].min()]
    clip = np.concatenate([WALK.joints[:20], np.repeat(lying, 40, axis=0)])
    motion = load_motion(save(tmp_path / "a.npy", clip @ TO_Z_UP["y"]))
    assert np.abs(motion.joints - clip).max() < 1e-9


@pytest.mark.parametrize("count", [22, 24, 52, 55, 127, 144])
def test_more_joints_are_cut_to_the_body(tmp_path, count):
    more = np.concatenate([in_axes("z"), np.zeros((len(WALK), count - 22, 3))], axis=1)
    assert np.abs(load_motion(save(tmp_path / "a.npy", more)).joints - WALK.joints).max() < 1e-9


def test_other_layouts_of_the_same_numbers(tmp_path):
    joints = in_axes("z")
    for name, array in {
        "flat": joints.reshape(-1, 66),
        "axes": joints.transpose(0, 2, 1),
        "model": joints.transpose(1, 2, 0),
        "batch": joints[None],
    }.items():
        assert np.abs(load_motion(save(tmp_path / f"{name}.npy", array)).joints - WALK.joints).max() < 1e-9
    one = load_motion(save(tmp_path / "one.npy", joints[0]))
    assert len(one) == 1
    assert np.abs(one.joints[0] - WALK.joints[0]).max() < 1e-9


def test_names_of_files_do_not_matter(tmp_path):
    path = save(tmp_path / "a.npz", in_axes("z"))
    other = path.rename(tmp_path / "walk.bvh")
    assert len(load_motion(other)) == len(WALK)


def test_missing_key_points_stay_missing(tmp_path):
    joints = in_axes("y").copy()
    joints[5, 20], joints[7] = np.nan, np.inf
    motion = load_motion(save(tmp_path / "a.npy", joints))
    assert np.isnan(motion.joints[5, 20]).all()
    assert np.isnan(motion.joints[7]).all()
    assert np.isfinite(np.delete(motion.joints, [5, 7], axis=0)).all()
    assert any("2 of" in note for note in motion.notes)


def test_our_own_file(tmp_path):
    WALK.save(tmp_path / "own.npz")
    assert np.array_equal(load_motion(tmp_path / "own.npz").joints, WALK.joints)


# model output


def model_output(tmp_path, **changes):
    motion = np.stack([in_axes("y").transpose(1, 2, 0)] * 3).astype(np.float32)
    motion[1, ..., 50:] = 1e3
    values = {"motion": motion, "lengths": np.array([91, 50, 70]), "text": ["a", "b", "c"], "num_samples": 3}
    path = tmp_path / "results.npy"
    np.save(path, {**values, **changes}, allow_pickle=True)
    return path


def test_model_output_is_cut_to_its_lengths(tmp_path):
    clips = load_motions(model_output(tmp_path))
    assert [len(clip) for clip in clips] == [91, 50, 70]
    assert clips[1].source.endswith("#1: b")
    assert clips[1].fps == 20.0
    assert np.abs(clips[1].joints - WALK.joints[:50]).max() < 1e-5
    assert np.array_equal(load_motion(model_output(tmp_path), clip=2).joints, clips[2].joints)
    with pytest.raises(BunrakuError, match="no clip 3"):
        load_motion(model_output(tmp_path), clip=3)


def test_wrong_lengths_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="do not fit"):
        load_motion(model_output(tmp_path, lengths=np.array([91, 500, 70])))


class Attack:
    """Would make a file when unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (str(self.path),))


@pytest.mark.parametrize("suffix", [".npy", ".pkl"])
def test_nothing_in_a_pickle_is_executed(tmp_path, suffix):
    trap, path = tmp_path / "trap", tmp_path / f"evil{suffix}"
    value = {"motion": Attack(trap)}
    if suffix == ".npy":
        np.save(path, value, allow_pickle=True)
    else:
        path.write_bytes(pickle.dumps(value))
    with pytest.raises(FileFormatError, match="mkdir"):
        load_motion(path)
    assert not trap.exists()
    pickle.loads(pickle.dumps(value))
    assert trap.exists()  # the attack works where pickles are executed


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_every_pickle_protocol(tmp_path, protocol):
    values = {
        "joints": in_axes("z").astype(">f4"),
        "fps": np.float64(30.0),
        "order": np.asfortranarray(np.eye(3)[:2]),
    }
    path = tmp_path / "a.pkl"
    path.write_bytes(pickle.dumps(values, protocol=protocol))
    motion = load_motion(path)
    assert motion.fps == 30.0
    assert np.abs(motion.joints - WALK.joints).max() < 1e-5


# SMPL


def smpl_poses(frames=10):
    rng = np.random.default_rng(0)
    poses = 0.15 * rng.normal(size=(frames, 24, 3))
    poses[:, 0] = [np.pi / 2, 0.0, 0.0]  # AMASS: Z up
    return poses


def smpl_joints(poses):
    offsets = REST_OFFSETS @ TO_Z_UP["y"]
    return forward_kinematics(offsets, from_rotvec(poses[:, :22]), np.zeros((len(poses), 3)))[0]


def test_amass_and_gvhmr_and_matrices_agree(tmp_path):
    poses, trans = smpl_poses(), np.zeros((10, 3))
    np.savez(tmp_path / "amass.npz", poses=poses.reshape(10, 72), trans=trans, mocap_framerate=120.0)
    amass = load_motion(tmp_path / "amass.npz")
    assert amass.fps == 120.0
    assert np.linalg.norm(amass.joints[0, 15] - amass.joints[0, 0]) > 0.5
    group = {"body_pose": poses[:, 1:22].reshape(10, 63), "global_orient": poses[:, 0], "transl": trans}
    (tmp_path / "gvhmr.pkl").write_bytes(pickle.dumps({"smpl_params_global": group, "fps": 120}))
    np.savez(tmp_path / "mat.npz", poses=to_matrix(from_rotvec(poses)), trans=trans, fps=120)
    for name in ("gvhmr.pkl", "mat.npz"):
        other = load_motion(tmp_path / name)
        assert np.abs(other.joints - amass.joints).max() < 1e-9
        assert np.abs(other.head_quat - amass.head_quat).max() < 1e-9


def test_what_torch_saved_is_read_without_torch(tmp_path):
    torch = pytest.importorskip("torch")
    poses = smpl_poses()
    group = {
        "body_pose": torch.tensor(poses[:, 1:22].reshape(10, 63)),
        "global_orient": torch.tensor(poses[:, 0]),
    }
    group["transl"] = torch.zeros(3, 10).T  # strides other than C order
    torch.save({"smpl_params_global": group}, tmp_path / "a.pt")
    np.savez(tmp_path / "a.npz", poses=poses.reshape(10, 72), trans=np.zeros((10, 3)))
    assert (
        np.abs(load_motion(tmp_path / "a.pt").joints - load_motion(tmp_path / "a.npz").joints).max() < 1e-12
    )


def test_the_head_turns_about_the_vertical_when_the_neck_does(tmp_path):
    poses = np.zeros((4, 24, 3))
    poses[:, SMPL_JOINTS.index("neck"), 1] = 0.4  # SMPL's y is up
    np.savez(tmp_path / "a.npz", poses=poses.reshape(4, 72), trans=np.zeros((4, 3)))
    assert np.abs(load_motion(tmp_path / "a.npz").head_quat - from_rotvec([0.0, 0.0, 0.4])).max() < 1e-12


@pytest.mark.parametrize("kind", ["npz", "pkl"])
def test_a_body_model_gives_the_bones(tmp_path, kind):
    scipy_sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(1)
    joints = np.zeros((24, 3))
    for j, parent in enumerate([-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19]):
        joints[j] = 1.1 * (REST_OFFSETS @ TO_Z_UP["y"])[j] + (
            joints[parent] if parent >= 0 else [0.0, -0.2, 0.0]
        )
    template = np.repeat(joints, 2, axis=0) + 0.01 * np.tile([[1.0], [-1.0]], (24, 3))
    regressor = np.repeat(0.5 * np.eye(24), 2, axis=1)
    shape = 0.01 * rng.normal(size=(48, 3, 10))
    arrays = {"v_template": template, "shapedirs": shape, "J_regressor": regressor}
    path = tmp_path / f"SMPL_NEUTRAL.{kind}"
    if kind == "npz":
        np.savez(path, part2num=np.array({"a": 1}, dtype=object), **arrays)
    else:
        path.write_bytes(
            pickle.dumps({**arrays, "J_regressor": scipy_sparse.csc_matrix(regressor)}, protocol=2)
        )
    betas = rng.normal(size=10)
    np.savez(tmp_path / "m.npz", poses=np.zeros((3, 72)), trans=np.zeros((3, 3)), betas=betas)
    motion = load_motion(tmp_path / "m.npz", body_model=path)
    expected = (regressor @ (template + shape @ betas))[:22]
    have = motion.joints[0] - motion.joints[0, 0]
    want = (expected - expected[0]) @ TO_Z_UP["y"].T
    lengths = [np.linalg.norm(a[:, None] - a, axis=-1) for a in (have, want)]
    assert np.abs(lengths[0] - lengths[1]).max() < 1e-9
    assert any("SMPL_NEUTRAL" in note for note in motion.notes)


# messages


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((10, 17, 3)), "J one of"),
        (np.zeros((10, 22, 4)), "J one of"),
        (np.zeros((10, 263)), "HumanML3D"),
        (np.zeros((10, 22, 3)), "no person"),
        (np.full((10, 22, 3), np.nan), "no key point"),
        (np.random.default_rng(0).normal(size=(10, 22, 3)) * 1e4, "no person"),
        (np.zeros((0, 22, 3)), r"\(N, J, 3\)"),
        (np.array(["a"]), "no motion that is known"),
    ],
)
def test_what_is_no_motion_is_named(tmp_path, array, message):
    path = tmp_path / "a.npy"
    np.save(path, array)
    with pytest.raises(FileFormatError, match=message):
        load_motion(path)


def test_damaged_files_are_named(tmp_path):
    good = io.BytesIO()
    np.savez(good, joints=in_axes("z"))
    cases = {
        "empty.npz": b"",
        "cut.npz": good.getvalue()[:2000],
        "cut.npy": b"\x93NUMPY\x01\x00",
        "text.npz": b"hello",
        "binary.dat": bytes(range(256)),
        "cut.pkl": pickle.dumps({"joints": in_axes("z")})[:500],
    }
    for name, data in cases.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FileFormatError, match=name):
            load_motion(tmp_path / name)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(FileFormatError, match="without arrays"):
        load_motion(tmp_path / "other.zip")
    with pytest.raises(BunrakuError, match="does not exist"):
        load_motion(tmp_path / "none.npy")
    with pytest.raises(BunrakuError, match="folder"):
        load_motion(tmp_path)


@given(
    st.binary(max_size=200),
    st.sampled_from([b"", b"\x80\x04", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"HIERARCHY\n"]),
)
def test_noise_never_raises_anything_else(tmp_path_factory, noise, start):
    path = tmp_path_factory.mktemp("n") / "noise"
    path.write_bytes(start + noise)
    with pytest.raises(BunrakuError):
        load_motion(path)


# all sources


def test_every_source_is_found_and_describes_itself():
    names = plugins.names(plugins.MOTION_SOURCES)
    assert names == ["bvh", "generator", "joints", "smpl", "text_to_motion"]
    for name in names:
        assert plugins.load(plugins.MOTION_SOURCES, name).description


@pytest.mark.parametrize("name", ["walk", "turn", "squat", "wave", "reach", "kick"])
@pytest.mark.parametrize("seed", [0, 7])
def test_generated_bones_are_rigid_and_standing_feet_stand_still(name, seed):
    motion = load_motion(f"generator:{name},seed={seed}")
    joints = motion.joints
    parents = [0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19]
    lengths = np.linalg.norm(joints[:, 1:] - joints[:, parents], axis=-1)
    assert np.ptp(lengths, axis=0).max() < 1e-12
    for foot in ("left_foot", "right_foot"):
        toe = motion.point(foot)
        down = toe[:, 2] < toe[:, 2].min() + 1e-6
        both = down[:-1] & down[1:]
        assert both.any()
        slide = np.linalg.norm(np.diff(toe[:, :2], axis=0), axis=-1) * motion.fps
        assert slide[both].max() < 1e-3
    assert np.linalg.norm(np.diff(joints, axis=0), axis=-1).max() * motion.fps < 8.0
    again = load_motion(f"generator:{name},seed={seed}")
    assert np.array_equal(again.joints, joints)


def test_generator_options_do_what_they_say():
    assert abs(load_motion("generator:walk,speed=0.5,seconds=6").joints[-1, 0, 0] - 2.5) < 1e-9
    turned = load_motion("generator:turn,angle=90").joints[-1]
    across = turned[1] - turned[2]
    assert abs(np.degrees(np.arctan2(-across[0], across[1])) - 90.0) < 1e-6
    hand = load_motion("generator:reach,x=0.35,y=-0.1,z=1.2").point("right_wrist")
    assert np.linalg.norm(hand - [0.35, -0.1, 1.2], axis=1).min() < 1e-9
    assert len(load_motion("generator:wave,seconds=4", fps=60.0)) == 241
    assert not np.array_equal(
        load_motion("generator:walk,seed=1").joints, load_motion("generator:walk,seed=2").joints
    )


def test_generator_messages():
    with pytest.raises(UnknownNameError, match="did you mean 'walk'"):
        load_motion("generator:wlak")
    with pytest.raises(UnknownNameError, match="did you mean 'speed'"):
        load_motion("generator:walk,sped=1")
    with pytest.raises(BunrakuError, match="no number"):
        load_motion("generator:walk,speed=fast")
    with pytest.raises(BunrakuError, match="take a"):
        load_motion("generator:walk,speed=9")
    with pytest.raises(BunrakuError, match="m would have to span"):
        load_motion("generator:reach,x=3")


@real_motion
def test_real_joint_clips_are_people_on_the_floor():
    for path in sorted((MOTION / "joints").glob("*.npz")):
        motion = load_motion(path)
        assert isinstance(motion, HumanMotion)
        assert motion.fps == 20.0
        assert -0.01 < motion.joints[..., 2].min() < 0.1
        assert motion.licence
        left = motion.joints[0, 1] - motion.joints[0, 2] + motion.joints[0, 16] - motion.joints[0, 17]
        assert abs(left[0]) < 1e-6 < left[1]


@real_motion
def test_real_model_output():
    clips = load_motions(MOTION / "results.npy")
    assert len(clips) > 1
    assert all(np.isfinite(clip.joints).all() for clip in clips)
    assert any(len(clip) < 196 for clip in clips)


@real_motion
@pytest.mark.parametrize("name", ["walk", "squat", "kick"])
def test_the_default_skeleton_is_near_the_one_that_was_measured(name):
    ours = load_motion(MOTION / "smpl" / f"video_{name}_level1_filter_amass.npz")
    theirs = load_motion(MOTION / "joints" / f"asap_{name}.npz")
    at = np.rint(np.arange(len(theirs)) * 30.0 / 20.0).astype(int)
    at = at[at < len(ours)]
    a, b = (j - j[:, :1] for j in (ours.joints[at], theirs.joints[: len(at)]))
    assert np.linalg.norm(a - b, axis=-1).mean() < 0.03
