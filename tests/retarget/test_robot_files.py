"""Robot files: built-in ones round trip, a new one is guessed from its model, wrong ones say what is wrong."""

import json
from pathlib import Path

import mujoco
import numpy as np
import pytest

from bunraku import plugins
from bunraku.cli.main import main
from bunraku.errors import BunrakuError, FileFormatError, UnknownNameError
from bunraku.humanoid import HumanoidSpec, humanoids
from bunraku.retarget.guess import Guess
from bunraku.retarget.robot_config import RobotConfig, load_robot, to_toml


def built_in(name: str) -> HumanoidSpec:
    robot: HumanoidSpec = plugins.load(plugins.ROBOTS, name)
    return robot


def example_g1() -> Path:
    """Unitree's G1 as the package example-robot-data brings it."""
    pinocchio = pytest.importorskip("pinocchio", reason="its folder tells where example-robot-data lies")
    prefix = Path(pinocchio.__file__).parents[4]
    found = sorted(prefix.glob("share/example-robot-data/robots/g1_description/urdf/g1_29dof_rev_1_0.urdf"))
    if not found:
        pytest.skip("the package example-robot-data is not installed")
    return found[0]


@pytest.mark.parametrize("name", humanoids())
def test_a_built_in_robot_written_to_a_file_is_the_same_robot(name: str, tmp_path: Path) -> None:
    path = tmp_path / "robot.toml"
    path.write_text(to_toml(load_robot(name), name, {}), "utf-8")
    ours, read = load_robot(name), load_robot(path)
    for field in ("joints", "root_body", "frames", "human_scale", "feet", "torque_limit", "speed_limit"):
        assert getattr(read.robot, field) == getattr(ours.robot, field), field
    np.testing.assert_allclose(read.robot.home, ours.robot.home, atol=1e-6)
    assert read.tasks() == ours.tasks()
    assert read.settings == ours.settings
    assert read.robot.load(root="free").compile().nq == 7 + ours.robot.dof


@pytest.mark.parametrize("name", humanoids())
def test_reading_a_built_in_model_finds_the_parts_that_its_record_names(name: str, tmp_path: Path) -> None:
    spec = built_in(name).load(root="free")
    path = tmp_path / f"{name}.xml"
    path.write_text(spec.to_xml(), "utf-8")
    guess = Guess(path)
    robot, record = guess.config.robot, built_in(name)
    assert robot.joints == record.joints
    assert robot.root_body == record.root_body
    (tmp_path / "r.toml").write_text(to_toml(guess.config, str(path), guess.sites), "utf-8")
    model = load_robot(tmp_path / "r.toml").robot.load().compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)

    def at(place: str) -> np.ndarray:
        body = mujoco.mj_name2id(model, int(mujoco.mjtObj.mjOBJ_BODY), place)
        return data.xpos[body] if body >= 0 else data.site(place).xpos

    plain = {"left_hip", "left_knee", "left_ankle", "left_shoulder", "left_elbow", "right_knee", "left_foot"}
    for point in plain | {"pelvis"}:
        np.testing.assert_allclose(
            at(robot.frames[point]), at(record.frames[point]), atol=1e-6, err_msg=point
        )
    for foot, known in zip(robot.feet, record.feet, strict=True):
        assert foot.body == known.body
        np.testing.assert_allclose(np.array(foot.sole)[:, 2], np.array(known.sole)[:, 2], atol=1e-6)


