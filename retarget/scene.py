"""A scene to look at robot motions in: robots side by side, key points, obstacles.

    scene = MotionScene([motion])
    scene.show(0.5)                 # seconds
    renderer.update_scene(scene.data, scene.camera())

Human key points are blue, the robot's green, obstacles red wire frames. All of it is in the model (key points are
mocap bodies), so every viewer and renderer shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku import plugins
from bunraku.errors import BunrakuError
from bunraku.geometry import rotate
from bunraku.humanoid import HumanoidSpec
from bunraku.motion import RobotMotion

Array = NDArray[np.float64]
Rgba = tuple[float, float, float, float]

HUMAN: Rgba = (0.13, 0.38, 0.95, 1.0)
ROBOT: Rgba = (0.12, 0.75, 0.25, 1.0)
SEE_THROUGH = 0.45
"""Opacity of the robots."""
OBSTACLE: Rgba = (0.9, 0.1, 0.1, 1.0)
_CORNERS = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
_EDGES = [(a, b) for a in range(8) for b in range(a + 1, 8) if np.abs(_CORNERS[a] - _CORNERS[b]).sum() == 2.0]
_SPHERE, _CAPSULE = int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE)


class MotionScene:
    """Robot motions in one model, each a step to the right of the one before."""

    def __init__(self, motions: Sequence[RobotMotion], robots: Sequence[HumanoidSpec] | None = None) -> None:
        """Build the model.

        Args:
            motions: What to show, at least one.
            robots: The robot of each; by default the built-in ones of their names.
        """
        if not motions:
            raise BunrakuError("there is no motion to show")
        self.motions = list(motions)
        robots = [plugins.load(plugins.ROBOTS, m.robot) for m in motions] if robots is None else list(robots)
        self._height = max(robot.home_height for robot in robots)
        spec = _stage(self._height)
        self._offsets: list[Array] = []
        for index, (motion, robot) in enumerate(zip(motions, robots, strict=True)):
            offset = np.array([0.0, -1.4 * self._height * index, 0.0])
            self._offsets.append(offset)
            self._add(spec, index, motion, robot, offset)
        self.model: mujoco.MjModel = spec.compile()
        self.data = mujoco.MjData(self.model)
        self._columns = [self._find_columns(i, motion) for i, motion in enumerate(self.motions)]
        self.show(0.0)

    @property
    def duration(self) -> float:
        """Time of the longest motion [s]."""
        return max(motion.duration for motion in self.motions)

    @property
    def fps(self) -> float:
        """Highest frame rate of the motions."""
        return max(motion.fps for motion in self.motions)

    def show(self, time: float) -> None:
        """Put everything where it is at a time [s]; motions that are over stay at their end."""
        for index, motion in enumerate(self.motions):
            frame = int(np.clip(round(time * motion.fps), 0, len(motion) - 1))
            root, joints = self._columns[index]
            self.data.qpos[joints] = motion.dof[frame]
            if root is not None:
                self.data.qpos[root : root + 7] = motion.qpos[frame, :7]
                self.data.qpos[root : root + 3] += self._offsets[index]
            if motion.human_points is not None:
                first = self.model.body(f"m{index}_human0").mocapid[0]
                points = motion.human_points[frame] + self._offsets[index]
                self.data.mocap_pos[first : first + len(points)] = points
        self.data.time = time
        mujoco.mj_forward(self.model, self.data)

    def camera(self) -> mujoco.MjvCamera:
        """Return a camera that looks at the robots from the front left and follows them."""
        roots = []
        for index, offset in enumerate(self._offsets):
            root = self._columns[index][0]
            roots.append(offset if root is None else self.data.qpos[root : root + 3])
        camera = mujoco.MjvCamera()
        camera.type = int(mujoco.mjtCamera.mjCAMERA_FREE)
        camera.lookat[:] = np.mean(roots, axis=0)
        camera.lookat[2] = 0.85 * self._height
        camera.distance = self._height * (3.2 + 1.3 * (len(roots) - 1))
        camera.azimuth, camera.elevation = (180.0 if len(roots) > 1 else 150.0), -12.0
        return camera

    def _add(
        self, spec: mujoco.MjSpec, index: int, motion: RobotMotion, robot: HumanoidSpec, offset: Array
    ) -> None:
        child = robot.load(root="free" if motion.free_root else "fixed")
        radius = 0.03 * robot.home_height
        _make_translucent(child)
        for name in dict.fromkeys(robot.frames.values()):
            body = child.body(name)
            pos = np.zeros(3)
            if body is None:
                site = child.site(name)
                body, pos = site.parent, site.pos
            body.add_geom(
                type=_SPHERE, size=[radius, 0, 0], pos=pos, rgba=ROBOT, contype=0, conaffinity=0, mass=0
            )
        # a free root's pose is in the world, whatever frame it hangs in
        at = np.zeros(3) if motion.free_root else offset
        spec.attach(child, frame=spec.worldbody.add_frame(pos=at), prefix=f"m{index}_")
        if motion.human_points is not None:
            for k in range(motion.human_points.shape[1]):
                point = spec.worldbody.add_body(name=f"m{index}_human{k}", mocap=True)
                point.add_geom(type=_SPHERE, size=[radius, 0, 0], rgba=HUMAN, contype=0, conaffinity=0)
        for box in motion.obstacles if motion.obstacles is not None else ():
            corners = box[:3] + offset + rotate(box[6:], _CORNERS * box[3:6])
            for a, b in _EDGES:
                spec.worldbody.add_geom(
                    type=_CAPSULE,
                    size=[0.25 * radius, 0, 0],
                    fromto=[*corners[a], *corners[b]],
                    rgba=OBSTACLE,
                    contype=0,
                    conaffinity=0,
                )

    def _find_columns(self, index: int, motion: RobotMotion) -> tuple[int | None, NDArray[np.int64]]:
        """Return where the root begins in `qpos`, if it is free, and the columns of the joints."""
        names = [f"m{index}_{name}" for name in motion.joint_names]
        have = {self.model.joint(i).name: i for i in range(self.model.njnt)}
        missing = [name for name in names if name not in have]
        if missing:
            raise BunrakuError(
                f"the robot {motion.robot!r} has no joint {missing[0].split('_', 1)[1]!r} that the motion moves; it"
                " may be of another version of the robot"
            )
        columns = np.array([self.model.jnt_qposadr[have[name]] for name in names], dtype=np.int64)
        free = int(mujoco.mjtJoint.mjJNT_FREE)
        roots = [
            int(self.model.jnt_qposadr[i])
            for name, i in have.items()
            if name.startswith(f"m{index}_") and int(self.model.jnt_type[i]) == free
        ]
        return (roots[0] if roots else None), columns


def _make_translucent(spec: mujoco.MjSpec) -> None:
    """Let key points be seen through a robot."""
    for material in spec.materials:
        material.rgba[3] *= SEE_THROUGH
    for geom in spec.geoms:
        if not geom.material:
            geom.rgba[3] *= SEE_THROUGH


def _stage(height: float) -> mujoco.MjSpec:
    spec = mujoco.MjSpec()
    spec.modelname = "motion"
    spec.add_texture(
        name="floor",
        type=int(mujoco.mjtTexture.mjTEXTURE_2D),
        builtin=int(mujoco.mjtBuiltin.mjBUILTIN_CHECKER),
        rgb1=[0.86, 0.88, 0.9],
        rgb2=[0.8, 0.82, 0.85],
        width=256,
        height=256,
    )
    spec.add_texture(
        name="sky",
        type=int(mujoco.mjtTexture.mjTEXTURE_SKYBOX),
        builtin=int(mujoco.mjtBuiltin.mjBUILTIN_GRADIENT),
        rgb1=[0.97, 0.98, 1.0],
        rgb2=[0.75, 0.8, 0.87],
        width=128,
        height=768,
    )
    floor = spec.add_material(name="floor", texrepeat=[2.0 / height, 2.0 / height], texuniform=True)
    floor.textures[int(mujoco.mjtTextureRole.mjTEXROLE_RGB)] = "floor"
    plane = int(mujoco.mjtGeom.mjGEOM_PLANE)
    spec.worldbody.add_geom(
        name="floor", type=plane, size=[0, 0, 0.05], material="floor", contype=0, conaffinity=0
    )
    spec.worldbody.add_light(
        pos=[2 * height, 2 * height, 5 * height], dir=[-0.35, -0.35, -0.85], castshadow=True
    )
    spec.visual.headlight.ambient = [0.45, 0.45, 0.45]
    # small robots need a near clipping plane and shadows to their size
    spec.stat.extent, spec.stat.center = 3.0 * height, [0.0, 0.0, height]
    return spec
