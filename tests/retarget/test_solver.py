"""The compiled solver against MuJoCo, finite differences, daqp and a search from many seeds."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.retarget.solver.clip import ClipSettings, seed_points, solve_clip, track
from bunraku.retarget.solver.engine import CompiledEngine, make_engine
from bunraku.retarget.solver.kernels import box_qp as compiled_box_qp
from bunraku.retarget.solver.kernels import linearise
from bunraku.retarget.solver.mujoco_path import MujocoEngine, MujocoKinematics, box_qp
from bunraku.retarget.solver.problem import FrameTask, Problem, Settings
from bunraku.retarget.solver.reference import ReferenceEngine
from bunraku.retarget.solver.tree import Tree
from tests.retarget import mini_humanoid

MODEL = mini_humanoid.model()
TREE = Tree.from_model(MODEL, "waist")
PROBLEM = Problem.build(TREE, mini_humanoid.tasks(), Settings(target_step=0.02))
ENGINE = make_engine(PROBLEM, MODEL, "compiled")

ODD = """<mujoco><compiler angle="radian"/><worldbody><body name="base"><freejoint/><geom size=".1"/>
<body name="hull" pos=".1 .2 .3" quat=".9 .1 .2 .3"><geom size=".1"/>
  <body name="a" pos=".1 0 .2" quat=".7 .3 -.2 .5">
    <joint name="j0" axis="1 2 3" pos=".05 .02 -.1" range="-1 2" ref=".4"/>
    <joint name="j1" axis="0 1 -1" pos="-.1 0 .2" range="-1.5 1.5"/><geom size=".1"/>
    <body name="welded" pos="0 .1 .1" quat=".5 .5 -.5 .5"><geom size=".1"/>
      <body name="b" pos=".3 0 0"><joint name="j2" axis="0 0 1" range="-2 2"/><geom size=".1"/>
        <site name="tip" pos=".1 .2 .3" quat=".3 .4 .5 .6"/></body></body>
    <body name="c" pos="0 -.2 0"><joint name="j3" axis="1 0 0"/><geom size=".1"/></body>
  </body></body></body></worldbody></mujoco>"""


def motion(frames: int, seed: int = 0, speed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return the targets of a smooth joint motion, partly beyond the limits: `(T, K, 3)`, `(T, K, 3, 3)`."""
    rng = np.random.default_rng(seed)
    phase, times = rng.uniform(0, 2 * np.pi, TREE.n), speed * np.arange(frames)[:, None] / 20.0
    q = 0.5 * (TREE.lower + TREE.upper) + 0.55 * (TREE.upper - TREE.lower) * np.sin(times + phase)
    offsets, rotations = (
        np.empty((frames, len(PROBLEM.tasks), 3)),
        np.empty((frames, len(PROBLEM.tasks), 3, 3)),
    )
    for t in range(frames):
        for k, (frame, anchor) in enumerate(zip(PROBLEM.frames, PROBLEM.anchors, strict=True)):
            tip, rotations[t, k] = TREE.locate(q[t], frame)
            offsets[t, k] = tip - TREE.locate(q[t], anchor)[0]
    return offsets, rotations


