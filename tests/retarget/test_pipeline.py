"""The whole pipeline: files and live use, hard input, real clips, and the start without numba."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import mujoco
import numpy as np
import pytest

from bunraku.errors import BunrakuError
from bunraku.motion import HumanMotion
from bunraku.retarget.diagnostics import Degraded, fill_missing, input_flags, named
from bunraku.retarget.pipeline import Options, Retargeter
from bunraku.retarget.solver.reference import ReferenceEngine
from bunraku.retarget.stages.coordinates import rotate_axes
from tests.retarget.test_stages import person, turned

CLIPS = Path(__file__).resolve().parents[3] / "shared" / "motion" / "joints"
needs_clips = pytest.mark.skipif(not CLIPS.is_dir(), reason="no ../shared/motion beside the repository")


def clip(name: str) -> np.ndarray:
    """Return the key points of a real clip, Z up."""
    return rotate_axes(np.load(CLIPS / f"{name}.npz")["joints"].astype(float))


def moving(frames: int = 60) -> np.ndarray:
    """Return a person who swings arms and legs and turns around, `(frames, 22, 3)`."""
    joints, phase = person(frames), np.linspace(0.0, 6.0, frames)
    arms, legs = ((16, 18, 20), (17, 19, 21)), ((1, 4, 7, 10), (2, 5, 8, 11))
    swings = [(arms[0], 1.2), (arms[1], -1.2), (legs[0], -0.5), (legs[1], 0.5)]
    for limb, reach in swings:
        angle = reach * np.sin(phase)
        s, c = np.sin(angle)[:, None], np.cos(angle)[:, None]
        away = joints[:, limb[1:]] - joints[:, limb[:1]]
        x, z = away[..., 0].copy(), away[..., 2].copy()
        away[..., 0], away[..., 2] = c * x - s * z, s * x + c * z
        joints[:, limb[1:]] = joints[:, limb[:1]] + away
    joints += np.stack([0.5 * phase, 0.0 * phase, 0.0 * phase], axis=-1)[:, None]
    return turned(joints, 0.7 * phase)


@pytest.fixture(scope="module")
def h1() -> Retargeter:
    return Retargeter("h1")


def assert_within(retargeter: Retargeter, dof: np.ndarray) -> None:
    """Assert that joint angles are finite and within the limits."""
    assert np.isfinite(dof).all()
    assert (dof >= retargeter.problem.tree.lower).all()
    assert (dof <= retargeter.problem.tree.upper).all()


def test_a_motion_becomes_a_robot_motion_at_90_fps(h1):
    robot = h1.retarget(HumanMotion(moving(61), 20.0, source="swing", licence="free"))
    assert robot.dof.shape == (271, 28)
    assert (robot.fps, robot.robot, robot.source, robot.licence) == (90.0, "h1", "swing", "free")
    assert robot.joint_names == h1.robot.joints
    assert not robot.free_root
    assert robot.flags is not None
    assert not robot.flags.any()
    assert_within(h1, robot.dof)
    assert robot.human_points is not None
    np.testing.assert_allclose(robot.human_points[:, 0], robot.root_pos, atol=1e-9)


def test_arms_and_legs_swing_as_the_persons(h1):
    robot = h1.retarget(HumanMotion(moving(61), 20.0))
    at = int(np.pi / 2 / 0.1 * 4.5)  # the first extreme
    angles = dict(zip(robot.joint_names, robot.dof[at], strict=True))
    assert angles["left_shoulder_pitch"] == pytest.approx(-1.2, abs=0.1)
    assert angles["right_shoulder_pitch"] == pytest.approx(1.2, abs=0.1)
    assert angles["left_hip_pitch"] == pytest.approx(0.5, abs=0.1)
    assert angles["right_hip_pitch"] == pytest.approx(-0.5, abs=0.1)
    assert abs(angles["chest_yaw"]) < 0.05


def test_with_a_free_root_no_sole_is_below_the_floor():
    retargeter = Retargeter("h1", options=Options(root="free"))
    result = retargeter.solve(person(40), 20.0)
    data = mujoco.MjData(retargeter.robot.load(root="free").compile())
    for t in (0, 90, len(result.dof) - 1):
        data.qpos[:] = np.concatenate([result.root_pos[t], result.root_quat[t], result.dof[t]])
        mujoco.mj_kinematics(data.model, data)
        for foot in retargeter.robot.feet:
            body = data.body(foot.body)
            height = (body.xpos + np.array(foot.sole) @ body.xmat.reshape(3, 3).T)[:, 2]
            np.testing.assert_allclose(height, 0.0, atol=1e-3)


@pytest.mark.parametrize("fps", [20.0, 30.0, 120.0, 12.5])
def test_any_frame_rate_gives_the_same_motion(h1, fps):
    times = np.arange(int(3.0 * fps)) / fps
    fine = moving(3001)
    joints = fine[np.rint(times / 3.0 * 3000).astype(int)]
    result = h1.solve(joints, fps)
    expected = h1.solve(fine[:: 3000 // 60], 20.0)
    frames = min(len(result.solved), len(expected.solved)) - 3
    np.testing.assert_allclose(result.solved[3:frames], expected.solved[3:frames], atol=0.12)


def test_a_free_root_follows_the_pelvis(h1):
    free = Retargeter("h1", options=Options(root="free", scale=0.25, ground=False))
    motion = HumanMotion(moving(41), 20.0)
    robot = free.retarget(motion)
    assert robot.free_root
    assert robot.qpos.shape == (181, 35)
    np.testing.assert_allclose(np.linalg.norm(robot.root_quat, axis=1), 1.0, atol=1e-9)
    way = 0.25 * (motion.joints[-1, 0] - motion.joints[0, 0])
    np.testing.assert_allclose(robot.root_pos[-1, :2] - robot.root_pos[0, :2], way[:2], atol=5e-3)
    assert robot.root_pos[0, 2] == pytest.approx(0.25 * 0.95, abs=1e-3)


def test_live_steps_are_the_forward_sweep_of_the_file(h1):
    joints = moving(50)
    options = Options(search="forward", smoothing_window=1, filter="none", geometric_ankle=False)
    live = Retargeter("h1", options=options)
    result = live.solve(joints, 20.0)
    live.reset(result.calibration)
    steps = np.array([live.step(frame).dof for frame in joints])
    np.testing.assert_allclose(steps, result.solved, atol=1e-9)
    reference = ReferenceEngine(live.problem, live.model)
    plain = Retargeter("h1", options=options)
    plain.engine = reference
    np.testing.assert_allclose(plain.solve(joints, 20.0).solved, result.solved, atol=1e-9)
    plain.reset(result.calibration)
    np.testing.assert_allclose(np.array([plain.step(f).dof for f in joints[:8]]), steps[:8], atol=1e-9)


def test_live_use_survives_bad_frames_and_names_them():
    live = Retargeter("h1", options=Options(max_speed=6.0))
    joints = moving(40)
    joints[10, 20] = np.nan
    joints[20] += np.where(np.arange(22) == 18, 0.5, 0.0)[:, None]
    joints[30, [1, 2]] = joints[30, [2, 1]]
    frames = [live.step(frame) for frame in joints]
    dof = np.array([frame.dof for frame in frames])
    assert_within(live, dof)
    assert (np.abs(np.diff(dof[:, [3, 8, 22]], axis=0)) * 20.0 <= 6.0).all()
    assert "key point not finite" in frames[10].degraded
    assert "key point jumps" in frames[20].degraded
    assert "heading not seen or hips crossed" in frames[30].degraded
    assert frames[5].degraded == ()


def test_wrong_shapes_are_refused(h1):
    with pytest.raises(BunrakuError, match=r"\(T, 22, 3\)"):
        h1.solve(np.zeros((5, 24, 3)), 20.0)
    with pytest.raises(BunrakuError, match=r"\(22, 3\)"):
        h1.step(np.zeros((21, 3)))


def behind(away: tuple[float, float, float]) -> np.ndarray:
    """Return a vector that turns with the person of `moving(60)`, `(60, 3)`."""
    return turned(np.tile(away, (60, 1, 1)), np.linspace(0.0, 4.2, 60))[:, 0]


def hard(kind: str) -> np.ndarray:
    """Return a motion that breaks retargeters."""
    joints, rng = moving(60), np.random.default_rng(0)
    if kind == "bone lengths vary by 28 %":
        joints = joints[:, :1] + (joints - joints[:, :1]) * rng.normal(1.0, 0.28, (60, 22, 1))
    elif kind == "jumps of 0.5 m":
        joints[rng.integers(0, 60, 15), rng.integers(1, 22, 15)] += rng.normal(size=(15, 3)) * 0.5
    elif kind == "hips crossed":
        joints[20:25, [1, 2]] = joints[20:25, [2, 1]]
    elif kind == "arms behind the back":
        for wrist, elbow, shoulder in ((20, 18, 16), (21, 19, 17)):
            joints[:, elbow] = joints[:, shoulder] + behind((-0.1, 0.0, -0.2))
            joints[:, wrist] = 0.5 * (joints[:, 3] + joints[:, 0]) + behind((-0.2, 0.0, 0.0))
    elif kind == "a fall and getting up":
        tilt = np.interp(np.arange(60), [0, 15, 40, 59], [0.0, np.pi / 2, np.pi / 2, 0.0])
        s, c = np.sin(tilt)[:, None], np.cos(tilt)[:, None]
        x, z = joints[..., 0].copy(), joints[..., 2].copy()
        joints[..., 0], joints[..., 2] = c * x + s * z, c * z - s * x
    elif kind == "noise":
        joints = rng.normal(size=joints.shape)
    elif kind == "key points lost":
        joints[rng.random(joints.shape[:2]) < 0.2] = np.nan
        joints[:, 20] = np.nan
    elif kind == "all in one point":
        joints[:] = 0.3
    return joints


@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("bone lengths vary by 28 %", Degraded.BONE_LENGTH),
        ("jumps of 0.5 m", Degraded.JUMP),
        ("hips crossed", Degraded.NO_HEADING),
        ("arms behind the back", None),
        ("a fall and getting up", None),
        ("noise", Degraded.JUMP),
        ("key points lost", Degraded.NOT_FINITE),
        ("all in one point", Degraded.NO_DIRECTION),
    ],
)
def test_hard_input_gives_finite_joints_within_limits_and_bounds(kind, reason, root):
    retargeter = Retargeter("h1", options=Options(max_speed=6.0, root=root))
    result = retargeter.solve(hard(kind), 20.0)
    assert_within(retargeter, result.dof)
    assert np.isfinite(result.root_pos).all()
    assert np.isfinite(result.root_quat).all()
    assert (np.abs(np.diff(result.solved, axis=0)) * 20.0 <= 6.0).all()
    assert (np.abs(np.diff(result.dof, axis=0)) * 90.0 <= 6.0).all()
    if reason is not None:
        assert (result.flags & reason).any()
        assert any(named(int(reason))[0] in reasons for reasons in result.degraded.values())


def test_missing_key_points_are_interpolated():
    joints = person(5) + np.arange(5)[:, None, None]
    holed = joints.copy()
    holed[2, 7] = np.nan
    filled, flags = fill_missing(holed)
    np.testing.assert_allclose(filled, joints, atol=1e-12)
    assert flags.tolist() == [0, 0, int(Degraded.NOT_FINITE), 0, 0]


def test_a_good_clip_has_no_degraded_frame():
    assert not input_flags(moving(60), 20.0).any()


@needs_clips
@pytest.mark.parametrize(
    "name", ["mdm_throw_08", "lafan1_dance", "hml3d_tennis_012314", "cmu_mj_walk_131_01"]
)
def test_real_clips_keep_limits_between_frames_and_hands_near_their_targets(h1, name):
    result = h1.solve(clip(name), 20.0)
    assert_within(h1, result.dof)
    ends = [h1.problem.index(n) for n in ("left_wrist", "right_wrist", "left_ankle", "right_ankle")]
    assert result.errors[:, ends, 0].mean() < 0.004
    forward = Retargeter("h1", options=Options(search="forward")).solve(clip(name), 20.0)
    assert result.errors[:, ends, 0].mean() < forward.errors[:, ends, 0].mean()


@needs_clips
def test_a_real_clip_within_a_speed_bound_stays_within_it_at_90_fps_too():
    bounded = Retargeter("h1", options=Options(max_speed=5.0))
    result = bounded.solve(clip("mdm_throw_08"), 20.0)
    assert (np.abs(np.diff(result.solved, axis=0)) * 20.0 <= 5.0).all()
    assert (np.abs(np.diff(result.dof, axis=0)) * 90.0 <= 5.0).all()


def test_without_numba_the_joints_are_the_same_and_it_says_so(h1, tmp_path):
    np.save(tmp_path / "joints.npy", moving(8))
    program = """
        import sys
        sys.modules["numba"] = None
        import importlib.util
        find = importlib.util.find_spec
        importlib.util.find_spec = lambda name, *rest: None if name == "numba" else find(name, *rest)
        import logging, numpy as np
        logging.basicConfig(stream=sys.stderr)
        from bunraku.retarget.pipeline import Retargeter
        retargeter = Retargeter("h1")
        joints = np.load("joints.npy")
        result = retargeter.solve(joints, 20.0)
        steps = np.array([retargeter.step(frame).dof for frame in joints[:4]])
        np.savez("out.npz", solved=result.solved, dof=result.dof, steps=steps)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("numba is not installed") == 1
    plain, ours = np.load(tmp_path / "out.npz"), h1.solve(moving(8), 20.0)
    np.testing.assert_allclose(plain["solved"], ours.solved, atol=1e-6)
    np.testing.assert_allclose(plain["dof"], ours.dof, atol=1e-6)
    h1.reset()
    np.testing.assert_allclose(plain["steps"], [h1.step(f).dof for f in moving(8)[:4]], atol=1e-6)
