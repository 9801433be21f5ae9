"""Whole-body control of a humanoid that stands on both feet, under contact, friction, torque and joint limits.

Unknown are the joint accelerations (the free base included) and a force at each corner of both soles. In strict order
(`bunraku.control.hierarchy`):

1. physics: the base has no motor, so its six equations of motion hold by contact forces alone;
2. feet: they stay;
3. balance: the centre of mass is drawn over the middle of the soles, the chest is kept upright;
4. hands: both are springs and dampers to their targets;
5. posture: joints towards their home angles; forces spread over the corners.

Every level keeps: forces within friction pyramids, so that the centre of pressure is inside the feet; torques within
the motors'; accelerations that let joints stop before their ends (these give way where nothing else is left).

    control = StandingControl(model, ROBOT)
    data.ctrl[:] = control.torque(data, {"left": left, "right": right})

The model has a free root, a floor at z = 0 and motors in the order of `HumanoidSpec.joints`; see `standing_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import mujoco
import numpy as np

from bunraku.control.hierarchy import InfeasibleError, Level, Limits, load_daqp, solve_levels
from bunraku.errors import BunrakuError
from bunraku.geometry import Array, conjugate, multiply, to_rotvec
from bunraku.humanoid import LIMBS, HumanoidSpec

BALANCE, HANDS, POSTURE, CHEST = 60.0, 400.0, 60.0, 100.0
"""Stiffness of centre of mass, hands, posture and chest [1/s^2], each critically damped."""
FEET = 40.0
"""Damping of the feet, which should stay [1/s]."""
PYRAMID = 1.0 / np.sqrt(2.0)
"""A pyramid with this share of the friction coefficient lies inside the cone."""
INSIDE = 0.85
"""Forces act at the corners of soles of this share of the size, clear of the edge."""
SIDES = ("left", "right")
LIFTED = 0.01
"""A sole that is farther than this from the floor is not in contact [m]."""
LEAN = 0.25
"""The trunk may bring a shoulder nearer to a target by this share of its height over the pelvis."""
EVEN = 0.06
"""Weight of even forces beside the posture."""
BRAKING = 60.0
"""Deceleration that a joint is sure to have [rad/s^2]."""
MARGIN = 0.01
"""Room for lower levels, in eighths of the weight, shares of torque limits, and rad/s^2."""
LIGHTEST = 0.05
"""Least share of an eighth of the weight on each corner: a foot that carries nothing is no contact."""
NO_LIMIT = 1e30
"""What daqp takes for no limit."""
END = 0.005
"""Joints are stopped this far before their ends [rad]."""
RESIDUAL = 1e-2
"""The base's equations must come out to this, per mass [m/s^2]."""
SLIP = 2.0
"""Acceleration of a foot that counts as losing its hold [m/s^2, rad/s^2].

Legs with fewer than six joints, as those of unitree_h1, cannot hold both soles in every direction at once.
"""


def standing_model(robot: HumanoidSpec, timestep: float = 0.002) -> mujoco.MjModel:
    """Return the robot with a free root on a floor, with motors in the order of its joints.

    Args:
        robot: The robot.
        timestep: [s].
    """
    spec = robot.load(root="free")
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[5.0, 5.0, 0.1])
    spec.worldbody.add_light(pos=[0.0, 0.0, 4.0])
    for joint, limit in zip(robot.joints, robot.torque_limit, strict=True):
        spec.add_actuator(
            name=joint,
            target=joint,
            trntype=mujoco.mjtTrn.mjTRN_JOINT,
            forcelimited=True,
            forcerange=[-limit, limit],
        )
    return spec.compile()


def stand(model: mujoco.MjModel, robot: HumanoidSpec) -> mujoco.MjData:
    """Return data of the robot at its home posture, feet on the floor, at rest."""
    data = mujoco.MjData(model)
    data.qpos[:3], data.qpos[3:7] = (0.0, 0.0, robot.home_height), (1.0, 0.0, 0.0, 0.0)
    data.qpos[7:] = robot.home
    mujoco.mj_forward(model, data)
    return data


