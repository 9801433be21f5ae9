"""The Panda's MJCF: published figures, contacts that are real, shells that the collision geoms cover."""

import itertools
from importlib.resources import files

import mujoco
import numpy as np
import pytest

HOME = np.array([0, -0.3, 0, -2.2, 0, 2.0, 0.7854])
FOLDED = np.array([0, -0.3, 0, -3.0, 0, 0.8, 0.7854])  # elbow closed, hand turned back against the base
MASSES = {
    "link0": 0.629769,
    "link1": 4.970684,
    "link2": 0.646926,
    "link3": 3.228604,
    "link4": 3.587895,
    "link5": 1.225946,
    "link6": 1.666555,
    "link7": 0.735522,
    "hand": 0.73,
    "left_finger": 0.015,
    "right_finger": 0.015,
}
RANGES = {
    "joint1": (-2.8973, 2.8973),
    "joint2": (-1.7628, 1.7628),
    "joint3": (-2.8973, 2.8973),
    "joint4": (-3.0718, -0.0698),
    "joint5": (-2.8973, 2.8973),
    "joint6": (-0.0175, 3.7525),
    "joint7": (-2.8973, 2.8973),
    "finger_joint1": (0.0, 0.04),
    "finger_joint2": (0.0, 0.04),
}
# Links that meet at a joint or lie one short link apart: a contact could only come of round capsules.
CHAIN = ["link0", "link1", "link2", "link3", "link4", "link5", "link6", "link7"]
GRIPPER = ["link7", "hand", "left_finger", "right_finger"]
ADJACENT = {frozenset(pair) for pair in [*itertools.pairwise(CHAIN), *zip(CHAIN, CHAIN[2:], strict=False)]}
ADJACENT |= {frozenset(pair) for pair in itertools.combinations(GRIPPER, 2)}
ADJACENT |= {frozenset(("link6", name)) for name in GRIPPER}


def load_spec() -> mujoco.MjSpec:
    return mujoco.MjSpec.from_file(str(files("bunraku.robots") / "assets" / "panda.xml"))


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return load_spec().compile()


def at(model: mujoco.MjModel, arm: np.ndarray, opening: float = 0.0) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qpos[:7], data.qpos[7:] = arm, opening
    mujoco.mj_forward(model, data)
    return data


def touching(model: mujoco.MjModel, data: mujoco.MjData) -> set[frozenset[str]]:
    bodies = model.geom_bodyid[data.contact.geom]
    return {frozenset(model.body(int(body)).name for body in pair) for pair in bodies}


