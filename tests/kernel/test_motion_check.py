"""What `bunraku motion check` finds in motions made wrong on purpose, and what it repairs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bunraku.cli.main import main
from bunraku.motion import RobotMotion
from bunraku.motion_check import check_motion, repair_motion
from bunraku.robots.h1 import ROBOT

HUMAN = ROBOT.human_scale


def standing(frames: int = 60) -> RobotMotion:
    qpos = np.tile(np.r_[0.0, 0.0, ROBOT.home_height, 1.0, np.zeros(3), ROBOT.home], (frames, 1))
    return RobotMotion(qpos=qpos, joint_names=ROBOT.joints, fps=50.0, robot="h1")


def moved(column: int, values: object) -> RobotMotion:
    motion = standing()
    qpos = motion.qpos.copy()
    qpos[:, column] += values
    return replace(motion, qpos=qpos)


def test_a_stand_has_no_faults() -> None:
    assert check_motion(standing(), ROBOT).ok


def test_each_fault_is_found_and_measured() -> None:
    assert check_motion(moved(2, 0.1 * HUMAN), ROBOT).floating == pytest.approx(0.1, abs=1e-3)
    assert check_motion(moved(2, -0.1 * HUMAN), ROBOT).penetration == pytest.approx(0.1, abs=1e-3)
    assert check_motion(moved(0, np.arange(60) * 0.02 * HUMAN), ROBOT).sliding == pytest.approx(1.0, abs=0.02)
    neck = 7 + ROBOT.joints.index("neck_yaw")
    assert check_motion(moved(neck, np.arange(60) == 30), ROBOT).jumps == 2
    assert check_motion(moved(neck, 5.0 * (np.arange(60) > 49)), ROBOT).beyond_limits == 10


def test_height_and_limits_are_repaired() -> None:
    bad = moved(2, 0.1)
    qpos = bad.qpos.copy()
    qpos[:, 7 + ROBOT.joints.index("neck_yaw")] = 3.0
    assert check_motion(repair_motion(replace(bad, qpos=qpos), ROBOT), ROBOT).ok


def test_the_command_tells_faults_by_its_exit_code_and_repairs_into_another_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = tmp_path / "bad.npz", tmp_path / "good.npz"
    moved(2, 0.1).save(bad)
    assert main(["motion", "check", str(bad), "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False
    assert main(["motion", "check", str(bad), "--repair", str(good)]) == 0
    assert main(["motion", "check", str(good)]) == 0
    assert main(["motion", "check", str(bad), "--repair", str(good)]) == 2


@pytest.mark.parametrize("robot", ["h1", "unitree_h1"])
def test_the_walks_that_come_along_have_no_faults(robot: str) -> None:
    walk = Path(__file__).resolve().parents[2] / f"envs/imitation/assets/walk_{robot}.npz"
    assert main(["motion", "check", str(walk)]) == 0
