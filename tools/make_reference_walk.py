"""Make the walk that the imitation environment brings along, for each humanoid, with the retargeting wing.

    python tools/make_reference_walk.py

A generated person walks, the retargeter follows with a free root, and the feet are put on the floor. The files are
made once and kept in `envs/imitation/assets`, since environments do not import retargeting.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from bunraku import plugins
from bunraku.humanoid import humanoids
from bunraku.motion import SMPL_JOINTS, RobotMotion
from bunraku.retarget.load import load_motion
from bunraku.retarget.metrics import ground_contact
from bunraku.retarget.pipeline import Options, Retargeter
from bunraku.retarget.root import ground_root, resample_contact

FPS = 50.0
WALK = "generator:walk,speed=0.8,cadence=1.8,seconds=12,fps=50"
ASSETS = Path(__file__).resolve().parents[1] / "envs" / "imitation" / "assets"


def make_walk(robot: str) -> RobotMotion:
    """Return the walk of a humanoid, feet on the floor."""
    human = load_motion(WALK)
    raw = Retargeter(robot, options=Options(root="free", fps=FPS)).retarget(human)
    toes = human.joints[:, [SMPL_JOINTS.index("left_foot"), SMPL_JOINTS.index("right_foot")]]
    contact = resample_contact(ground_contact(toes, human.fps), human.fps, FPS, len(raw))
    spec = plugins.load(plugins.ROBOTS, robot)
    done = ground_root(spec, raw.dof, raw.root_pos, raw.root_quat, contact, FPS)
    qpos = np.concatenate([done.root_pos, done.root_quat, done.dof], axis=1)
    return replace(raw, qpos=np.round(qpos, 7), human_points=None, flags=None)


if __name__ == "__main__":
    for name in humanoids():
        path = ASSETS / f"walk_{name}.npz"
        motion = make_walk(name)
        motion.save(path, force=True)
        print(f"{path.name}: {len(motion)} frames at {motion.fps:g} fps, {motion.duration:g} s")
