"""Panda reach: bring the tool of a Franka Panda to a goal above a table.

The class serves any number of arms; `dual_panda_reach.py` has two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import mujoco
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bunraku.control.kinematics import ArmKinematics
from bunraku.device import HandName
from bunraku.envs.arm_control import ArmControl, ControlMode, arm_rates, check_control_mode, tool_gains
from bunraku.envs.options import check_choice, check_known, check_positive, unit_quaternions, vector_option
from bunraku.envs.scene import add_goal, add_wrist_camera, table_scene
from bunraku.geometry import Array, angle_between, from_rotvec, multiply, normalize, rotate
from bunraku.robots.panda import ROBOT
from bunraku.sim import Arrays, Sim

TOOL_DOWN = np.array([0.0, 1.0, 0.0, 0.0])
"""Orientation of a tool that points straight down, its x along the world's."""
SHOULDER_HEIGHT = 0.333
REACH = (0.32, 0.70)
"""Distances from the shoulder between which goals lie [m]: the tool gets there pointing down."""
FLANGE, FLANGE_REACH = 0.2104, 0.76
"""With `goal_orientation`: how far behind the tool the flange is, and how far from the shoulder it may be [m].

Of 1,500 goals with tilted tools those with the flange beyond 0.78 m could not be reached, all others could.
"""
START_NOISE = 0.05
"""Joint angles start within this of home [rad]."""
CLEARANCE = 0.05
"""Goals lie at least this far from the tool's start [m]."""
Q_BOUND, QD_BOUND, POS_BOUND, VEL_BOUND = 4.0, 20.0, 3.0, 10.0
GOAL_COLORS: Mapping[HandName, tuple[float, ...]] = {
    "left": (0.25, 0.55, 0.95, 0.9),
    "right": (0.95, 0.35, 0.2, 0.9),
}


@dataclass(frozen=True, slots=True)
class ArmPlace:
    """Where an arm stands, and where its goals and targets may be."""

    hand: HandName
    """The hand that drives it; also the prefix of its names."""
    base_pos: tuple[float, float, float]
    """Its base in the world [m]."""
    goal_low: tuple[float, float, float]
    """Lower corner of the box of goals [m]."""
    goal_high: tuple[float, float, float]
    """Upper corner."""
    workspace_low: tuple[float, float, float]
    """Lower corner of the box that end-effector targets are kept in [m]."""
    workspace_high: tuple[float, float, float]
    """Upper corner."""


