"""Control modes of an arm: what an action means, for one simulation or many.

| mode | action (each in [-1, 1]) | at 1 |
|---|---|---|
| `ee_delta_pos` | 3: moves the tool's target along world x, y, z; its orientation stays | 1 m/s |
| `ee_delta_pose` | 6: and turns it about world x, y, z | 1 m/s, pi rad/s |
| `joint_delta` | n: moves the joint targets | the joint's speed limit |
| `joint_pos` | n: joint targets over the joint range, approached at the speed limit | upper limit |
| `osc` | 6: as `ee_delta_pose`, followed by torques that make the tool a spring and damper | 1 m/s, pi rad/s |

With a gripper one more component follows: 1 is open, -1 is closed.

An end-effector target moves in a straight line through the ticks of a control step, and each tick takes one
damped least-squares step of the commanded joints towards it. The position actuators get the commanded joints
plus their velocity times the actuators' lag, so that motion at constant speed is followed without lag.

With `osc` the actuators are motors, and each tick computes their torques anew (`bunraku.control.osc`).

The commanded joints and the target stand in `userdata`, so they are part of the simulation's state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import mujoco
import numpy as np

from bunraku.control.dynamics import ArmDynamics
from bunraku.control.hierarchy import load_daqp
from bunraku.control.ik import DampedLeastSquares, quat_error_matrix
from bunraku.control.kinematics import ArmKinematics
from bunraku.control.osc import DAMPING_RATIO, STIFFNESS, OperationalSpace, gains
from bunraku.control.rates import PHYSICS_FREQ, Rates
from bunraku.device import HandName
from bunraku.errors import UnknownNameError
from bunraku.geometry import Array, Pose, conjugate, from_rotvec, multiply, nlerp, normalize, to_rotvec
from bunraku.robot import RobotSpec
from bunraku.sim import Arrays, Sim

ControlMode = Literal["ee_delta_pos", "ee_delta_pose", "joint_delta", "joint_pos", "osc"]
CONTROL_MODES: tuple[str, ...] = get_args(ControlMode)

LINEAR_SPEED = 1.0
"""Speed of an end-effector target at action 1 [m/s]."""
ANGULAR_SPEED = float(np.pi)
"""Turning speed of an end-effector target at action 1 [rad/s]."""
LEASH = 0.1
"""A target keeps within this of its tool, or within two steps at full speed if that is more [m].