def objective(q: np.ndarray, offsets: np.ndarray, rotations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the compiled Hessian, made whole, and gradient."""
    n = TREE.n
    hessian, gradient = np.zeros((n, n)), np.zeros(n)
    scratch = np.zeros((n, 3, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((7, 3))
    linearise(PROBLEM.packed, q, offsets, rotations, np.inf, hessian, gradient, *scratch)
    return np.tril(hessian) + np.tril(hessian, -1).T, gradient


def test_the_tree_has_mujocos_poses_for_offset_pivots_references_sites_and_welds():
    model = mujoco.MjModel.from_xml_string(ODD)
    tree, data = Tree.from_model(model, "hull"), mujoco.MjData(model)
    assert tree.joints == ("j0", "j1", "j2", "j3")
    rng = np.random.default_rng(0)
    for _ in range(20):
        q = rng.uniform(-1, 1, 4)
        data.qpos[:3], data.qpos[3:7] = rng.normal(size=3), rng.normal(size=4)
        data.qpos[tree.qpos] = q
        mujoco.mj_kinematics(model, data)
        root = data.body("hull")
        for name, thing in [(b, data.body(b)) for b in ("a", "b", "c", "welded")] + [
            ("tip", data.site("tip"))
        ]:
            pos, rot = tree.locate(q, tree.frame(name))
            base = root.xmat.reshape(3, 3)
            np.testing.assert_allclose(base @ pos + root.xpos, thing.xpos, atol=1e-12)
            np.testing.assert_allclose(base @ rot, thing.xmat.reshape(3, 3), atol=1e-12)
    assert (tree.lower[3], tree.upper[3]) == (-np.pi, np.pi)


def test_what_cannot_be_a_tree_is_refused_by_name():
    model = mujoco.MjModel.from_xml_string(ODD)
    with pytest.raises(UnknownNameError, match="did you mean 'hull'"):
        Tree.from_model(model, "hul")
    with pytest.raises(BunrakuError, match="no joint below body 'c'"):
        Tree.from_model(model, "c")
    slide = ODD.replace('<joint name="j2"', '<joint name="j2" type="slide"')
    with pytest.raises(BunrakuError, match="'j2' below 'hull' is not a hinge"):
        Tree.from_model(mujoco.MjModel.from_xml_string(slide), "hull")


def test_compiled_errors_and_costs_are_mujocos():
    offsets, rotations = motion(10)
    x = np.random.default_rng(1).uniform(TREE.lower, TREE.upper, (10, TREE.n))
    reference = MujocoEngine(PROBLEM, MODEL)
    np.testing.assert_allclose(
        ENGINE.errors(x, offsets, rotations), reference.errors(x, offsets, rotations), atol=1e-9
    )
    np.testing.assert_allclose(
        ENGINE.costs(x, offsets, rotations), reference.costs(x, offsets, rotations), rtol=1e-9
    )


def test_the_compiled_gradient_is_that_of_the_cost():
    offsets, rotations = motion(5)
    rng = np.random.default_rng(2)
    for t in range(5):
        q = rng.uniform(TREE.lower, TREE.upper)

        def cost(q: np.ndarray, t: int = t) -> float:
            return float(ENGINE.costs(q[None], offsets[t : t + 1], rotations[t : t + 1]).sum())

        numeric = [(cost(q + 1e-6 * d) - cost(q - 1e-6 * d)) / 2e-6 for d in np.eye(TREE.n)]
        np.testing.assert_allclose(objective(q, offsets[t], rotations[t])[1], numeric, rtol=1e-5, atol=1e-5)


def test_the_compiled_hessian_is_that_of_mujocos_jacobians():
    offsets, rotations = motion(5)
    kinematics = MujocoKinematics(PROBLEM, MODEL)
    for t in range(5):
        q = np.random.default_rng(t).uniform(TREE.lower, TREE.upper)
        expected = kinematics.objective(q, offsets[t], rotations[t], np.inf)
        hessian, gradient = objective(q, offsets[t], rotations[t])
        np.testing.assert_allclose(hessian, expected[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(gradient, expected[1], rtol=1e-9, atol=1e-9)


def test_an_arm_out_of_reach_does_not_drag_the_trunk():
    tasks = [FrameTask("left_wrist", "left_hand", 10.0, 0.0, "left_upper_arm")]
    problem = Problem.build(TREE, tasks)
    kinematics = MujocoKinematics(problem, MODEL)
    kinematics.update(np.zeros(TREE.n))
    linear, _ = kinematics.jacobian(0)
    # towards the anchor the trunk has no leverage: it moves hand and anchor alike
    arm = np.array([0.0, 0.0, -1.0])
    assert np.abs(arm @ linear[:, :3]).max() < 1e-12


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=60)
def test_box_qps_are_daqps(seed):
    import daqp

    rng = np.random.default_rng(seed)
    offsets, rotations = motion(1, seed % 1000)
    q = rng.uniform(TREE.lower, TREE.upper)
    hessian, gradient = objective(q, offsets[0], rotations[0])
    low, high = -rng.uniform(0, 0.3, TREE.n), rng.uniform(0, 0.3, TREE.n)
    high[rng.integers(TREE.n)] = 0.0
    n = TREE.n
    expected, _, flag, _ = daqp.solve(
        hessian, gradient, np.zeros((0, n)), high, low, np.zeros(n, dtype=np.int32)
    )
    assert flag == 1
    warm = rng.integers(-1, 2, n).astype(np.int8)
    np.testing.assert_allclose(box_qp(hessian, gradient, low, high, warm.copy()), expected, atol=1e-9)
    x = np.zeros(n)
    count = compiled_box_qp(TREE.parent, hessian, gradient, low, high, warm, x, np.zeros((n, n)), np.zeros(n))
    assert count > 0
    np.testing.assert_allclose(x, expected, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_forward_sweep_is_the_daqp_references(seed):
    offsets, rotations = motion(40, seed)
    bound = PROBLEM.step_bound(4.0, 20.0)
    for limit in (None, bound):
        ours = track(ENGINE, offsets, rotations, 30, limit)
        reference = track(ReferenceEngine(PROBLEM, MODEL), offsets, rotations, 30, limit)
        np.testing.assert_allclose(ours, reference, atol=1e-9)


def test_without_numba_a_clip_has_the_same_joints():
    offsets, rotations = motion(30, 3)
    for bound in (None, PROBLEM.step_bound(4.0, 20.0)):
        ours = solve_clip(ENGINE, offsets, rotations, bound=bound)
        plain = solve_clip(make_engine(PROBLEM, MODEL, "mujoco"), offsets, rotations, bound=bound)
        np.testing.assert_allclose(ours, plain, atol=1e-6)


@pytest.mark.parametrize("speed", [0.5, 3.0, 8.0])
def test_a_speed_bound_is_never_exceeded(speed):
    offsets, rotations = motion(60, 5, speed=4.0)
    bound = PROBLEM.step_bound(speed, 20.0)
    for x in (
        solve_clip(ENGINE, offsets, rotations, bound=bound),
        track(ENGINE, offsets, rotations, 30, bound),
    ):
        assert (np.abs(np.diff(x, axis=0)) * 20.0 <= speed).all()
        assert (x >= TREE.lower).all()
        assert (x <= TREE.upper).all()


def test_a_search_over_the_clip_is_no_worse_than_a_forward_sweep_and_jumps_less():
    cost, jumps = np.zeros(2), np.zeros(2)
    for seed in range(6):
        offsets, rotations = motion(80, seed)
        for i, x in enumerate(
            (solve_clip(ENGINE, offsets, rotations), track(ENGINE, offsets, rotations, 30))
        ):
            cost[i] += ENGINE.costs(x, offsets, rotations).sum()
            jumps[i] += (np.abs(np.diff(x, axis=0)) > 0.5).sum()
    assert cost[0] < cost[1]
    assert jumps[0] <= jumps[1]


def test_no_limb_is_left_on_a_branch_that_restarts_beat_by_far():
    offsets, rotations = motion(60, 7, speed=0.5)
    x = solve_clip(ENGINE, offsets, rotations)
    best = ENGINE.costs(x, offsets, rotations)
    least = np.full_like(best, np.inf)
    for point in seed_points(24, TREE.n):
        seed = np.tile(TREE.lower + point * (TREE.upper - TREE.lower), (len(x), 1))
        ENGINE.sweep(seed, offsets, rotations, 0, len(x) - 1, follow=False, substeps=40, target_step=0.05)
        least = np.minimum(least, ENGINE.costs(seed, offsets, rotations))
    assert (best - least > 0.02).mean() <= 0.01


def test_a_clip_of_one_frame_is_solved():
    offsets, rotations = motion(1)
    assert solve_clip(ENGINE, offsets, rotations).shape == (1, TREE.n)


def test_seed_points_are_spread_and_the_same_every_time():
    points = seed_points(64, 5)
    np.testing.assert_array_equal(points, seed_points(64, 5))
    assert (
        ((points * 4).astype(int)[:, :, None] == np.arange(4)).any(axis=0).all()
    )  # every quarter of every axis


def test_limbs_are_grouped_by_their_anchor():
    packed = PROBLEM.packed
    by_name = dict(zip(TREE.joints, packed.joint_group, strict=True))
    assert {by_name[f"chest_{axis}"] for axis in ("yaw", "roll", "pitch")} == {0}
    assert (
        by_name["left_elbow"]
        == by_name["left_shoulder_roll"]
        == packed.task_group[PROBLEM.index("left_wrist")]
    )
    assert (
        len({by_name[j] for j in ("left_elbow", "right_elbow", "left_knee", "right_knee", "head_roll")}) == 5
    )


def test_the_compiled_engine_is_the_default():
    assert isinstance(make_engine(PROBLEM, MODEL), CompiledEngine)
    assert ClipSettings.bounded().jump_price > ClipSettings().jump_price