def test_unitree_g1_is_described_from_its_urdf(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    urdf, out = example_g1(), tmp_path / "unitree_g1.toml"
    assert main(["robots", "new", str(urdf), "--out", str(out), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["joints"] == 29
    config = load_robot(out)
    assert config.robot.frames["left_knee"] == "left_knee_link"
    assert config.robot.frames["left_wrist"].startswith("left_wrist")
    model = config.robot.load(root="free").compile()
    assert model.nq == 7 + 29
    assert (
        1.1 < config.robot.home_height / 0.79 * 1.1 < 1.2
    )  # it stands 0.79 m at the pelvis with straight legs
    assert config.robot.speed_limit[0] == 32.0
    assert 0.7 < config.robot.human_scale < 0.85


def test_a_model_that_is_no_humanoid_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "arm.xml"
    path.write_text(
        "<mujoco><worldbody><body name='a'><joint name='one'/><geom size='.1'/></body></worldbody></mujoco>"
    )
    with pytest.raises(BunrakuError, match="no joint is named left hip"):
        Guess(path)


def test_nothing_is_overwritten_without_force(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "h1.toml"
    assert main(["robots", "new", "h1", "--out", str(out)]) == 0
    out.write_text("mine")
    assert main(["robots", "new", "h1", "--out", str(out)]) == 2
    assert out.read_text() == "mine"
    assert "--force" in capsys.readouterr().err
    assert main(["robots", "new", "h1", "--out", str(out), "--force"]) == 0
    assert load_robot(out).robot.dof == 28


def test_the_list_names_both_humanoids(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["robots", "list", "--json"]) == 0
    robots = {row["name"]: row for row in json.loads(capsys.readouterr().out)["robots"]}
    assert robots["h1"]["joints"] == 28
    assert robots["unitree_h1"]["joints"] == 19


GOOD = to_toml(RobotConfig(built_in("h1")), "h1", {})
WRONG = [
    ('model = "h1"', 'model = "gone.xml"', "no robot model"),
    ('model = "h1"', "model = 3", r"\[robot\] needs model"),
    ('root_body = "waist"', 'root_body = "wasit"', "did you mean 'waist'"),
    ("human_scale = 0.2466", "human_scale = -1.0", "human_scale is above 0"),
    ('left_knee = "left_calf"', 'left_knee = "left_clf"', "did you mean 'left_calf'"),
    ('left_knee = "left_calf"\n', "", "lacks left_knee"),
    ('left_knee = "left_calf"', 'left_nee = "left_calf"', "did you mean 'left_knee'"),
    ("[feet.left]", "[feet.lft]", "feet.left"),
    ("sole = [[0.05, 0.02, -0.02], ", "sole = [", "4 corners"),
    ("sole = [[0.05, 0.02, -0.02], ", "sole = [[0.05, 0.02], ", "3 numbers"),
    ("[home]", "[home]\nleft_nee = 0.1", "joint in"),
    ("[home]", "[hom]", "unknown table 'hom'; did you mean 'home'"),
    ("chest = [0.0, 50.0]", "chest = [0.0, -50.0]", "not negative"),
    ("chest = [0.0, 50.0]", "chest = 50.0", "2 numbers"),
    ("posture = 0.1", 'posture = "much"', "posture is a number"),
    ("posture = 0.1", "postre = 0.1", "did you mean 'posture'"),
    ("[robot]", "[robot", "not TOML"),
]


@pytest.mark.parametrize(("old", "new", "message"), WRONG)
def test_a_wrong_file_says_what_is_wrong_and_names_itself(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    assert old in GOOD
    path = tmp_path / "robot.toml"
    path.write_text(GOOD.replace(old, new, 1), "utf-8")
    with pytest.raises(BunrakuError, match=message) as caught:
        load_robot(path)
    assert "robot.toml" in str(caught.value) or "gone.xml" in str(caught.value)


def test_an_unknown_robot_and_a_missing_file() -> None:
    with pytest.raises(UnknownNameError, match="unitree_h1"):
        load_robot("unitre_h1")
    with pytest.raises(BunrakuError, match="robots new"):
        load_robot("nowhere.toml")


def test_a_model_file_that_is_something_else(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    for text, message in (
        ("{}", "not XML"),
        ("<html/>", "neither MJCF"),
        ("<mujoco><nope/></mujoco>", "cannot be read"),
    ):
        path.write_text(text)
        with pytest.raises(FileFormatError, match=message):
            Guess(path)
