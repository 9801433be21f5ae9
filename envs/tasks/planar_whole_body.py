"""The planar upper body of `bunraku.wbc` as an environment: the policy chooses what the strict primary task leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import mujoco
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bunraku.control.rates import Rates
from bunraku.envs.options import check_known, check_positive, vector_option
from bunraku.geometry import Array
from bunraku.sim import Arrays, Sim
from bunraku.task import DrivenArm
from bunraku.wbc import planar
from bunraku.wbc.planar import JOINTS, PlanarProblem

CONTROL_FREQ, FEEDBACK_FREQ = 100.0, 1000.0
"""The command is held at the first, the right hand's feedback and physics run at the second [Hz]."""
ANGLE_BOUND, SPEED_BOUND = 2.6, 10.0
"""Bounds of observations [rad, rad/s]: joint stops give way a little."""

_XML = """
<mujoco model="planar_whole_body">
  <!-- the least that MuJoCo accepts of a moving body: the armature of 1 is all there is -->
  <compiler angle="radian" autolimits="true" boundmass="1e-14" boundinertia="1e-14"/>
  <option integrator="RK4" gravity="0 0 0"/>
  <visual>
    <headlight ambient="0.5 0.5 0.5" diffuse="0.4 0.4 0.4" specular="0 0 0"/>
    <global offwidth="1920" offheight="1080"/>
  </visual>
  <statistic center="0 0 0.5" extent="1"/>
  <default>
    <geom type="capsule" contype="0" conaffinity="0" mass="0" rgba="0.3 0.3 0.32 1"/>
    <joint type="hinge" armature="1"/>
    <default class="right"><geom rgba="0.77 0.31 0.17 1"/><joint axis="0 -1 0"/></default>
    <default class="left"><geom rgba="0.17 0.42 0.77 1"/><joint axis="0 1 0"/></default>
  </default>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.95 0.96 0.98" rgb2="0.8 0.84 0.9"
      width="64" height="384"/>
  </asset>
  <worldbody>
    <camera name="front" pos="0 -2.1 0.45" xyaxes="1 0 0 0 0 1" fovy="40"/>
    <body name="trunk"><joint name="trunk" axis="0 -1 0"/></body>
    <body name="right_upper" childclass="right"><joint name="right_shoulder"/>
      <body name="right_fore"><joint name="right_elbow"/><site name="right_hand"/></body>
    </body>
    <body name="left_upper" childclass="left"><joint name="left_shoulder"/>
      <body name="left_fore"><joint name="left_elbow"/><site name="left_hand"/></body>
    </body>
    <body name="right_target" mocap="true"><geom type="sphere" size="0.014" rgba="0.95 0.7 0.3 0.9"/></body>
    <body name="left_target" mocap="true"><geom type="sphere" size="0.014" rgba="0.3 0.75 0.45 0.9"/></body>
  </worldbody>
</mujoco>
"""


