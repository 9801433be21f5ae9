"""Whatever hands, trackers and headsets do, joint targets keep to their speed limits, and engaging moves nothing."""

from __future__ import annotations

import numpy as np

from bunraku.geometry import IDENTITY_QUAT, Pose, from_rotvec, multiply
from bunraku.teleop_collect.profile import Profile
from tests.teleop_collect.fake_device import Rig

SEQUENCES = 1000


def random_moment(rig: Rig, rng: np.random.Generator, hand: np.ndarray) -> None:
    """Do one random thing to the device."""
    device = rig.device
    kind = rng.choice(
        ["trigger", "dropout", "jump", "event", "buttons", "source", "move"],
        p=[0.4, 0.06, 0.06, 0.06, 0.08, 0.04, 0.3],
    )
    if kind == "trigger":
        device.trigger["right"] = float(rng.choice([0.0, 0.0, 0.3, 0.5, 0.7, 1.0, 1.0]))
    elif kind == "dropout":
        device.pose["right"] = None
        return
    elif kind == "jump":  # to the origin, or across the room
        hand[:] = rng.uniform(-2.0, 2.0, 3)
    elif kind == "event":
        events = ["recentred", "role_changed", "disconnected", "connected", "standby"]
        device.events.append(str(rng.choice(events)))
        hand[:] = rng.uniform(-1.0, 1.0, 3)
    elif kind == "buttons":
        device.buttons["right"] = frozenset(rng.choice(["a", "thumbstick", "b", "x"], 2).tolist())
    elif kind == "source":
        device.source["right"] = str(rng.choice(["R1", "R2"]))
    else:  # honest, quick motion
        hand += rng.uniform(-0.04, 0.04, 3)
    quat = multiply(from_rotvec(rng.normal(0.0, 0.5, 3)), IDENTITY_QUAT)
    if rng.uniform() < 0.05:
        quat = quat * np.nan
    device.pose["right"] = Pose(hand.copy(), quat)


def test_no_joint_target_moves_faster_than_its_limit_over_a_thousand_random_sequences() -> None:
    rig = Rig(profile=Profile())
    rng = np.random.default_rng(7)
    limit = np.array(rig.arm.robot.speed_limit) * rig.dt * (1 + 1e-9)
    sim = rig.env.unwrapped.sim
    engaged_before, engagements = False, 0
    last = rig.arm.commanded_joints(), sim.ctrl[:7].copy()
    for sequence in range(SEQUENCES):
        if sequence % 50 == 0:
            rig.env.reset(seed=sequence)
            engaged_before = False
            last = rig.arm.commanded_joints(), sim.ctrl[:7].copy()
        hand = rng.uniform(-0.3, 0.3, 3)
        for _ in range(rng.integers(3, 12)):
            random_moment(rig, rng, hand)
            target = rig.arm.target()
            info = rig.step()
            report = info["teleop"].hands["right"]
            now = rig.arm.commanded_joints(), sim.ctrl[:7].copy()
            for before, after in zip(last, now, strict=True):
                assert (np.abs(after - before) <= limit).all()
            if report.engaged and not engaged_before:
                engagements += 1
                assert np.abs(rig.arm.target().pos - target.pos).max() < 1e-7
            engaged_before = report.engaged
            last = now
        assert np.isfinite(rig.env.unwrapped.data.qpos).all()
    assert engagements > 200
