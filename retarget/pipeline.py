"""From a person's motion to a robot's: `Retargeter` runs all stages, over files or frame by frame.

    retargeter = Retargeter("h1")
    robot = retargeter.retarget(human)               # HumanMotion in, RobotMotion at 90 fps out
    frame = retargeter.step(joints)                  # live: key points (22, 3) in, joint angles out

The key points are metres, Z up, SMPL order. With a fixed root (the default) the robot hangs by its waist: heading and
way of the person are taken out. With a free root the whole rotation of the pelvis is, and comes back as the root's.

Order of the stages: missing key points, frame rate, Savitzky-Golay, rest calibration, heading, targets, inverse
kinematics, moving filter, ankles, upsampling, feet on the floor (free root), speed bound.
`docs/retargeting_method.md` says why this order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

import mujoco
import numpy as np
from numpy.typing import NDArray

from bunraku.errors import BunrakuError
from bunraku.geometry import from_matrix, nlerp, to_matrix
from bunraku.humanoid import HumanoidSpec
from bunraku.motion import HumanMotion, RobotMotion
from bunraku.retarget import diagnostics, metrics
from bunraku.retarget.diagnostics import Degraded
from bunraku.retarget.robot_config import RobotConfig, load_robot
from bunraku.retarget.root import ground_root, resample_contact
from bunraku.retarget.solver.clip import ClipSettings, solve_clip, track
from bunraku.retarget.solver.engine import CompiledEngine, make_engine
from bunraku.retarget.solver.live import live_frame, live_targets, make_state
from bunraku.retarget.solver.problem import Problem
from bunraku.retarget.solver.tree import Tree
from bunraku.retarget.stages.ankle import set_ankles
from bunraku.retarget.stages.calibration import LEFT_FOOT, RIGHT_FOOT, Calibration, calibrate
from bunraku.retarget.stages.coordinates import centre, lift
from bunraku.retarget.stages.coordinates import scale as coordinates_scale
from bunraku.retarget.stages.filters import savitzky_golay, weighted_moving_filter
from bunraku.retarget.stages.heading import hip_yaw
from bunraku.retarget.stages.limits import bound_steps
from bunraku.retarget.stages.table import FEET, target_table
from bunraku.retarget.stages.targets import clip_targets
from bunraku.retarget.stages.upsample import frame_times, upsample

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Options:
    """How to retarget."""

    root: Literal["fixed", "free"] = "fixed"
    """Whether the waist hangs still or follows the pelvis."""
    ground: bool = True
    """With a free root: put standing feet on the floor and hold them (`root.ground_root`)."""
    search: Literal["clip", "forward"] = "clip"
    """Search over the whole clip, or one forward sweep as live use makes it."""
    fps: float = 90.0
    """Frames per second of the result."""
    solve_fps: float = 20.0
    """Frames per second at which inverse kinematics runs; the windows below count such frames."""
    smoothing_window: int = 7
    """Window of the Savitzky-Golay filter over key points; 1: none."""
    filter: Literal["zero_phase", "causal", "none"] = "zero_phase"
    """Weighted moving filter over joints: without lag, as the source has it (lags), or none."""
    filter_window: int = 3
    """Its window. The source has 7; a search over the clip leaves less to smooth, and every frame costs accuracy."""
    max_speed: float | None = None
    """Hard bound on joint speeds [rad/s]; None: none."""
    robot_speed: bool = False
    """Bound each joint by the robot's own speed limit (as well)."""
    geometric_ankle: bool = True
    """Set ankle pitch from shin and toes, as the source does, rather than leave it to the solver."""
    scale: float | None = None
    """Size of the robot over that of the person, for the root's way and the shown key points; None: the ratio of the
    legs."""
    engine: Literal["auto", "compiled", "mujoco"] = "auto"
    """Which solver."""

    @classmethod
    def source(cls) -> Self:
        """Return the pipeline as the source has it: one forward sweep, and the filter that lags, over 7 frames."""
        return cls(search="forward", filter="causal", filter_window=7)