class StandingControl:
    """Torques that keep a humanoid standing while its hands follow targets."""

    def __init__(self, model: mujoco.MjModel, robot: HumanoidSpec, friction: float = 0.8) -> None:
        """Look up bodies and limits.

        Args:
            model: From `standing_model`, or another with the same joints and motors.
            robot: The robot.
            friction: Coefficient between soles and floor that may be relied on.

        Raises:
            BunrakuError: If the friction is not positive.
            MissingDependencyError: If daqp is not installed.
        """
        load_daqp()
        if not friction > 0.0:
            raise BunrakuError(f"standing needs friction; the coefficient must be positive, got {friction:g}")
        self.model, self.robot, self.friction = model, robot, friction
        self._n, self.weight = robot.dof, float(model.body_mass.sum()) * -float(model.opt.gravity[2])
        self._mass, self._unit = float(model.body_mass.sum()), self.weight / 8.0
        self._feet = [_Frame(model, foot.body) for foot in robot.feet]
        self._soles = [
            INSIDE * np.array(foot.sole) + (1.0 - INSIDE) * np.mean(foot.sole, axis=0) for foot in robot.feet
        ]
        for sole, foot in zip(self._soles, robot.feet, strict=True):
            sole[:, 2] = np.array(foot.sole)[:, 2]
        self._chest = _Frame(model, robot.frames["spine3"])
        self._hands = {side: _Frame(model, robot.frames[f"{side}_wrist"]) for side in SIDES}
        self._shoulders = {side: _Frame(model, robot.frames[f"{side}_shoulder"]) for side in SIDES}
        home = stand(model, robot)
        self._chest_home = home.xquat[self._chest.body].copy()
        self._height = float(home.subtree_com[0][2])
        self._reach = {side: self._arm_reach(home, side) for side in SIDES}
        self._home = np.array(robot.home)
        self._torque_limit = np.array(robot.torque_limit)
        self._speed = np.array(robot.speed_limit)
        joints = [int(model.joint(name).id) for name in robot.joints]
        self._lower, self._upper = (model.jnt_range[joints] + (END, -END)).T.copy()
        self._names = self._limit_names()
        self.forces: Array = np.zeros((2, 4, 3))
        """Forces of the last call at the corners of left and right sole, world [N]."""
        self.center_of_pressure: Array = np.zeros((2, 2))
        """Of each foot, x and y in the foot's frame [m]."""

    @property
    def chest(self) -> int:
        """Id of the body that carries the chest."""
        return self._chest.body

    def hand(self, data: mujoco.MjData, side: str) -> Array:
        """Return the position `(3,)` of a hand, world [m]."""
        return self._hands[side].pos(data).copy()

    def torque(self, data: mujoco.MjData, hands: Mapping[str, Array]) -> Array:
        """Return the motors' torques `(n,)` [N m].

        Args:
            data: The state, with positions and velocities up to date (`mj_step1` or `mj_forward`).
            hands: Position wanted of the `left` and `right` hand `(3,)`, world [m].

        Raises:
            BunrakuError: If a hand's target is out of reach, a foot is off the floor, or no forces within the limits
                hold the robot; the message says which and when.
        """
        self._check(data, hands)
        nv = self.model.nv
        inertia = np.zeros((nv, nv))
        mujoco.mj_fullM(self.model, data, inertia)
        bias = data.qfrc_bias - data.qfrc_passive
        corners, foot_rows, foot_wanted = self._contact(data)
        # unknown forces count in eighths of the weight, so that all unknowns are of one size
        push = corners.T * self._unit
        physics = Level(
            "physics",
            np.concatenate([inertia[:6], -push[:6]], axis=1) / self._mass,
            -bias[:6] / self._mass,
        )
        feet = Level("feet", _pad(foot_rows, 24), foot_wanted)
        motors = np.concatenate([inertia[6:], -push[6:]], axis=1)
        limits = self._limits(data, motors, bias[6:])
        levels = [
            physics,
            feet,
            self._balance(data, inertia, bias),
            self._reach_for(data, hands),
            self._posture(data),
        ]
        x = solve_levels(levels, limits, when=float(data.time))
        self._check_physics(physics, feet, x, float(data.time))
        self.forces = self._unit * x[nv:].reshape(2, 4, 3)
        self._find_pressure()
        return np.clip(motors @ x + bias[6:], -self._torque_limit, self._torque_limit)

    # Levels.

    def _contact(self, data: mujoco.MjData) -> tuple[Array, Array, Array]:
        """Return Jacobians of the corners `(24, nv)` and of the feet `(12, nv)`, and the feet's acceleration wanted."""
        corners, rows, wanted = [], [], []
        for foot, sole in zip(self._feet, self._soles, strict=True):
            jac, drift = foot.motion(data)
            offset = foot.turned(data, sole)
            corners += [jac[:3] + np.cross(jac[3:].T, r).T for r in offset]
            rows.append(jac)
            wanted.append(-FEET * (jac @ data.qvel) - drift)
        return np.concatenate(corners), np.concatenate(rows), np.concatenate(wanted)

    def _balance(self, data: mujoco.MjData, inertia: Array, bias: Array) -> Level:
        """Draw the centre of mass over the soles; keep the chest upright."""
        jac = inertia[:3] / self._mass
        # the first three equations of a free base are those of the centre of mass
        drift = (bias[:3] + data.qfrc_passive[:3]) / self._mass + self.model.opt.gravity
        middle = np.mean([foot.pos(data) + foot.turned(data, sole).mean(axis=0)
                          for foot, sole in zip(self._feet, self._soles, strict=True)], axis=0)  # fmt: skip
        wanted = np.array([middle[0], middle[1], self._height])
        com = _spring(BALANCE, wanted - data.subtree_com[0], jac @ data.qvel) - drift
        chest, chest_drift = self._chest.motion(data)
        turn = to_rotvec(multiply(self._chest_home, conjugate(data.xquat[self._chest.body])))
        spin = _spring(CHEST, turn, chest[3:] @ data.qvel) - chest_drift[3:]
        return Level(
            "balance", _pad(np.concatenate([jac, 0.1 * chest[3:]]), 24), np.concatenate([com, 0.1 * spin])
        )

    def _reach_for(self, data: mujoco.MjData, hands: Mapping[str, Array]) -> Level:
        rows, wanted = [], []
        for side, hand in self._hands.items():
            jac, drift = hand.motion(data)
            rows.append(jac[:3])
            wanted.append(_spring(HANDS, hands[side] - hand.pos(data), jac[:3] @ data.qvel) - drift[:3])
        return Level("hands", _pad(np.concatenate(rows), 24), np.concatenate(wanted))

    def _posture(self, data: mujoco.MjData) -> Level:
        """Joints towards home; and, weighed little, forces that are even over the corners."""
        n, nv = self._n, self.model.nv
        joints = np.zeros((n, nv + 24))
        joints[:, 6:nv] = np.eye(n)
        forces = np.zeros((24, nv + 24))
        forces[:, nv:] = EVEN * np.eye(24)
        even = np.tile([0.0, 0.0, EVEN], 8)
        wanted = _spring(POSTURE, self._home - data.qpos[7:], data.qvel[6:])
        return Level("posture", np.concatenate([joints, forces]), np.concatenate([wanted, even]))

    # Limits.

    def _limit_names(self) -> list[str]:
        names = []
        for foot in self.robot.feet:
            for corner in ("front left", "front right", "rear right", "rear left"):
                kinds = ("force", "friction +x", "friction -x", "friction +y", "friction -y")
                names += [f"{kind} at the {corner} corner of {foot.body}" for kind in kinds]
        names += [f"share of the torque of {joint}" for joint in self.robot.joints]
        return names + [f"acceleration of {joint}" for joint in self.robot.joints]

    def _limits(self, data: mujoco.MjData, motors: Array, bias: Array) -> Limits:
        """Return friction pyramids, torque limits and (soft) acceleration limits."""
        n, nv = self._n, self.model.nv
        slope = PYRAMID * self.friction
        cone = np.array([[0, 0, 1.0], [1, 0, -slope], [-1, 0, -slope], [0, 1, -slope], [0, -1, -slope]])
        pyramids = np.zeros((40, nv + 24))
        pyramids[:, nv:] = np.kron(np.eye(8), cone)
        low, high = np.tile([LIGHTEST, *[-NO_LIMIT] * 4], 8), np.tile([80.0, 0.0, 0.0, 0.0, 0.0], 8)
        joints = np.zeros((n, nv + 24))
        joints[:, 6:nv] = np.eye(n)
        dt, q, qd = self.model.opt.timestep, data.qpos[7:], data.qvel[6:]
        ahead = q + qd * dt
        up = np.minimum(self._speed, np.sqrt(2.0 * BRAKING * np.maximum(self._upper - ahead, 0.0)))
        down = -np.minimum(self._speed, np.sqrt(2.0 * BRAKING * np.maximum(ahead - self._lower, 0.0)))
        most = self._torque_limit
        return Limits(
            self._names,
            np.concatenate([pyramids, motors / most[:, None], joints]),
            np.concatenate([low, -1.0 - bias / most, (down - qd) / dt]),
            np.concatenate([high, 1.0 - bias / most, (up - qd) / dt]),
            np.repeat([False, True], [40 + n, n]),
            MARGIN,
        )

    # Mistakes.

    def _arm_reach(self, home: mujoco.MjData, side: str) -> float:
        chain = [_Frame(self.model, self.robot.frames[key]).pos(home) for key in LIMBS[f"{side}_arm"]]
        bones = [np.linalg.norm(b - a) for a, b in pairwise(chain)]
        rise = chain[0][2] - home.qpos[2]
        return float(sum(bones) + LEAN * rise)

    def _check(self, data: mujoco.MjData, hands: Mapping[str, Array]) -> None:
        for side, shoulder in self._shoulders.items():
            distance = float(np.linalg.norm(np.asarray(hands[side]) - shoulder.pos(data)))
            if not distance <= self._reach[side]:
                raise BunrakuError(
                    f"the {side} hand cannot reach its target {np.round(hands[side], 3).tolist()} m at t ="
                    f" {data.time:.3f} s: it is {distance:.3f} m from the shoulder, arm and a lean of the trunk reach"
                    f" {self._reach[side]:.3f} m"
                )
        for foot, sole, spec in zip(self._feet, self._soles, self.robot.feet, strict=True):
            height = float((foot.pos(data) + foot.turned(data, sole))[:, 2].min())
            if height > LIFTED:
                raise BunrakuError(
                    f"no contact at t = {data.time:.3f} s: {spec.body} is {height:.3f} m above the floor and cannot"
                    " carry the robot; put both feet on the floor"
                )

    def _check_physics(self, physics: Level, feet: Level, x: Array, when: float) -> None:
        wrench = np.abs(physics.matrix @ x - physics.wanted)
        slip = np.abs(feet.matrix @ x - feet.wanted).reshape(2, 6).max(axis=1)
        if wrench.max() > RESIDUAL:
            part = "force" if wrench.argmax() < 3 else "torque"
            what, by = f"give the {part} that the base needs", float(wrench.max())
        elif slip.max() > SLIP:
            what, by = f"keep {self.robot.feet[int(slip.argmax())].body} at rest", float(slip.max())
        else:
            return
        raise InfeasibleError(
            f"contact is infeasible at t = {when:.3f} s: no forces within friction and torque limits {what}; they"
            f" miss by {by:.3g} m/s^2"
        )

    def _find_pressure(self) -> None:
        for i, sole in enumerate(self._soles):
            vertical = self.forces[i, :, 2]
            self.center_of_pressure[i] = (vertical @ sole[:, :2]) / max(float(vertical.sum()), 1e-9)


