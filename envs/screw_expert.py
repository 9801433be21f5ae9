"""A scripted expert for screw driving: one action from one observation, for one simulation or many.

    action = expert(observation["observation"])

It holds nothing between steps and knows nothing but the observation. It commands where the targets shall be: over the
screw, the bit turned to the recess, at a height; down until it touches; then it presses, as much as the depth asks for,
and turns; when the screw is deep, it lifts.
"""

from __future__ import annotations

import numpy as np

from bunraku.envs.screw_control import LINEAR_SPEED, SPIN_SPEED
from bunraku.envs.tasks.screw_driving import CLEAR, LAYOUT
from bunraku.geometry import Array
from bunraku.screw import figures

HOVER = 0.02
"""Height over the screw at which the bit comes from the side [m]."""
ALIGNED, ASIDE = 0.06, 0.0015
"""The bit goes down when it is turned to the recess by this [rad] and this near its axis [m]."""
DEEP_ENOUGH = figures.SCREW_SINK + 0.0004
"""Depth at which it lifts [m]."""
PRESS_START, PRESS_GROWTH = 18.0, 14.0
"""Axial force wanted at the start, and what the whole depth adds [N]."""
COMPLIANCE = 5e-5
"""How far the target moves per newton that is wanting, each step [m/N]."""
SINK_PER_TURN = figures.SCREW_PITCH
"""Way down per turn of the bit that is expected while driving [m]."""
YIELD = 5e-5
"""How far the target gives way per newton of sideways force, each step [m/N]."""
SPIN_LEAD = 1.0
"""Spin action while driving."""


def expert(observation: Array, step: float = 0.05) -> Array:
    """Return actions `(..., 4)` of `tip_spin` for observations `(..., 45)`.

    Args:
        observation: What the environment's `observation` holds.
        step: Time of a control step [s].
    """
    seen = {name: observation[..., at] for name, at in LAYOUT.items()}
    tip, top, lead = seen["tip_pos"], seen["screw_top"], seen["target_lead"]
    offset = top - tip
    aside = np.sqrt((offset[..., :2] ** 2).sum(axis=-1))
    apart = np.arctan2(seen["recess_offset"][..., 1], seen["recess_offset"][..., 0]) / 4.0
    stage = seen["stage"]
    depth = seen["screw_depth"][..., 0]
    deep = depth >= DEEP_ENOUGH
    in_recess = (stage[..., 1] + stage[..., 2] + stage[..., 3] > 0.0) & ~deep & (offset[..., 2] > 0.002)
    force = seen["force"][..., 2]
    height = -offset[..., 2]

    # over the screw, first at a distance, then down
    ready = (np.abs(apart) < ALIGNED) & (aside < ASIDE)
    wanted_z = np.where(ready, -0.25 * (height + 0.01), np.maximum(HOVER - height, -0.02))
    # touching but not in: press lightly and let the walls lead
    press = PRESS_START + PRESS_GROWTH * np.minimum(depth / figures.SCREW_SINK, 1.0)
    wanting = np.where(in_recess, press, 6.0) - force
    touching = force > 1.0
    # the screw sinks away from under a turning bit
    sinking = np.maximum(seen["bit_speed"][..., 0], 0.0) * SINK_PER_TURN / (2.0 * np.pi) * step
    pressing = -COMPLIANCE * wanting - np.where(in_recess, sinking, 0.0)
    down = np.where(in_recess | (touching & ready), pressing, wanted_z - lead[..., 2])
    sideways = offset[..., :2] - lead[..., :2]
    lifted = height > 1.5 * CLEAR
    z = np.where(deep, np.where(lifted, 0.0, LINEAR_SPEED * step), down)
    far = (aside > 0.01) & (height < 0.5 * HOVER) & ~deep
    z = np.where(far, HOVER - height - lead[..., 2], z)
    # in the recess the walls lead: give way to sideways forces
    sideways = np.where(in_recess[..., None], YIELD * seen["force"][..., :2], sideways)
    sideways = np.where((far | deep)[..., None], -lead[..., :2], sideways)
    move = np.concatenate([sideways, z[..., None]], axis=-1) / (LINEAR_SPEED * step)

    align = (-apart - seen["bit_lead"][..., 0]) / (SPIN_SPEED * step)
    drive = SPIN_LEAD * np.minimum(np.maximum((force / press - 0.3) / 0.4, 0.0), 1.0)
    spin = np.where(deep, -seen["bit_lead"][..., 0] / (SPIN_SPEED * step), np.where(in_recess, drive, align))
    return np.minimum(np.maximum(np.concatenate([move, spin[..., None]], axis=-1), -1.0), 1.0)
