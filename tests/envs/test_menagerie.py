"""The meshed Panda: the real `mujoco_menagerie` package over a stand-in checkout of its model folder."""

from __future__ import annotations

import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np
import pytest

from bunraku.errors import BunrakuError, MissingDependencyError

IDS = ["bunraku/PandaReach-v0", "bunraku/DualPandaReach-v0"]
# What Menagerie's file has besides bodies, joints and geoms, in its own words.
EXTRAS = """
  <tendon>
    <fixed name="split"><joint joint="finger_joint1" coef="0.5"/><joint joint="finger_joint2" coef="0.5"/></fixed>
  </tendon>
  <equality>
    <joint joint1="finger_joint1" joint2="finger_joint2" solimp="0.95 0.99 0.001" solref="0.005 1"/>
  </equality>
  <actuator>
    <general name="actuator1" joint="joint1" gainprm="4500" biastype="affine" biasprm="0 -4500 -450"/>
    <general name="actuator8" tendon="split" gainprm="0.0157" biastype="affine" biasprm="0 -100 -10"/>
  </actuator>
  <keyframe>
    <key name="home" qpos="0 0 0 -1.57079 0 1.57079 -0.7853 0.04 0.04" ctrl="0 255"/>
  </keyframe>
</mujoco>
"""
CUBE = """
v -1 -1 -1
v 1 -1 -1
v 1 1 -1
v -1 1 -1
v 0 0 1
f 1 3 2
f 1 4 3
f 1 2 5
f 2 3 5
f 3 4 5
f 4 1 5
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder laid out as Menagerie's, its Panda made of ours: no tool site, a mesh file, no gravcomp."""
    pytest.importorskip("mujoco_menagerie", reason="needs mujoco_menagerie")
    xml = files("bunraku.robots").joinpath("assets/panda.xml").read_text("utf-8")
    xml = re.sub(r'<site name="tool"[^>]*/>| gravcomp="1"', "", xml)
    xml = xml.replace("<compiler ", '<compiler meshdir="assets" ')
    xml = xml.replace("<asset>", '<asset><mesh name="shell" file="shell.obj" scale="0.03 0.03 0.03"/>')
    xml = re.sub(r'(<body name="link3"[^>]*>)', r'\1<geom class="visual" type="mesh" mesh="shell"/>', xml)
    folder = tmp_path / "franka_emika_panda"
    (folder / "assets").mkdir(parents=True)
    (folder / "assets" / "shell.obj").write_text(CUBE)
    (folder / "panda.xml").write_text(re.sub(r"</mujoco>\s*$", EXTRAS, xml))
    mujoco.MjModel.from_xml_path(str(folder / "panda.xml"))  # the stand-in itself is sound
    monkeypatch.setenv("MENAGERIE_ROOT", str(tmp_path))
    return tmp_path


def make(name: str, **kwargs: Any) -> Any:
    return gymnasium.make(name, robot_model="menagerie", disable_env_checker=True, **kwargs).unwrapped


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("gripper", [False, True])
def test_the_meshed_arm_moves_as_ours_does(checkout: Path, name: str, gripper: bool) -> None:
    options = {"control_mode": "ee_delta_pose", "gripper": gripper}
    meshed = make(name, **options)
    ours = gymnasium.make(name, disable_env_checker=True, **options).unwrapped
    assert meshed.action_space == ours.action_space
    assert meshed.observation_space == ours.observation_space
    assert (meshed.model.nu, meshed.model.nv) == (ours.model.nu, ours.model.nv)
    assert meshed.model.nmesh == ours.model.nmesh + len(meshed.task.places)
    assert meshed.model.nkey == meshed.model.ntendon == 0
    one, two = (e.reset(seed=4)[0] for e in (meshed, ours))
    rng = np.random.default_rng(0)
    for _ in range(20):
        action = rng.uniform(-0.5, 0.5, ours.action_space.shape)
        one, two = (e.step(action)[0] for e in (meshed, ours))
    np.testing.assert_allclose(one["achieved_goal"], two["achieved_goal"], atol=1e-3)


def test_the_meshed_arm_holds_still_against_gravity(checkout: Path) -> None:
    env = make(IDS[0])
    start = env.reset(seed=3)[0]["achieved_goal"]
    for _ in range(40):
        observation = env.step(np.zeros(3))[0]
    assert np.linalg.norm(observation["achieved_goal"] - start) < 1e-4


def test_the_scene_stored_with_recordings_loads_from_another_folder(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = make(IDS[0])
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = mujoco.MjModel.from_xml_string(env.task.mjcf)
    assert (again.nq, again.nmesh, again.nmeshvert) == (env.model.nq, env.model.nmesh, env.model.nmeshvert)


def test_without_the_package_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco_menagerie", None)
    with pytest.raises(MissingDependencyError) as caught:
        make(IDS[0])
    assert "pip install 'bunraku[robots]'" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("missing", ["franka_emika_panda", "franka_emika_panda/panda.xml"])
def test_a_checkout_without_the_model_is_named_in_one_line(checkout: Path, missing: str) -> None:
    path = checkout / missing
    path.rename(path.with_name("moved"))
    with pytest.raises(BunrakuError, match=re.escape(str(checkout))) as caught:
        make(IDS[0])
    assert len(str(caught.value).splitlines()) == 1


def test_without_network_one_line_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco_menagerie", reason="needs mujoco_menagerie")
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    monkeypatch.setenv("MENAGERIE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("MENAGERIE_BASE_URL", (tmp_path / "nothing").as_uri())
    with pytest.raises(BunrakuError, match="set MENAGERIE_ROOT") as caught:
        make(IDS[0])
    assert len(str(caught.value).splitlines()) == 1


def test_a_cache_that_cannot_be_written_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mujoco_menagerie", reason="needs mujoco_menagerie")
    (tmp_path / "file").write_text("")
    monkeypatch.delenv("MENAGERIE_ROOT", raising=False)
    monkeypatch.setenv("MENAGERIE_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(BunrakuError, match="cannot be had") as caught:
        make(IDS[0])
    assert len(str(caught.value).splitlines()) == 1
