"""Training as a user meets it: runs, resumed and stopped, policies exported, compared, played, and refused input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="training needs the extra `train`")

import torch

from bunraku.cli.main import main
from bunraku.errors import BunrakuError, FileFormatError
from bunraku.policy import OnnxPolicy
from bunraku.training.compare import read_curves
from bunraku.training.config import RunConfig, read_run
from bunraku.training.evaluate import evaluate, torch_actor, wilson
from bunraku.training.policies import export_onnx, load_policy
from bunraku.training.rl import resume_rl, train_rl
from bunraku.training.vec_env import SB3VecEnv

TINY: dict[str, Any] = {
    "algorithm": "ppo", "steps": 512, "num_envs": 8, "learning_rate": 1e-3, "gamma": 0.8, "hidden": (16,),
    "batch_size": 64, "n_steps": 8, "n_epochs": 2, "checkpoint_every": 128,
}  # fmt: skip


def config(**changed: Any) -> RunConfig:
    kwargs = {"reward_type": "dense"} if changed.get("algorithm", "ppo") == "ppo" else {}
    return RunConfig("rl", "PandaReach", kwargs, 10, 0, {**TINY, **changed})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "ppo"
    train_rl(config(), out)
    return out


@pytest.fixture(scope="module")
def demos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("demos") / "reach.hdf5"
    words = ["--env", "PandaReach", "--device", "scripted", "--viewer", "none", "--episodes", "3"]
    assert main(["collect", *words, "--control-freq", "10", "--out", str(out)]) == 0
    return out


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_policy(out).state_dict()


def test_a_run_folder_has_all_that_repeats_it(run: Path) -> None:
    described = json.loads((run / "run.json").read_text())
    assert described["versions"]["stable-baselines3"]
    assert described["settings"]["learning_rate"] == 1e-3
    assert read_run(run).env == "PandaReach"
    assert {p.name for p in run.glob("checkpoint*")} == {"checkpoint.json", "checkpoint-000000512.zip"}


def test_the_same_seed_gives_the_same_weights(run: Path, tmp_path: Path) -> None:
    train_rl(config(), tmp_path / "again")
    again = weights(tmp_path / "again")
    assert all(torch.equal(value, again[key]) for key, value in weights(run).items())


def test_the_vector_environment_gives_stable_baselines3_what_it_expects() -> None:
    envs = SB3VecEnv("PandaReach", {"reward_type": "dense"}, num_envs=3, max_episode_steps=4)
    envs.seed(0)
    envs.reset()
    for step in range(4):
        observation, _, done, infos = envs.step(np.zeros((3, 3)))
        assert done.all() == (step == 3)
    assert all(info["TimeLimit.truncated"] for info in infos)
    last, first = infos[0]["terminal_observation"], observation
    assert not np.allclose(last["desired_goal"], first["desired_goal"][0])
    assert observation["observation"].dtype == np.float32
    envs.close()


@pytest.mark.parametrize("algorithm", ["sac", "td3", "tqc"])
def test_off_policy_learners_run_with_hindsight_resume_and_export(algorithm: str, tmp_path: Path) -> None:
    if algorithm == "tqc":
        pytest.importorskip("sb3_contrib", reason="TQC needs sb3-contrib")
    out = tmp_path / algorithm
    found = train_rl(config(algorithm=algorithm, steps=104, num_envs=4, checkpoint_every=40), out)
    assert found["steps"] >= 104
    before = weights(out)
    assert resume_rl(out)["steps"] == found["steps"]
    assert all(torch.equal(value, before[key]) for key, value in weights(out).items())
    assert export_onnx(load_policy(out), read_run(out), out / "policy.onnx") < 1e-5


def test_demonstrations_fill_the_replay_buffer_with_their_own_steps(demos: Path, tmp_path: Path) -> None:
    from bunraku.training.presets import preset
    from bunraku.training.replay import fill_replay_buffer
    from bunraku.training.rl import RLSettings, _make_envs, _make_model

    with h5py.File(demos) as file:
        kwargs = json.loads(file["data"].attrs["env_args"])["env_kwargs"]
        recorded = np.concatenate([file[f"data/{name}/actions"][:] for name in file["data"]])
    run_config = RunConfig("rl", "PandaReach", kwargs, 10, 0, {})
    settings = RLSettings(algorithm="sac", steps=100, **{**preset("PandaReach", "sac"), "num_envs": 2})
    envs = _make_envs(run_config, settings)
    model: Any = _make_model(run_config, settings, envs)
    count = fill_replay_buffer(model, demos, run_config)
    assert count > 0
    batch = model.replay_buffer.sample(64)
    for action in batch.actions.numpy():
        assert np.abs(recorded - action).max(axis=1).min() < 1e-6
    assert set(np.unique(batch.rewards.numpy())) <= {-1.0, 0.0}
    other = RunConfig("rl", "PandaReach", {**kwargs, "control_mode": "joint_delta"}, 10, 0, {})
    with pytest.raises(BunrakuError, match="other options: control_mode"):
        fill_replay_buffer(model, demos, other)
    with pytest.raises(BunrakuError, match="not in bunraku/DualPandaReach-v0"):
        fill_replay_buffer(model, demos, RunConfig("rl", "DualPandaReach", kwargs, 10, 0, {}))
    envs.close()


# A run that is killed, or goes wrong.


def test_a_killed_run_goes_on_and_loses_at_most_an_interval(tmp_path: Path) -> None:
    out = tmp_path / "killed"
    words = ["--out", str(out), "--steps", "100000", "--num-envs", "8", "--set", "checkpoint_every=256"]
    child = subprocess.Popen([sys.executable, "-m", "bunraku.cli.main", "train", "rl", *words])
    limit = time.monotonic() + 120
    while time.monotonic() < limit and _steps(out) < 512:
        time.sleep(0.05)
    child.send_signal(signal.SIGKILL)
    child.wait()
    saved = _steps(out)
    logged = max((x for curve in read_curves(out).values() for x, _ in curve), default=0.0)
    assert saved >= 512
    assert logged - saved <= 256 + 64  # an interval, which ends with a rollout
    described = json.loads((out / "run.json").read_text())
    described["settings"]["steps"] = saved + 256
    (out / "run.json").write_text(json.dumps(described))
    heard: list[int] = []
    assert resume_rl(out, told=heard.append)["steps"] >= saved + 256
    assert heard[0] == saved
    steps = [x for x, _ in read_curves(out)["rollout/ep_rew_mean"]]
    assert steps == sorted(set(steps))
    assert steps[-1] >= saved + 256


def _steps(out: Path) -> int:
    state = out / "checkpoint.json"
    return int(json.loads(state.read_text())["steps"]) if state.exists() else -1


@pytest.mark.parametrize("term", ["reward", "observation"])
def test_a_number_that_is_not_finite_stops_the_run_and_is_named(
    term: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = SB3VecEnv.step_wait
    calls = 0

    def broken(self: SB3VecEnv) -> Any:
        nonlocal calls
        calls += 1
        observation, reward, done, infos = step(self)
        if calls > 40:
            if term == "reward":
                reward[1] = np.nan
            else:
                observation["observation"][1, 2] = np.nan
        return observation, reward, done, infos

    monkeypatch.setattr(SB3VecEnv, "step_wait", broken)
    with pytest.raises(BunrakuError, match=f"{term}.* is not finite at step") as raised:
        train_rl(config(), tmp_path / "run")
    saved = _steps(tmp_path / "run")
    assert 128 <= saved < 512
    assert f"checkpoint of step {saved}" in str(raised.value)
    assert all(torch.isfinite(value).all() for value in weights(tmp_path / "run").values())


def test_weights_that_blow_up_are_named_and_not_saved(tmp_path: Path) -> None:
    with pytest.raises(BunrakuError, match="is not finite at step"):
        train_rl(config(learning_rate=1e30, steps=2048), tmp_path / "run")
    assert (tmp_path / "run" / "checkpoint-000000000.zip").exists()


def test_a_full_disk_in_a_checkpoint_keeps_the_one_before(tmp_path: Path) -> None:
    out = tmp_path / "full"
    script = (
        "import resource, signal\n"
        "from pathlib import Path\n"
        "from tests.training.test_training import config\n"
        "from bunraku.errors import BunrakuError\n"
        "from bunraku.training import watcher\n"
        "from bunraku.training.rl import train_rl\n"
        "real = watcher.save_checkpoint\n"
        "def limited(model, out):\n"
        "    if model.num_timesteps > 200:\n"
        "        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))\n"
        "    real(model, out)\n"
        "watcher.save_checkpoint = limited\n"
        f"try:\n    train_rl(config(), Path({str(out)!r}))\n"
        "except BunrakuError as error:\n    print(error)\n"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=root, capture_output=True, text=True, check=False, timeout=300
    )
    assert "cannot be written" in done.stdout, done.stderr
    assert (out / json.loads((out / "checkpoint.json").read_text())["model"]).exists()
    assert _steps(out) == 128
    assert not list(out.glob("*.new*"))


# What is refused before any time is spent.


def test_wrong_input_is_one_line_and_nothing_is_written(
    run: Path, demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "refused"
    bad = tmp_path / "nan.hdf5"
    bad.write_bytes(demos.read_bytes())
    with h5py.File(bad, "r+") as file:
        name = next(iter(file["data"]))
        del file[f"data/{name}/actions"]
        file[f"data/{name}/actions"] = np.full((file[f"data/{name}"].attrs["num_samples"], 7), np.nan)
    for words, said in (
        (["rl", "--algorithm", "pop"], "unknown algorithm 'pop'; did you mean 'ppo'?"),
        (["rl", "--set", "learning_rat=1"], "did you mean 'learning_rate'?"),
        (["rl", "--env", "PandaReech"], "PandaReech"),
        (["rl", "--demonstrations", str(demos)], "no replay buffer"),
        (["bc", str(bad)], "not finite"),
        (["bc", str(tmp_path / "absent.hdf5")], "absent.hdf5"),
        (["dagger", str(run), "--data", str(demos), "--corrections", str(demos)], "other options"),
    ):
        assert main(["train", *words, "--out", str(out)]) == 2, words
        told = capsys.readouterr().err
        assert said in told
        assert told.count("\n") == 1
        assert not out.exists()


def test_a_run_of_a_newer_version_is_refused(run: Path, tmp_path: Path) -> None:
    described = json.loads((run / "run.json").read_text()) | {"run_format": 99}
    (tmp_path / "run.json").write_text(json.dumps(described))
    with pytest.raises(FileFormatError, match=r"version 99.*update bunraku"):
        read_run(tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_no_write_access_is_said_before_anything_is_made(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(BunrakuError, match="no access"):
        train_rl(config(), tmp_path / "run")
    tmp_path.chmod(0o700)


def test_an_existing_run_is_replaced_only_with_force(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "twice"
    train_rl(config(steps=128), out)
    with pytest.raises(BunrakuError, match="--force"):
        train_rl(config(steps=64), out)
    train_rl(config(steps=64), out, force=True)
    assert _steps(out) == 64


# Policies.


def test_a_policy_runs_with_numpy_and_onnxruntime_only(run: Path, tmp_path: Path) -> None:
    exported = tmp_path / "policy.onnx"
    assert main(["policy", "export", str(run), "--out", str(exported)]) == 0
    loop = (
        "import sys, gymnasium, bunraku\n"
        "from bunraku.policy import OnnxPolicy\n"
        f"policy = OnnxPolicy({str(exported)!r})\n"
        "env = gymnasium.make('bunraku/PandaReach-v0', **policy.env_kwargs)\n"
        "observation, _ = env.reset(seed=0)\n"
        "for _ in range(10):\n"
        "    observation, *_ = env.step(policy(observation))\n"
        "assert not {'torch', 'stable_baselines3', 'onnx'} & set(sys.modules), 'torch was imported'\n"
        "print(*observation['achieved_goal'])\n"
    )
    done = subprocess.run([sys.executable, "-c", loop], capture_output=True, text=True, check=True)
    import gymnasium

    act, env = torch_actor(load_policy(run)), gymnasium.make("bunraku/PandaReach-v0", reward_type="dense")
    observation, _ = env.reset(seed=0)
    for _ in range(10):
        action = act({key: value[None] for key, value in observation.items()})[0]
        observation, *_ = env.step(action)
    assert np.allclose([float(x) for x in done.stdout.split()], observation["achieved_goal"], atol=1e-4)


def test_a_policy_takes_one_observation_or_many(run: Path, tmp_path: Path) -> None:
    export_onnx(load_policy(run), read_run(run), tmp_path / "policy.onnx")
    policy = OnnxPolicy(tmp_path / "policy.onnx")
    rng = np.random.default_rng(0)
    sizes = {"observation": 24, "achieved_goal": 3, "desired_goal": 3}
    many = {key: rng.normal(size=(5, n)) for key, n in sizes.items()}
    assert policy(many).shape == (5, 3)
    assert np.allclose(policy({key: part[2] for key, part in many.items()}), policy(many)[2], atol=1e-6)
    with pytest.raises(BunrakuError, match="the policy takes"):
        policy({"observation": many["observation"]})
    (tmp_path / "broken.onnx").write_bytes(b"no network")
    with pytest.raises(FileFormatError, match="export it again"):
        OnnxPolicy(tmp_path / "broken.onnx")


def test_runs_are_compared_on_one_page(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["policy", "compare", str(run), str(run), "--out", str(tmp_path / "page"), "--no-video"]
    assert main([*words, "--episodes", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    page = Path(found["page"]).read_text()
    assert len(found["runs"]) == 2
    assert page.count("<polyline") >= 2
    assert "src='http" not in page


def test_demonstrations_become_a_policy_that_goes_on_learning(
    demos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cloned, onnx = tmp_path / "bc", tmp_path / "bc" / "policy.onnx"
    assert main(["train", "bc", str(demos), "--out", str(cloned), "--epochs", "5", "--hidden", "16"]) == 0
    assert main(["policy", "export", str(cloned)]) == 0
    # a reinforced policy that has not learned yet does as its clone does, but for what it explored
    tuned = tmp_path / "tuned"
    words = ["--steps", "8", "--num-envs", "1", "--set", "learning_rate=0.0", "n_steps=8", "batch_size=8"]
    assert main(["train", "rl", "--start", str(cloned), "--out", str(tuned), *words]) == 0
    before, after = weights(cloned), weights(tuned)
    assert all(torch.equal(after[key], value) for key, value in before.items() if key != "log_std")
    # the operator takes over from the policy, and it learns from that
    corrections = tmp_path / "corrections.hdf5"
    words = ["--device", "scripted", "--viewer", "none", "--episodes", "2", "--out", str(corrections)]
    assert main(["collect", "--policy", str(onnx), *words]) == 0
    with h5py.File(corrections) as file:
        streams = [file[f"data/{name}/streams/intervention"][:] for name in file["data"]]
        engaged = [file[f"data/{name}/streams/engaged/right"][:] for name in file["data"]]
        first = file["data/demo_0/actions"][0]
        seen = {key: file[f"data/demo_0/obs/{key}"][0] for key in file["data/demo_0/obs"]}
    assert all((a == b.astype(bool)).all() for a, b in zip(streams, engaged, strict=True))
    assert not streams[0][0]
    assert np.allclose(first, OnnxPolicy(onnx)(seen), atol=1e-6)
    words = ["--data", str(demos), "--corrections", str(corrections), "--epochs", "2"]
    capsys.readouterr()
    assert main(["train", "dagger", str(cloned), *words, "--out", str(tmp_path / "dagger"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["corrections"] > 0


def test_an_evaluation_counts_what_the_environment_says() -> None:
    def towards(observation: Any) -> Any:
        return np.clip(10.0 * (observation["desired_goal"] - observation["achieved_goal"]), -1.0, 1.0)

    good = evaluate(towards, "PandaReach", {}, episodes=10)
    assert good.success_rate == 1.0
    still = evaluate(lambda o: np.zeros((len(o["desired_goal"]), 3)), "PandaReach", {}, episodes=10)
    assert still.success_rate == 0.0
    low, high = wilson(98, 100)
    assert (round(low, 3), round(high, 3)) == (0.93, 0.994)  # Wilson's interval, from tables


def test_ppo_learns_to_reach(tmp_path: Path) -> None:
    words = ["--out", str(tmp_path / "run"), "--steps", "10240", "--seed", "1"]
    assert main(["train", "rl", *words]) == 0
    policy = load_policy(tmp_path / "run")
    near = evaluate(torch_actor(policy), "PandaReach", {"success_threshold": 0.1}, max_episode_steps=50)
    assert near.success_rate >= 0.9
