"""The commands as a person types them: exit codes, stdout, stderr, files."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest


def run(*arguments: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    code = "import sys; from bunraku.cli.main import main; sys.exit(main())"
    home = {"HOME": str(cwd), "XDG_CONFIG_HOME": str(cwd / "config")}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env={**os.environ, **home, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def collect(cwd: Path, *arguments: str) -> dict[str, Any]:
    done = run(
        *("collect", "--env", "PandaReach", "--device", "scripted", "--viewer", "none", "--json", *arguments),
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    collect(folder, "--episodes", "2", "--out", "reach.hdf5")
    return folder / "reach.hdf5"


def test_collect_prints_one_json_object_with_the_promised_fields(tmp_path: Path) -> None:
    summary = collect(tmp_path, "--episodes", "2", "--seed", "5", "--out", "r.hdf5")
    assert (summary["episodes"], summary["successes"], summary["failures"], summary["discarded"]) == (
        2,
        2,
        0,
        0,
    )
    for key in ("path", "frames", "tick_us_p50", "tick_us_p99", "pose_age_ms_p50", "real_time_factor"):
        assert summary[key], key
    with h5py.File(tmp_path / "r.hdf5") as file:
        assert file["data"].attrs["total"] == summary["frames"]
        assert file["data/demo_0"].attrs["num_samples"] == len(file["data/demo_0/actions"])


def test_without_hardware_collect_says_so_and_offers_what_there_is(tmp_path: Path) -> None:
    done = run("collect", "--env", "PandaReach", cwd=tmp_path)
    assert done.returncode == 2
    assert "--device keyboard" in done.stderr
    assert "--device scripted" in done.stderr
    assert not list(tmp_path.rglob("*.hdf5"))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--env", "PandaRech"], "did you mean 'PandaReach'"),
        (["--device", "scriptd"], "did you mean 'scripted'"),
        (["--episodes", "0"], "--episodes must be at least 1"),
        (["--image-size", "big"], "width x height"),
        (["--control-freq", "900"], "control_freq"),
        (["--env-option", "goal_orientation"], "name=value"),
        (["--env-option", "success_treshold=1"], "did you mean 'success_threshold'"),
        (["--seed", "-1"], "--seed must be 0 or more"),
        (["--max-seconds", "-1"], "--max-seconds must be a positive number"),
        (["--device-option", "faults=some"], "faults"),
        (["--facing", "sideways"], "--facing"),
        (["--profile", "nobody"], "nobody"),
        (["--camera", "fronts"], "did you mean 'front'"),
        (["--config", "none.toml"], "none.toml"),
        (["--scale", "-1"], "scale"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2_and_writes_nothing(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    done = run(
        *(
            "collect",
            "--device",
            "scripted",
            "--viewer",
            "none",
            "--out",
            "r.hdf5",
            "--episodes",
            "1",
            *arguments,
        ),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    lines = [line for line in done.stderr.splitlines() if line.startswith("bunraku: error:")]
    assert len(lines) == 1, done.stderr
    assert says in lines[0]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "r.hdf5").exists()


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    done = run("collect", "--env", "Nothing", "--device", "scripted", "--debug", cwd=tmp_path)
    assert "Traceback" in done.stderr


def test_collecting_again_goes_on_with_the_file_and_another_environment_is_refused(tmp_path: Path) -> None:
    collect(tmp_path, "--episodes", "1", "--out", "r.hdf5")
    collect(tmp_path, "--episodes", "1", "--out", "r.hdf5")
    with h5py.File(tmp_path / "r.hdf5") as file:
        assert len(file["data"]) == 2
    done = run(
        *("collect", "--device", "scripted", "--viewer", "none", "--out", "r.hdf5", "--episodes", "1"),
        *("--control-freq", "100"),
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "control_freq" in done.stderr


def test_verify_says_bit_exact_and_finds_a_changed_action(recorded: Path, tmp_path: Path) -> None:
    done = run("verify", str(recorded), "--json", cwd=tmp_path)
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["episodes"] == report["bit_exact"] == 2
    assert report["max_abs_error"] == 0.0
    assert report["first_divergence"] is None
    changed = tmp_path / "changed.hdf5"
    changed.write_bytes(recorded.read_bytes())
    with h5py.File(changed, "r+") as file:
        file["data/demo_1/actions"][40, 0] += np.float32(1e-3)
    done = run("verify", str(changed), "--json", cwd=tmp_path)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["bit_exact"] == 1
    assert report["first_divergence"]["step"] == 40


def test_cameras_are_recorded_with_the_observations_and_still_verify(tmp_path: Path) -> None:
    collect(tmp_path, "--episodes", "1", "--out", "r.hdf5", "--camera", "wrist", "--image-size", "48x32")
    with h5py.File(tmp_path / "r.hdf5") as file:
        images = file["data/demo_0/obs/wrist_image"]
        assert images.shape == (file["data/demo_0"].attrs["num_samples"], 32, 48, 3)
        assert images[0].std() > 5
    assert run("verify", "r.hdf5", cwd=tmp_path).returncode == 0


def test_render_gives_a_frame_for_every_row(recorded: Path, tmp_path: Path) -> None:
    arguments = (
        "render",
        str(recorded),
        "--episode",
        "demo_0",
        "--size",
        "64x64",
        "--out",
        "v.mp4",
        "--json",
    )
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with h5py.File(recorded) as file:
        assert json.loads(done.stdout)["frames"] == file["data/demo_0"].attrs["num_samples"]
    again = run(*arguments, cwd=tmp_path)
    assert again.returncode == 2
    assert "--force" in again.stderr


def test_the_trace_has_target_and_joint_solution_of_every_frame(tmp_path: Path) -> None:
    summary = collect(tmp_path, "--episodes", "1", "--out", "r.hdf5", "--trace", "trace")
    with (tmp_path / "trace" / "episode_0000.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == summary["frames"]
    assert {"sim_time", "right_x", "right_qw", "right_q1", "right_q7"} <= set(rows[0])


def test_options_come_from_a_config_file_and_the_command_line_goes_before_it(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('episodes = 1\nseed = 3\nout = "from_config.hdf5"\ncontrol-freq = 25\n')
    collect(tmp_path, "--config", "c.toml", "--seed", "4")
    with h5py.File(tmp_path / "from_config.hdf5") as file:
        assert file["data/demo_0"].attrs["seed"] == 4
        assert json.loads(file["data"].attrs["env_args"])["env_kwargs"]["control_freq"] == 25.0
    (tmp_path / "bad.toml").write_text("episode = 1\n")
    done = run("collect", "--config", "bad.toml", "--device", "scripted", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'episodes'" in done.stderr


def test_a_default_given_on_the_command_line_goes_before_the_config_file(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("seed = 3\nepisodes = 1\n")
    collect(tmp_path, "--config", "c.toml", "--seed", "0", "--out", "r.hdf5")
    with h5py.File(tmp_path / "r.hdf5") as file:
        assert file["data/demo_0"].attrs["seed"] == 0


def test_a_wrong_value_in_a_config_file_gets_one_line(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('episodes = "many"\n')
    done = run("collect", "--config", "c.toml", "--device", "scripted", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == "bunraku: error: c.toml: episodes = 'many' is not a value for --episodes\n"


def test_an_unknown_graphics_library_gets_one_line(tmp_path: Path) -> None:
    done = run(
        *("collect", "--device", "scripted", "--viewer", "none", "--out", "r.hdf5"),
        cwd=tmp_path,
        env={"MUJOCO_GL": "nonsense"},
    )
    assert done.returncode == 2
    assert "set it to egl" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_ending_the_program_keeps_what_is_driven(tmp_path: Path, number: int) -> None:
    code = "import sys; from bunraku.cli.main import main; sys.exit(main())"
    words = ["collect", "--device", "scripted", "--viewer", "none", "--episodes", "1000", "--out", "r.hdf5"]
    with subprocess.Popen(
        [sys.executable, "-c", code, *words, "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "saved demo_0" in process.stderr.readline()
        process.stderr.close()  # the terminal is gone: nothing can be said any more
        process.send_signal(number)
        summary = json.loads(process.stdout.read())
    assert process.returncode == 0
    assert summary["interrupted"]
    with h5py.File(tmp_path / "r.hdf5") as file:
        assert len(file["data"]) == summary["episodes"]


def test_a_recorded_device_stream_drives_the_arm_the_same_way_again(recorded: Path, tmp_path: Path) -> None:
    done = run(
        *("collect", "--device", "replay", "--device-option", f"path={recorded}", "--viewer", "none"),
        *("--episodes", "1", "--out", "again.hdf5"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    with h5py.File(recorded) as first, h5py.File(tmp_path / "again.hdf5") as second:
        a, b = first["data/demo_0/actions"][:], second["data/demo_0/actions"][:]
    assert np.abs(a[: len(b)] - b[: len(a)]).max() < 1e-6


def test_doctor_says_that_collecting_is_possible_and_what_is_missing(tmp_path: Path) -> None:
    done = run("doctor", "--json", "--seconds", "0.1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["ok"]
    checks = {check["name"]: check for check in report["checks"]}
    assert not checks["steamvr"]["ok"]
    assert checks["steamvr"]["remedy"]
    assert checks["scripted"]["ok"]
    assert all({"name", "ok", "detail", "remedy"} <= set(check) for check in report["checks"])


def test_an_unknown_command_gets_the_nearest_one(tmp_path: Path) -> None:
    done = run("colect", cwd=tmp_path)
    assert done.returncode == 2
    assert "did you mean 'collect'" in done.stderr


def test_fifty_scripted_episodes_verify_bit_for_bit_also_from_the_middle(tmp_path: Path) -> None:
    collect(tmp_path, "--episodes", "50", "--out", "r.hdf5")
    for start in ("first", "middle"):
        done = run("verify", "r.hdf5", "--start", start, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout)
        assert report["episodes"] == report["bit_exact"] == 50
