"""Kinematics by MuJoCo, always there; and what only MuJoCo knows: where a robot touches itself."""

from __future__ import annotations

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.errors import UnknownNameError
from bunraku.geometry import Pose
from bunraku.humanoid import HumanoidSpec

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

APART = 3
"""Bodies at least so many links apart can touch; nearer ones share a joint's housing."""


class MujocoKinematics:
    """Poses, Jacobians and self-contacts of a robot."""

    def __init__(self, robot: HumanoidSpec) -> None:
        """Load the robot."""
        spec = robot.load(root="fixed")
        # as a mocap body the root goes where it is put; it must not hang from another body for that
        root = spec.body(robot.root_body)
        self._movable = root.parent is not None and root.parent.name == "world"
        if self._movable:
            root.mocap = True
        self.model = spec.compile()
        self.data = mujoco.MjData(self.model)
        self.joints = robot.joints
        rows = [self.model.joint(name).id for name in robot.joints]
        self._qpos, self._dofs = self.model.jnt_qposadr[rows], self.model.jnt_dofadr[rows]
        limited = self.model.jnt_limited[rows].astype(bool)
        self.lower = np.where(limited, self.model.jnt_range[rows, 0], -np.inf)
        self.upper = np.where(limited, self.model.jnt_range[rows, 1], np.inf)
        self._frames = _frames(self.model)
        self._apart = _links_apart(self.model) >= APART
        self._jac = np.empty((6, self.model.nv))

    def update(self, dof: Array, world_root: Pose | None = None) -> None:
        """Compute all poses; see `Kinematics.update`."""
        data = self.data
        data.qpos[self._qpos] = dof
        if world_root is not None:
            if not self._movable:
                raise ValueError("the root body hangs from another body, which holds it")
            data.mocap_pos[0], data.mocap_quat[0] = world_root.pos, world_root.quat
        mujoco.mj_kinematics(self.model, data)
        mujoco.mj_comPos(self.model, data)

    def pose(self, frame: str) -> tuple[Array, Array]:
        """Return position and rotation of a frame; see `Kinematics.pose`."""
        kind, index = self._frame(frame)
        if kind == "site":
            return self.data.site_xpos[index].copy(), self.data.site_xmat[index].reshape(3, 3).copy()
        return self.data.xpos[index].copy(), self.data.xmat[index].reshape(3, 3).copy()

    def jacobian(self, frame: str) -> Array:
        """Return the Jacobian of a frame `(6, n)`; see `Kinematics.jacobian`."""
        kind, index = self._frame(frame)
        function = mujoco.mj_jacSite if kind == "site" else mujoco.mj_jacBody
        function(self.model, self.data, self._jac[:3], self._jac[3:], index)
        return self._jac[:, self._dofs].copy()

    def self_depth(self) -> float:
        """Return how deep the robot is in itself at the last `update` [m]: its deepest self-contact, 0 without."""
        mujoco.mj_collision(self.model, self.data)
        contact = self.data.contact
        if self.data.ncon == 0:
            return 0.0
        bodies = self.model.geom_bodyid[contact.geom]
        depth = -contact.dist[self._apart[bodies[:, 0], bodies[:, 1]]]
        return float(depth.max(initial=0.0))

    def self_depths(self, dof: Array) -> Array:
        """Return the deepest self-contact `(T,)` [m] at joint angles `(T, n)`, 0 where there is none."""
        depths = np.empty(len(dof))
        for t, row in enumerate(dof):
            self.update(row)
            depths[t] = self.self_depth()
        return depths

    def self_pairs(self) -> Ints:
        """Return the pairs of geoms that can touch `(P, 2)`: solid, not excluded, on bodies `APART` links apart."""
        model = self.model
        excluded = set(model.exclude_signature.tolist())
        solid = np.flatnonzero((model.geom_contype != 0) | (model.geom_conaffinity != 0))
        pairs = []
        for i, a in enumerate(solid):
            for b in solid[i + 1 :]:
                first, second = sorted((int(model.geom_bodyid[a]), int(model.geom_bodyid[b])))
                meets = (model.geom_contype[a] & model.geom_conaffinity[b]) | (
                    model.geom_contype[b] & model.geom_conaffinity[a]
                )
                if meets and self._apart[first, second] and (first << 16) + second not in excluded:
                    pairs.append((int(a), int(b)))
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)

    def self_distances(self, pairs: Ints, reach: float) -> tuple[Array, Array]:
        """Return distances of geoms `(P,)` [m], negative inside, and their gradients by the joints `(P, n)`.

        At the last `update`. Pairs further apart than `reach` have distance `reach` and no gradient.

        Args:
            pairs: Pairs of geoms `(P, 2)`, from `self_pairs`.
            reach: Distance up to which is measured [m].
        """
        model, data = self.model, self.data
        distance, gradient = np.full(len(pairs), reach), np.zeros((len(pairs), len(self.joints)))
        fromto = np.empty(6)
        jac_a, jac_b = np.empty((3, model.nv)), np.empty((3, model.nv))
        for row, (a, b) in enumerate(pairs):
            gap = (
                np.linalg.norm(data.geom_xpos[a] - data.geom_xpos[b])
                - model.geom_rbound[a]
                - model.geom_rbound[b]
            )
            if gap > reach:
                continue
            value = mujoco.mj_geomDistance(model, data, int(a), int(b), reach, fromto)
            if value >= reach:
                continue
            distance[row] = value
            along = fromto[3:] - fromto[:3]
            length = np.linalg.norm(along)
            if length < 1e-9:
                continue  # just touching: the direction is not known, and the next step will tell
            normal = along / length * np.sign(value)
            mujoco.mj_jac(model, data, jac_a, None, fromto[:3], int(model.geom_bodyid[a]))
            mujoco.mj_jac(model, data, jac_b, None, fromto[3:], int(model.geom_bodyid[b]))
            gradient[row] = (normal @ (jac_b - jac_a))[self._dofs]
        return distance, gradient

    def _frame(self, name: str) -> tuple[str, int]:
        found = self._frames.get(name)
        if found is None:
            raise UnknownNameError("body or site", name, self._frames)
        return found


def _frames(model: mujoco.MjModel) -> dict[str, tuple[str, int]]:
    """Return bodies and sites by name; a body goes before a site of the same name."""
    sites = {model.site(i).name: ("site", i) for i in range(model.nsite)}
    bodies = {model.body(i).name: ("body", i) for i in range(1, model.nbody)}
    return sites | bodies


def _links_apart(model: mujoco.MjModel) -> Ints:
    """Return how many links apart any two bodies are `(nbody, nbody)`; bodies without joints belong to their parent."""
    links = model.body_weldid
    chains: list[list[int]] = []
    for body in range(model.nbody):
        chain, link = [], int(links[body])
        while link:
            chain.append(link)
            link = int(links[model.body_parentid[link]])
        chains.append([*chain, 0])
    apart = np.zeros((model.nbody, model.nbody), dtype=np.int64)
    for a, up in enumerate(chains):
        for b, other in enumerate(chains):
            shared = next(i for i, link in enumerate(up) if link in other)
            apart[a, b] = shared + other.index(up[shared])
    return apart
