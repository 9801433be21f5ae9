"""A first description of an unknown humanoid, guessed from its model: from names where they speak, else from shape.

The robot is read at joint angles zero, upright with its face along x. Sides come from names (left, right, l_, _r, ...),
parts from the words of anatomy in joint names. Points that no body has (neck, head, toes, at times hands) become
sites. What was not plain is returned as remarks: a person should look at those first.
"""

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError
from bunraku.humanoid import LIMBS, Foot, HumanoidSpec, Point
from bunraku.retarget.model_files import read_model, urdf_speed_limits
from bunraku.retarget.robot_config import RobotConfig

Array = NDArray[np.float64]
Sites = dict[str, tuple[str, tuple[float, float, float]]]

HUMAN_LEG = 0.80
"""Hip to ankle of an average human skeleton [m]."""
ALONG = 0.7
"""A joint whose axis is nearer than this cosine to the limb's direction turns about the limb."""
DEFAULT_SPEED = 20.0
"""Speed limit where the model states none [rad/s]."""
_SIDES = {
    "left": re.compile(r"(^|[_\W])(left|l)(?=[_\W]|$)"),
    "right": re.compile(r"(^|[_\W])(right|r)(?=[_\W]|$)"),
}
_PARTS = {
    "hip": ("hip", "thigh"),
    "knee": ("knee",),
    "ankle": ("ankle", "foot"),
    "shoulder": ("shoulder", "arm_sh"),
    "elbow": ("elbow",),
    "wrist": ("wrist", "hand"),
}