@dataclass(frozen=True)
class Retargeted:
    """The motion of a robot, and how it came about."""

    dof: Array
    """Joint angles `(M, n)` [rad] in the order of `joint_names`."""
    joint_names: tuple[str, ...]
    """Names of the joints."""
    fps: float
    """Frames per second of `dof`."""
    root_pos: Array
    """Position of the root `(M, 3)` [m]: scaled way of the pelvis; constant with a fixed root."""
    root_quat: Array
    """Orientation of the root `(M, 4)`, w, x, y, z."""
    human_points: Array = field(repr=False)
    """The person's key points `(M, 22, 3)` [m], scaled, in the world of the robot, with its root."""
    solved: Array = field(repr=False)
    """Joint angles `(T, n)` at `solve_fps`, straight from the solver."""
    offsets: Array = field(repr=False)
    """Targets relative to the anchors `(T, K, 3)` [m], in the root frame."""
    rotations: Array = field(repr=False)
    """Target rotations `(T, K, 3, 3)`, in the root frame."""
    errors: Array = field(repr=False)
    """Position [m] and orientation [rad] error of every task `(T, K, 2)` of `solved`."""
    flags: NDArray[np.int64] = field(repr=False)
    """What was wrong with each frame `(T,)`, as `diagnostics.Degraded`."""
    calibration: Calibration
    """Rest pitches of the person's skeleton."""
    scale: float
    """Size of the robot over that of the person."""

    @property
    def degraded(self) -> dict[int, tuple[str, ...]]:
        """Frames of the solver (at `solve_fps`) that are degraded, with the reasons."""
        return {int(t): diagnostics.named(int(self.flags[t])) for t in np.flatnonzero(self.flags)}


@dataclass(frozen=True, slots=True)
class LiveFrame:
    """One frame of live use."""

    dof: Array
    """Joint angles `(n,)` [rad]."""
    degraded: tuple[str, ...]
    """What was wrong with the key points."""


