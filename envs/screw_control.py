"""How an action moves the screw arm, for one simulation or many, and how an operator sees it.

| `control_mode` | action, each in [-1, 1] | at 1 |
|---|---|---|
| `tip_spin` | 3: moves the target of the bit's lowest point along world x, y, z; 1: turns the bit's | 0.2 m/s, 5 rad/s |
| `joint_delta` | 5: moves the targets of yaw, shoulder, elbow, level and spin | the joint's speed limit |

With `tip_spin` the driver stays vertical: the wrist's target is minus the sum of the two pitches. Inverse kinematics is closed
(`bunraku.control.yaw_pitch_pitch`), at every tick. Targets keep within a leash of what they drive, so that a blocked
bit is pressed or turned with a bounded force.

The targets (tip, spin) and commanded joints stand in `userdata`.
"""

from __future__ import annotations

from typing import Literal, get_args

import mujoco
import numpy as np

from bunraku.control import yaw_pitch_pitch
from bunraku.control.rates import Rates
from bunraku.device import HandName
from bunraku.geometry import Array, Pose, from_rotvec, multiply, normalize
from bunraku.robots.screw_arm import ROBOT, TIP_DROP
from bunraku.screw import figures
from bunraku.sim import Arrays, Sim

PREFIX = "arm_"
"""Of the arm's names in the model."""

ScrewControlMode = Literal["tip_spin", "joint_delta"]
SCREW_CONTROL_MODES: tuple[str, ...] = get_args(ScrewControlMode)

LINEAR_SPEED, SPIN_SPEED = 0.2, 5.0
"""Speed of the targets at action 1 [m/s], [rad/s]."""
LEASH = 0.02
"""The tip's target keeps within this of the tip [m]."""
SPIN_LEASH = 0.4
"""The bit's target keeps within this of the bit [rad]: twice what asks for its full torque."""
JOINT_LEASH = 0.15
"""With `joint_delta`, commands keep within this of the joints [rad]."""
WORKSPACE = np.array([[0.10, -0.10, -0.012], [0.30, 0.10, 0.20]])
"""Lower and upper corner of the box for the tip's target [m]."""
_MARGIN = 0.0005
"""Targets keep this far within the arm's reach [m]."""
TOOL_DOWN = np.array([0.0, 1.0, 0.0, 0.0])
"""Orientation of the tool's frame at spin 0: z points down."""


def joints_for(bit: Array) -> Array:
    """Return yaw, shoulder, elbow and level `(..., 4)` [rad] that hold a vertical driver's bit at `(..., 3)` [m]."""
    q = yaw_pitch_pitch.angles(bit + np.array([0.0, 0.0, TIP_DROP]), figures.ARM)
    return np.concatenate([q, -(q[..., 1:2] + q[..., 2:3])], axis=-1)


def within_reach(bit: Array) -> Array:
    """Return tip positions `(..., 3)` drawn into the workspace, and towards or away from the shoulder into reach."""
    bit = np.minimum(np.maximum(bit, WORKSPACE[0]), WORKSPACE[1])
    shoulder = np.array([0.0, 0.0, figures.ARM.shoulder_height - TIP_DROP])
    offset = bit - shoulder
    distance = np.sqrt((offset * offset).sum(axis=-1, keepdims=True))
    near, far = figures.ARM.reach()
    return shoulder + offset * (np.minimum(np.maximum(distance, near + _MARGIN), far - _MARGIN) / distance)


