"""Kinematics by Pinocchio (`pin`, on Linux and macOS); the only file that imports it.

Pinocchio reads the robot's MJCF by its own parser, so it is an independent witness of the other backend.
"""

from __future__ import annotations

import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.errors import MissingDependencyError, UnknownNameError
from bunraku.geometry import Pose, to_matrix
from bunraku.humanoid import HumanoidSpec

Array = NDArray[np.float64]


def pinocchio_model(robot: HumanoidSpec) -> Any:
    """Return the `pinocchio.Model` of a robot with a fixed root; `bunraku`'s joint, body and site names are kept.

    Raises:
        MissingDependencyError: If Pinocchio is not installed.
    """
    try:
        import pinocchio
    except ImportError as error:
        raise MissingDependencyError("pin", "the Pinocchio backend", "retarget") from error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.xml"
        path.write_text(skeleton_mjcf(robot.load(root="fixed").compile()), "utf-8")
        return pinocchio.buildModelFromMJCF(str(path))


def skeleton_mjcf(model: mujoco.MjModel) -> str:
    """Return the MJCF of a robot's bodies, hinges, masses and sites, without its shapes, at full precision.

    Pinocchio's parser does not know all shapes, and MuJoCo's own writer rounds to six digits.
    """
    root = ElementTree.Element("mujoco", model="skeleton")
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    places = [ElementTree.SubElement(root, "worldbody")]

    def text(values: NDArray[np.float64]) -> str:
        return " ".join(repr(float(v)) for v in np.atleast_1d(values))

    for body in range(1, model.nbody):
        place = ElementTree.SubElement(
            places[model.body_parentid[body]],
            "body",
            name=model.body(body).name,
            pos=text(model.body_pos[body]),
            quat=text(model.body_quat[body]),
        )
        places.append(place)
        ElementTree.SubElement(
            place,
            "inertial",
            mass=text(np.maximum(model.body_mass[body], 1e-6)),
            pos=text(model.body_ipos[body]),
            quat=text(model.body_iquat[body]),
            diaginertia=text(np.maximum(model.body_inertia[body], 1e-9)),
        )
        first = int(model.body_jntadr[body])
        for joint in range(first, first + int(model.body_jntnum[body])):
            element = ElementTree.SubElement(
                place,
                "joint",
                name=model.joint(joint).name,
                type="hinge",
                pos=text(model.jnt_pos[joint]),
                axis=text(model.jnt_axis[joint]),
            )
            if model.jnt_limited[joint]:
                element.set("range", text(model.jnt_range[joint]))
    for site in range(model.nsite):
        ElementTree.SubElement(
            places[model.site_bodyid[site]],
            "site",
            name=model.site(site).name,
            pos=text(model.site_pos[site]),
            quat=text(model.site_quat[site]),
        )
    return ElementTree.tostring(root, encoding="unicode")


class PinocchioKinematics:
    """Poses and Jacobians of a robot."""

    def __init__(self, robot: HumanoidSpec) -> None:
        """Load the robot.

        Raises:
            MissingDependencyError: If Pinocchio is not installed.
        """
        self.model = pinocchio_model(robot)
        import pinocchio

        self._pin = pinocchio
        self.data = self.model.createData()
        self.joints = robot.joints
        rows = [self.model.getJointId(name) for name in robot.joints]
        self._q = np.array([self.model.joints[row].idx_q for row in rows])
        self._v = np.array([self.model.joints[row].idx_v for row in rows])
        self.lower = self.model.lowerPositionLimit[self._q].copy()
        self.upper = self.model.upperPositionLimit[self._q].copy()
        self._frames = {frame.name: index for index, frame in enumerate(self.model.frames)}
        self._config = pinocchio.neutral(self.model)
        self._root_body = robot.root_body
        # its parser leaves out where a fixed root stands
        model = robot.load(root="fixed").compile()
        data = mujoco.MjData(model)
        mujoco.mj_kinematics(model, data)
        standing = data.body(robot.root_body)
        self._standing = Pose(standing.xpos.copy(), standing.xquat.copy())
        self._moved: Any = pinocchio.SE3.Identity()

    def update(self, dof: Array, world_root: Pose | None = None) -> None:
        """Compute all poses; see `Kinematics.update`."""
        pin = self._pin
        self._config[self._q] = dof
        pin.computeJointJacobians(self.model, self.data, self._config)
        pin.updateFramePlacements(self.model, self.data)
        # the model's root is fixed, so its whole world is moved instead
        here = self.data.oMf[self._index(self._root_body)]
        root = self._standing if world_root is None else world_root
        self._moved = pin.SE3(to_matrix(root.quat), np.asarray(root.pos)) * here.inverse()

    def pose(self, frame: str) -> tuple[Array, Array]:
        """Return position and rotation of a frame; see `Kinematics.pose`."""
        place = self._moved * self.data.oMf[self._index(frame)]
        return np.array(place.translation), np.array(place.rotation)

    def jacobian(self, frame: str) -> Array:
        """Return the Jacobian of a frame `(6, n)`; see `Kinematics.jacobian`."""
        pin = self._pin
        jac = pin.getFrameJacobian(
            self.model, self.data, self._index(frame), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )[:, self._v]
        rotation = self._moved.rotation
        return np.concatenate([rotation @ jac[:3], rotation @ jac[3:]])

    def _index(self, name: str) -> int:
        if name not in self._frames:
            raise UnknownNameError("body or site", name, self._frames)
        return self._frames[name]
