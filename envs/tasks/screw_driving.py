"""Screw driving: press a bit into a screw's recess, drive the screw 40 mm into a board, and lift the bit clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import mujoco
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bunraku.control.rates import Rates
from bunraku.control.yaw_pitch_pitch import ReachError, reachable
from bunraku.envs import screw_workpiece as workpiece
from bunraku.envs.options import check_choice, check_known, check_positive, vector_option
from bunraku.envs.scene import table_scene
from bunraku.envs.screw_control import (
    PREFIX,
    SCREW_CONTROL_MODES,
    ScrewArmControl,
    ScrewControlMode,
    joints_for,
)
from bunraku.envs.screw_operator import ScrewOperatorArm
from bunraku.envs.screw_thread import Thread
from bunraku.geometry import Array, from_matrix
from bunraku.robots.screw_arm import BLADES, ROBOT, TIP_DROP
from bunraku.screw import figures
from bunraku.sim import Arrays, Sim

DISC = (0.20, 0.0, 0.05)
"""Middle (x, y) and radius of the disc of screw places [m]."""
FRICTION_RANGE = (0.7, 1.3)
"""Factors on the thread's friction."""
START_NOISE = (0.01, 0.01, 0.01)
"""The bit starts within this of its home [m]."""
ENGAGED_DEPTH = 0.0025
"""A bit this far below the screw's top and within `ENGAGED_OFFSET` of its axis is in the recess [m]."""
ENGAGED_OFFSET = 0.003
CLEAR = 0.025
"""A bit this far above the screw's top is lifted clear [m]; the board's surface is then 8 mm below it."""
TABLE_TOP = -0.06
"""The board stands above the table, so that a driven screw can be seen below its surface [m]."""

DEEP_MARGIN = 0.0003
"""An operator's guide lifts the bit when the screw is this much deeper than it must be [m]."""

LAYOUT: Mapping[str, slice] = {
    name: slice(start, start + size)
    for name, start, size in (
        ("joint_angles", 0, 4), ("joint_speeds", 4, 4), ("tip_pos", 8, 3), ("tip_quat", 11, 4),
        ("tip_vel", 15, 3), ("target_lead", 18, 3), ("bit_angle", 21, 2), ("bit_speed", 23, 1),
        ("bit_lead", 24, 1), ("screw_top", 25, 3), ("screw_depth", 28, 1), ("screw_angle", 29, 1),
        ("recess_offset", 30, 2), ("force", 32, 3), ("torque", 35, 3), ("stage", 38, 5), ("crossed", 43, 1),
        ("stripped", 44, 1),
    )
}  # fmt: skip
"""Where each quantity stands in the observation."""
_SIZE = 45
_BOUNDS = {
    "joint_angles": 4.0, "joint_speeds": 50.0, "tip_pos": 2.0, "tip_quat": 1.0, "tip_vel": 20.0, "target_lead": 2.0,
    "bit_angle": 1.0, "bit_speed": 500.0, "bit_lead": 10.0, "screw_top": 2.0, "screw_depth": 1.0, "screw_angle": 1000.0,
    "recess_offset": 1.0, "force": 10000.0, "torque": 1000.0, "stage": 1.0, "crossed": 1.0, "stripped": 1.0,
}  # fmt: skip
STAGES = ("free", "engaged", "driving", "deep", "clear")


@dataclass(frozen=True, slots=True)
class Work:
    """How the work stands, as an operator sees it."""

    tip: Array
    """The bit's lowest point `(3,)` [m]."""
    top: Array
    """Middle of the screw's top `(3,)` [m]."""
    bit_angle: float
    """Angle of the bit [rad]."""
    apart: float
    """How far the bit is turned from the nearest quarter of the recess [rad]."""
    depth: float
    """How far the screw is in [m]."""
    in_recess: bool
    """Whether the bit is in the recess."""
    deep: bool
    """Whether the screw is deep enough."""
    force: Array
    """Mean contact force on the bit `(3,)` [N]."""
    recess_depth: float = workpiece.RECESS_DEPTH
    """From the screw's top to the recess's floor [m]."""


