"""H1 imitation: a humanoid with a free root follows a reference motion in full dynamics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import mujoco
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from bunraku import plugins
from bunraku.control.rates import Rates
from bunraku.envs.imitation import (
    control,
    metrics,
    observations,
    pushes,
    randomisation,
    rewards,
    terminations,
)
from bunraku.envs.imitation.ghost import Ghost
from bunraku.envs.imitation.key_points import ANCHOR, END_EFFECTORS, KEY_POINTS, sensor_views
from bunraku.envs.imitation.memory import Memory
from bunraku.envs.imitation.noise import KEYS, symmetric
from bunraku.envs.imitation.reference import Clip, ReferenceLibrary, load_clips
from bunraku.envs.imitation.sampling import AdaptiveSampler, chosen_start, draw_uniform
from bunraku.envs.imitation.scene import humanoid_scene
from bunraku.envs.imitation.start import StartNoise, noisy_start
from bunraku.envs.imitation.targets import anchor_relative
from bunraku.envs.options import check_choice, check_known
from bunraku.geometry import Array
from bunraku.humanoid import HumanoidSpec
from bunraku.sim import Arrays, Sim

CONTROL_FREQ, SUBSTEPS = 50.0, 4
EPISODE_STEPS = 500
"""An episode that lasts so long (10 s) has succeeded, whatever is left of its clip."""
_NOISE_STREAM = 2
_GRAVITY = 9.81


class H1Imitation:
    """Follow a reference motion.

    Description:
        A humanoid with a free root and a position servo in each joint follows a clip, 50 steps a second. Each step
        the robot is compared with the frame that the policy was shown, then the next frame is shown. Key points are
        compared around the chest: where the robot has gone and how it heads is forgiven (but for two of the reward's
        terms), how high it is not.

    Action Space:
        A box of [-1, 1], one number per joint: what to add to the reference's joint angle as the servo's target, in
        units of a quarter of the torque limit over the servo's stiffness. Zero follows the reference's joints.

    Observation Space:
        A dictionary of boxes (float64). `observation`: joint angles (n) [rad] and speeds (n) [rad/s] of the frame to
        reach, its chest in the frame of the robot's chest (3) [m] with the first two columns of its rotation (6), the
        root's velocity in its own frame, linear (3) [m/s] and angular (3) [rad/s], joint angles less home's (n),
        joint speeds (n), the last action (n); with `future` also joint angles and chest of the frames to come. With
        `privileged=True`, `critic`: the same without noise, and all key points in the frame of the chest (9 each).

    Rewards:
        The weighted sum of six terms between 0 and 1 (place and turn of the chest; place, turn, velocity and spin of
        the key points) less penalties for changes of the action, joints near their limits and undesired contacts. At
        most 5 a step.

    Starting State:
        A frame of the reference, root and joints a little off. `options`: `clip` (name or number), `frame`, and
        `noise` (False for none).

    Episode End:
        Terminated when the robot has lost its reference: height or tilt of its chest, height of a hand or foot.
        Truncated at the end of the clip, and after 500 steps by default.

    Arguments:
        See `__init__`.

    Version History:
        v0: first version.
    """

    def __init__(
        self,
        *,
        robot: str = "h1",
        motion: Clip | Sequence[Clip] | None = None,
        start: Literal["random", "adaptive", "first"] = "random",
        start_noise: float = 1.0,
        action_share: float = control.ACTION_SHARE,
        future: Sequence[int] = (),
        privileged: bool = False,
        observation_noise: float = 0.0,
        push: float = 0.0,
        randomise: bool = False,
        weights: rewards.RewardWeights | Mapping[str, float] | None = None,
    ) -> None:
        """Load the motion and build the model.

        Args:
            robot: Name of the humanoid: `h1` (28 joints, 0.44 m) or `unitree_h1`.
            motion: One or several files or motions of that robot; None for the walk that comes along.
            start: Where episodes start: at a `random` frame, `adaptive`: more often where they failed, or the `first`.
            start_noise: Factor on the noise of the start.
            action_share: Share of the torque limit that an action of 1 asks for.
            future: Frames to come that the policy sees, such as (1, 2, 4, 8).
            privileged: Whether to give the critic an observation of its own.
            observation_noise: Factor on the noise of the observation; 0 for none.
            push: Strength of the pushes, as a share of the robot's weight; 0 for none.
            randomise: Whether friction, trunk mass, motor strength and latency differ between episodes.
            weights: Weights of the reward.

        Raises:
            BunrakuError: If a clip is not one that the robot can follow.
            ValueError: If an option is out of range; the message names it.
        """
        check_choice("robot", robot, ("h1", "unitree_h1"))
        check_choice("start", start, ("random", "adaptive", "first"))
        for name, value in (
            ("start_noise", start_noise),
            ("observation_noise", observation_noise),
            ("push", push),
        ):
            if not 0.0 <= value < np.inf:
                raise ValueError(f"{name} must be at least 0, got {value!r}")
        if not 0.0 < action_share <= 2.0:
            raise ValueError(f"action_share must be above 0 and at most 2, got {action_share!r}")
        if any(int(k) != k or k < 1 for k in future):
            raise ValueError(f"future must hold whole numbers of frames from 1, got {tuple(future)!r}")
        self.robot: HumanoidSpec = plugins.load(plugins.ROBOTS, robot)
        self.rates = Rates(CONTROL_FREQ, SUBSTEPS, 1) if randomise else Rates(CONTROL_FREQ, 1, SUBSTEPS)
        self.start, self.start_noise = start, start_noise
        self._future = np.array([int(k) for k in future], dtype=np.int64)
        self._privileged, self._noise, self._push, self._randomise = (
            privileged,
            observation_noise,
            push,
            randomise,
        )
        self._weights = _as_weights(weights)
        size = self.robot.human_scale / rewards.PUBLISHED_SCALE
        self._widths = rewards.RewardWidths().scaled(size)
        self._thresholds = terminations.Thresholds().scaled(size)
        self._start_noise = StartNoise().scaled(size).times(start_noise)
        self._build()
        self._prepare(size, action_share, motion)

    # Building.

    def _build(self) -> None:
        spec = humanoid_scene(self.robot, self.rates.timestep)
        n = self.robot.dof
        self._memory = Memory(
            {
                **dict.fromkeys(("key", "clip", "frame", "steps", "start_frame", "failed"), 0),
                **dict.fromkeys(("key_point_sum", "joint_sum", "drift"), 0),
                **dict.fromkeys(("push_count", "push_timer"), 0),
                "factors": len(randomisation.FACTORS),
                "action": n,
                "previous": n,
            }
        )
        spec.nuserdata = self._memory.size
        self.model: mujoco.MjModel = spec.compile()
        self.mjcf = spec.to_xml()

    def _prepare(self, size: float, share: float, motion: Clip | Sequence[Clip] | None) -> None:
        model, robot = self.model, self.robot
        self.library = ReferenceLibrary(load_clips(motion, robot), robot, model, CONTROL_FREQ)
        self.sampler = AdaptiveSampler(self.library.length, round(CONTROL_FREQ))
        stiffness, _ = control.gains(robot)
        self._scale = control.action_scale(np.array(robot.torque_limit), stiffness, share)
        self._lower, self._upper = control.soft_limits(model, robot.joints)
        self._home = np.array(robot.home)
        self._root = int(model.body(robot.root_body).id)
        self._force = self._push * _GRAVITY * float(model.body_mass.sum())
        soles = [i for i in range(model.ngeom) if model.geom_priority[i] > 0]
        self._changes = randomisation.ModelChanges(model, soles, int(model.body(robot.frames["spine3"]).id))
        self._ghost: Ghost | None = None
        n = robot.dof
        self._noise_widths = self._noise * observations.ObservationNoise().widths(n, size)
        actor = observations.actor_size(n) + len(self._future) * (n + 9)
        sizes = {"observation": actor}
        if self._privileged:
            sizes["critic"] = actor + 9 * len(KEY_POINTS)
        bound = observations.BOUND
        self.observation_space = spaces.Dict(
            {key: spaces.Box(-bound, bound, (count,), dtype=np.float64) for key, count in sizes.items()}
        )
        self.action_space = spaces.Box(-1.0, 1.0, (n,), dtype=np.float32)

    # One episode.

    def bind(self, sim: Sim) -> None:
        """Work on this simulation (or these) from now on."""
        self.sim = sim
        self._state = self._memory.views(sim.userdata)
        self._points = sensor_views(sim.sensordata)
        self._contacts = sim.sensordata[..., -4:]
        self._reward: Array = np.zeros(sim.shape)

    def reset(self, row: Arrays, rng: np.random.Generator, options: Mapping[str, Any]) -> None:
        """Write the initial state of one simulation."""
        check_known("reset option", options, ("clip", "frame", "noise"))
        clip, frame = self._start_at(rng, options)
        state = self._memory.views(row.userdata)
        state["key"][...] = rng.integers(KEYS)
        state["clip"][...], state["frame"][...] = clip, min(frame + 1, int(self.library.length[clip]) - 1)
        state["start_frame"][...] = frame
        state["push_timer"][...] = pushes.wait(state["key"], state["push_count"])
        state["factors"][...] = randomisation.NOMINAL
        at = int(self.library.first[clip]) + frame
        qpos, qvel = self.library.qpos[at], self.library.qvel[at]
        if options.get("noise", True) and self.start_noise > 0.0:
            qpos, qvel = noisy_start(qpos, qvel, rng, self._start_noise, self._lower, self._upper)
        row.qpos[:], row.qvel[:], row.ctrl[:] = qpos, qvel, qpos[7:]
        if self._randomise:
            state["factors"][...] = randomisation.draw(rng, randomisation.Ranges())
            self._changes.write(row, state["factors"])

    def _start_at(self, rng: np.random.Generator, options: Mapping[str, Any]) -> tuple[int, int]:
        """Return the clip and frame to start at."""
        library = self.library
        if self.start == "adaptive":
            clip, frame = self.sampler.draw(rng)
        elif self.start == "random":
            clip, frame = draw_uniform(library.length, rng)
        else:
            clip, frame = int(rng.integers(len(library.names))), 0
        return chosen_start(library.names, library.length, (clip, frame), options)

    def settle(self, row: Arrays) -> None:
        """Complete a reset; nothing is left to do."""

    def restored(self) -> None:
        """Bring the models in line with a state that was set."""
        if self._randomise:
            self._changes.write(self.sim, self._state["factors"])

    def _index(self, ahead: int | NDArray[np.int64] = 0) -> NDArray[np.int64]:
        """Return where the frames to reach, or frames ahead of them, are in the library."""
        clip, frame = self._state["clip"].astype(np.int64), self._state["frame"].astype(np.int64)
        if isinstance(ahead, np.ndarray):
            clip, frame = clip[..., None], frame[..., None]
        return self.library.index(clip, frame + ahead)

    def act(self, action: Array) -> None:
        """Take the action `(..., n)` of one control step."""
        state = self._state
        state["previous"][...] = state["action"]
        state["action"][...] = action
        self._target = self.library.qpos[self._index(), 7:] + self._scale * action

    def tick(self, k: int) -> None:
        """Write `ctrl` for the k-th substep, or for all of them where there is no latency."""
        if self._randomise:
            late = randomisation.delayed_substeps(self._state["factors"][..., 3], self.rates.timestep) > k
            np.copyto(self.sim.ctrl, self._target, where=~late[..., None])
        elif k == 0:
            self.sim.ctrl[...] = self._target

    def finish(self) -> None:
        """Compare with the frame that was to be reached, then go on to the next one."""
        state, sim, points = self._state, self.sim, self._points
        at = self._index()
        reference = self.library.at(at)
        dof_reference, dof = self.library.qpos[at, 7:], sim.qpos[..., 7:]
        anchors = (reference.pos[..., ANCHOR, :], reference.quat[..., ANCHOR, :])
        own = (points.pos[..., ANCHOR, :], points.quat[..., ANCHOR, :])
        target_pos, target_quat = anchor_relative(reference.pos, reference.quat, *anchors, *own)

        w, s = self._weights, self._widths
        c = self._contacts
        self._reward = (
            w.anchor_position * rewards.anchor_position(anchors[0], own[0], s.anchor_position)
            + w.anchor_orientation * rewards.anchor_orientation(anchors[1], own[1], s.anchor_orientation)
            + w.body_position * rewards.body_position(target_pos, points.pos, s.body_position)
            + w.body_orientation * rewards.body_orientation(target_quat, points.quat, s.body_orientation)
            + w.body_linear_velocity
            * rewards.body_linear_velocity(reference.lin, points.lin, s.body_linear_velocity)
            + w.body_angular_velocity
            * rewards.body_angular_velocity(reference.ang, points.ang, s.body_angular_velocity)
            + w.action_rate * rewards.action_rate(state["action"], state["previous"])
            + w.joint_limits * rewards.limit_overshoot(dof, self._lower, self._upper)
            + w.contacts * rewards.undesired_contacts(c[..., 0], c[..., 1], c[..., 2:])
        )
        t, ends = self._thresholds, list(END_EFFECTORS)
        lost = (
            terminations.anchor_height_lost(anchors[0], own[0], t.anchor_height)
            | terminations.anchor_tilted(anchors[1], own[1], t.anchor_tilt)
            | terminations.end_effector_lost(
                target_pos[..., ends, :], points.pos[..., ends, :], t.end_effector_height
            )
        )
        before = state["failed"] > 0.0
        if self.start == "adaptive":
            new = lost & ~before
            self.sampler.record(state["clip"][new].astype(np.int64), state["frame"][new].astype(np.int64))
        scale = self.robot.human_scale
        state["failed"][...] = before | lost
        state["steps"][...] += 1.0
        state["key_point_sum"][...] += metrics.key_point_error(target_pos, points.pos, scale)
        state["joint_sum"][...] += metrics.joint_error(dof_reference, dof)
        state["drift"][...] = metrics.root_drift(reference.pos[..., 0, :], points.pos[..., 0, :], scale)
        state["frame"][...] += 1.0
        if self._push:
            self._advance_pushes()

    def _advance_pushes(self) -> None:
        state = self._state
        count, timer, pushing = pushes.advance(
            state["key"], state["push_count"], state["push_timer"], self.rates.step
        )
        state["push_count"][...], state["push_timer"][...] = count, timer
        force = self._force * pushing[..., None] * pushes.direction(state["key"], count)
        self.sim.xfrc_applied[..., self._root, :3] = force

    def observe(self) -> dict[str, NDArray[Any]]:
        """Return copies of the observations `(..., n)`."""
        sim, state, points = self.sim, self._state, self._points
        at = self._index()
        own = (points.pos[..., ANCHOR, :], points.quat[..., ANCHOR, :])
        seen = observations.anchor_seen(
            self.library.points.pos[at, ANCHOR], self.library.points.quat[at, ANCHOR], *own
        )
        plain = observations.actor(
            self.library.qpos[at, 7:],
            self.library.qvel[at, 6:],
            *seen,
            sim.qpos[..., 3:7],
            sim.qvel[..., :6],
            sim.qpos[..., 7:] - self._home,
            sim.qvel[..., 6:],
            state["action"],
        )
        ahead = []
        if len(self._future):
            coming = self._index(self._future)
            anchors = (self.library.points.pos[coming, ANCHOR], self.library.points.quat[coming, ANCHOR])
            ahead = [observations.future(self.library.qpos[coming, 7:], *anchors, *own)]
        noisy = plain
        if self._noise:
            noisy = plain + self._noise_widths * symmetric(
                state["key"], state["steps"], _NOISE_STREAM, plain.shape[-1]
            )
        out = {"observation": np.concatenate([noisy, *ahead], axis=-1)}
        if self._privileged:
            bodies = observations.privileged(points.pos, points.quat, *own)
            out["critic"] = np.concatenate([plain, *ahead, bodies], axis=-1)
        return {key: np.clip(value, -observations.BOUND, observations.BOUND) for key, value in out.items()}

    # What is wanted.

    def reward(self, observation: Mapping[str, NDArray[Any]], success: NDArray[np.bool_]) -> Array:
        """Return the reward of the last step `(...)`."""
        return self._reward.copy()

    def success(self, observation: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Return whether the robot has followed to the end of the clip, or for 10 s `(...)`."""
        return np.asarray((self._state["failed"] == 0.0) & (self.truncated() | self._long_enough()))

    def _long_enough(self) -> NDArray[np.bool_]:
        return np.asarray(self._state["steps"] >= EPISODE_STEPS)

    def terminated(self, success: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return whether the robot has lost its reference `(...)`."""
        return np.asarray(self._state["failed"] > 0.0)

    def truncated(self) -> NDArray[np.bool_]:
        """Return whether the clip is over `(...)`."""
        clip = self._state["clip"].astype(np.int64)
        return np.asarray(self._state["frame"] >= self.library.length[clip])

    def report(self) -> dict[str, NDArray[Any]]:
        """Return the metrics of the episodes so far `(...)`; lengths at human scale."""
        state = self._state
        steps = np.maximum(state["steps"], 1.0)
        clip = state["clip"].astype(np.int64)
        return {
            "clip": clip,
            "key_point_error": np.asarray(state["key_point_sum"] / steps),
            "joint_error": np.asarray(state["joint_sum"] / steps),
            "root_drift": state["drift"].copy(),
            "tracked": metrics.share_tracked(
                state["steps"] - state["failed"],
                state["start_frame"],
                self.library.length[clip].astype(np.float64),
            ),
            "fell": np.asarray(state["failed"] > 0.0),
        }

    def decorate(self, scene: Any, userdata: Array) -> None:
        """Add the ghost of the reference to a picture of one simulation."""
        if self._ghost is None:
            self._ghost = Ghost(self.model)
        state = self._memory.views(userdata)
        clip, frame = (np.asarray(state[name]).astype(np.int64) for name in ("clip", "frame"))
        self._ghost.draw(scene, self.library.qpos[self.library.index(clip, frame)])

    def arms(self) -> Sequence[Any]:
        """Return no arms: no hand drives a humanoid here."""
        return ()


def _as_weights(given: rewards.RewardWeights | Mapping[str, float] | None) -> rewards.RewardWeights:
    if given is None or isinstance(given, rewards.RewardWeights):
        return given or rewards.RewardWeights()
    check_known("weight", given, rewards.RewardWeights.__dataclass_fields__)
    return rewards.RewardWeights(**given)


TASK = H1Imitation
