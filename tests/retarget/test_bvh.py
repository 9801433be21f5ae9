"""BVH: an independent forward kinematics, namings, rotation orders, real clips and messages."""

from pathlib import Path

import numpy as np
import pytest

from bunraku.errors import FileFormatError
from bunraku.geometry import from_rotvec, rotate
from bunraku.motion import SMPL_JOINTS, SMPL_PARENTS
from bunraku.retarget.load import load_motion
from bunraku.retarget.reading.axes import TO_Z_UP, first_heading
from bunraku.retarget.reading.bvh_file import parse_bvh
from bunraku.retarget.reading.skeleton import REST_OFFSETS
from bunraku.retarget.sources.bvh import NAMINGS

MOTION = Path(__file__).parents[2] / ".." / "shared" / "motion"


def write_bvh(names, offsets, parents, orders, frames, step=1 / 30, newline="\n"):
    """Return a BVH text; every joint has its own rotation order, the root positions too."""
    lines = ["HIERARCHY"]

    def joint(j, depth):
        pad = "\t" * depth
        lines.append(f"{pad}{'ROOT' if parents[j] < 0 else 'JOINT'} {names[j]}")
        lines.append(pad + "{")
        lines.append(f"{pad}\tOFFSET {' '.join(f'{v:.9f}' for v in offsets[j])}")
        channels = [f"{axis}rotation" for axis in orders[j]]
        if parents[j] < 0:
            channels = ["Xposition", "Yposition", "Zposition", *channels]
        lines.append(f"{pad}\tCHANNELS {len(channels)} {' '.join(channels)}")
        children = [k for k in range(len(names)) if parents[k] == j]
        for k in children:
            joint(k, depth + 1)
        if not children:
            lines.extend([f"{pad}\tEnd Site", pad + "\t{", f"{pad}\t\tOFFSET 0 0.1 0", pad + "\t}"])
        lines.append(pad + "}")

    joint(0, 0)
    lines += ["MOTION", f"Frames: {len(frames)}", f"Frame Time: {step:.6f}"]
    lines += [" ".join(f"{v:.9f}" for v in row) for row in frames]
    return newline.join(lines) + newline


def depth_first(parents):
    order = []

    def visit(j):
        order.append(j)
        for k in range(len(parents)):
            if parents[k] == j:
                visit(k)

    visit(0)
    return order


def example(naming="SMPL", seed=0, frames=6, scale=100.0):
    rng = np.random.default_rng(seed)
    names = [NAMINGS[naming][joint].split("|")[0] for joint in SMPL_JOINTS]
    orders = ["".join(rng.permutation(list("XYZ"))) for _ in names]
    offsets = scale * (REST_OFFSETS @ TO_Z_UP["y"])
    angles = rng.normal(size=(frames, 22, 3)) * 8.0
    position = scale * np.array([0.1, 0.9, 0.3]) + np.arange(frames)[:, None]
    rows = np.concatenate([position] + [angles[:, j] for j in depth_first(SMPL_PARENTS)], axis=1)
    return names, offsets, orders, angles, position, rows


def test_positions_are_those_of_scipy():
    rotation = pytest.importorskip("scipy.spatial.transform").Rotation
    names, offsets, orders, angles, position, rows = example()
    bvh = parse_bvh(write_bvh(names, offsets, SMPL_PARENTS, orders, rows), "a.bvh")
    points = bvh.positions()
    index = [joint.name for joint in bvh.joints]
    for t in range(len(rows)):
        world, at = {}, {}
        for j, parent in enumerate(SMPL_PARENTS):
            local = rotation.from_euler(orders[j], angles[t, j], degrees=True)  # capital letters: intrinsic
            world[j] = local if parent < 0 else world[parent] * local
            at[j] = position[t] if parent < 0 else at[parent] + world[parent].apply(offsets[j])
            assert np.abs(points[t, index.index(names[j])] - at[j]).max() < 1e-6