class ScrewDriving:
    """Drive a screw into a board by contact.

    Description:
        A small arm holds a driver vertically over a board with a screw in it. The bit must find the screw's cross
        recess, be pressed in and turned. The screw goes 16 mm down per turn; its friction grows with depth, and
        without axial force the recess pushes the bit out. The task is done when the screw is 40 mm deep and the bit
        is lifted clear, if the axial force never exceeded its limit, the thread is not crossed and the recess is
        not stripped (see `bunraku.envs.screw_thread`). Nothing but contact turns the screw.

    Action Space:
        A box of [-1, 1]; see `bunraku.envs.screw_control`. `tip_spin`: velocity of the bit's target along x, y, z
        (0.2 m/s at 1) and its spin (5 rad/s at 1; positive drives in). `joint_delta`: 5 joint speeds.

    Observation Space:
        A dictionary with one box (float64), `observation` (45): joint angles (4) [rad] and speeds (4) [rad/s] of yaw,
        shoulder, elbow and level; position (3) [m], orientation (4) (w, x, y, z) and velocity (3) [m/s] of the bit's
        lowest point; how far its target is ahead of it (3) [m]; cosine and sine of the bit's angle, its speed [rad/s],
        how far its target is ahead [rad]; the middle of the screw's top (3) [m], its depth [m] and angle [rad];
        cosine and sine of four times the bit's angle relative to the recess; mean contact force (3) [N] and torque
        (3) [N m] on the bit during the step, about its lowest point; stage as one of five (free, engaged, driving,
        deep, clear); crossed; stripped. All in world axes. `LAYOUT` names the slices.

    Rewards:
        `reward_type="sparse"`: 0 when successful, else -1. `"dense"`, -1 to 0: -1, plus 0.25 for nearness to the
        recess, 0.25 for being in it, up to 0.4 for depth; with the screw deep, -0.1 plus up to 0.1 for the height of
        the bit. A crossed or stripped screw costs 0.2, force above the limit 0.1, each down to -1.

    Starting State:
        The bit within 1 cm of its home, at rest. The screw uniform over a disc of 5 cm radius around (0.20, 0), turned at
        random, its friction between 0.7 and 1.3 of the nominal one. `randomize=False`: the published scene, the same
        every time. `options`: `screw_xy` (2) [m], `screw_yaw` [rad], `friction`, `turn` [rad] that the screw
        has turned already, `crossed`: not 0 for a thread that has been started askew by a tenth of a turn.

    Episode End:
        Truncated after 400 steps by default; terminated only with `terminate_on_success=True`, or when MuJoCo
        finds the simulation unstable. The infos hold `crossed`, `stripped`, `depth` [m], `axial_force` [N] and
        `max_axial_force` [N].

    Arguments:
        See `__init__`.

    Version History:
        v0: first version.
    """

    recorded_options: ClassVar[Mapping[str, Any]] = {"control_mode": "tip_spin"}
    """What `collect` asks for unless told otherwise."""
    goal_orientation = True
    """The operator's guide has an orientation."""
    goal_tolerance = (0.0008, 0.04)
    """How near the guide an operator must come [m], [rad]."""

    def __init__(
        self,
        *,
        control_mode: ScrewControlMode = "tip_spin",
        control_freq: float = 20.0,
        reward_type: Literal["sparse", "dense"] = "sparse",
        randomize: bool = True,
        screw_xy: Sequence[float] | None = None,
        friction: float | None = None,
        pitch: float = figures.SCREW_PITCH,
        force_limit: float = 80.0,
        terminate_on_success: bool = False,
    ) -> None:
        """Build the model.

        Args:
            control_mode: What an action means: `tip_spin` or `joint_delta`.
            control_freq: Steps per simulated second [Hz].
            reward_type: `sparse` or `dense`.
            randomize: Whether a reset draws the screw's place, angle and friction, and the bit's start.
            screw_xy: Where the screw is [m], instead of a drawn or the published place.
            friction: Factor on the thread's friction, instead of a drawn one or 1.
            pitch: Way down per turn [m].
            force_limit: Axial force that must never be exceeded [N].
            terminate_on_success: Whether success ends the episode.

        Raises:
            ValueError: If an option is out of range, or the screw out of the arm's reach; the message names it.
        """
        check_choice("control_mode", control_mode, SCREW_CONTROL_MODES)
        check_choice("reward_type", reward_type, ("sparse", "dense"))
        check_positive("pitch", pitch)
        if not 0.004 <= pitch <= 0.04:
            raise ValueError(f"pitch must be between 0.004 and 0.04 m per turn, got {pitch!r}")
        check_positive("force_limit", force_limit)
        if friction is not None:
            check_positive("friction", friction)
        self._place = None if screw_xy is None else _checked_place(screw_xy)
        self.rates = Rates.make(control_freq, max(control_freq, min(5 * control_freq, 250.0)))
        self.reward_type, self.randomize, self.friction = reward_type, randomize, friction
        self.pitch, self.force_limit, self.terminate_on_success = pitch, force_limit, terminate_on_success
        self._thread = Thread(0)
        self._control = ScrewArmControl(control_mode, self.rates, Thread.userdata_size)
        memory = Thread.userdata_size + ScrewArmControl.userdata_size
        self._wrench_at, self._peak_at = slice(memory, memory + 6), memory + 6
        self._memory_size = memory + 7
        self.model = self._build()
        self._mocap = {name: int(self.model.body(name).mocapid[0]) for name in ("board", "screw_place")}
        bound = np.zeros(_SIZE)
        for name, at in LAYOUT.items():
            bound[at] = _BOUNDS[name]
        self.observation_space = spaces.Dict({"observation": spaces.Box(-bound, bound, dtype=np.float64)})
        self.action_space = spaces.Box(-1.0, 1.0, (self._control.size,), dtype=np.float32)

    def _build(self) -> mujoco.MjModel:
        spec = table_scene(self.rates.timestep)
        spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        spec.option.impratio = 10.0
        for geom in spec.geoms:
            geom.pos = [*geom.pos[:2], geom.pos[2] + TABLE_TOP]
            geom.contype, geom.conaffinity = 0, 0
        ROBOT.attach(spec, prefix=PREFIX, gripper=False)
        for name in BLADES:
            blade = spec.geom(PREFIX + name)
            blade.contype, blade.conaffinity = workpiece.BIT_BIT, 0
            blade.friction = [workpiece.FRICTION, 0.005, 0.0001]
            blade.solref, blade.solimp = workpiece.SOLREF, workpiece.SOLIMP
        workpiece.add_board(spec, TABLE_TOP)
        workpiece.add_screw(spec, self.pitch)
        self._control.add_sensors(spec)
        field, reduce = mujoco.mjtConDataField, 3  # the net force of all contacts
        wanted = (field.mjCONDATA_FORCE, field.mjCONDATA_TORQUE, field.mjCONDATA_POS)
        spec.add_sensor(
            name="bit_contact",
            type=mujoco.mjtSensor.mjSENS_CONTACT,
            objtype=mujoco.mjtObj.mjOBJ_BODY,
            objname=PREFIX + "driver",
            intprm=[sum(1 << int(f) for f in wanted), reduce, 1],
        )
        spec.add_sensor(
            name="screw_top",
            type=mujoco.mjtSensor.mjSENS_FRAMEPOS,
            objtype=mujoco.mjtObj.mjOBJ_SITE,
            objname="screw_top",
        )
        _add_cameras(spec)
        spec.nuserdata = self._memory_size
        model = spec.compile()
        self.mjcf = spec.to_xml()
        return model

    # One episode. `userdata`: the thread's, the arm's, mean contact force and torque (6), largest axial force.

    def bind(self, sim: Sim) -> None:
        """Work on this simulation (or these) from now on."""
        self.sim = sim
        self._thread.bind(sim)
        self._control.bind(sim)
        at = int(sim.model.sensor("bit_contact").adr[0])
        self._contact = sim.sensordata[..., at : at + 9]
        at = int(sim.model.sensor("screw_top").adr[0])
        self._top = sim.sensordata[..., at : at + 3]
        self._wrench, self._peak = sim.userdata[..., self._wrench_at], sim.userdata[..., self._peak_at]
        self._yaw_quat = sim.mocap_quat[..., self._mocap["screw_place"], :]
        if not sim.shape:
            self._operator = ScrewOperatorArm(self)

    def reset(self, row: Arrays, rng: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Write the initial state of one simulation."""
        check_known("reset option", options, ("screw_xy", "screw_yaw", "friction", "turn", "crossed"))
        xy, yaw, friction, start = self._draw(rng)
        given = vector_option("screw_xy", options.get("screw_xy"), (2,))
        xy = xy if given is None else _checked_place(given)
        yaw, friction, turn, crossed = (
            default if (value := _number(name, options)) is None else value
            for name, default in (("screw_yaw", yaw), ("friction", friction), ("turn", 0.0), ("crossed", 0.0))
        )
        check_positive("friction", friction)
        if crossed:
            turn = max(turn, 0.1 * 2 * np.pi)
        for name in ("board", "screw_place"):
            row.mocap_pos[self._mocap[name]] = (*xy, 0.0)
        row.mocap_quat[self._mocap["screw_place"]] = (np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2))
        model = row.model
        row.qpos[int(model.joint("screw_turn").qposadr[0])] = turn
        row.qpos[int(model.joint("screw_slide").qposadr[0])] = turn * self.pitch / (2 * np.pi)
        self._thread.reset(row, friction, bool(crossed))
        self._control.reset(row, np.append(joints_for(start), 0.0))

    def _draw(self, rng: np.random.Generator) -> tuple[Array, float, float, Array]:
        """Return place (2) [m] and angle [rad] of the screw, friction factor, and start of the bit (3) [m]."""
        home = np.array(figures.HOME) - (0.0, 0.0, TIP_DROP)
        if not self.randomize:
            place = np.array(figures.SCREW_XY) if self._place is None else self._place
            return place, 0.0, self.friction or 1.0, home
        x, y, radius = DISC
        r, angle = radius * np.sqrt(rng.uniform()), rng.uniform(0.0, 2.0 * np.pi)
        place = np.array([x + r * np.cos(angle), y + r * np.sin(angle)])
        yaw, friction = rng.uniform(0.0, 2.0 * np.pi), rng.uniform(*FRICTION_RANGE)
        start = home + np.array(START_NOISE) * rng.uniform(-1.0, 1.0, 3)
        return place if self._place is None else self._place, yaw, self.friction or friction, start

    def settle(self, row: Arrays) -> None:
        """Start the targets where the bit is."""
        self._control.settle(row)

    def act(self, action: Array) -> None:
        """Take the action `(..., A)` of one control step."""
        self._control.act(action)
        self._sum = np.zeros_like(self._wrench)
        self._axial_peak = np.zeros_like(self._peak)

    def tick(self, k: int) -> None:
        """Write `ctrl` for the k-th tick of the control step."""
        if k:
            self._sense()
        self._thread.tick()
        self._control.tick(k)

    def _sense(self) -> None:
        """Add the contact force on the bit at the last substep, which sensors tell only after a substep."""
        contact = self._contact
        # the sensor gives what the bit does to others
        force, torque = -contact[..., 0:3], -contact[..., 3:6]
        arm = np.where(
            force.any(axis=-1, keepdims=True), contact[..., 6:9] - self._control.tool_state[..., :3], 0.0
        )
        self._sum[..., :3] += force
        self._sum[..., 3:] += torque + _cross(arm, force)
        self._axial_peak = np.maximum(self._axial_peak, force[..., 2])

    def finish(self) -> None:
        """Note in `userdata` what the control step has done."""
        self._sense()
        self._wrench[...] = self._sum / self.rates.ticks
        self._peak[...] = np.maximum(self._peak, self._axial_peak)
        self._thread.finish(self._wrench[..., 2], self._control.bit_speed, self.rates.step)

    def observe(self) -> dict[str, NDArray[Any]]:
        """Return copies of the observations `(..., 45)`."""
        control, thread = self._control, self._thread
        tool, target = control.tool_state, control.target_state
        spin = control.bit_angle
        out = np.empty((*self.sim.shape, _SIZE))
        yaw = 2.0 * np.arctan2(self._yaw_quat[..., 3], self._yaw_quat[..., 0])
        apart = 4.0 * (spin - yaw - thread.turn)
        parts: dict[str, Any] = {
            "joint_angles": control.qpos[..., :4], "joint_speeds": control.qvel[..., :4], "tip_pos": tool[..., :3],
            "tip_quat": tool[..., 3:7], "tip_vel": tool[..., 7:10], "target_lead": target[..., :3] - tool[..., :3],
            "bit_angle": np.stack([np.cos(spin), np.sin(spin)], axis=-1), "bit_speed": control.bit_speed[..., None],
            "bit_lead": (target[..., 3] - spin)[..., None], "screw_top": self._top,
            "screw_depth": thread.depth[..., None], "screw_angle": thread.turn[..., None],
            "recess_offset": np.stack([np.cos(apart), np.sin(apart)], axis=-1), "force": self._wrench[..., :3],
            "torque": self._wrench[..., 3:], "stage": self._stage(), "crossed": thread.crossed[..., None],
            "stripped": thread.stripped[..., None],
        }  # fmt: skip
        for name, at in LAYOUT.items():
            out[..., at] = parts[name]
        return {"observation": out}

    def _stage(self) -> Array:
        tip = self._control.tool_state[..., :3]
        offset = tip - self._top
        aside = np.sqrt((offset[..., :2] * offset[..., :2]).sum(axis=-1))
        in_recess = (offset[..., 2] < -ENGAGED_DEPTH) & (aside < ENGAGED_OFFSET)
        deep = self._thread.depth >= figures.SCREW_SINK
        clear = deep & (offset[..., 2] > CLEAR)
        driving = in_recess & (self._thread.caught > 0.0)
        stage = np.where(clear, 4, np.where(deep, 3, np.where(driving, 2, np.where(in_recess, 1, 0))))
        return np.asarray(stage[..., None] == np.arange(len(STAGES)), dtype=np.float64)

    # What is wanted.

    def success(self, observation: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return whether the screw is in and the bit clear, with nothing spoilt on the way `(...)`."""
        seen = observation["observation"]
        clear = seen[..., LAYOUT["stage"]][..., 4] > 0.0
        spoilt = seen[..., LAYOUT["crossed"]][..., 0] + seen[..., LAYOUT["stripped"]][..., 0] > 0.0
        done: NDArray[np.bool_] = clear & ~spoilt & (self._peak <= self.force_limit)
        return done

    def reward(self, observation: Mapping[str, NDArray[Any]], success: NDArray[np.bool_]) -> Array:
        """Return the reward `(...)`, given also what `success` said of the observation."""
        if self.reward_type == "sparse":
            return np.asarray(success - 1.0, dtype=np.float64)
        seen = observation["observation"]
        stage = seen[..., LAYOUT["stage"]]
        offset = seen[..., LAYOUT["tip_pos"]] - seen[..., LAYOUT["screw_top"]]
        distance = np.sqrt((offset * offset).sum(axis=-1))
        share = seen[..., LAYOUT["screw_depth"]][..., 0] / figures.SCREW_SINK
        in_recess = stage[..., 1] + stage[..., 2]
        approach = -1.0 + 0.25 * (1.0 - np.tanh(10.0 * distance)) + 0.25 * in_recess + 0.4 * share
        lift = -0.1 + 0.1 * np.minimum(np.maximum(offset[..., 2] / CLEAR, 0.0), 1.0)
        deep = stage[..., 3] + stage[..., 4] > 0.0
        spoilt = seen[..., LAYOUT["crossed"]][..., 0] + seen[..., LAYOUT["stripped"]][..., 0]
        over = seen[..., LAYOUT["force"]][..., 2] > self.force_limit
        return np.maximum(np.where(deep, lift, np.minimum(approach, -0.1)) - 0.2 * spoilt - 0.1 * over, -1.0)

    def terminated(self, success: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether the episode ends `(...)`."""
        return success if self.terminate_on_success else np.zeros_like(success)

    def report(self) -> dict[str, NDArray[Any]]:
        """Return what the infos tell beside success, each `(...)`."""
        return {
            "crossed": self._thread.crossed > 0.0,
            "stripped": self._thread.stripped > 0.0,
            "depth": self._thread.depth.copy(),
            "axial_force": self._wrench[..., 2].copy(),
            "max_axial_force": self._peak.copy(),
        }

    def work(self) -> Work:
        """Return how the work stands (one simulation only)."""
        seen = self.observe()["observation"]
        stage = seen[LAYOUT["stage"]]
        return Work(
            tip=seen[LAYOUT["tip_pos"]],
            top=seen[LAYOUT["screw_top"]],
            bit_angle=float(self._control.bit_angle),
            apart=float(np.arctan2(*seen[LAYOUT["recess_offset"]][::-1]) / 4.0),
            depth=float(self._thread.depth),
            in_recess=bool(stage[1] + stage[2] > 0.0),
            deep=bool(self._thread.depth >= figures.SCREW_SINK + DEEP_MARGIN),
            force=seen[LAYOUT["force"]],
        )

    def arms(self) -> Sequence[ScrewOperatorArm]:
        """Return the arm that a hand drives (one simulation only)."""
        return [self._operator]

    @property
    def control(self) -> ScrewArmControl:
        """The arm's control."""
        return self._control


def _number(name: str, options: Mapping[str, Any]) -> float | None:
    """Return a reset option that is one number, or None if it was not given."""
    given = options.get(name)
    array = vector_option(name, None if given is None else np.atleast_1d(given), (1,))
    return None if array is None else float(array[0])


def _checked_place(xy: Any) -> Array:
    """Return a place of the screw `(2,)` [m].

    Raises:
        ReachError: If the arm cannot drive a screw there from the start to its depth.
    """
    place = vector_option("screw_xy", xy, (2,))
    assert place is not None
    lowest = figures.tip_height(figures.SCREW_TURN) - workpiece.RECESS_DEPTH - workpiece.STOP
    tips = np.array([[*place, z] for z in np.linspace(lowest, figures.STANDBY_HEIGHT, 20)])
    if not reachable(tips, figures.ARM).all():
        near, far = figures.ARM.reach()
        raise ReachError(
            f"screw_xy ({place[0]:g}, {place[1]:g}) m is out of the arm's reach, which is {near:.3f} to {far:.3f} m "
            f"around its shoulder; choose a place within {DISC[2]:g} m of ({DISC[0]:g}, {DISC[1]:g})"
        )
    x, y, radius = DISC
    if np.hypot(place[0] - x, place[1] - y) > radius + 1e-9:
        raise ReachError(
            f"screw_xy ({place[0]:g}, {place[1]:g}) m is out of the arm's workspace; choose a place within "
            f"{radius:g} m of ({x:g}, {y:g})"
        )
    return place


def _cross(a: Array, b: Array) -> Array:
    """Return the cross product `(..., 3)`; NumPy's costs ten times as much for one vector."""
    out = a[..., [1, 2, 0]] * b[..., [2, 0, 1]] - a[..., [2, 0, 1]] * b[..., [1, 2, 0]]
    return np.asarray(out)


def _add_cameras(spec: mujoco.MjSpec) -> None:
    """Put nearer cameras in the place of the scene's, and one on the wrist that sees the bit."""
    for name, pos, target in (
        ("front", (0.72, -0.42, 0.42), (0.15, 0.0, 0.12)),
        ("side", (0.17, -0.75, 0.25), (0.15, 0.0, 0.14)),
    ):
        spec.delete(spec.camera(name))
        quat = _looking(np.array(pos), np.array(target))
        spec.worldbody.add_camera(name=name, pos=pos, quat=quat, fovy=45.0)
    eye = np.array([0.10, 0.0, -0.03])
    quat = _looking(eye, np.array([0.0, 0.0, -TIP_DROP]))
    spec.body(PREFIX + "wrist").add_camera(name="wrist", pos=eye, quat=quat, fovy=60.0)


def _looking(eye: Array, target: Array) -> Array:
    """Return the orientation `(4,)` of a camera at `eye` that looks at `target`, upright."""
    back = (eye - target) / np.linalg.norm(eye - target)
    right = np.cross([0.0, 0.0, 1.0], back)
    right /= np.linalg.norm(right)
    return from_matrix(np.column_stack([right, np.cross(back, right), back]))


TASK: type[ScrewDriving] = ScrewDriving