class Guess:
    """Reads one model; `config`, `sites` and `remarks` are the result."""

    def __init__(self, path: Path) -> None:
        """Read the model.

        Args:
            path: An MJCF or URDF file.

        Raises:
            BunrakuError: If the model has no legs and arms that can be told.
        """
        self.path = path
        self.sites: Sites = {}
        self.remarks: list[str] = []
        self.model = read_model(path).compile()
        self.data = mujoco.MjData(self.model)
        mujoco.mj_kinematics(self.model, self.data)
        self.bodies = [self.model.body(b).name for b in range(self.model.nbody)]
        self.joints = [self.model.joint(j).name for j in range(self.model.njnt)]
        self.config = RobotConfig(self._robot())

    def _robot(self) -> HumanoidSpec:
        frames: dict[str, str] = {}
        feet: list[Foot] = []
        for side in ("left", "right"):
            leg = [self._joint_bodies(side, part) for part in ("hip", "knee", "ankle")]
            arm = [self._joint_bodies(side, part) for part in ("shoulder", "elbow")]
            lacking = [p for p, found in zip(("hip", "knee", "ankle"), leg, strict=True) if not found]
            lacking += [p for p, found in zip(("shoulder", "elbow"), arm, strict=True) if not found]
            if lacking:
                raise BunrakuError(
                    f"{self.path}: no joint is named {side} {' or '.join(lacking)}; write the robot file by hand"
                    " (docs/robots.md), starting from that of a built-in robot: bunraku robots new h1"
                )
            knee, ankle, elbow = leg[1][0], leg[2][-1], arm[1][0]
            frames[f"{side}_hip"] = self.bodies[self._ball(leg[0], knee)]
            frames[f"{side}_knee"] = self.bodies[knee]
            frames[f"{side}_ankle"] = self.bodies[ankle]
            frames[f"{side}_shoulder"] = self.bodies[self._ball(arm[0], elbow)]
            frames[f"{side}_elbow"] = self.bodies[elbow]
            frames[f"{side}_wrist"] = self._wrist(side, elbow)
            foot = Foot(self.bodies[ankle], self._sole(ankle))
            feet.append(foot)
            front = np.mean(foot.sole[:2], axis=0)
            frames[f"{side}_foot"] = self._site(f"{side}_toe", ankle, self._world(ankle, front))
        root = self._common([self._id(frames[f"{side}_hip"]) for side in ("left", "right")])
        chest = self._common([self._id(frames[f"{side}_shoulder"]) for side in ("left", "right")])
        frames["pelvis"], frames["spine3"] = self.bodies[root], self.bodies[chest]
        self._head(frames, chest)
        leg_length = sum(
            float(np.linalg.norm(self._at(frames[f"left_{a}"]) - self._at(frames[f"left_{b}"])))
            for a, b in (("hip", "knee"), ("knee", "ankle"))
        )
        lowest = min(self._world(self._id(f.body), corner)[2] for f in feet for corner in np.array(f.sole))
        joints = tuple(
            j
            for i, j in enumerate(self.joints)
            if int(self.model.jnt_type[i]) == int(mujoco.mjtJoint.mjJNT_HINGE)
        )
        speeds = urdf_speed_limits(self.path)
        low, high = self.model.jnt_range.T
        home = np.where(self.model.jnt_limited.astype(bool), np.clip(0.0, low, high), 0.0)
        return HumanoidSpec(
            name=self.path.stem,
            joints=joints,
            root_body=self.bodies[root],
            frames=dict(sorted(frames.items(), key=lambda item: _ORDER.index(item[0]))),
            human_scale=round(leg_length / HUMAN_LEG, 4),
            feet=(feet[0], feet[1]),
            home=tuple(float(home[self.joints.index(j)]) for j in joints),
            home_height=float(self.data.xpos[root, 2] - lowest),
            torque_limit=tuple(self._torque(j) for j in joints),
            speed_limit=tuple(speeds.get(j) or DEFAULT_SPEED for j in joints),
            load=_cannot_load,
        )

    def _joint_bodies(self, side: str, part: str) -> list[int]:
        """Return the bodies moved by the joints of a part, from the trunk outwards."""
        found = []
        for j, name in enumerate(self.joints):
            lowered = name.lower()
            if _SIDES[side].search(lowered) and any(word in lowered for word in _PARTS[part]):
                found.append(int(self.model.jnt_bodyid[j]))
        return sorted(set(found), key=lambda body: len(self._above(body)))

    def _ball(self, bodies: list[int], end: int) -> int:
        """Return the body at the centre of a ball of joints: the last one that does not just turn about the limb."""
        for body in reversed(bodies):
            axis = self.data.xaxis[self.model.body_jntadr[body]]
            limb = self.data.xpos[end] - self.data.xpos[body]
            length = np.linalg.norm(limb)
            if length > 1e-6 and abs(axis @ limb) / length < ALONG:
                return body
        return bodies[-1]

    def _wrist(self, side: str, elbow: int) -> str:
        wrists = [b for b in self._joint_bodies(side, "wrist") if elbow in self._above(b)]
        if wrists:
            return self.bodies[wrists[0]]
        below = [b for b in range(self.model.nbody) if elbow in self._above(b) and "hand" in self.bodies[b]]
        if below:
            return self.bodies[below[0]]
        end = 2.0 * self.data.xipos[elbow] - self.data.xpos[elbow]
        self.remarks.append(f"{side}_wrist: no wrist found; taken at the end of {self.bodies[elbow]}")
        return self._site(f"{side}_hand_point", elbow, end)

    def _head(self, frames: dict[str, str], chest: int) -> None:
        shoulders = [self._at(frames[f"{side}_shoulder"]) for side in ("left", "right")]
        middle = np.mean(shoulders, axis=0)
        wide = float(np.linalg.norm(shoulders[0] - shoulders[1]))
        necks = [b for b in range(self.model.nbody) if chest in self._above(b) and self.model.body_jntnum[b]]
        necks = [b for b in necks if re.search("neck|head", " ".join(self._names(b)).lower())]
        if necks:
            frames["neck"] = self.bodies[necks[0]]
            base = self.data.xpos[necks[0]]
        else:
            base = middle + [0.0, 0.0, 0.25 * wide]
            frames["neck"] = self._site("neck_point", chest, base)
            self.remarks.append("neck: no neck joint; taken above the middle of the shoulders")
        carrier = necks[-1] if necks else chest
        heads = [
            b
            for b in range(self.model.nbody)
            if carrier in self._above(b) and "head" in self.bodies[b].lower()
        ]
        heads = [b for b in heads if self.data.xpos[b, 2] > base[2] + 0.02 * wide]
        if heads:
            frames["head"] = self.bodies[heads[-1]]
        else:
            frames["head"] = self._site("head_point", carrier, base + [0.0, 0.0, 0.3 * wide])
            self.remarks.append("head: taken above the neck by 0.3 of the shoulders' width")

    def _sole(self, body: int) -> tuple[Point, Point, Point, Point]:
        """Return the corners of a foot's sole: the level rectangle under its collision geoms, else under its looks."""
        geoms = [g for g in range(self.model.ngeom) if self.model.geom_bodyid[g] == body]
        solid = [g for g in geoms if self.model.geom_contype[g] or self.model.geom_conaffinity[g]]
        points = [self._points(g) for g in solid or geoms]
        if points:
            cloud = np.concatenate(points)
        else:
            leg = self.data.xpos[body, 2] - self.data.xpos[:, 2].max()
            size = 0.1 * abs(leg)
            cloud = self.data.xpos[body] + size * np.array([[1.0, 0.4, -0.3], [-0.4, -0.4, -0.3]])
            self.remarks.append(f"{self.bodies[body]}: no geom; its sole is a guess")
        low, high = cloud.min(axis=0), cloud.max(axis=0)
        corners = [(high[0], high[1]), (high[0], low[1]), (low[0], low[1]), (low[0], high[1])]
        rot = self.data.xmat[body].reshape(3, 3)
        local = [(np.array([x, y, low[2]]) - self.data.xpos[body]) @ rot for x, y in corners]
        made = [(float(p[0]), float(p[1]), float(p[2])) for p in local]
        return made[0], made[1], made[2], made[3]

    def _points(self, geom: int) -> Array:
        """Return points `(N, 3)` in the world that span a geom: a mesh's vertices, else the corners of its box."""
        rot = self.data.geom_xmat[geom].reshape(3, 3)
        mesh = int(self.model.geom_dataid[geom])
        if int(self.model.geom_type[geom]) == int(mujoco.mjtGeom.mjGEOM_MESH):
            start, count = self.model.mesh_vertadr[mesh], self.model.mesh_vertnum[mesh]
            local = self.model.mesh_vert[start : start + count].astype(float)
        else:
            center, half = self.model.geom_aabb[geom, :3], self.model.geom_aabb[geom, 3:]
            signs = np.array(np.meshgrid([-1, 1], [-1, 1], [-1, 1])).reshape(3, -1).T
            local = center + signs * half
        points: Array = self.data.geom_xpos[geom] + local @ rot.T
        return points

    def _torque(self, joint: str) -> float:
        row = self.joints.index(joint)
        limited = bool(self.model.jnt_actfrclimited[row])
        return float(self.model.jnt_actfrcrange[row, 1]) if limited else float("inf")

    def _names(self, body: int) -> list[str]:
        first = int(self.model.body_jntadr[body])
        return [self.bodies[body], *self.joints[first : first + int(self.model.body_jntnum[body])]]

    def _above(self, body: int) -> list[int]:
        chain = []
        while body:
            chain.append(body)
            body = int(self.model.body_parentid[body])
        return chain

    def _common(self, bodies: list[int]) -> int:
        shared = [b for b in self._above(bodies[0]) if all(b in self._above(other) for other in bodies)]
        if not shared:
            raise BunrakuError(
                f"{self.path}: left and right do not hang from one body; write the robot file by hand"
            )
        return shared[0]

    def _id(self, name: str) -> int:
        return self.bodies.index(name) if name in self.bodies else self.bodies.index(self.sites[name][0])

    def _world(self, body: int, point: Array) -> Array:
        world: Array = self.data.xpos[body] + self.data.xmat[body].reshape(3, 3) @ np.asarray(point)
        return world

    def _at(self, name: str) -> Array:
        if name in self.sites:
            body, pos = self.sites[name]
            return self._world(self.bodies.index(body), np.array(pos))
        return np.array(self.data.xpos[self.bodies.index(name)])

    def _site(self, name: str, body: int, world: Array) -> str:
        local = (np.asarray(world) - self.data.xpos[body]) @ self.data.xmat[body].reshape(3, 3)
        taken = {*self.bodies, *(self.model.site(i).name for i in range(self.model.nsite))}
        name += "_guess" if name in taken else ""
        self.sites[name] = (self.bodies[body], (float(local[0]), float(local[1]), float(local[2])))
        return name


_ORDER = [
    "pelvis",
    "spine3",
    *(point for limb in LIMBS.values() for point in limb),
    "left_foot",
    "right_foot",
]


def _cannot_load(root: str = "fixed") -> mujoco.MjSpec:
    raise BunrakuError("a guessed robot is loaded from its file: write it, then load_robot(path)")