class _Frame:
    """A body, or a site on one, of a model."""

    def __init__(self, model: mujoco.MjModel, name: str) -> None:
        self._model = model
        bodies = [model.body(i).name for i in range(model.nbody)]
        self._site = None if name in bodies else int(model.site(name).id)
        self.body = bodies.index(name) if self._site is None else int(model.site_bodyid[self._site])

    def pos(self, data: mujoco.MjData) -> Array:
        """Return its position `(3,)`, world [m]: a view."""
        return data.xpos[self.body] if self._site is None else data.site_xpos[self._site]

    def turned(self, data: mujoco.MjData, points: Array) -> Array:
        """Return offsets `(k, 3)` in the body's axes as offsets in the world's."""
        return points @ data.xmat[self.body].reshape(3, 3).T

    def motion(self, data: mujoco.MjData) -> tuple[Array, Array]:
        """Return its Jacobian `(6, nv)`, and that one's time derivative times the velocities `(6,)`."""
        jac, dot = np.zeros((6, self._model.nv)), np.zeros((6, self._model.nv))
        mujoco.mj_jac(self._model, data, jac[:3], jac[3:], self.pos(data), self.body)
        mujoco.mj_jacDot(self._model, data, dot[:3], dot[3:], self.pos(data), self.body)
        return jac, dot @ data.qvel


def _spring(stiffness: float, off: Array, velocity: Array) -> Array:
    return stiffness * off - 2.0 * np.sqrt(stiffness) * velocity


def _pad(rows: Array, width: int) -> Array:
    return np.concatenate([rows, np.zeros((len(rows), width))], axis=1)
