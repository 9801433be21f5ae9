"""The scene that table-top tasks share: floor, table, lights and cameras."""

from __future__ import annotations

import mujoco

TABLE_HALF_SIZE = (0.55, 0.75, 0.02)
"""Half the extent of the table top [m]; its surface is at z = 0."""
TABLE_CENTER_X = 0.35
"""x of the table's centre [m]; robots stand at x = 0."""

_XML = f"""
<mujoco model="table">
  <compiler angle="radian" autolimits="true"/>
  <option integrator="implicitfast"/>
  <visual>
    <global offwidth="1920" offheight="1080" azimuth="140" elevation="-20"/>
    <headlight ambient="0.25 0.25 0.25" diffuse="0.35 0.35 0.35" specular="0.1 0.1 0.1"/>
    <quality shadowsize="4096"/>
  </visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.75 0.82 0.9" rgb2="0.35 0.42 0.5" width="256" height="256"/>
    <texture name="floor" type="2d" builtin="checker" rgb1="0.42 0.44 0.46" rgb2="0.38 0.4 0.42" width="256" height="256"/>
    <material name="floor" texture="floor" texrepeat="8 8" reflectance="0.05"/>
    <material name="table" rgba="0.72 0.6 0.46 1" specular="0.2" shininess="0.2"/>
    <material name="table_leg" rgba="0.35 0.35 0.37 1"/>
  </asset>
  <worldbody>
    <light name="key" pos="1.2 -1.0 2.4" dir="-0.4 0.4 -1" diffuse="0.7 0.7 0.68" specular="0.3 0.3 0.3" castshadow="true"/>
    <light name="fill" pos="0.5 1.5 2.0" dir="0 -0.6 -1" diffuse="0.25 0.25 0.28" castshadow="false"/>
    <geom name="floor" type="plane" size="3 3 0.1" pos="0 0 -0.74" material="floor" contype="0" conaffinity="0"/>
    <geom name="table" type="box" size="{TABLE_HALF_SIZE[0]} {TABLE_HALF_SIZE[1]} {TABLE_HALF_SIZE[2]}"
      pos="{TABLE_CENTER_X} 0 {-TABLE_HALF_SIZE[2]}" material="table"/>
    <camera name="front" pos="1.75 0 0.9" xyaxes="0 1 0 -0.4 0 1" fovy="45"/>
    <camera name="side" pos="0.45 -1.7 0.75" xyaxes="1 0 0 0 0.3 1" fovy="45"/>
  </worldbody>
</mujoco>
"""


def table_scene(timestep: float) -> mujoco.MjSpec:
    """Return a spec of the empty scene.

    Args:
        timestep: Physics timestep [s].
    """
    spec = mujoco.MjSpec.from_string(_XML)
    spec.option.timestep = timestep
    for x in (-1, 1):
        for y in (-1, 1):
            spec.worldbody.add_geom(
                name=f"leg_{x}_{y}",
                type=mujoco.mjtGeom.mjGEOM_BOX,
                size=[0.03, 0.03, 0.35],
                pos=[
                    TABLE_CENTER_X + x * (TABLE_HALF_SIZE[0] - 0.05),
                    y * (TABLE_HALF_SIZE[1] - 0.05),
                    -0.39,
                ],
                material="table_leg",
                contype=0,
                conaffinity=0,
            )
    return spec


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
