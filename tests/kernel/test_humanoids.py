"""The built-in humanoids: names that exist, symmetry, a stand without self-contact, and one that holds in dynamics."""

import mujoco
import numpy as np
import pytest

from bunraku import plugins
from bunraku.humanoid import LIMBS, HumanoidSpec, humanoids
from bunraku.robots.h1 import ROBOT as H1

BONES = {  # of the 28-joint humanoid [m]
    ("left_hip", "left_knee"): 0.0832,
    ("left_knee", "left_ankle"): 0.1105,
    ("left_shoulder", "left_elbow"): 0.07579,
    ("left_elbow", "left_wrist"): 0.04739,
    ("neck", "head"): 0.022487329,
}
SIDED = {"left": "right", "right": "left"}


@pytest.fixture(params=humanoids())
def robot(request: pytest.FixtureRequest) -> HumanoidSpec:
    return plugins.load(plugins.ROBOTS, request.param)


def at_home(robot: HumanoidSpec) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = robot.load(root="free").compile()
    data = mujoco.MjData(model)
    data.qpos[2] = robot.home_height
    data.qpos[7:] = robot.home
    mujoco.mj_forward(model, data)
    return model, data


def place(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> np.ndarray:
    kinds = (("BODY", data.xpos), ("SITE", data.site_xpos))
    for kind, positions in kinds:
        index = mujoco.mj_name2id(model, int(getattr(mujoco.mjtObj, f"mjOBJ_{kind}")), name)
        if index >= 0:
            return positions[index]
    raise AssertionError(f"neither body nor site: {name}")


def mirrored(name: str) -> str:
    side, _, rest = name.partition("_")
    return f"{SIDED[side]}_{rest}" if side in SIDED else name


def test_both_humanoids_are_found_and_arms_are_not_among_them() -> None:
    assert {"h1", "unitree_h1"} <= set(humanoids())
    assert "panda" not in humanoids()


def test_joint_names_are_those_of_the_model_in_its_order(robot: HumanoidSpec) -> None:
    model = robot.load(root="free").compile()
    assert tuple(model.joint(i).name for i in range(model.njnt)) == ("root", *robot.joints)
    fixed = robot.load(root="fixed").compile()
    assert tuple(fixed.joint(i).name for i in range(fixed.njnt)) == robot.joints
    assert len(robot.home) == len(robot.torque_limit) == len(robot.speed_limit) == robot.dof
    assert np.all(fixed.jnt_range[:, 0] <= robot.home)
    assert np.all(robot.home <= fixed.jnt_range[:, 1])


def test_every_key_point_of_the_limbs_has_a_frame(robot: HumanoidSpec) -> None:
    model, data = at_home(robot)
    needed = {point for limb in LIMBS.values() for point in limb} | {"pelvis", "spine3"}
    assert needed <= set(robot.frames)
    for name in robot.frames.values():
        place(model, data, name)


def test_an_unknown_root_is_refused(robot: HumanoidSpec) -> None:
    with pytest.raises(ValueError, match="'floating'"):
        robot.load(root="floating")


def test_the_model_is_its_own_mirror_image(robot: HumanoidSpec) -> None:
    model = robot.load(root="fixed").compile()
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    rng = np.random.default_rng(3)
    low, high = model.jnt_range.T
    data.qpos[:] = rng.uniform(low, high)
    for name in robot.joints:
        twin = model.joint(mirrored(name))
        across = np.argmax(np.abs(model.jnt_axis[model.joint(name).id])) != 1  # yaw and roll change sign
        value = data.qpos[model.joint(name).qposadr[0]]
        other.qpos[twin.qposadr[0]] = -value if across else value
        assert twin.range[0] <= other.qpos[twin.qposadr[0]] <= twin.range[1]
    mujoco.mj_kinematics(model, data)
    mujoco.mj_kinematics(model, other)
    for name in robot.frames.values():
        ours, theirs = place(model, data, name), place(model, other, mirrored(name))
        np.testing.assert_allclose(ours * [1, -1, 1], theirs, atol=2e-5)


def test_it_stands_at_home_with_flat_soles_on_the_floor_and_touches_itself_nowhere(
    robot: HumanoidSpec,
) -> None:
    _, data = at_home(robot)
    assert data.ncon == 0
    for foot in robot.feet:
        body = data.body(foot.body)
        corners = body.xpos + np.array(foot.sole) @ body.xmat.reshape(3, 3).T
        np.testing.assert_allclose(corners[:, 2], 0.0, atol=1e-4)
    fixed = robot.load(root="fixed").compile()
    data = mujoco.MjData(fixed)
    mujoco.mj_forward(fixed, data)
    sole = data.body(robot.feet[0].body).xpos[2] + robot.feet[0].sole[0][2]
    assert abs(sole) < 1e-4, "the fixed root holds a straight robot on the floor"


def test_the_sole_is_the_face_of_the_collision_box(robot: HumanoidSpec) -> None:
    model = robot.load().compile()
    for foot in robot.feet:
        boxes = [
            g
            for g in range(model.ngeom)
            if model.geom_bodyid[g] == model.body(foot.body).id
            and model.geom_contype[g]
            and int(model.geom_type[g]) == int(mujoco.mjtGeom.mjGEOM_BOX)
        ]
        assert len(boxes) == 1
        center, half = model.geom_pos[boxes[0]], model.geom_size[boxes[0]]
        sole = np.array(foot.sole)
        np.testing.assert_allclose(sole.max(0)[:2], (center + half)[:2], atol=1e-9)
        np.testing.assert_allclose(sole.min(0)[:2], (center - half)[:2], atol=1e-9)
        np.testing.assert_allclose(sole[:, 2], (center - half)[2], atol=1e-9)


def test_h1_has_the_given_bone_lengths_28_joints_small_soles_and_four_kilograms() -> None:
    model, data = at_home(H1)
    assert H1.dof == 28
    for (start, end), length in BONES.items():
        for side in ("left", "right"):
            a, b = (place(model, data, H1.frames[p.replace("left", side)]) for p in (start, end))
            assert np.linalg.norm(a - b) == pytest.approx(length, abs=1e-9)
    sole = np.array(H1.feet[0].sole)
    np.testing.assert_allclose(np.ptp(sole, axis=0)[:2], [0.08, 0.04], atol=1e-12)
    assert model.body_mass.sum() == pytest.approx(4.0, abs=0.05)


@pytest.mark.parametrize("name", ["h1", "unitree_h1"])
def test_it_stands_in_simulation_after_a_push(name: str) -> None:
    """Position servos within the torque limits; a push of a tenth of its weight for 0.1 s."""
    robot: HumanoidSpec = plugins.load(plugins.ROBOTS, name)
    spec = robot.load(root="free")
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
    spec.option.timestep = 0.002
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[2], data.qpos[7:] = robot.home_height, robot.home
    mujoco.mj_forward(model, data)
    limit, home = np.array(robot.torque_limit), np.array(robot.home)
    stiffness = 20.0 * limit  # saturates at three degrees
    damping = 0.03 * stiffness
    root = model.body(robot.root_body).id
    weight = 9.81 * model.body_mass.sum()
    for step in range(1500):
        torque = stiffness * (home - data.qpos[7:]) - damping * data.qvel[6:]
        data.qfrc_applied[6:] = np.clip(torque, -limit, limit)
        data.xfrc_applied[root, 0] = 0.1 * weight if 500 <= step < 550 else 0.0
        mujoco.mj_step(model, data)
    assert data.xpos[root, 2] > 0.95 * robot.home_height
    assert data.xmat[root, 8] > 0.98
    feet = {model.body(foot.body).id for foot in robot.feet}
    standing = [c for c in data.contact if 0 in (model.geom_bodyid[c.geom1], model.geom_bodyid[c.geom2])]
    assert standing
    assert all({model.geom_bodyid[c.geom1], model.geom_bodyid[c.geom2]} <= feet | {0} for c in standing)
