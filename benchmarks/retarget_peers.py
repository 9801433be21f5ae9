"""The peer of the retargeting benchmarks: `pink`, on the robot, task table and targets that ours has."""

from __future__ import annotations

import numpy as np
import pink
import pinocchio as pin
from numpy.typing import NDArray
from pink.limits import ConfigurationLimit, VelocityLimit

from bunraku.retarget.solver.problem import Problem

Array = NDArray[np.float64]


def pinocchio_model(problem: Problem, speed: float | None = None) -> pin.Model:
    """Return the same tree as a Pinocchio model, with a frame for each task (`t0`, ...) and anchor (`a0`, ...)."""
    tree, model = problem.tree, pin.Model()
    ids: list[int] = []
    for i in range(tree.n):
        parent = ids[tree.parent[i]] if tree.parent[i] >= 0 else 0
        joint = model.addJoint(
            parent,
            pin.JointModelRevoluteUnaligned(tree.axis[i]),
            pin.SE3(tree.rotation[i], tree.offset[i]),
            tree.joints[i],
            np.array([1e3]),
            np.array([speed or 1e3]),
            tree.lower[i : i + 1],
            tree.upper[i : i + 1],
        )
        ids.append(joint)
    for letter, frames in (("t", problem.frames), ("a", problem.anchors)):
        for k, frame in enumerate(frames):
            joint = ids[frame.link] if frame.link >= 0 else 0
            model.addFrame(
                pin.Frame(f"{letter}{k}", joint, pin.SE3(frame.rot, frame.pos), pin.FrameType.OP_FRAME)
            )
    return model


class Pink:
    """Differential IK as the source describes it: frame tasks, posture, damping, limits, substeps."""

    def __init__(
        self, problem: Problem, *, speed: float | None = None, fps: float = 20.0, solver: str = "quadprog"
    ):
        """Build tasks and limits.

        Args:
            problem: Robot, task table, weights.
            speed: Joint speed limit [rad/s]; None: none.
            fps: Frames per second, for the speed limit.
            solver: Name of the QP solver.
        """
        self.problem, self.solver = problem, solver
        self.model = pinocchio_model(problem, speed)
        self.data = self.model.createData()
        # time per substep
        self.dt = 1.0 / (fps * problem.settings.substeps)
        self.tasks = [
            pink.tasks.FrameTask(f"t{k}", position_cost=task.position, orientation_cost=task.orientation)
            for k, task in enumerate(problem.tasks)
        ]
        self.posture = pink.tasks.PostureTask(cost=problem.settings.posture)
        self.posture.set_target(problem.rest)
        self.limits = [ConfigurationLimit(self.model, config_limit_gain=problem.settings.limit_gain)]
        if speed is not None:
            self.limits.append(VelocityLimit(self.model))
        self.configuration = pink.Configuration(self.model, self.data, problem.rest)

    def aim(self, offsets: Array, rotations: Array, target_step: float) -> None:
        """Set the targets of a frame from the anchors of the present configuration."""
        for k, task in enumerate(self.tasks):
            here = self.configuration.get_transform_frame_to_world(f"t{k}")
            target = self.configuration.get_transform_frame_to_world(f"a{k}").translation + offsets[k]
            if self.problem.tasks[k].position == 0.0:
                target = here.translation
            way = target - here.translation
            distance = np.linalg.norm(way)
            if distance > target_step:
                target = here.translation + way * (target_step / distance)
            rotation = rotations[k] if self.problem.tasks[k].orientation > 0.0 else here.rotation
            task.set_target(pin.SE3(rotation, target))

    def step(self, offsets: Array, rotations: Array, substeps: int, target_step: float = np.inf) -> Array:
        """Solve one frame; return the joint angles."""
        for _ in range(substeps):
            self.aim(offsets, rotations, target_step)
            velocity = pink.solve_ik(
                self.configuration,
                [*self.tasks, self.posture],
                self.dt,
                solver=self.solver,
                damping=self.problem.settings.damping,
                limits=self.limits,
                safety_break=False,
            )
            self.configuration.integrate_inplace(velocity, self.dt)
        return self.configuration.q.copy()

    def track(
        self, offsets: Array, rotations: Array, first_steps: int = 30, target_step: float = np.inf
    ) -> Array:
        """Solve a clip from the rest posture; return the joint angles `(T, n)`."""
        self.configuration = pink.Configuration(self.model, self.data, self.problem.rest)
        substeps = self.problem.settings.substeps
        return np.array(
            [
                self.step(o, r, first_steps if t == 0 else substeps, target_step)
                for t, (o, r) in enumerate(zip(offsets, rotations, strict=True))
            ]
        )
