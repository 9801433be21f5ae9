"""The scene of a walking robot: floor, lights, and cameras that go along."""

from __future__ import annotations

import mujoco
import numpy as np

from bunraku.envs.imitation.control import add_servos
from bunraku.envs.imitation.key_points import add_sensors
from bunraku.geometry import Array, from_matrix
from bunraku.humanoid import HumanoidSpec

_CAMERAS = {"front": (3.0, 0.0, 0.5), "side": (0.0, -3.0, 0.5), "behind": (-2.6, -1.5, 0.9)}
"""Where cameras are from the root, in heights of the root above the floor."""


def humanoid_scene(robot: HumanoidSpec, timestep: float) -> mujoco.MjSpec:
    """Return the spec of a robot with servos and sensors on a floor.

    Args:
        robot: The robot.
        timestep: Physics timestep [s].
    """
    spec = robot.load(root="free")
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.option.iterations, spec.option.ls_iterations = 10, 20
    height = robot.home_height
    spec.stat.extent, spec.stat.center = 2.0 * height, [0.0, 0.0, height]
    _add_surroundings(spec)
    add_sensors(spec, robot)
    add_servos(spec, robot)
    _add_contact_sensors(spec, robot)
    root = spec.body(robot.root_body)
    for name, place in _CAMERAS.items():
        root.add_camera(
            name=name,
            pos=[height * x for x in place],
            quat=_facing(np.array(place)).tolist(),
            mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM,
            fovy=40.0,
        )
    root.add_light(
        name="key",
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        mode=mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM,
        pos=[1.0, -1.0, 3.0],
        dir=[-0.35, 0.4, -1.0],
        diffuse=[0.5, 0.49, 0.47],
        specular=[0.3, 0.3, 0.3],
        castshadow=True,
    )
    return spec


def _facing(place: Array) -> Array:
    """Return the orientation of a camera at `place` `(3,)` that looks at the origin, upright; it looks along its -z."""
    back = place / np.sqrt((place * place).sum())
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.sqrt((right * right).sum())
    return from_matrix(np.stack([right, np.cross(back, right), back], axis=-1))


def _add_surroundings(spec: mujoco.MjSpec) -> None:
    """Add sky, floor and light."""
    spec.visual.headlight.ambient = [0.32, 0.32, 0.34]
    spec.visual.headlight.diffuse = [0.22, 0.22, 0.22]
    spec.visual.headlight.specular = [0.0, 0.0, 0.0]
    spec.visual.quality.shadowsize, spec.visual.quality.offsamples = 2048, 4
    spec.visual.map.znear, spec.visual.map.zfar = 0.01, 50.0
    spec.visual.global_.offwidth, spec.visual.global_.offheight = 1920, 1080
    spec.visual.rgba.haze = [0.8, 0.85, 0.9, 1.0]
    spec.add_texture(
        name="sky",
        type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT,
        rgb1=[0.58, 0.66, 0.75],
        rgb2=[0.3, 0.36, 0.44],
        width=256,
        height=1536,
    )
    spec.add_texture(
        name="floor",
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.33, 0.36, 0.4],
        rgb2=[0.3, 0.33, 0.37],
        mark=mujoco.mjtMark.mjMARK_EDGE,
        markrgb=[0.4, 0.43, 0.47],
        width=512,
        height=512,
    )
    # seen from a small robot a tile is half a metre
    material = spec.add_material(name="floor", texuniform=True, reflectance=0.05, texrepeat=[2.0, 2.0])
    textures = list(material.textures)
    textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = "floor"
    material.textures = textures
    spec.worldbody.add_geom(
        name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], material="floor", condim=1
    )
    spec.worldbody.add_light(
        name="fill",
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        pos=[1.5, 1.8, 3.0],
        dir=[-0.6, -0.75, -0.6],
        diffuse=[0.22, 0.24, 0.28],
        specular=[0.05, 0.05, 0.05],
        castshadow=False,
    )


def _add_contact_sensors(spec: mujoco.MjSpec, robot: HumanoidSpec) -> None:
    """Add counts of contacts: within the robot, of the robot with the floor, of each foot with the floor."""
    body, geom = mujoco.mjtObj.mjOBJ_XBODY, mujoco.mjtObj.mjOBJ_GEOM
    pairs = [("self_contacts", body, robot.root_body, body, robot.root_body)]
    pairs.append(("floor_contacts", body, robot.root_body, geom, "floor"))
    pairs += [(f"foot_contacts_{i}", body, foot.body, geom, "floor") for i, foot in enumerate(robot.feet)]
    for name, objtype, objname, reftype, refname in pairs:
        spec.add_sensor(
            name=name,
            type=mujoco.mjtSensor.mjSENS_CONTACT,
            objtype=objtype,
            objname=objname,
            reftype=reftype,
            refname=refname,
            intprm=[1, 0, 1],
        )
