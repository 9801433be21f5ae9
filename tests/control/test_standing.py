"""A humanoid on both feet: physics under its forces, pushes, limits, and demands that cannot be met."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

from bunraku.control.hierarchy import InfeasibleError
from bunraku.control.standing import SIDES, StandingControl, stand, standing_model
from bunraku.errors import BunrakuError
from bunraku.geometry import Array
from bunraku.humanoid import HumanoidSpec
from bunraku.robots.h1 import ROBOT as H1
from bunraku.robots.unitree_h1 import ROBOT as UNITREE_H1

pytest.importorskip("daqp", reason="control under limits needs daqp")

FRICTION = 0.8
MODELS = {robot.name: standing_model(robot) for robot in (H1, UNITREE_H1)}
both = pytest.mark.parametrize("robot", [H1, UNITREE_H1], ids=lambda robot: robot.name)


def make(robot: HumanoidSpec) -> tuple[mujoco.MjModel, mujoco.MjData, StandingControl]:
    model = MODELS[robot.name]
    return model, stand(model, robot), StandingControl(model, robot, FRICTION)


def targets(control: StandingControl, data: mujoco.MjData) -> dict[str, Array]:
    return {side: control.hand(data, side) for side in SIDES}


def lift(robot: HumanoidSpec) -> Array:
    """A move of both hands, forwards and up [m]."""
    return robot.home_height * np.array([0.1, 0.0, 0.12])


def soles(model: mujoco.MjModel, data: mujoco.MjData, robot: HumanoidSpec) -> Array:
    """Return the corners `(8, 3)` of both soles, world [m]."""
    return np.concatenate(
        [
            data.body(foot.body).xpos + np.array(foot.sole) @ data.body(foot.body).xmat.reshape(3, 3).T
            for foot in robot.feet
        ]
    )


def watch(control: StandingControl, model: mujoco.MjModel, data: mujoco.MjData, robot: HumanoidSpec) -> None:
    """Assert what holds at every step."""
    forces = control.forces
    assert (forces[..., 2] > 0.0).all()
    tangential = np.hypot(forces[..., 0], forces[..., 1])
    assert (tangential <= FRICTION * forces[..., 2] + 1e-4 * control.weight).all()
    for pressure, foot in zip(control.center_of_pressure, robot.feet, strict=True):
        corners = np.array(foot.sole)[:, :2]
        assert (corners.min(axis=0) < pressure).all()
        assert (pressure < corners.max(axis=0)).all()
    assert (np.abs(data.ctrl) <= robot.torque_limit).all()
    joints = [model.joint(name).id for name in robot.joints]
    low, high = model.jnt_range[joints].T
    assert (data.qpos[7:] >= low).all()
    assert (data.qpos[7:] <= high).all()


@pytest.mark.parametrize(
    ("robot", "share", "heading"),
    [
        (H1, 0.1, 0.0),
        (H1, 0.1, np.pi),
        (H1, 0.1, 1.0),
        (UNITREE_H1, 0.2, 0.0),
        (UNITREE_H1, 0.2, np.pi),
        (UNITREE_H1, 0.2, 1.0),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_after_a_push_it_stands_and_its_hands_are_back_within_a_centimetre_in_two_seconds(
    robot: HumanoidSpec, share: float, heading: float
) -> None:
    model, data, control = make(robot)
    start = targets(control, data)
    chest = control.chest
    push = share * control.weight * np.array([np.cos(heading), np.sin(heading), 0.0])
    errors = []
    for _ in range(round(2.6 / model.opt.timestep)):
        mujoco.mj_step1(model, data)
        data.xfrc_applied[chest, :3] = push if 0.5 <= data.time < 0.6 else 0.0
        wanted = {side: pos + min(1.0, data.time / 0.4) * lift(robot) for side, pos in start.items()}
        data.ctrl[:] = control.torque(data, wanted)
        watch(control, model, data, robot)
        mujoco.mj_step2(model, data)
        errors.append([np.linalg.norm(control.hand(data, side) - wanted[side]) for side in SIDES])
    mujoco.mj_forward(model, data)
    disturbed, after = np.array(errors)[250:400], np.array(errors)[-1]
    assert (after < 0.01).all(), after
    assert disturbed.max() > after.max()
    assert data.qpos[2] == pytest.approx(robot.home_height, rel=0.03)
    corners, center = soles(model, data, robot), data.subtree_com[0]
    assert (corners[:, :2].min(axis=0) < center[:2]).all()
    assert (center[:2] < corners[:, :2].max(axis=0)).all()
    assert (
        np.abs(data.qvel[:6]).max() < 0.05
    )  # the pelvis rests; arms may still be on their way home in the null space


@both
def test_the_forces_that_it_plans_are_those_that_the_simulator_finds(robot: HumanoidSpec) -> None:
    model, data, control = make(robot)
    wanted = targets(control, data)
    for _ in range(400):
        mujoco.mj_step1(model, data)
        data.ctrl[:] = control.torque(data, wanted)
        mujoco.mj_step2(model, data)
    mujoco.mj_forward(model, data)
    found, buffer = 0.0, np.zeros(6)
    for i in range(data.ncon):
        mujoco.mj_contactForce(model, data, i, buffer)
        found += buffer[0]
    assert control.forces[..., 2].sum() == pytest.approx(control.weight, rel=0.01)
    assert found == pytest.approx(control.weight, rel=0.01)
    assert [np.linalg.norm(control.hand(data, side) - wanted[side]) for side in SIDES] == pytest.approx(
        [0.0, 0.0], abs=3e-3
    )


@both
def test_a_hand_s_target_out_of_reach_is_refused_with_the_time(robot: HumanoidSpec) -> None:
    _, data, control = make(robot)
    data.time = 1.25
    wanted = targets(control, data)
    wanted["right"] = wanted["right"] + [2.0 * robot.home_height, 0.0, 0.0]
    with pytest.raises(BunrakuError, match=r"the right hand cannot reach its target .* at t = 1\.250 s"):
        control.torque(data, wanted)


@both
def test_a_foot_off_the_floor_is_no_contact(robot: HumanoidSpec) -> None:
    model, data, control = make(robot)
    wanted = targets(control, data)
    data.qpos[2] += 0.05
    data.time = 0.5
    mujoco.mj_forward(model, data)
    with pytest.raises(
        BunrakuError, match=rf"no contact at t = 0\.500 s: {robot.feet[0].body} is 0\.05. m above"
    ):
        control.torque(data, {side: pos + [0.0, 0.0, 0.05] for side, pos in wanted.items()})


@both
def test_feet_that_no_force_can_hold_are_an_infeasible_contact(robot: HumanoidSpec) -> None:
    model, data, _ = make(robot)
    weak = replace(robot, torque_limit=tuple(0.05 * limit for limit in robot.torque_limit))
    control = StandingControl(model, weak, FRICTION)
    wanted = targets(control, data)
    data.qvel[2] = 1.0
    mujoco.mj_forward(model, data)
    with pytest.raises(InfeasibleError, match=r"(infeasible|cannot be kept together) at t = 0\.000 s"):
        control.torque(data, wanted)


def test_standing_needs_friction() -> None:
    model: Any = MODELS["h1"]
    with pytest.raises(BunrakuError, match="the coefficient must be positive, got 0"):
        StandingControl(model, H1, friction=0.0)