class PandaReach:
    """Reach a goal with the tool centre point.

    Description:
        A Franka Panda stands at a table. A goal appears within reach and clear of the table; the tool must
        come within `success_threshold` of it (and within `angle_threshold` of its orientation, with
        `goal_orientation=True`). The episode goes on after success, unless `terminate_on_success=True`.

    Action Space:
        A box of [-1, 1]; see `bunraku.envs.arm_control` for the control modes and their physical ranges.
        Two arms: the left one's part comes first.

    Observation Space:
        A dictionary of boxes (float64). `observation`, per arm: joint angles (7) [rad], joint speeds (7)
        [rad/s], tool position (3) [m], tool orientation (4) (w, x, y, z), tool velocity (3) [m/s], all world;
        with a gripper also one finger's position [m] and speed [m/s]. `achieved_goal` and `desired_goal`, per
        arm: tool and goal position (3) [m], with `goal_orientation` followed by their orientation (4).

    Rewards:
        `reward_type="sparse"`: 0 when successful, else -1. `"dense"`: minus the distance [m], and minus a
        tenth of the angle [rad] with `goal_orientation`; the mean over arms.

    Starting State:
        Home posture with each joint off by up to 0.05 rad, at rest, gripper open; the goal uniform over the
        reachable part of the arm's box, at least 5 cm from the tool. `options`: `goal` and `goal_quat` (one
        row per arm) and `qpos` set them.

    Episode End:
        Truncated after 100 steps by default (200 with two arms); terminated only with
        `terminate_on_success=True`, or when MuJoCo finds the simulation unstable.

    Arguments:
        See `__init__`.

    Version History:
        v0: first version.
    """

    places: tuple[ArmPlace, ...] = (
        ArmPlace("right", (0.0, 0.0, 0.0), (0.3, -0.35, 0.08), (0.65, 0.35, 0.55),
                 (0.15, -0.65, 0.015), (0.85, 0.65, 0.95)),
    )  # fmt: skip
    recorded_options: ClassVar[Mapping[str, Any]] = {"control_mode": "ee_delta_pose", "gripper": True}
    """What `collect` records with unless told otherwise; a task without it cannot be driven by a hand."""
    table_half_width = 0.6
    camera_distance = 1.0

    def __init__(
        self,
        *,
        control_mode: ControlMode = "ee_delta_pos",
        gripper: bool = False,
        control_freq: float = 20.0,
        ik_freq: float | None = None,
        reward_type: Literal["sparse", "dense"] = "sparse",
        success_threshold: float = 0.02,
        goal_orientation: bool = False,
        angle_threshold: float = 0.1,
        terminate_on_success: bool = False,
        robot_model: Literal["primitives", "menagerie"] = "primitives",
        stiffness: Sequence[float] | None = None,
        damping_ratio: Sequence[float] | None = None,
    ) -> None:
        """Build the model.

        Args:
            control_mode: What an action means: `ee_delta_pos`, `ee_delta_pose`, `joint_delta`, `joint_pos` or
                `osc` (torques; needs the `control` extra).
            gripper: Whether the fingers move; adds the last component of an arm's action.
            control_freq: Steps per simulated second [Hz], up to 200 and more.
            ik_freq: Inverse-kinematics ticks per second [Hz]; by default five per step, at most 250 Hz; joint
                modes need none; `osc` computes torques as often, by default at every step of physics.
            reward_type: `sparse` or `dense`.
            success_threshold: Distance [m] that counts as reached.
            goal_orientation: Whether the goal's orientation counts too.
            angle_threshold: Angle [rad] that counts as reached.
            terminate_on_success: Whether reaching the goal ends the episode.
            robot_model: Our own model from primitives, or MuJoCo Menagerie's meshes (needs the `robots`
                extra).
            stiffness: With `osc`, the tool's along and about world x, y, z (6) [N/m, N m/rad].
            damping_ratio: With `osc`, share of critical damping of each (6).

        Raises:
            ValueError: If an option is out of range; the message names it.
        """
        check_control_mode(control_mode)
        check_choice("reward_type", reward_type, ("sparse", "dense"))
        check_choice("robot_model", robot_model, ("primitives", "menagerie"))
        check_positive("success_threshold", success_threshold)
        check_positive("angle_threshold", angle_threshold)
        self.rates = arm_rates(control_mode, control_freq, ik_freq)
        self.reward_type, self.goal_orientation = reward_type, goal_orientation
        self.success_threshold, self.angle_threshold = success_threshold, angle_threshold
        self.terminate_on_success = terminate_on_success
        self._goal_size = 7 if goal_orientation else 3
        self._tool_gains = tool_gains(control_mode, stiffness, damping_ratio)
        self._controls = self._make_controls(control_mode, gripper)
        self.model = self._build(robot_model)
        self._mocap = [int(self.model.body(f"{p.hand}_goal").mocapid[0]) for p in self.places]
        self._start = {p.hand: ArmKinematics(ROBOT, p.base_pos) for p in self.places}
        self._make_spaces(gripper)

    # Building.

    def _make_controls(self, mode: ControlMode, gripper: bool) -> list[ArmControl]:
        controls: list[ArmControl] = []
        action, userdata = 0, 0
        for place in self.places:
            control = ArmControl(
                ROBOT,
                hand=place.hand,
                prefix=f"{place.hand}_",
                base_pos=place.base_pos,
                mode=mode,
                gripper=gripper,
                rates=self.rates,
                workspace=(np.array(place.workspace_low), np.array(place.workspace_high)),
                action_start=action,
                userdata_start=userdata,
                goal_body=f"{place.hand}_goal",
                tool_gains=self._tool_gains,
            )
            action += control.size
            userdata += control.userdata_size
            controls.append(control)
        return controls

    def _build(self, robot_model: str) -> mujoco.MjModel:
        spec = table_scene(self.rates.timestep, self.table_half_width, self.camera_distance)
        source = menagerie_panda if robot_model == "menagerie" else None
        for place, control in zip(self.places, self._controls, strict=True):
            ROBOT.attach(
                spec,
                prefix=f"{place.hand}_",
                pos=place.base_pos,
                gripper=control.has_gripper,
                torque=control.torques,
                source=source,
            )
            add_goal(
                spec,
                f"{place.hand}_goal",
                self.success_threshold,
                GOAL_COLORS[place.hand],
                self.goal_orientation,
            )
            control.add_sensors(spec)
            wrist = "wrist" if len(self.places) == 1 else f"{place.hand}_wrist"
            add_wrist_camera(spec, f"{place.hand}_hand", wrist)
        spec.nuserdata = sum(c.userdata_size for c in self._controls)
        model = spec.compile()
        self.mjcf = spec.to_xml()
        return model

    def _make_spaces(self, gripper: bool) -> None:
        arm = [Q_BOUND] * 7 + [QD_BOUND] * 7 + [POS_BOUND] * 3 + [1.0] * 4 + [VEL_BOUND] * 3
        arm += [1.0, VEL_BOUND] if gripper else []
        goal = [POS_BOUND] * 3 + [1.0] * (self._goal_size - 3)
        self._arm_size = len(arm)
        bound, goal_bound = np.array(arm * len(self.places)), np.array(goal * len(self.places))
        self.observation_space = spaces.Dict(
            {
                "observation": spaces.Box(-bound, bound, dtype=np.float64),
                "achieved_goal": spaces.Box(-goal_bound, goal_bound, dtype=np.float64),
                "desired_goal": spaces.Box(-goal_bound, goal_bound, dtype=np.float64),
            }
        )
        size = sum(c.size for c in self._controls)
        self.action_space = spaces.Box(-1.0, 1.0, (size,), dtype=np.float32)

    # One episode.

    def bind(self, sim: Sim) -> None:
        """Work on this simulation (or these) from now on."""
        self.sim = sim
        for control in self._controls:
            control.bind(sim)
        width = self._arm_size
        self._observation = np.zeros((*sim.shape, width * len(self.places)))
        self._achieved = np.zeros((*sim.shape, self._goal_size * len(self.places)))
        self._desired = np.zeros_like(self._achieved)
        self._copies: list[tuple[Array, Array]] = []
        g = self._goal_size
        for i, (control, mocap) in enumerate(zip(self._controls, self._mocap, strict=True)):
            part = self._observation[..., i * width : (i + 1) * width]
            achieved, desired = self._achieved[..., i * g : i * g + g], self._desired[..., i * g : i * g + g]
            tool = control.tool_state
            self._copies += [
                (part[..., 0:7], control.qpos),
                (part[..., 7:14], control.qvel),
                (part[..., 14:24], tool),
                (achieved, tool[..., :g]),
                (desired[..., :3], sim.mocap_pos[..., mocap, :]),
            ]
            if self.goal_orientation:
                self._copies.append((desired[..., 3:], sim.mocap_quat[..., mocap, :]))
            if control.has_gripper:
                self._copies += [(part[..., 24], control.finger_pos), (part[..., 25], control.finger_vel)]

    def reset(self, row: Arrays, rng: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Write the initial state of one simulation."""
        check_known("reset option", options, ("goal", "goal_quat", "qpos"))
        arms = len(self.places)
        goals = vector_option("goal", options.get("goal"), (arms, 3))
        quats = unit_quaternions("goal_quat", vector_option("goal_quat", options.get("goal_quat"), (arms, 4)))
        joints = vector_option("qpos", options.get("qpos"), (arms, ROBOT.dof))
        for i, (place, control, mocap) in enumerate(
            zip(self.places, self._controls, self._mocap, strict=True)
        ):
            drawn_q = np.array(ROBOT.home) + rng.uniform(-START_NOISE, START_NOISE, ROBOT.dof)
            q = drawn_q if joints is None else joints[i]
            drawn_goal, drawn_quat = self._draw_goal(place, drawn_q, rng)
            control.reset(row, q)
            row.mocap_pos[mocap] = drawn_goal if goals is None else goals[i]
            row.mocap_quat[mocap] = drawn_quat if quats is None else quats[i]

    def _draw_goal(self, place: ArmPlace, q: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw from the place's box, and an orientation, until both are within reach and clear of the tool."""
        kinematics = self._start[place.hand]
        kinematics.update(q)
        tool = kinematics.pos
        shoulder = np.array(place.base_pos) + (0.0, 0.0, SHOULDER_HEIGHT)
        while True:
            goal = rng.uniform(place.goal_low, place.goal_high)
            quat = self._draw_quat(rng) if self.goal_orientation else TOOL_DOWN
            reach = float(np.linalg.norm(goal - shoulder))
            flange = goal - rotate(quat, np.array([0.0, 0.0, FLANGE]))
            within = (
                REACH[0] <= reach <= REACH[1] and float(np.linalg.norm(flange - shoulder)) <= FLANGE_REACH
            )
            if within and float(np.linalg.norm(goal - tool)) >= CLEARANCE:
                return goal, quat

    def _draw_quat(self, rng: np.random.Generator) -> Array:
        """Draw an orientation: pointing down, tilted up to 30 degrees, turned up to 60 about the vertical."""
        heading, tilt = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(0.0, np.pi / 6)
        turn = rng.uniform(-np.pi / 3, np.pi / 3)
        tilted = from_rotvec(tilt * np.array([np.cos(heading), np.sin(heading), 0.0]))
        return multiply(multiply(tilted, from_rotvec(np.array([0.0, 0.0, turn]))), TOOL_DOWN)

    def settle(self, row: Arrays) -> None:
        """Start each target at its tool."""
        for control in self._controls:
            control.settle(row)

    def act(self, action: Array) -> None:
        """Take the action `(..., A)` of one control step."""
        for control in self._controls:
            control.act(action[..., control.action_slice])

    @property
    def open_loop(self) -> bool:
        """Whether the ticks of a step depend on nothing that moves in it."""
        return not any(control.torques for control in self._controls)

    def tick(self, k: int) -> None:
        """Write `ctrl` for the k-th tick of the control step."""
        for control in self._controls:
            control.tick(k)

    def observe(self) -> dict[str, NDArray[Any]]:
        """Return copies of the observations `(..., n)`."""
        for out, live in self._copies:
            out[...] = live
        return {
            "observation": self._observation.copy(),
            "achieved_goal": self._achieved.copy(),
            "desired_goal": self._desired.copy(),
        }

    # What is wanted.

    def distances(self, achieved: Array, desired: Array) -> tuple[Array, Array]:
        """Return the distances [m] and angles [rad] `(..., arms)` between goals `(..., G)`."""
        shape = (*achieved.shape[:-1], len(self.places), self._goal_size)
        achieved, desired = achieved.reshape(shape), desired.reshape(shape)
        offset = achieved[..., :3] - desired[..., :3]
        distance = np.sqrt((offset * offset).sum(axis=-1))
        if not self.goal_orientation:
            return distance, np.zeros_like(distance)
        return distance, angle_between(normalize(achieved[..., 3:]), normalize(desired[..., 3:]))

    def reached(self, achieved: Array, desired: Array) -> NDArray[np.bool_]:
        """Return whether every arm is at its goal `(...)`."""
        distance, angle = self.distances(achieved, desired)
        near: NDArray[np.bool_] = (distance < self.success_threshold) & (angle < self.angle_threshold)
        return np.all(near, axis=-1)

    def compute_reward(self, achieved: Array, desired: Array) -> Array:
        """Return the reward `(...)` of goals `(..., G)`."""
        if self.reward_type == "sparse":
            return np.asarray(self.reached(achieved, desired) - 1.0, dtype=np.float64)
        distance, angle = self.distances(achieved, desired)
        return -(distance + 0.1 * angle).mean(axis=-1)

    def reward(self, observation: Mapping[str, NDArray[Any]], success: NDArray[np.bool_]) -> Array:
        """Return the reward `(...)`, given also what `success` said of the observation."""
        if self.reward_type == "sparse":
            return np.asarray(success - 1.0, dtype=np.float64)
        return self.compute_reward(observation["achieved_goal"], observation["desired_goal"])

    def success(self, observation: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return whether every arm is at its goal `(...)`."""
        return self.reached(observation["achieved_goal"], observation["desired_goal"])

    def terminated(self, success: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether the episode ends `(...)`."""
        return success if self.terminate_on_success else np.zeros_like(success)

    def arms(self) -> Sequence[ArmControl]:
        """Return the arms that hands drive."""
        return self._controls


def menagerie_panda() -> mujoco.MjSpec:
    """Return MuJoCo Menagerie's meshed Panda, without actuators, with our tool site.

    Raises:
        MissingDependencyError: If `mujoco_menagerie` is not installed.
        BunrakuError: If it cannot get the model.
    """
    from bunraku.robots._menagerie import meshed

    return meshed(ROBOT, "franka_emika_panda", "panda.xml", tool_offset=0.1034)


TASK: type[PandaReach] = PandaReach
