"""Self-collision is taken out, with small and smooth changes, and where it cannot be, it is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.retarget.clearance import DEEP, eased, least_change, separate
from bunraku.retarget.kinematics.mujoco_backend import MujocoKinematics
from bunraku.retarget.pipeline import Options, Retargeter
from bunraku.robots.h1 import ROBOT
from tests.retarget.test_pipeline import clip, moving, needs_clips

KINEMATICS = MujocoKinematics(ROBOT)
JOINT = {name: i for i, name in enumerate(ROBOT.joints)}


def arm_into_the_body(frames: int = 90) -> np.ndarray:
    """Return a stand in which the left arm swings into the body and back, `(frames, 28)`."""
    dof = np.tile(ROBOT.home, (frames, 1))
    swing = np.sin(np.linspace(0.0, np.pi, frames))
    dof[:, JOINT["left_shoulder_roll"]] = 0.15 - 0.6 * swing
    dof[:, JOINT["left_elbow"]] = -0.4 - 0.6 * swing
    return dof


def test_an_arm_in_the_chest_comes_out_with_a_small_and_smooth_change():
    dof = arm_into_the_body()
    before = KINEMATICS.self_depths(dof)
    assert before.max() > 0.005
    result = separate(KINEMATICS, dof, 90.0)
    assert KINEMATICS.self_depths(result.dof).max() <= DEEP
    assert not result.unresolved.any()
    assert (result.dof >= KINEMATICS.lower).all()
    assert (result.dof <= KINEMATICS.upper).all()
    assert np.abs(result.dof - dof).max() < 0.6
    steps = np.abs(np.diff(result.dof, axis=0)).max(), np.abs(np.diff(dof, axis=0)).max()
    assert steps[0] < 2.0 * steps[1]
    np.testing.assert_array_equal(result.dof[~result.changed], dof[~result.changed])


def test_a_motion_that_is_clear_stays_as_it_is():
    dof = np.tile(ROBOT.home, (20, 1))
    result = separate(KINEMATICS, dof, 90.0)
    np.testing.assert_array_equal(result.dof, dof)
    assert not result.changed.any()


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, max_examples=40)
def test_the_least_change_meets_its_constraints_and_no_scaling_of_it_is_smaller(seed):
    rng = np.random.default_rng(seed)
    gradient, lack = rng.normal(size=(3, 28)) * 0.1, rng.uniform(-0.001, 0.004, 3)
    step = least_change(gradient, lack)
    assert (gradient @ step >= lack - 1e-6).all()
    if (lack > 0).any():
        assert not (gradient @ (0.99 * step) >= lack).all()
    else:
        assert np.abs(step).max() == 0.0


def test_changes_begin_and_end_smoothly():
    change, deep = np.zeros((60, 1)), np.zeros(60, dtype=bool)
    change[30:33], deep[30:33] = 1.0, True
    out = eased(change, deep, 10)
    assert (out[30:33] == 1.0).all()
    assert out[19] == pytest.approx(0.0, abs=1e-12)
    assert np.abs(np.diff(out[:, 0])).max() < 0.16


@needs_clips
@pytest.mark.parametrize("root", ["fixed", "free"])
@pytest.mark.parametrize("name", ["mdm_throw_08", "lafan1_dance"])
def test_real_clips_have_no_frame_deeper_than_5_mm(name, root):
    plain = Retargeter("h1", options=Options(root=root, self_collision=False)).solve(clip(name), 20.0)
    clear = Retargeter("h1", options=Options(root=root)).solve(clip(name), 20.0)
    assert (KINEMATICS.self_depths(plain.dof) > 0.005).sum() > 10
    assert (KINEMATICS.self_depths(clear.dof) > 0.005).sum() == 0
    assert np.abs(clear.dof - plain.dof).mean() < 0.02


def test_the_source_pipeline_does_not_look_at_self_collision():
    assert not Options.source().self_collision
    assert Retargeter("h1").solve(moving(20), 20.0).dof.shape == (86, 28)