class Retargeter:
    """Turns key points of a person into joint angles of one robot."""

    def __init__(
        self,
        robot: RobotConfig | HumanoidSpec | str | Path = "h1",
        *,
        options: Options | None = None,
        search: ClipSettings | None = None,
    ) -> None:
        """Read the robot and build its problem.

        Args:
            robot: A humanoid with its task table, a humanoid alone (with the source's table), the name of one, or a
                robot file.
            options: How to retarget.
            search: Numbers of the search over a clip.
        """
        if isinstance(robot, str | Path):
            robot = load_robot(robot)
        self.config = robot if isinstance(robot, RobotConfig) else RobotConfig(robot)
        self.robot = self.config.robot
        self.options = options or Options()
        self.search = search
        self.model: mujoco.MjModel = self.robot.load(root="fixed").compile()
        tree = Tree.from_model(self.model, self.robot.root_body)
        order = [tree.joints.index(name) for name in self.robot.joints]
        if order != list(range(tree.n)):
            raise BunrakuError(
                f"robot {self.robot.name!r}: its joints are not those of its model below {self.robot.root_body!r},"
                f" in order; the model has {', '.join(tree.joints)}"
            )
        self.problem = Problem.build(
            tree, self.config.tasks(), self.config.settings, np.array(self.robot.home)
        )
        self.table = target_table(self.problem, whole_pelvis=self.options.root == "free")
        self.engine = make_engine(self.problem, self.model, self.options.engine)
        self._ankles = self._find_ankles()
        self._no_head = np.eye(3)
        self.reset()

    # live use

    def reset(self, calibration: Calibration | None = None) -> None:
        """Forget all live frames.

        Args:
            calibration: Rest pitches of the person, from `calibrate` on earlier frames; None: from the first frame.
        """
        self._state = make_state(self.problem, self.table)
        self._rest = None if calibration is None else np.array(calibration)
        self._bound = self.bound(self.options.solve_fps)
        self._unbound = np.full(self.problem.tree.n, np.inf) if self._bound is None else self._bound

    def step(self, frame: Array, head_rotation: Array | None = None) -> LiveFrame:
        """Retarget one frame, starting at the last one.

        Args:
            frame: Key points `(22, 3)`, Z up [m]; the frame rate is `options.solve_fps`.
            head_rotation: Rotation of the head in the chest `(3, 3)`, if it is known.
        """
        frame = np.ascontiguousarray(frame, dtype=np.float64)
        if frame.shape != (22, 3):
            raise BunrakuError(f"a frame is (22, 3) key points in metres; got {frame.shape}")
        if self._rest is None:
            if not np.isfinite(frame).all():
                raise BunrakuError(
                    "the first frame has key points that are not finite; begin with a whole one"
                )
            self._rest = np.array(calibrate(frame[None]))
        settings = self.problem.settings
        head = (
            self._no_head if head_rotation is None else np.ascontiguousarray(head_rotation, dtype=np.float64)
        )
        if isinstance(self.engine, CompiledEngine):
            flags = live_frame(
                self.table,
                self.problem.packed,
                self._rest,
                frame,
                head,
                head_rotation is not None,
                self._state,
                self._first_steps,
                settings.substeps,
                settings.target_step,
                settings.limit_gain,
                self._unbound,
                diagnostics.MAX_SPEED / self.options.solve_fps,
            )
            dof = self._state.x[1].copy()
        else:
            flags, dof = self._step_in_python(frame, head, head_rotation is not None)
        if self.options.geometric_ankle:
            self._set_ankles(dof[None], self._state.joints[:1], self._rest)
        return LiveFrame(dof, diagnostics.named(flags) if flags else ())

    @property
    def _first_steps(self) -> int:
        return (self.search or ClipSettings()).first_steps

    def _step_in_python(self, frame: Array, head: Array, has_head: bool) -> tuple[int, Array]:
        """Take one live frame without numba: the same targets, the steps by MuJoCo."""
        state, settings = self._state, self.problem.settings
        assert self._rest is not None  # set by `step`
        jump = diagnostics.MAX_SPEED / self.options.solve_fps
        flags = live_targets(self.table, self._rest, frame, head, has_head, state, jump)
        first = state.numbers[2] == 1.0
        if not first:
            state.x[0] = state.x[1]
        self.engine.sweep(
            state.x[1:] if first else state.x,
            state.offsets[1:] if first else state.offsets,
            state.rotations[1:] if first else state.rotations,
            0 if first else 1,
            0 if first else 1,
            follow=not first,
            substeps=self._first_steps if first else settings.substeps,
            target_step=np.inf if first else settings.target_step,
            limit_gain=settings.limit_gain,
            bound=self._bound,
        )
        return flags, state.x[1].copy()

    # files

    def retarget(self, motion: HumanMotion) -> RobotMotion:
        """Retarget a motion; degraded frames are flagged in the result (`diagnostics.named` says why)."""
        heads = None if motion.head_quat is None else to_matrix(motion.head_quat)
        result = self.solve(motion.joints, motion.fps, heads)
        fixed = self.options.root == "fixed"
        pose = np.concatenate([result.root_pos, result.root_quat], axis=1)
        nearest = np.rint(frame_times(len(result.solved), self.options.solve_fps, result.fps)).astype(
            np.int64
        )
        return RobotMotion(
            qpos=result.dof if fixed else np.concatenate([pose, result.dof], axis=1),
            joint_names=result.joint_names,
            fps=result.fps,
            robot=self.robot.name,
            source=motion.source,
            licence=motion.licence,
            base=pose[0] if fixed else None,
            human_points=result.human_points,
            flags=result.flags[nearest],
        )

    def solve(self, joints: Array, fps: float, head_rotations: Array | None = None) -> Retargeted:
        """Retarget a clip.

        Args:
            joints: Key points `(T, 22, 3)`, Z up [m].
            fps: Frames per second.
            head_rotations: Rotations of the head in the chest `(T, 3, 3)`, if they are known.
        """
        options, problem = self.options, self.problem
        joints = np.asarray(joints, dtype=np.float64)
        if joints.ndim != 3 or joints.shape[1:] != (22, 3) or len(joints) == 0:
            raise BunrakuError(f"a clip is (T, 22, 3) key points in metres, T at least 1; got {joints.shape}")
        joints, flags = diagnostics.fill_missing(joints)
        flags |= diagnostics.input_flags(joints, fps)
        contact = metrics.ground_contact(joints[:, [LEFT_FOOT, RIGHT_FOOT]], fps)
        joints, flags, heads = resample(joints, flags, head_rotations, fps, options.solve_fps)
        if options.smoothing_window > 1:
            joints = savitzky_golay(joints, options.smoothing_window)
        rest = calibrate(joints)
        yaw, seen = hip_yaw(joints)
        flags[~seen] |= Degraded.NO_HEADING
        frames, tasks = len(joints), len(problem.tasks)
        offsets, rotations = np.empty((frames, tasks, 3)), np.empty((frames, tasks, 3, 3))
        roots, lacking = np.empty((frames, 3, 3)), np.zeros(frames, dtype=np.int64)
        has_heads = heads is not None
        heads = self._no_head[None] if heads is None else heads
        clip_targets(
            self.table, np.array(rest), joints, yaw, heads, has_heads, offsets, rotations, roots, lacking
        )
        flags[lacking > 0] |= Degraded.NO_DIRECTION

        bound = self.bound(options.solve_fps)
        if options.search == "clip":
            solved = solve_clip(self.engine, offsets, rotations, self.search, bound)
        else:
            solved = track(self.engine, offsets, rotations, self._first_steps, bound)
        errors = self.engine.errors(solved, offsets, rotations)
        flags |= diagnostics.solution_flags(
            solved, errors[:, :, 0], offsets, problem.packed.weights[:, 0], bound
        )

        dof = solved
        if options.filter != "none":
            dof = weighted_moving_filter(
                dof, options.filter_window, zero_phase=options.filter == "zero_phase"
            )
        if options.geometric_ankle:
            dof = dof.copy()
            self._set_ankles(dof, joints, np.array(rest))
        dof = upsample(dof, options.solve_fps, options.fps)
        scale = self.scale(joints)
        root_pos, root_quat, points = self._root(joints, roots, scale)
        if options.root == "free" and options.ground:
            contact = resample_contact(contact, fps, options.fps, len(dof))
            grounded = ground_root(self.robot, dof, root_pos, root_quat, contact, options.fps)
            points = points + (grounded.root_pos - root_pos)[:, None]
            dof, root_pos, root_quat = grounded.dof, grounded.root_pos, grounded.root_quat
        fine = self.bound(options.fps)
        if fine is not None:
            dof = bound_steps(dof, fine)
        dof = np.clip(dof, problem.tree.lower, problem.tree.upper)
        return Retargeted(
            dof=dof,
            joint_names=self.robot.joints,
            fps=options.fps,
            root_pos=root_pos,
            root_quat=root_quat,
            human_points=points,
            solved=solved,
            offsets=offsets,
            rotations=rotations,
            errors=errors,
            flags=flags,
            calibration=rest,
            scale=scale,
        )

    def bound(self, fps: float) -> Array | None:
        """Return the largest joint step `(n,)` [rad] at a frame rate, or None if speeds are not bounded."""
        speeds = np.full(self.problem.tree.n, np.inf)
        if self.options.robot_speed:
            speeds = np.minimum(speeds, self.robot.speed_limit)
        if self.options.max_speed is not None:
            speeds = np.minimum(speeds, self.options.max_speed)
        return self.problem.step_bound(speeds, fps) if np.isfinite(speeds).any() else None

    def scale(self, joints: Array) -> float:
        """Return the size of the robot over that of the person: as given, or the ratio of the legs."""
        if self.options.scale is not None:
            return self.options.scale
        human = sum(
            float(np.median(np.linalg.norm(joints[:, a] - joints[:, b], axis=-1)))
            for a, b in ((1, 4), (4, 7), (2, 5), (5, 8))
        )
        legs = np.isin(self.table.bones[:, 0], (1, 2, 4, 5))
        robot = float(self.table.lengths[legs].sum())
        return robot / human if human > 1e-6 and robot > 0.0 else 1.0

    def _root(self, joints: Array, roots: Array, scale: float) -> tuple[Array, Array, Array]:
        """Return root positions, orientations and scaled key points at the rate of the result.

        With a fixed root the key points have lost heading and way, and hang at the waist like the robot.
        """
        options = self.options
        times = frame_times(len(joints), options.solve_fps, options.fps)
        local, pelvis = centre(joints)
        if options.root == "fixed":
            base = self.model.body(self.robot.root_body).pos
            points = lift(coordinates_scale(np.einsum("tik,tji->tjk", roots, local), scale), base)
            fine = upsample(points, options.solve_fps, options.fps)
            return np.tile(base, (len(times), 1)), np.tile([1.0, 0.0, 0.0, 0.0], (len(times), 1)), fine
        way = pelvis * scale
        way[:, :2] -= way[0, :2].copy()
        points = coordinates_scale(local, scale) + way[:, None]
        quat = from_matrix(roots)
        left = np.minimum(times.astype(np.int64), max(len(joints) - 2, 0))
        right = np.minimum(left + 1, len(joints) - 1)
        root_pos = upsample(way, options.solve_fps, options.fps)
        return (
            root_pos,
            nlerp(quat[left], quat[right], times - left),
            upsample(points, options.solve_fps, options.fps),
        )

    # ankles

    def _find_ankles(self) -> tuple[NDArray[np.int64], Array, list[int]]:
        """Return the arguments `ankles` and `limits` of `set_ankles`, and the row of the calibration of each foot."""
        tree, problem = self.problem.tree, self.problem
        _, rot = tree.poses(problem.rest)
        names = [task.name for task in problem.tasks]
        rows, limits, calibration = [], [], []
        for foot, (name, *points) in enumerate(FEET):
            if name not in names:
                continue
            knee = name.replace("ankle", "knee")
            above = set(tree.chain(problem.frames[names.index(knee)].link)) if knee in names else set()
            for link in tree.chain(problem.frames[names.index(name)].link):
                axis = rot[link] @ tree.axis[link]
                if link not in above and abs(axis[1]) > 0.9:
                    sign = 1 if axis[1] > 0.0 else -1
                    rows.append((link, sign, *points))
                    limits.append(sorted((sign * tree.lower[link], sign * tree.upper[link])))
                    calibration.append(3 + foot)
                    break
        shape = (len(rows), 5)
        return np.array(rows, dtype=np.int64).reshape(shape), np.array(limits).reshape(-1, 2), calibration

    def _set_ankles(self, dof: Array, joints: Array, rest: Array) -> None:
        """Overwrite the ankle pitch in joint angles `(T, n)` from key points `(T, 22, 3)`."""
        ankles, limits, calibration = self._ankles
        set_ankles(dof, joints, ankles, rest[calibration], limits)


def resample(
    joints: Array, flags: NDArray[np.int64], heads: Array | None, fps: float, solve_fps: float
) -> tuple[Array, NDArray[np.int64], Array | None]:
    """Return key points, flags and head rotations at the solver's frame rate."""
    if abs(fps - solve_fps) < 1e-6 * solve_fps:
        return joints, flags, heads
    nearest = np.rint(frame_times(len(joints), fps, solve_fps)).astype(np.int64)
    joints = upsample(joints, fps, solve_fps)
    return joints, flags[nearest].copy(), None if heads is None else heads[nearest]
