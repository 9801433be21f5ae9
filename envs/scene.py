"""The scene that table-top tasks share: floor, table, lights and cameras."""

from __future__ import annotations

import mujoco
import numpy as np

from bunraku.geometry import from_matrix

TABLE_HALF_LENGTH = 0.58
"""Half the extent of the table top along x [m]; its surface is at z = 0."""
TABLE_HALF_THICKNESS = 0.02
"""Half its thickness [m]."""
TABLE_CENTER_X = 0.33
"""x of the table's centre [m]; robots stand at x = 0."""

WRIST_CAMERA_QUAT = from_matrix(np.array([[0.0, 0.791, 0.611], [1.0, 0.0, 0.0], [0.0, 0.611, -0.791]]))
"""Orientation of the wrist camera in the hand: x is the hand's y, and it looks down along the tool."""

_XML = """
<mujoco model="table">
  <compiler angle="radian" autolimits="true"/>
  <option integrator="implicitfast"/>
  <visual>
    <headlight ambient="0.32 0.32 0.34" diffuse="0.22 0.22 0.22" specular="0 0 0"/>
    <quality shadowsize="2048" offsamples="4"/>
    <map shadowclip="1.2" shadowscale="0.7" znear="0.01" zfar="50"/>
    <global offwidth="1920" offheight="1080" azimuth="140" elevation="-20"/>
    <rgba haze="0.8 0.85 0.9 1"/>
  </visual>
  <statistic center="0.3 0 0.35" extent="1.2"/>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.58 0.66 0.75" rgb2="0.3 0.36 0.44"
      width="256" height="1536"/>
    <texture name="floor" type="2d" builtin="checker" rgb1="0.33 0.36 0.4" rgb2="0.3 0.33 0.37" mark="edge"
      markrgb="0.4 0.43 0.47" width="512" height="512"/>
    <material name="floor" texture="floor" texuniform="true" reflectance="0.05"/>
    <material name="table" rgba="0.66 0.58 0.49 1" specular="0.1" shininess="0.2"/>
    <material name="legs" rgba="0.25 0.26 0.28 1" specular="0.3"/>
  </asset>
  <worldbody>
    <light name="key" type="directional" pos="1.2 -1.2 2.6" dir="-0.45 0.5 -1" diffuse="0.5 0.49 0.47"
      specular="0.35 0.35 0.35" castshadow="true"/>
    <light name="fill" type="directional" pos="1.5 1.8 1.8" dir="-0.6 -0.75 -0.6" diffuse="0.22 0.24 0.28"
      specular="0.05 0.05 0.05" castshadow="false"/>
    <geom name="floor" type="plane" pos="0 0 -0.75" size="4 4 0.05" material="floor" contype="0"
    conaffinity="0"/> <camera name="front" pos="1.55 0 0.8" xyaxes="0 1 0 -0.297 0 0.955" fovy="43"/> <camera
    name="side" pos="0.3 -1.45 0.55" xyaxes="1 0 0 0 0.14 0.99" fovy="42"/>
  </worldbody>
</mujoco>
"""


def table_scene(timestep: float, half_width: float = 0.6, view: float = 1.0) -> mujoco.MjSpec:
    """Return a spec of the empty scene.

    Args:
        timestep: Physics timestep [s].
        half_width: Half the extent of the table along y [m].
        view: Factor on the distance of the cameras `front` and `side`.
    """
    spec = mujoco.MjSpec.from_string(_XML)
    spec.option.timestep = timestep
    for name in ("front", "side"):
        camera = spec.camera(name)
        camera.pos = np.array([0.35, 0.0, 0.2]) + view * (camera.pos - np.array([0.35, 0.0, 0.2]))
    box = mujoco.mjtGeom.mjGEOM_BOX
    spec.worldbody.add_geom(
        name="table",
        type=box,
        size=[TABLE_HALF_LENGTH, half_width, TABLE_HALF_THICKNESS],
        pos=[TABLE_CENTER_X, 0.0, -TABLE_HALF_THICKNESS],
        material="table",
    )
    for x in (-0.53, 0.53):
        for y in (-1.0, 1.0):
            spec.worldbody.add_geom(
                type=box,
                size=[0.025, 0.025, 0.355],
                pos=[TABLE_CENTER_X + x, y * (half_width - 0.08), -0.395],
                material="legs",
                contype=0,
                conaffinity=0,
            )
    return spec


def add_wrist_camera(spec: mujoco.MjSpec, hand_body: str, name: str) -> None:
    """Add a camera on a hand that sees the fingertips, the tool point and what lies before it."""
    spec.body(hand_body).add_camera(
        name=name, pos=[0.085, 0.0, 0.04], quat=WRIST_CAMERA_QUAT.tolist(), fovy=65.0
    )


def add_goal(spec: mujoco.MjSpec, name: str, radius: float, rgba: tuple[float, ...], axes: bool) -> None:
    """Add a goal: a mocap body that touches nothing.

    Args:
        spec: The scene.
        name: Name of the body.
        radius: Radius of the marker [m].
        rgba: Its colour.
        axes: Whether to show the axes of a wanted orientation.
    """
    body = spec.worldbody.add_body(name=name, mocap=True)
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=[radius, 0, 0],
        rgba=list(rgba),
        contype=0,
        conaffinity=0,
        group=1,
    )
    if axes:
        for i, color in enumerate(([0.85, 0.2, 0.2, 1], [0.2, 0.7, 0.2, 1], [0.2, 0.3, 0.9, 1])):
            end = [0.0, 0.0, 0.0]
            end[i] = 0.08
            body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_CAPSULE,
                fromto=[0.0, 0.0, 0.0, *end],
                size=[0.004, 0, 0],
                rgba=color,
                contype=0,
                conaffinity=0,
                group=1,
            )