class PlanarWholeBody:
    """Choose the null-space command of a planar upper body whose right hand tracks with strict priority.

    Description:
        Five joints with unit armature, no mass and no gravity, so that a torque is an acceleration (trunk, right
        shoulder and elbow, left shoulder and elbow; the shoulders are fixed, see `bunraku.wbc.planar`). The right
        hand moves 4 cm right and 8 cm up in 2.5 s under the published task-space feedback, which the environment
        applies 1,000 times per second; the action is the command z in that task's null space, and cannot disturb
        it. It should bring the left hand to its target and the trunk upright. `bunraku wbc` solves the same problem
        by optimal control: its command, replayed here, costs the same.

    Action Space:
        A box of [-1, 1] with 5 components, times 10 rad/s^2: the null-space command, held for 10 ms. Those of the
        right arm have no effect, as the right hand takes both its joints. What would drive a joint faster than 3
        rad/s is cut off.

    Observation Space:
        A dictionary with one box (float64), `observation`: joint angles (5) [rad], then joint speeds (5) [rad/s].

    Rewards:
        Minus the cost of the step: the integral over it, by the trapezoidal rule at 1 ms, of 120 |p_L - p_L*|^2 +
        3 |v_L|^2 + 20 q_T^2 + 0.03 |qd|^2 + 0.01 |z|^2. The sum over an episode of 250 steps is minus the cost
        that `bunraku wbc` minimises (1.2198).

    Starting State:
        The published posture, at rest; with `start_noise` each joint off by up to so much. `options`: `qpos` (5)
        [rad] sets it. The right hand's path begins where the hand is.

    Episode End:
        Truncated after 250 steps (2.5 s) by default; never terminated, unless MuJoCo finds the simulation unstable.
        Joints have stops at the published limits. `is_success` says that the left hand is within
        `success_threshold` of its target and the trunk within 0.05 rad of upright.

    Arguments:
        See `__init__`.

    Version History:
        v0: first version.
    """

    def __init__(self, *, start_noise: float = 0.0, success_threshold: float = 0.01) -> None:
        """Build the model.

        Args:
            start_noise: Largest deviation of each joint from the published start [rad].
            success_threshold: Distance of the left hand from its target that counts as reached [m].

        Raises:
            ValueError: If an option is out of range; the message names it.
        """
        if not 0.0 <= start_noise <= 0.25:
            raise ValueError(f"start_noise must be between 0 and 0.25 rad, got {start_noise!r}")
        check_positive("success_threshold", success_threshold)
        self.start_noise, self.success_threshold = start_noise, success_threshold
        self.rates = Rates.make(CONTROL_FREQ, FEEDBACK_FREQ, physics_freq=FEEDBACK_FREQ)
        self.problem = PlanarProblem()
        self._left_goal, self._move = self.problem.left_goal, np.array(self.problem.move)
        self.model = self._build()
        bound = np.array([ANGLE_BOUND] * 5 + [SPEED_BOUND] * 5)
        self.observation_space = spaces.Dict({"observation": spaces.Box(-bound, bound, dtype=np.float64)})
        self.action_space = spaces.Box(-1.0, 1.0, (5,), dtype=np.float32)

    def _build(self) -> mujoco.MjModel:
        spec = mujoco.MjSpec.from_string(_XML)
        spec.option.timestep = self.rates.timestep
        shoulder, upper, fore = planar.TRUNK, planar.UPPER_ARM, planar.FOREARM
        _add_bar(spec.body("trunk"), [0.0, 0.0, shoulder], 0.03)
        for side, sign in (("right", 1.0), ("left", -1.0)):
            spec.body(f"{side}_upper").pos = [0.0, 0.0, shoulder]
            spec.body(f"{side}_fore").pos = [sign * upper, 0.0, 0.0]
            spec.site(f"{side}_hand").pos = [sign * fore, 0.0, 0.0]
            _add_bar(spec.body(f"{side}_upper"), [sign * upper, 0.0, 0.0], 0.022)
            _add_bar(spec.body(f"{side}_fore"), [sign * fore, 0.0, 0.0], 0.018)
        for i, name in enumerate(JOINTS):
            spec.joint(name).range = [planar.LOWER[i], planar.UPPER[i]]
            spec.add_actuator(name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        goal = self._left_goal
        spec.body("left_target").pos = [goal[0], 0.0, goal[1]]
        spec.nuserdata = 9
        model = spec.compile()
        self.mjcf = spec.to_xml()
        return model

    # One episode. `userdata`: ticks, cost of the step, where the right hand's path begins (2), command (5).

    def bind(self, sim: Sim) -> None:
        """Work on this simulation (or these) from now on."""
        self.sim = sim
        data = sim.userdata
        self._ticks, self._cost = data[..., 0], data[..., 1]
        self._right_start, self._z = data[..., 2:4], data[..., 4:9]

    def reset(self, row: Arrays, rng: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Write the initial state of one simulation."""
        check_known("reset option", options, ("qpos",))
        drawn = planar.START + self.start_noise * rng.uniform(-1.0, 1.0, 5)
        given = vector_option("qpos", options.get("qpos"), (5,))
        q = np.minimum(np.maximum(drawn, planar.LOWER), planar.UPPER) if given is None else given
        row.qpos[:] = q
        row.userdata[2:4] = planar.hands(planar.arms(q))[0]

    def settle(self, row: Arrays) -> None:
        """Show the right hand's target where its path begins."""
        start = row.userdata[2:4]
        row.mocap_pos[0] = (start[0], 0.0, start[1])

    def act(self, action: Array) -> None:
        """Take the action `(..., 5)` of one control step."""
        self._z[...] = planar.COMMAND * action
        self._cost[...] = 0.0

    def tick(self, k: int) -> None:
        """Write the accelerations for the next millisecond."""
        sim, step = self.sim, self.rates.tick
        q, qd = sim.qpos, sim.qvel
        arms = planar.arms(q)
        wanted = self._reference()
        if k == 0:
            sim.mocap_pos[..., 0, 0], sim.mocap_pos[..., 0, 2] = wanted.pos[..., 0], wanted.pos[..., 1]
        room = np.minimum(np.maximum(self._z, (-planar.SPEED - qd) / step), (planar.SPEED - qd) / step)
        sim.ctrl[...] = planar.closed_loop(arms, qd, room, wanted)
        weight = 0.5 * step if k == 0 else step
        self._cost[...] += weight * planar.running_cost(arms, q, qd, self._z, self._left_goal)
        self._ticks[...] += 1.0

    def _reference(self) -> planar.Reference:
        time = self._ticks / FEEDBACK_FREQ
        return planar.reference(time, self.problem.duration, self._right_start, self._move)

    def observe(self) -> dict[str, NDArray[Any]]:
        """Return copies of the observations `(..., 10)`."""
        return {"observation": np.concatenate([self.sim.qpos, self.sim.qvel], axis=-1)}

    # What is wanted.

    def reward(self, observation: Mapping[str, NDArray[Any]], success: NDArray[np.bool_]) -> Array:
        """Return minus the cost of the step `(...)`."""
        q, qd = observation["observation"][..., :5], observation["observation"][..., 5:]
        last = planar.running_cost(planar.arms(q), q, qd, self._z, self._left_goal)
        return -(self._cost + 0.5 * self.rates.tick * last)

    def success(self, observation: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return whether the left hand is at its target and the trunk upright `(...)`."""
        q = observation["observation"][..., :5]
        off = planar.hands(planar.arms(q))[1] - self._left_goal
        near: NDArray[np.bool_] = np.sqrt((off * off).sum(axis=-1)) < self.success_threshold
        return near & (np.abs(q[..., 0]) < 0.05)

    def terminated(self, success: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether the episode ends `(...)`: never."""
        return np.zeros_like(success)

    def right_hand_error(self) -> Array:
        """Return the distance `(...)` of the right hand from its path [m]."""
        off = planar.hands(planar.arms(self.sim.qpos))[0] - self._reference().pos
        return np.sqrt((off * off).sum(axis=-1))

    def arms(self) -> Sequence[DrivenArm]:
        """Return the arms that hands drive: none."""
        return []


def _add_bar(body: mujoco.MjsBody, end: list[float], radius: float) -> None:
    body.add_geom(fromto=[0.0, 0.0, 0.0, *end], size=[radius, 0.0, 0.0])


TASK = PlanarWholeBody