class ScrewArmControl:
    """The arm's part in the task; a `DrivenArm` for operators."""

    hand: HandName = "right"
    has_gripper = False
    userdata_size = 9

    def __init__(self, mode: ScrewControlMode, rates: Rates, userdata_start: int) -> None:
        """Describe the arm; `bind` gives it its simulation.

        Args:
            mode: The control mode.
            rates: The environment's rates.
            userdata_start: Where its part of `userdata` begins.
        """
        self.mode, self.rates = mode, rates
        self.size = 4 if mode == "tip_spin" else ROBOT.dof
        self.action_slice = slice(0, self.size)
        start = userdata_start
        self._target_at, self._command_at = slice(start, start + 4), slice(start + 4, start + 9)
        self._linear, self._spin = LINEAR_SPEED * rates.step, SPIN_SPEED * rates.step
        self._step_limit = np.array(ROBOT.speed_limit) * rates.step
        self._feed_forward = np.array(ROBOT.velocity_lag) / rates.tick
        self._low, self._high = figures.ARM.ranges.T

    def add_sensors(self, spec: mujoco.MjSpec) -> None:
        """Add the tool's position, orientation and velocity to the model's sensors."""
        for kind, sensor in (
            ("pos", mujoco.mjtSensor.mjSENS_FRAMEPOS),
            ("quat", mujoco.mjtSensor.mjSENS_FRAMEQUAT),
            ("vel", mujoco.mjtSensor.mjSENS_FRAMELINVEL),
        ):
            spec.add_sensor(
                name=f"tool_{kind}",
                type=sensor,
                objtype=mujoco.mjtObj.mjOBJ_SITE,
                objname=PREFIX + ROBOT.tool_site,
            )

    def bind(self, sim: Sim) -> None:
        """Take the views of a simulation's arrays that this arm needs."""
        model, n = sim.model, ROBOT.dof
        first, a0 = model.joint(PREFIX + ROBOT.joints[0]), int(model.actuator(PREFIX + ROBOT.joints[0]).id)
        q0, v0 = int(first.qposadr[0]), int(first.dofadr[0])
        self._qpos_at, self._ctrl_at = slice(q0, q0 + n), slice(a0, a0 + n)
        self.qpos, self.qvel = sim.qpos[..., q0 : q0 + n], sim.qvel[..., v0 : v0 + n]
        self._ctrl = sim.ctrl[..., a0 : a0 + n]
        s0 = int(model.sensor("tool_pos").adr[0])
        self._tool_at = slice(s0, s0 + 10)
        self.tool_state = sim.sensordata[..., self._tool_at]
        """Position, orientation and linear velocity of the bit's lowest point `(..., 10)`, world."""
        self.target_state = sim.userdata[..., self._target_at]
        """Target of the bit's lowest point [m] and of its angle [rad] `(..., 4)`, world."""
        self._command = sim.userdata[..., self._command_at]

    @property
    def bit_angle(self) -> Array:
        """Angle of the bit in the world `(...)` [rad]: it turns with the arm's yaw and with its spindle."""
        return self.qpos[..., 0] + self.qpos[..., 4]

    @property
    def bit_speed(self) -> Array:
        """How fast the bit turns in the world `(...)` [rad/s]."""
        return self.qvel[..., 0] + self.qvel[..., 4]

    def reset(self, row: Arrays, q: Array) -> None:
        """Put one simulation's arm at joint angles `(5,)` at rest."""
        row.qpos[self._qpos_at] = q
        row.ctrl[self._ctrl_at] = q
        row.userdata[self._command_at] = q

    def settle(self, row: Arrays) -> None:
        """Start the targets where the bit is, once the row's positions are up to date."""
        row.userdata[self._target_at] = [
            *row.sensordata[self._tool_at][:3],
            row.qpos[self._qpos_at][0] + row.qpos[self._qpos_at][4],
        ]

    def act(self, action: Array) -> None:
        """Take the action `(..., size)` of one control step."""
        if self.mode == "tip_spin":
            old = self.target_state.copy()
            wanted = old[..., :3] + self._linear * action[..., :3]
            lead = wanted - self.tool_state[..., :3]
            length = np.sqrt((lead * lead).sum(axis=-1, keepdims=True))
            wanted = wanted - lead * (1.0 - LEASH / np.maximum(length, LEASH))
            spin = self.bit_angle
            turned = old[..., 3] + self._spin * action[..., 3]
            self.target_state[..., :3] = within_reach(wanted)
            self.target_state[..., 3] = np.minimum(np.maximum(turned, spin - SPIN_LEASH), spin + SPIN_LEASH)
            self._old, self._way = old, self.target_state - old
            return
        q = self.qpos
        wanted = np.minimum(
            np.maximum(self._command + self._step_limit * action, q - JOINT_LEASH), q + JOINT_LEASH
        )
        wanted[..., :3] = np.minimum(np.maximum(wanted[..., :3], self._low), self._high)
        self._old, self._way = self._command.copy(), wanted - self._command
        self.target_state[..., :3] = self.tool_state[..., :3]
        self.target_state[..., 3] = wanted[..., 0] + wanted[..., 4]

    def tick(self, k: int) -> None:
        """Command the joints for the k-th tick of the step, with their speed fed forward by the actuators' lag."""
        at = self._old + self._way * ((k + 1) / self.rates.ticks)
        if self.mode == "tip_spin":
            q = joints_for(at[..., :3])
            at = np.concatenate([q, at[..., 3:4] - q[..., 0:1]], axis=-1)
        self._ctrl[...] = at + self._feed_forward * (at - self._command)
        self._command[...] = at

    # How an operator sees the arm: one simulation.

    def tool(self) -> Pose:
        """Return the pose of the bit's lowest point, world; z points down."""
        return Pose(self.tool_state[:3].copy(), self.tool_state[3:7].copy())

    def target(self) -> Pose:
        """Return the pose that the bit is driven to, world: always vertical."""
        return Pose(self.target_state[:3].copy(), spun(float(self.target_state[3])))

    def goal(self) -> Pose | None:
        """Return None: the task sets it."""
        return None

    def commanded_joints(self) -> Array:
        """Return the joint angles `(5,)` commanded [rad]."""
        return self._command.copy()

    def workspace(self) -> tuple[Array, Array]:
        """Return centre and half size `(3,)` of the box for targets, world [m]."""
        return WORKSPACE.mean(axis=0), (WORKSPACE[1] - WORKSPACE[0]) / 2

    def action_towards(self, world_tool: Pose, gripper: float) -> Array:
        """Return the action `(4,)` that drives the target towards a pose, as far as one step allows.

        Of the orientation only the turn about the vertical counts: the tool's axis is locked.

        Args:
            world_tool: The pose wanted.
            gripper: Not used.

        Raises:
            ValueError: If the control mode does not move the tip.
        """
        if self.mode != "tip_spin":
            raise ValueError(f"control_mode {self.mode!r} does not move the tip; use tip_spin")
        way = (world_tool.pos - self.target_state[:3]) / self._linear
        way = way / max(1.0, float(np.sqrt(way @ way)))
        # what is left of the turn, to the nearest way round
        turn = (twist(world_tool.quat) - float(self.target_state[3]) + np.pi) % (2.0 * np.pi) - np.pi
        return np.append(way, np.clip(turn / self._spin, -1.0, 1.0))

    def tracking_error(self) -> tuple[float, float]:
        """Return how far the commanded joints leave the tip from its target: [m] and [rad], always 0."""
        return 0.0, 0.0


def spun(angle: float) -> Array:
    """Return the orientation `(4,)` of a vertical tool turned by an angle [rad]."""
    return normalize(multiply(from_rotvec(np.array([0.0, 0.0, angle])), TOOL_DOWN))


def twist(quat: Array) -> float:
    """Return the turn [rad] of a tool about the vertical, whatever its tilt: the nearest of vertical orientations."""
    turn = multiply(quat, TOOL_DOWN * np.array([1.0, -1.0, -1.0, -1.0]))
    return 2.0 * float(np.arctan2(turn[3], turn[0]))