def sample(model: mujoco.MjModel, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(*model.jnt_range.T)


def surface(model: mujoco.MjModel, geom: int, rng: np.random.Generator, count: int = 150) -> np.ndarray:
    """Points (n, 3) on the surface of a geom, in the geom's frame [m]."""
    kind, size = mujoco.mjtGeom(model.geom_type[geom]), model.geom_size[geom]
    sphere = rng.normal(size=(count, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    if kind == mujoco.mjtGeom.mjGEOM_MESH:
        first, length = (
            model.mesh_vertadr[model.geom_dataid[geom]],
            model.mesh_vertnum[model.geom_dataid[geom]],
        )
        return model.mesh_vert[first : first + length].astype(float)
    if kind == mujoco.mjtGeom.mjGEOM_ELLIPSOID:
        return sphere * size
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return sphere * size[0] + np.sign(sphere[:, 2:]) * [0, 0, size[1]]
    if kind == mujoco.mjtGeom.mjGEOM_CYLINDER:  # its rims are what sticks out furthest
        rim = sphere[:, :2] / np.linalg.norm(sphere[:, :2], axis=1, keepdims=True) * size[0]
        return np.column_stack([rim, np.sign(sphere[:, 2]) * size[1]])
    assert kind == mujoco.mjtGeom.mjGEOM_BOX, kind
    return np.sign(sphere) * size  # likewise its corners


def outside(model: mujoco.MjModel, data: mujoco.MjData, geom: int, points: np.ndarray) -> np.ndarray:
    """How far world points (n, 3) lie outside a collision capsule or box (n,) [m]."""
    local, size = (points - data.geom_xpos[geom]) @ data.geom_xmat[geom].reshape(3, 3), model.geom_size[geom]
    if model.geom_type[geom] == int(mujoco.mjtGeom.mjGEOM_BOX):
        return np.linalg.norm(np.maximum(np.abs(local) - size, 0), axis=1)
    assert model.geom_type[geom] == int(mujoco.mjtGeom.mjGEOM_CAPSULE)
    local[:, 2] -= np.clip(local[:, 2], -size[1], size[1])
    return np.maximum(np.linalg.norm(local, axis=1) - size[0], 0)


def test_masses_and_joint_ranges_are_the_published_ones(model: mujoco.MjModel) -> None:
    for name, mass in MASSES.items():
        assert model.body(name).mass[0] == pytest.approx(mass, abs=1e-9), name
    assert model.body_mass.sum() == pytest.approx(17.4519, abs=1e-4)
    assert model.njnt == len(RANGES)
    for name, limits in RANGES.items():
        np.testing.assert_allclose(model.joint(name).range, limits, atol=1e-9, err_msg=name)


def test_the_tool_points_down_at_home(model: mujoco.MjModel) -> None:
    data = at(model, HOME)
    down = data.site("tool").xmat.reshape(3, 3)[:, 2]
    np.testing.assert_allclose(down, [0.0998, 0, -0.9950], atol=1e-3)  # home tips the tool by 0.1 rad
    assert data.site("tool").xpos[0] > 0.4
    upright = at(model, HOME - [0, 0, 0, 0, 0, 0.1, 0]).site("tool").xmat.reshape(3, 3)[:, 2]
    np.testing.assert_allclose(upright, [0, 0, -1], atol=1e-3)


@pytest.mark.parametrize("opening", [0.0, 0.02, 0.04])
def test_nothing_touches_at_home_however_far_the_gripper_is_open(
    model: mujoco.MjModel, opening: float
) -> None:
    assert at(model, HOME, opening).ncon == 0


def test_adjacent_links_never_touch_in_a_random_sample_of_configurations(model: mujoco.MjModel) -> None:
    rng, data = np.random.default_rng(20), mujoco.MjData(model)
    for _ in range(2000):
        data.qpos[:] = sample(model, rng)
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        assert not touching(model, data) & ADJACENT


def test_a_hand_driven_into_the_base_makes_contact(model: mujoco.MjModel) -> None:
    pairs = touching(model, at(model, FOLDED))
    assert {frozenset(("hand", "link0")), frozenset(("hand", "link1"))} & pairs


def test_collision_geoms_cover_the_visual_ones_within_20_mm(model: mujoco.MjModel) -> None:
    rng = np.random.default_rng(3)
    parents = model.body_parentid
    for _ in range(6):
        configuration = sample(model, rng)
        data = at(model, configuration[:7], configuration[7])
        for geom in np.flatnonzero(model.geom_group == 2):
            body = model.geom_bodyid[geom]
            near = {body, parents[body], *np.flatnonzero(parents == body)}
            local = surface(model, geom, rng)
            points = local @ data.geom_xmat[geom].reshape(3, 3).T + data.geom_xpos[geom]
            covers = [c for c in np.flatnonzero(model.geom_group == 3) if model.geom_bodyid[c] in near]
            gaps = np.min([outside(model, data, c, points) for c in covers], axis=0)
            assert gaps.max() < 0.020, f"{model.body(body).name}, geom {geom}: {gaps.max() * 1000:.1f} mm"


def test_looks_neither_weigh_nor_touch_and_contacts_are_not_drawn(model: mujoco.MjModel) -> None:
    looks, contacts = model.geom_group == 2, model.geom_group == 3
    assert looks.sum() + contacts.sum() == model.ngeom
    assert not model.geom_contype[looks].any()
    assert not model.geom_conaffinity[looks].any()
    assert model.geom_contype[contacts].all()
    assert len(set(model.geom_bodyid[looks])) == len(set(model.geom_bodyid[contacts])) == len(MASSES)


def test_leaving_out_the_looks_changes_no_bit_of_the_motion(model: mujoco.MjModel) -> None:
    spec = load_spec()
    spec.compiler.discardvisual = True
    bare = spec.compile()
    assert bare.ngeom < model.ngeom / 3
    ends = []
    for one in (model, bare):
        data = at(one, HOME, 0.02)
        data.qvel[:7] = 0.5
        mujoco.mj_step(one, data, 300)
        ends.append(np.concatenate([data.qpos, data.qvel]))
    np.testing.assert_array_equal(*ends)


def test_a_prefixed_copy_keeps_its_looks_excludes_and_contacts(model: mujoco.MjModel) -> None:
    scene = mujoco.MjSpec()
    for prefix, side in (("left_", 0.4), ("right_", -0.4)):
        scene.attach(load_spec(), prefix=prefix, frame=scene.worldbody.add_frame(pos=[0, side, 0]))
    pair = scene.compile()
    assert (pair.ngeom, pair.nexclude, pair.njnt) == (2 * model.ngeom, 2 * model.nexclude, 2 * model.njnt)
    np.testing.assert_array_equal(pair.geom_group, np.tile(model.geom_group, 2))
    white = pair.material("left_white").id
    assert white in pair.geom_matid
    data = mujoco.MjData(pair)
    data.qpos[:] = np.tile([*HOME, 0, 0], 2)
    mujoco.mj_forward(pair, data)
    assert data.ncon == 0
    reloaded = mujoco.MjModel.from_xml_string(scene.to_xml())
    assert (reloaded.ngeom, reloaded.nexclude) == (pair.ngeom, pair.nexclude)


def test_the_fingers_can_be_welded_by_deleting_their_joints() -> None:
    spec = load_spec()
    for name in ("finger_joint1", "finger_joint2"):
        spec.delete(spec.joint(name))
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:] = HOME
    mujoco.mj_forward(model, data)
    assert (model.nq, data.ncon) == (7, 0)


def test_the_finger_pads_hold_a_cube_that_is_squeezed() -> None:
    spec = load_spec()
    for name in [f"joint{number}" for number in range(1, 8)]:
        spec.delete(spec.joint(name))  # an arm that stands still leaves gripper and cube alone on stage
    data = mujoco.MjData(spec.compile())
    mujoco.mj_forward(data.model, data)
    cube = spec.worldbody.add_body(name="cube", pos=data.site("tool").xpos, quat=data.body("hand").xquat)
    cube.add_freejoint()
    cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.015] * 3, mass=0.05)
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    model = spec.compile()
    data = mujoco.MjData(model)
    fingers = [model.joint(f"finger_joint{number}") for number in (1, 2)]
    for finger in fingers:
        data.qpos[finger.qposadr] = 0.016
        data.qfrc_applied[finger.dofadr] = -10.0
    mujoco.mj_step(model, data, 500)
    assert {frozenset(("cube", "left_finger")), frozenset(("cube", "right_finger"))} <= touching(model, data)
    assert abs(data.body("cube").xpos[2] - data.site("tool").xpos[2]) < 0.005  # free fall would be metres