Where joints are too slow for the tool (near a stretched elbow, beyond reach), the target would run away, and who
steers by what the tool does would have to call it back first: a proportional controller swung for ever.
"""
POSTURE_GAIN = 1.0
"""Pull of the null space towards the home posture: radians per radian off and metre of target motion."""


def check_control_mode(mode: str) -> None:
    """Raise UnknownNameError for a control mode that does not exist."""
    if mode not in CONTROL_MODES:
        raise UnknownNameError("control_mode", mode, CONTROL_MODES)


def tool_gains(
    mode: ControlMode, stiffness: Sequence[float] | None, damping_ratio: Sequence[float] | None
) -> tuple[Array, Array]:
    """Return stiffness and damping ratio `(6,)` of the tool, defaults where None was given.

    Raises:
        ValueError: If one is given for another mode than `osc`, or is not six numbers.
        MissingDependencyError: If the mode is `osc` and its solver is not installed.
    """
    if mode == "osc":
        load_daqp()
    elif stiffness is not None or damping_ratio is not None:
        raise ValueError(f"stiffness and damping_ratio are those of control_mode 'osc', not of {mode!r}")
    return (
        gains("stiffness", STIFFNESS if stiffness is None else stiffness),
        gains("damping_ratio", DAMPING_RATIO if damping_ratio is None else damping_ratio),
    )


def arm_rates(mode: ControlMode, control_freq: float, ik_freq: float | None) -> Rates:
    """Return the rates of an environment with arms.

    Args:
        mode: The control mode; joint modes have one tick per step.
        control_freq: Steps per simulated second [Hz].
        ik_freq: Inverse-kinematics ticks per second [Hz], or None for five per step, at most 250 Hz; torques
            (`osc`) at every step of physics.
    """
    if ik_freq is None and mode == "osc":
        ik_freq = PHYSICS_FREQ
    elif ik_freq is None:
        ik_freq = (
            max(control_freq, min(5.0 * control_freq, 250.0)) if mode.startswith("ee_") else control_freq
        )
    return Rates.make(control_freq, ik_freq)


class ArmControl:
    """Turns one arm's part of the action into `ctrl`, and is how an operator sees the arm (`DrivenArm`)."""

    def __init__(
        self,
        robot: RobotSpec,
        *,
        hand: HandName,
        prefix: str,
        base_pos: tuple[float, float, float],
        base_quat: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0),
        mode: ControlMode,
        gripper: bool,
        rates: Rates,
        workspace: tuple[Array, Array],
        action_start: int,
        userdata_start: int,
        goal_body: str | None = None,
        tool_gains: tuple[Array, Array] | None = None,
    ) -> None:
        """Describe the arm; `bind` gives it its simulation.

        Args:
            robot: The robot.
            hand: The hand that drives it.
            prefix: Prefix of its names in the model.
            base_pos: Its base in the world [m].
            base_quat: Orientation of its base in the world.
            mode: The control mode.
            gripper: Whether its fingers move.
            rates: The environment's rates.
            workspace: Lower and upper corner `(3,)` of the box for targets, world [m].
            action_start: Where its part of the action begins.
            userdata_start: Where its part of `userdata` begins.
            goal_body: Name of the mocap body that is its goal.
            tool_gains: Stiffness and damping ratio `(6,)` of the tool, for `osc`.
        """
        self.robot, self.hand, self.mode, self.rates = robot, hand, mode, rates
        self.has_gripper = gripper
        self._prefix, self._base, self._goal_body = prefix, (base_pos, base_quat), goal_body
        self._low, self._high = workspace
        self._tool_gains = tool_gains
        self._moves_tool = mode.startswith("ee_") or mode == "osc"
        self.torques = mode == "osc"
        """Whether its actuators are motors."""
        self.size = {"ee_delta_pos": 3, "ee_delta_pose": 6, "osc": 6}.get(mode, robot.dof) + int(gripper)
        self.action_slice = slice(action_start, action_start + self.size)
        self.userdata_size = robot.dof + 7
        n, start = robot.dof, userdata_start
        self._joints_at = slice(start, start + n)
        self._pos_at, self._quat_at = slice(start + n, start + n + 3), slice(start + n + 3, start + n + 7)
        self._home = np.array(robot.home)
        speed = np.array(robot.speed_limit)
        self._tick_limit = speed * rates.tick
        self._step_limit = speed * rates.step
        self._feed_forward = np.array(robot.velocity_lag) / rates.tick
        self._linear, self._angular = LINEAR_SPEED * rates.step, ANGULAR_SPEED * rates.step
        self._leash = max(LEASH, 2.0 * self._linear)
        self._fractions = np.arange(1, rates.ticks + 1) / rates.ticks

    def add_sensors(self, spec: mujoco.MjSpec) -> None:
        """Add the tool's position, orientation and velocity to the model's sensors."""
        for kind, sensor in (
            ("pos", mujoco.mjtSensor.mjSENS_FRAMEPOS),
            ("quat", mujoco.mjtSensor.mjSENS_FRAMEQUAT),
            ("vel", mujoco.mjtSensor.mjSENS_FRAMELINVEL),
        ):
            spec.add_sensor(
                name=f"{self._prefix}tool_{kind}",
                type=sensor,
                objtype=mujoco.mjtObj.mjOBJ_SITE,
                objname=self._prefix + self.robot.tool_site,
            )

    def bind(self, sim: Sim) -> None:
        """Take the views of a simulation's arrays that this arm needs."""
        model, robot = sim.model, self.robot
        first = model.joint(self._prefix + robot.joints[0])
        q0, v0, n = int(first.qposadr[0]), int(first.dofadr[0]), robot.dof
        self.qpos_at, self.qvel_at = slice(q0, q0 + n), slice(v0, v0 + n)
        a0 = int(model.actuator(self._prefix + robot.joints[0]).id)
        self.qpos, self.qvel = sim.qpos[..., self.qpos_at], sim.qvel[..., self.qvel_at]
        self._ctrl = sim.ctrl[..., a0 : a0 + n]
        if self.has_gripper:
            self._gripper_ctrl = sim.ctrl[..., int(model.actuator(self._prefix + "gripper").id)]
            finger = model.joint(self._prefix + robot.gripper_joints[0])
            self.finger_pos = sim.qpos[..., int(finger.qposadr[0])]
            self.finger_vel = sim.qvel[..., int(finger.dofadr[0])]
        s0 = int(model.sensor(f"{self._prefix}tool_pos").adr[0])
        self._tool_at = slice(s0, s0 + 10)
        self.tool_state = sim.sensordata[..., self._tool_at]
        """Tool position, orientation and linear velocity `(..., 10)`, world."""
        self._command = sim.userdata[..., self._joints_at]
        self._target_pos, self._target_quat = (
            sim.userdata[..., self._pos_at],
            sim.userdata[..., self._quat_at],
        )
        if self._goal_body is not None:
            mocap = int(model.body(self._goal_body).mocapid[0])
            self._goal_pos, self._goal_quat = sim.mocap_pos[..., mocap, :], sim.mocap_quat[..., mocap, :]
        joint_ids = [int(model.joint(self._prefix + name).id) for name in robot.joints]
        self._lower, self._upper = model.jnt_range[joint_ids].T.copy()
        nsim = sim.shape[0] if sim.shape else None
        if self.torques:
            dynamics = ArmDynamics(robot, *self._base, nsim=nsim)
            self.osc = OperationalSpace(dynamics, self.rates.tick, *(self._tool_gains or ()))
            self._target_velocity = np.zeros((*sim.shape, 6))
        elif self._moves_tool:
            self.ik = DampedLeastSquares(ArmKinematics(robot, *self._base, nsim=nsim))

    def reset(self, row: Arrays, q: Array) -> None:
        """Put one simulation's arm at joint angles `(n,)` at rest, gripper open."""
        row.qpos[self.qpos_at] = q
        if self.has_gripper:
            for name in self.robot.gripper_joints:
                row.qpos[int(row.model.joint(self._prefix + name).qposadr[0])] = self.robot.gripper_range[1]
            row.ctrl[int(row.model.actuator(self._prefix + "gripper").id)] = self.robot.gripper_range[1]
        a0 = int(row.model.actuator(self._prefix + self.robot.joints[0]).id)
        row.ctrl[a0 : a0 + self.robot.dof] = 0.0 if self.torques else q
        row.userdata[self._joints_at] = q

    def settle(self, row: Arrays) -> None:
        """Start the target at the tool, once the row's positions are up to date."""
        tool = row.sensordata[self._tool_at]
        row.userdata[self._pos_at], row.userdata[self._quat_at] = tool[:3], tool[3:7]

    def act(self, action: Array) -> None:
        """Take this arm's part of the action `(..., size)` for one control step."""
        if self._moves_tool:
            self._move_target(action)
        else:
            self._move_joints(action)
        if self.has_gripper:
            low, high = self.robot.gripper_range
            self._gripper_ctrl[...] = low + (high - low) * 0.5 * (action[..., -1] + 1.0)

    def _move_target(self, action: Array) -> None:
        old_pos = self._target_pos.copy()
        new_pos = self._leashed(old_pos + self._linear * action[..., :3])
        new_pos = np.minimum(np.maximum(new_pos, self._low), self._high)
        delta = new_pos - old_pos
        self._positions = old_pos + np.multiply.outer(self._fractions, delta)
        self._target_pos[...] = new_pos
        if self.torques:
            self._target_velocity[..., :3] = delta / self.rates.step
        self._pull = POSTURE_GAIN / self.rates.ticks * np.sqrt((delta * delta).sum(axis=-1, keepdims=True))
        if self.mode == "ee_delta_pos":
            self._matrices = [quat_error_matrix(self._target_quat)] * self.rates.ticks
            return
        old_quat = self._target_quat.copy()
        turn = from_rotvec(self._angular * action[..., 3:6])
        if self.torques:
            self._target_velocity[..., 3:] = ANGULAR_SPEED * action[..., 3:6]
        # turn * old, as the product with the conjugate of old's conjugate
        product = np.matmul(quat_error_matrix(turn), conjugate(old_quat)[..., None])[..., 0]
        new_quat = normalize(product)
        self._target_quat[...] = new_quat
        fractions = self._fractions.reshape(-1, *(1,) * (old_quat.ndim - 1))
        self._matrices = list(quat_error_matrix(nlerp(old_quat, new_quat, fractions)))

    def _leashed(self, pos: Array) -> Array:
        """Return target positions `(..., 3)` drawn back to within the leash of their tools."""
        tool = self.tool_state[..., :3]
        lead = pos - tool
        length = np.sqrt((lead * lead).sum(axis=-1, keepdims=True))
        return np.where(
            length > self._leash, tool + lead * (self._leash / np.maximum(length, self._leash)), pos
        )

    def _move_joints(self, action: Array) -> None:
        old = self._command.copy()
        joints = action[..., : self.robot.dof]
        if self.mode == "joint_delta":
            step = self._step_limit * joints
        else:
            wanted = self._lower + (self._upper - self._lower) * 0.5 * (joints + 1.0)
            step = np.minimum(np.maximum(wanted - old, -self._step_limit), self._step_limit)
        self._command[...] = np.minimum(np.maximum(old + step, self._lower), self._upper)
        self._ctrl[...] = self._command

    def tick(self, k: int) -> None:
        """Move the commanded joints towards the k-th target of the step; joint modes have nothing to do."""
        if not self._moves_tool:
            return
        if self.torques:
            self._command[...] = self.qpos
            self._ctrl[...] = self.osc.torque(
                self.qpos, self.qvel, self._positions[k], self._matrices[k], self._target_velocity, self._home
            )
            return
        old = self._command.copy()
        new = self.ik.step(
            old, self._positions[k], self._matrices[k], self._tick_limit, self._pull * (self._home - old)
        )
        self._command[...] = new
        # the speed limit holds for what the actuators get too: a sudden start feeds its velocity forward bit by bit
        ctrl, limit = self._ctrl, self._tick_limit
        wanted = new + self._feed_forward * (new - old)
        ctrl += np.minimum(np.maximum(wanted - ctrl, -limit), limit)

    # How an operator sees the arm: one simulation.

    def tool(self) -> Pose:
        """Return the tool's pose, world."""
        return Pose(self.tool_state[:3].copy(), self.tool_state[3:7].copy())

    def target(self) -> Pose:
        """Return the pose that the tool is driven to, world."""
        return Pose(self._target_pos.copy(), self._target_quat.copy())

    def goal(self) -> Pose | None:
        """Return the pose that the task asks for, world."""
        if self._goal_body is None:
            return None
        return Pose(self._goal_pos.copy(), self._goal_quat.copy())

    def commanded_joints(self) -> Array:
        """Return the joint angles `(n,)` that the inverse kinematics commands [rad]."""
        return self._command.copy()

    def workspace(self) -> tuple[Array, Array]:
        """Return centre and half size `(3,)` of the box for targets, world [m]."""
        return 0.5 * (self._low + self._high), 0.5 * (self._high - self._low)

    def action_towards(self, world_tool: Pose, gripper: float) -> Array:
        """Return the action `(size,)` that drives the target towards a pose, as far as one step allows.

        Args:
            world_tool: The pose wanted.
            gripper: 1 open, -1 closed; ignored without a gripper.

        Raises:
            ValueError: If the control mode does not move the tool.
        """
        if not self._moves_tool:
            raise ValueError(f"control_mode {self.mode!r} does not move the tool; use ee_delta_pose or osc")
        action = np.zeros(self.size)
        action[:3] = _shorten((world_tool.pos - self._target_pos) / self._linear)
        if self.size >= 6:
            turn = to_rotvec(multiply(world_tool.quat, conjugate(self._target_quat)))
            action[3:6] = _shorten(turn / self._angular)
        if self.has_gripper:
            action[-1] = gripper
        return action

    def tracking_error(self) -> tuple[float, float]:
        """Return how far the commanded joints (`osc`: the joints) leave the tool from its target: [m] and [rad]."""
        if not self._moves_tool:
            return 0.0, 0.0
        return self.osc.distance() if self.torques else self.ik.distance()


def _shorten(vec: Array) -> Array:
    """Scale a vector down to length 1 if it is longer, so that its direction is kept."""
    return vec / max(1.0, float(np.sqrt(vec @ vec)))
