"""`bunraku retarget` and `bunraku view` as a user meets them: clips, folders, resuming, bad clips, kills, pictures."""

import json
import os
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser

import numpy as np
import pytest

from bunraku.cli.main import main
from bunraku.errors import BunrakuError
from bunraku.motion import RobotMotion
from bunraku.retarget import batch
from bunraku.retarget.batch import find_files, find_jobs, read_figures, run_jobs
from bunraku.retarget.job import Job, JobSettings
from bunraku.retarget.pipeline import Options
from bunraku.retarget.reading.content import ReadOptions
from bunraku.retarget.report import page, write_report
from bunraku.retarget.scene import HUMAN, ROBOT, MotionScene
from bunraku.retarget.sources.generator import generate
from bunraku.robots.h1 import ROBOT as H1

FIELDS = {"frames_in", "frames_out", "fps", "ms_per_frame", "ee_mean_mm", "ee_max_mm", "limit_violations"}
FIELDS |= {"joint_jumps", "max_joint_speed", "foot_slide_cm_s", "penetration_mm", "self_collision_share"}


@pytest.fixture(autouse=True)
def in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def clips(folder, count=4, seconds=1.5):
    """Write generated clips as files of others."""
    folder.mkdir()
    names = ["walk", "wave", "squat", "reach"]
    for k in range(count):
        motion = generate(names[k % 4], seconds=seconds, seed=k)
        np.savez(folder / f"{k:02d}_{names[k % 4]}.npz", joints=motion.joints, fps=motion.fps)
    return folder