@pytest.mark.parametrize("naming", list(NAMINGS))
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_every_naming_gives_the_same_motion(tmp_path, naming, newline):
    _, offsets, orders, _, _, rows = example()
    names = [NAMINGS[naming][joint].split("|")[0] for joint in SMPL_JOINTS]
    names = ["mixamorig:" + name if naming.startswith("LAFAN1") else name for name in names]
    path = tmp_path / "a.bvh"
    path.write_text(write_bvh(names, offsets, SMPL_PARENTS, orders, rows, newline=newline), newline="")
    motion = load_motion(path)
    assert motion.notes[0].endswith(naming)
    reference = tmp_path / "b.bvh"
    reference.write_text(write_bvh(example()[0], offsets, SMPL_PARENTS, orders, rows))
    assert np.abs(motion.joints - load_motion(reference).joints).max() < 1e-9
    assert motion.fps == 30.0
    thigh = np.linalg.norm(motion.point("left_knee") - motion.point("left_hip"), axis=1)
    assert np.abs(thigh - np.linalg.norm(REST_OFFSETS[4])).max() < 1e-6


def test_a_first_frame_at_rest_is_left_out(tmp_path):
    names, offsets, orders, _, _, rows = example(frames=40)
    t = np.linspace(0.0, 1.0, 40)[:, None]
    rows = rows.copy()
    rows[:, 3:] = 60.0 * np.sin(np.arange(66)) + 5.0 * t
    rows[0, 3:] = 0.0
    (tmp_path / "a.bvh").write_text(write_bvh(names, offsets, SMPL_PARENTS, orders, rows))
    motion = load_motion(tmp_path / "a.bvh")
    assert len(motion) == 39
    assert any("T pose" in note for note in motion.notes)
    (tmp_path / "b.bvh").write_text(write_bvh(names, offsets, SMPL_PARENTS, orders, rows[1:]))
    assert len(load_motion(tmp_path / "b.bvh")) == 39


def test_what_is_wrong_is_named_with_its_line(tmp_path):
    names, offsets, orders, _, _, rows = example()
    good = write_bvh(names, offsets, SMPL_PARENTS, orders, rows)
    lines = good.splitlines()
    cases = {
        "without MOTION": good.split("MOTION")[0],
        "6 frames and has 5": "\n".join(lines[:-1]),
        f"line {len(lines)}": "\n".join([*lines[:-1], "1 2 3"]),
        "skeleton is not complete": good.replace("}\n" * 1 + "MOTION", "MOTION"),
        "'QUATROTATION'|quat": good.replace("Xrotation", "quatrotation", 1).replace(
            "CHANNELS 6", "CHANNELS 6", 1
        ),
        "at least one": good.replace("Frames: 6", "Frames: 0"),
        "no naming|of no naming": good.replace("spine3", "something"),
        "could not convert": good.replace("OFFSET 0 0.1 0", "OFFSET 0 x 0", 1),
    }
    for message, text in cases.items():
        (tmp_path / "a.bvh").write_text(text)
        with pytest.raises(FileFormatError, match=message):
            load_motion(tmp_path / "a.bvh")


@pytest.mark.skipif(not MOTION.is_dir(), reason="the real motion clips are not here (../shared/motion)")
@pytest.mark.parametrize(
    ("name", "clip", "skip", "tolerance"),
    [
        ("cmu_02_01", "cmu_walk_02_01", 0.1, 1e-3),
        ("cmu_scaled_131_01", "cmu_mj_walk_131_01", 0.1, 1e-3),
        ("lafan1_walk", "lafan1_walk", 4.0 - 1 / 30, 0.02),  # resampled from 30 to 20 fps
    ],
)
def test_real_dialects_give_the_joints_that_others_computed(name, clip, skip, tolerance):
    ours, theirs = load_motion(MOTION / "bvh" / f"{name}.bvh"), load_motion(MOTION / "joints" / f"{clip}.npz")
    at = np.rint((np.arange(len(theirs)) / 20.0 + skip) * ours.fps).astype(int)
    at = at[at < len(ours)]
    a = ours.joints[at]
    a = rotate(from_rotvec([0.0, 0.0, -first_heading(a)]), a)
    a, b = a - a[:, :1], theirs.joints[: len(at)] - theirs.joints[: len(at), :1]
    assert np.linalg.norm(a - b, axis=-1).mean() < tolerance
