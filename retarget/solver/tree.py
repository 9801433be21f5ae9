"""The kinematic tree of any MJCF robot as plain arrays, one link per hinge joint.

A body without joints melts into its parent, a body with several hinges becomes several links, and whatever hangs
above `root_body` is left out: the root is fixed, all poses are in its frame. The arrays are all that the compiled
solver needs; MuJoCo is only read here.

    tree = Tree.from_model(model, "waist")
    tree.frame("left_hand")     # link index, position and rotation in that link; bodies and sites
"""

from __future__ import annotations

from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError, UnknownNameError
from bunraku.geometry import from_rotvec, to_matrix

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

FREE, HINGE = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_HINGE)


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame that is fixed in a link; link -1 is the root."""

    link: int
    """Index of the link."""
    pos: Array
    """Position `(3,)` in the link [m]."""
    rot: Array
    """Rotation `(3, 3)`, link from frame."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Joint axes, offsets, parents and limits of a robot whose root is fixed."""

    joints: tuple[str, ...]
    """Names of the hinges, parents before children."""
    parent: Ints
    """Link of the parent `(n,)`, -1 for the root."""
    offset: Array
    """Origin of each link in its parent `(n, 3)` [m]."""
    rotation: Array
    """Rotation of each link in its parent at joint angle zero `(n, 3, 3)`."""
    axis: Array
    """Joint axis in the link, unit `(n, 3)`."""
    lower: Array
    """Lower joint limits `(n,)` [rad]."""
    upper: Array
    """Upper joint limits `(n,)` [rad]."""
    qpos: Ints
    """Address of each joint in MuJoCo's `qpos` `(n,)`."""
    dof: Ints
    """Address of each joint in MuJoCo's `qvel` `(n,)`."""
    root_body: str
    """The body that is held still."""
    frames: dict[str, Frame]
    """The frame of the root body and of every body and site below it; a body goes before a site of the same name."""

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.joints)

    def frame(self, name: str) -> Frame:
        """Return the frame of a body or site.

        Raises:
            UnknownNameError: If no body or site of this name hangs below the root.
        """
        if name not in self.frames:
            raise UnknownNameError("body or site", name, self.frames)
        return self.frames[name]

    def chain(self, link: int) -> list[int]:
        """Return the links from the root's first one to `link`."""
        links = []
        while link >= 0:
            links.append(link)
            link = int(self.parent[link])
        return links[::-1]

    def subset(self, links: Ints) -> Tree:
        """Return the tree of some links `(m,)`, ascending, with all their ancestors among them."""
        new = np.full(self.n + 1, -1, dtype=np.int64)  # the last entry serves the root's -1
        new[links] = np.arange(len(links))
        frames = {
            name: Frame(int(new[frame.link]), frame.pos, frame.rot)
            for name, frame in self.frames.items()
            if frame.link < 0 or new[frame.link] >= 0
        }
        return Tree(
            joints=tuple(self.joints[i] for i in links),
            parent=new[self.parent[links]],
            offset=self.offset[links],
            rotation=self.rotation[links],
            axis=self.axis[links],
            lower=self.lower[links],
            upper=self.upper[links],
            qpos=self.qpos[links],
            dof=self.dof[links],
            root_body=self.root_body,
            frames=frames,
        )

    @classmethod
    def from_model(cls, model: mujoco.MjModel, root_body: str) -> Tree:
        """Read the tree below a body.

        Args:
            model: The robot; joints above `root_body` (a free joint, say) are ignored, as are those of the root.
            root_body: Name of the body to hold still.

        Raises:
            UnknownNameError: If there is no such body.
            BunrakuError: If a joint below the root is neither a hinge nor absent.
        """
        names = [model.body(i).name for i in range(model.nbody)]
        if root_body not in names:
            raise UnknownNameError("body", root_body, names)
        root = names.index(root_body)
        bodies = {root_body: Frame(-1, np.zeros(3), np.eye(3))}
        rows: list[tuple[str, int, Array, Array, Array, tuple[float, float], int, int]] = []
        for body in range(root + 1, model.nbody):
            above = names[model.body_parentid[body]]
            if above not in bodies:
                continue
            base = bodies[above]
            link = base.link
            pos = base.pos + base.rot @ model.body_pos[body]
            rot = base.rot @ to_matrix(model.body_quat[body])
            first = int(model.body_jntadr[body])
            for joint in range(first, first + int(model.body_jntnum[body])):
                name = model.joint(joint).name
                if int(model.jnt_type[joint]) != HINGE:
                    raise BunrakuError(
                        f"joint {name!r} below {root_body!r} is not a hinge; retargeting moves hinges only: "
                        "weld it in the model, or choose another root body"
                    )
                pivot, axis = model.jnt_pos[joint], model.jnt_axis[joint].copy()
                address = int(model.jnt_qposadr[joint])
                back = to_matrix(from_rotvec(-axis * model.qpos0[address]))
                limits = tuple(model.jnt_range[joint]) if model.jnt_limited[joint] else (-np.pi, np.pi)
                dof = int(model.jnt_dofadr[joint])
                rows.append((name, link, pos + rot @ pivot, rot @ back, axis, limits, address, dof))
                link, pos, rot = len(rows) - 1, -pivot, np.eye(3)
            bodies[names[body]] = Frame(link, pos, rot)
        frames = dict(bodies)
        for site in range(model.nsite):
            name, carrier = model.site(site).name, names[model.site_bodyid[site]]
            if carrier in bodies and name and name not in frames:
                base = bodies[carrier]
                pos = base.pos + base.rot @ model.site_pos[site]
                frames[name] = Frame(base.link, pos, base.rot @ to_matrix(model.site_quat[site]))
        if not rows:
            raise BunrakuError(
                f"no joint below body {root_body!r}; name the body that carries trunk and legs"
            )
        columns = list(zip(*rows, strict=True))
        ranges = np.array(columns[5])
        return cls(
            joints=tuple(columns[0]),
            parent=np.array(columns[1], dtype=np.int64),
            offset=np.array(columns[2]),
            rotation=np.array(columns[3]),
            axis=np.array(columns[4]),
            lower=ranges[:, 0].copy(),
            upper=ranges[:, 1].copy(),
            qpos=np.array(columns[6], dtype=np.int64),
            dof=np.array(columns[7], dtype=np.int64),
            root_body=root_body,
            frames=frames,
        )

    def poses(self, q: Array) -> tuple[Array, Array]:
        """Return positions `(n, 3)` and rotations `(n, 3, 3)` of all links in the root frame, one `q` `(n,)`."""
        pos, rot = np.empty((self.n, 3)), np.empty((self.n, 3, 3))
        turns = to_matrix(from_rotvec(self.axis * np.asarray(q)[:, None]))
        for i, parent in enumerate(self.parent):
            base_pos, base_rot = (pos[parent], rot[parent]) if parent >= 0 else (np.zeros(3), np.eye(3))
            pos[i] = base_pos + base_rot @ self.offset[i]
            rot[i] = base_rot @ self.rotation[i] @ turns[i]
        return pos, rot

    def locate(self, q: Array, frame: Frame) -> tuple[Array, Array]:
        """Return position and rotation of a frame in the root frame, one `q` `(n,)`."""
        if frame.link < 0:
            return frame.pos.copy(), frame.rot.copy()
        pos, rot = self.poses(q)
        base = rot[frame.link]
        return pos[frame.link] + base @ frame.pos, base @ frame.rot