def test_one_clip(tmp_path, capsys):
    assert main(["retarget", "generator:walk,seconds=2", "--root", "free", "--out", "w.npz", "--json"]) == 0
    out, err = capsys.readouterr()
    row = json.loads(out)
    assert set(row) >= FIELDS
    assert row["frames_in"] == 61
    assert row["limit_violations"] == 0
    assert row["fps"] == 90.0
    assert row["licence"] == "Apache-2.0"
    motion = RobotMotion.load("w.npz")
    assert len(motion) == row["frames_out"]
    assert motion.joint_names == H1.joints
    assert motion.free_root
    assert motion.body_pos is not None
    lower, upper = H1.load(root="fixed").compile().jnt_range.T
    assert (motion.dof >= lower).all()
    assert (motion.dof <= upper).all()
    assert "w.npz" in err
    before = (tmp_path / "w.npz").read_bytes()
    assert main(["retarget", "generator:walk,seconds=2", "--out", "w.npz"]) == 2
    assert "--force" in capsys.readouterr().err
    assert (tmp_path / "w.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.bvh"], "none.bvh does not exist"),
        (["generator:wlak"], "did you mean 'walk'"),
        (["generator:walk", "--robot", "h2"], "h2"),
        (["generator:walk", "--to", "cvs"], "did you mean 'csv'"),
        (["generator:walk", "--out", "a.txt"], "end in .npz"),
        (["generator:walk", "--report", "a.txt"], "ends in .html"),
        (["generator:walk", "--clip", "3"], "no clip 3"),
        (["generator:walk", "--fps", "0"], "positive"),
        (["generator:walk", "--workers", "0"], "at least 1"),
        ([], "nothing to retarget"),
        (["."], "holds no motion file"),
    ],
)
def test_wrong_input_is_one_line_and_writes_nothing(tmp_path, capsys, arguments, message):
    assert main(["retarget", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("bunraku: error")]
    assert len(lines) == 1
    assert message in lines[0]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_goes_on_past_bad_clips_and_resumes(tmp_path, capsys, monkeypatch):
    folder = clips(tmp_path / "in")
    (folder / "bad.bvh").write_text("HIERARCHY\n")
    (folder / "sub").mkdir()
    model = np.stack([generate("kick", seconds=2.0).joints @ np.eye(3)[[1, 2, 0]].T] * 2).transpose(
        0, 2, 3, 1
    )
    np.save(folder / "sub" / "model.npy", {"motion": model, "lengths": np.array([40, 61])}, allow_pickle=True)
    arguments = ["retarget", "in", "--out", "out", "--workers", "1", "--json", "--report", "r.html"]
    assert main(arguments) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["failed"] == 1
    assert len(result["clips"]) == 7
    good = [row for row in result["clips"] if "error" not in row]
    assert all(set(row) >= FIELDS for row in good)
    assert all(RobotMotion.load(row["out"]).robot == "h1" for row in good)
    assert {row["out"].removeprefix("out" + os.sep) for row in good} >= {os.path.join("sub", "model_001.npz")}
    assert (tmp_path / "r.html").read_text("utf-8").count("<tr>") >= 7

    def never(*_: object) -> None:
        raise AssertionError("a finished clip was made again")

    monkeypatch.setattr(batch, "run_job", never)
    (folder / "bad.bvh").unlink()
    assert main(arguments[:-2]) == 0
    again = json.loads(capsys.readouterr().out)["clips"]
    assert again == good
    assert main([*arguments[:-2], "--fps", "60"]) == 2
    assert "other settings" in capsys.readouterr().err


def test_results_do_not_depend_on_how_many_work(tmp_path):
    clips(tmp_path / "in", 3)
    jobs = {n: find_jobs(find_files(["in"]), tmp_path / str(n), ".npz", ReadOptions())[0] for n in (1, 2)}
    rows = {n: run_jobs(jobs[n], JobSettings(), workers=n) for n in (1, 2)}
    for one, two in zip(jobs[1], jobs[2], strict=True):
        assert np.array_equal(RobotMotion.load(one.out).qpos, RobotMotion.load(two.out).qpos)
    assert [row["ee_mean_mm"] for row in rows[1]] == [row["ee_mean_mm"] for row in rows[2]]
    assert len(read_figures(tmp_path / "2")) == 3


def test_a_worker_that_dies_takes_only_its_clip(tmp_path, monkeypatch):
    clips(tmp_path / "in", 3)
    jobs, _ = find_jobs(find_files(["in"]), tmp_path / "out", ".npz", ReadOptions())
    monkeypatch.setenv("BUNRAKU_TEST_DIE", jobs[1].path)
    monkeypatch.setattr(batch, "_guarded", die_on_one)
    rows = run_jobs(jobs, JobSettings(), workers=2)
    assert ["error" in row for row in rows] == [False, True, False]
    assert "died" in rows[1]["error"]
    assert jobs[0].out.exists()
    assert jobs[2].out.exists()


def die_on_one(job: Job, settings: JobSettings, force: bool) -> dict:
    """Stand in for `_guarded` in the workers: the process dies on one clip, as for lack of memory."""
    if job.path == os.environ["BUNRAKU_TEST_DIE"]:
        os.kill(os.getpid(), signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    job.out.parent.mkdir(parents=True, exist_ok=True)
    job.out.touch()
    return {"path": job.path, "clip": job.clip}


@pytest.mark.skipif(sys.platform == "win32", reason="kills the process group as POSIX systems have it")
def test_killed_and_started_again_loses_no_finished_clip(tmp_path):
    clips(tmp_path / "in", 12, seconds=3.0)
    command = [sys.executable, "-m", "bunraku.cli.main", "retarget", "in", "--out", "out", "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=tmp_path, start_new_session=True
    )
    deadline = time.monotonic() + 60.0
    while (
        len(list(tmp_path.glob("out/[0-9]*.npz"))) < 2
        and time.monotonic() < deadline
        and process.poll() is None
    ):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    done = {path.name for path in tmp_path.glob("out/[0-9]*.npz")}
    stamps = {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in done}
    assert done
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert len(json.loads(finished.stdout)["clips"]) == 12
    assert {name: (tmp_path / "out" / name).stat().st_mtime_ns for name in done} == stamps
    assert all(len(RobotMotion.load(path)) > 1 for path in tmp_path.glob("out/[0-9]*.npz"))


@pytest.mark.parametrize("root", ["fixed", "free"])
def test_hard_input_gives_finite_motion_within_limits_and_names_its_frames(tmp_path, capsys, root):
    joints = generate("walk", seconds=3.0).joints
    leap, crossed, holes = joints.copy(), joints.copy(), joints.copy()
    leap[40, 7] += 2.0
    crossed[30:50, [1, 2]] = crossed[30:50, [2, 1]]
    holes[10:20] = np.nan
    (tmp_path / "in").mkdir()
    cases = {"crossed": crossed, "holes": holes, "leap": leap, "one": joints[:1], "two": joints[:2]}
    for name, array in cases.items():
        np.savez(tmp_path / "in" / f"{name}.npz", joints=array, fps=30.0)
    assert main(["retarget", "in", "--out", "out", "--root", root, "--workers", "1", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["clips"]
    assert [bool(row["degraded_frames"]) for row in rows] == [True, True, True, False, False]
    assert all(row["limit_violations"] == 0 for row in rows)
    assert all(np.isfinite(RobotMotion.load(row["out"]).qpos).all() for row in rows)


def test_files_of_one_name_have_results_of_two(tmp_path):
    (tmp_path / "a.npy").touch()
    (tmp_path / "a.bvh").touch()
    assert sorted(str(name) for _, name in find_files(["."])) == ["a_bvh", "a_npy"]


def test_obstacles_are_in_the_result(tmp_path, capsys):
    (tmp_path / "boxes.json").write_text(json.dumps([{"pos": [0.12, 0.0, 0.3], "half": [0.02, 0.3, 0.02]}]))
    assert (
        main(["retarget", "generator:squat,seconds=3", "--avoid", "boxes.json", "--out", "s.npz", "--json"])
        == 0
    )
    row = json.loads(capsys.readouterr().out)
    assert set(row["limbs_bent"]) == {"left_arm", "right_arm"}
    assert row["limbs_blocked"] == {}
    assert row["obstacle_clearance_mm"] > -1.0
    assert RobotMotion.load("s.npz").obstacles.shape == (1, 10)


class Checker(HTMLParser):
    """Collects what a page loads from elsewhere."""

    def __init__(self):
        super().__init__()
        self.loads: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.loads += [value for key, value in attrs if key in ("src", "href") and value]


def test_the_report_is_one_file_and_escapes_names(tmp_path):
    figures = dict.fromkeys(FIELDS, 1) | {"path": "<b>.npz", "clip": 0, "robot": "h1", "degraded_frames": [3]}
    figures["key_points_mm"] = {"head": {"mean": 1.0, "max": 2.0}}
    text = page([figures, {"path": "x", "clip": 1, "error": "a < b"}])
    checker = Checker()
    checker.feed(text)
    assert checker.loads == []
    assert "<b>" not in text
    assert "&lt;b&gt;.npz" in text
    assert "a &lt; b" in text
    write_report([figures], tmp_path / "r.html")
    with pytest.raises(BunrakuError, match="--force"):
        write_report([figures], tmp_path / "r.html")


def robot_motion(free=True):
    count, points = 20, np.tile(generate("walk", seconds=1.5).joints[0] * 0.25, (20, 1, 1))
    root = np.tile([0.0, 0.0, H1.home_height, 1.0, 0.0, 0.0, 0.0], (count, 1))
    dof = np.tile(H1.home, (count, 1))
    boxes = np.array([[0.2, 0.0, 0.2, 0.02, 0.1, 0.02, 1.0, 0.0, 0.0, 0.0]])
    qpos = np.concatenate([root, dof], axis=1) if free else dof
    return RobotMotion(qpos, H1.joints, 20.0, "h1", human_points=points, obstacles=boxes)


@pytest.mark.parametrize("free", [True, False])
def test_the_scene_shows_key_points_where_they_are(free):
    motion = robot_motion(free)
    scene = MotionScene([motion, motion])
    scene.show(0.5)
    left, right = (scene.data.body(f"m{k}_left_hand").xpos for k in (0, 1))
    assert np.abs((right - left)[[0, 2]]).max() < 1e-9
    assert right[1] < left[1] - 0.3
    points = np.array([scene.data.body(f"m0_human{k}").xpos for k in range(22)])
    assert np.abs(points - motion.human_points[10]).max() < 1e-6
    colours = {tuple(np.round(c, 3)) for c in scene.model.geom_rgba.astype(float)}
    assert {tuple(np.round(HUMAN, 3)), tuple(np.round(ROBOT, 3))} <= colours


def test_a_video_shows_blue_and_green_and_red(tmp_path, capsys):
    from PIL import Image

    robot_motion().save("m.npz")
    assert main(["view", "m.npz", "--video", "png", "--size", "320x240", "--video-fps", "4", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["frames"] == len(list(tmp_path.glob("png/*.png"))) == 4
    image = np.asarray(Image.open(tmp_path / "png" / "000002.png")).astype(int)
    red, green, blue = image[..., 0], image[..., 1], image[..., 2]
    assert ((blue > red + 60) & (blue > green + 40)).sum() > 20
    assert ((green > red + 40) & (green > blue + 40)).sum() > 10
    assert ((red > green + 80) & (red > blue + 80)).sum() > 20
    assert main(["view", "m.npz", "--video", "png"]) == 2
    assert main(["view", "none.npz", "--video", "b.mp4"]) == 2
    assert main(["view", "m.npz", "--video", "b.mp4", "--start", "9"]) == 2
    assert not (tmp_path / "b.mp4").exists()


def test_options_reach_the_pipeline(capsys):
    base = ["retarget", "generator:wave,seconds=2", "--json"]
    assert main([*base, "--out", "a.npz", "--max-speed", "2", "--fps", "60"]) == 0
    slow = json.loads(capsys.readouterr().out)
    assert slow["max_joint_speed"] <= 2.0 + 1e-9
    assert slow["fps"] == 60.0
    assert main([*base, "--out", "b.csv", "--to", "csv", "--method", "source"]) == 0
    assert np.loadtxt("b.csv", delimiter=",").shape[1] == 7 + H1.dof
    assert Options.source().search == "forward"
