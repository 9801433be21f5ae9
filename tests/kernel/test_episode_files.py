"""Demonstration files: what is written comes back, and what is wrong with a file is said in one line."""

from __future__ import annotations

import dataclasses
import os
import signal
import string
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bunraku.episode import journal
from bunraku.episode.episode import LABELS, Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.repair import recover
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError, FileFormatError, UnknownNameError
from tests.kernel.episode_samples import ENV_ID, ENV_KWARGS, INFO, assert_same, make_episode


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "demos.hdf5"


def record(path: Path, count: int = 3, **changes: Any) -> list[Episode]:
    episodes = [make_episode(seed=seed, label=("success", "failure")[seed % 2]) for seed in range(count)]
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO, **changes) as writer:
        for episode in episodes:
            writer.append(episode)
    return episodes


def message(error: pytest.ExceptionInfo[BunrakuError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


names = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
names = names.filter(lambda name: name not in (".", ".."))
dtypes = st.sampled_from([np.float32, np.float64, np.uint8, np.int64, np.bool_, np.uint16])
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@st.composite
def episodes(draw: Any) -> Episode:
    steps = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def arrays(rows: int) -> dict[str, Any]:
        drawn = draw(st.dictionaries(names, st.tuples(dtypes, shapes), max_size=3))
        return {
            name: (rng.normal(size=(rows, *shape)) * 100).astype(dtype)
            for name, (dtype, shape) in drawn.items()
        }

    json = st.recursive(
        st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
        max_leaves=4,
    )
    meta = draw(st.dictionaries(st.text().filter(lambda key: key not in ("mjcf", "missing", "seed")), json))
    mjcf = draw(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1))
    base = make_episode(steps=steps, seed=1, label=draw(st.sampled_from(LABELS)))
    return dataclasses.replace(
        base, observations=arrays(steps + 1), streams=arrays(steps), meta={**meta, "mjcf": mjcf}
    )


@settings(max_examples=40, deadline=None)
@given(episode=episodes(), folder=st.text(string.ascii_letters + " äλ本🦾", min_size=1, max_size=6))
def test_any_episode_comes_back_as_it_was(episode: Episode, folder: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        path = Path(root) / folder.strip() / "dé mo.hdf5"
        with EpisodeWriter(path, ENV_ID) as writer:
            name = writer.append(episode)
        with EpisodeFile(path) as file:
            assert file.names() == [name] == ["demo_0"]
            assert_same(file.load(name), episode)
            assert file.meta(name) == episode.meta


def test_text_streams_large_states_and_large_images_come_back(path: Path) -> None:
    episode = make_episode(steps=40)
    episode.states = np.repeat(episode.states, 90, axis=1)
    episode.streams["marker"] = np.array(["", "grasp", "löslassen", "本"] * 10)
    episode.observations["front"] = np.random.default_rng(0).integers(0, 255, (41, 96, 96, 3), dtype=np.uint8)
    with EpisodeWriter(path, ENV_ID) as writer:
        writer.append(episode)
    with EpisodeFile(path) as file:
        assert_same(file.load("demo_0"), episode)
    with h5py.File(path) as h5:
        assert h5["data/demo_0/states"].compression == h5["data/demo_0/obs/front"].compression == "gzip"


def test_the_layout_is_robomimics(path: Path) -> None:
    recorded = record(path, 4)
    with h5py.File(path) as h5:
        assert set(h5["data"]) == {f"demo_{i}" for i in range(4)}
        assert h5["data"].attrs["total"] == 80
        demo = h5["data/demo_2"]
        assert demo.attrs["num_samples"] == 20
        assert demo.attrs["model_file"] == recorded[2].meta["mjcf"]
        assert (demo.attrs["seed"], demo.attrs["label"], demo.attrs["success"]) == (2, "success", True)
        np.testing.assert_array_equal(demo["next_obs/observation"][:-1], demo["obs/observation"][1:])
        assert demo["dones"].dtype == np.int64
        assert demo["dones"][-1] == 1
        assert h5["mask/success"][()].tolist() == [b"demo_0", b"demo_2"]
        assert h5["mask/failure"][()].tolist() == [b"demo_1", b"demo_3"]


def test_recording_goes_on_in_an_existing_file(path: Path) -> None:
    first = record(path, 2)
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO) as writer:
        assert writer.recovered is None
        assert (len(writer), writer.steps) == (2, 40)
        assert writer.append(make_episode(seed=9, label="timeout")) == "demo_2"
    with EpisodeFile(path) as file:
        assert_same(file.load("demo_1"), first[1])
        assert file.label("demo_2") == "timeout"
        assert file.names("timeout") == ["demo_2"]
        assert (file.env_id, file.env_kwargs, file.info) == (ENV_ID, ENV_KWARGS, INFO)
        assert file.index["num_samples"].tolist() == [20, 20, 20]
        assert file.versions["mujoco"]


def test_the_last_episode_can_be_discarded_for_a_redo(path: Path) -> None:
    record(path, 2)
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO) as writer:
        assert writer.discard_last() == "demo_1"
        assert writer.append(make_episode(seed=7)) == "demo_1"
        assert writer.discard_last() == "demo_1"
        assert writer.discard_last() == "demo_0"
        with pytest.raises(BunrakuError, match="no episode that could be discarded"):
            writer.discard_last()
    with EpisodeFile(path) as file:
        assert len(file) == 0
        assert file.masks == {"success": [], "failure": []}


@pytest.mark.parametrize(
    ("env_id", "kwargs", "info", "said"),
    [
        ("test/Other-v0", ENV_KWARGS, INFO, "environment is test/Pendulum-v0 there and test/Other-v0 here"),
        (ENV_ID, {"control_freq": 20}, INFO, "control_freq is 50 there and 20 here"),
        (ENV_ID, {"control_freq": 50, "gripper": True}, INFO, "gripper is absent there and True here"),
        (ENV_ID, ENV_KWARGS, {"cameras": []}, "cameras is ['front'] there and [] here"),
    ],
)
def test_another_environment_or_rate_is_not_mixed_into_a_file(
    path: Path, env_id: str, kwargs: dict[str, Any], info: dict[str, Any], said: str
) -> None:
    record(path)
    before = path.read_bytes()
    with pytest.raises(BunrakuError) as error:
        EpisodeWriter(path, env_id, kwargs, info=info)
    assert said in message(error)
    assert path.read_bytes() == before


def test_an_episode_with_other_actions_is_not_mixed_into_a_file(path: Path) -> None:
    record(path, 1)
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO) as writer:
        with pytest.raises(BunrakuError) as error:
            writer.append(make_episode(action_dim=7))
        assert "actions is 4 there and 7 here" in message(error)
        assert writer.append(make_episode()) == "demo_1"


def test_an_existing_file_is_replaced_only_by_force(path: Path) -> None:
    record(path)
    with pytest.raises(BunrakuError, match="exists"):
        EpisodeWriter(path, ENV_ID, resume=False)
    with EpisodeWriter(path, "test/Other-v0", force=True) as writer:
        assert len(writer) == 0
    path.write_text("not a recording")
    with EpisodeWriter(path, ENV_ID, force=True) as writer:
        assert len(writer) == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"label": "great"}, "label 'great' is unknown"),
        ({"actions": np.zeros((0, 4))}, "no step"),
        ({"rewards": np.zeros(3)}, "rewards has 3 rows where 20 actions need 20"),
        ({"states": np.zeros((20, 12))}, "states has 20 rows where 20 actions need 21"),
        ({"streams": {"a": np.zeros(20), "a/b": np.zeros(20)}}, "'a/b' lies below another array"),
        ({"streams": {"a//b": np.zeros(20)}}, "cannot name an array"),
        ({"streams": {"a": np.array([{}] * 20)}}, "holds object"),
    ],
)
def test_an_episode_that_would_not_come_back_is_refused(
    path: Path, change: dict[str, Any], said: str
) -> None:
    with EpisodeWriter(path, ENV_ID) as writer:
        with pytest.raises(BunrakuError) as error:
            writer.append(dataclasses.replace(make_episode(), **change))
        assert said in message(error)
        writer.append(make_episode())
    assert recover(path).changed is False


def test_meta_that_is_no_json_is_refused_and_leaves_no_trace(path: Path) -> None:
    with EpisodeWriter(path, ENV_ID) as writer:
        episode = make_episode()
        episode.meta["device"] = object()
        with pytest.raises(TypeError, match="cannot be stored as JSON"):
            writer.append(episode)
        assert len(writer) == 0
        writer.append(make_episode())
    with h5py.File(path) as h5:
        assert list(h5["data"]) == ["demo_0"]


def test_a_file_is_refused_while_another_process_records_to_it(path: Path) -> None:
    script = f"""
        import sys
        from bunraku.episode.writer import EpisodeWriter
        with EpisodeWriter({str(path)!r}, {ENV_ID!r}):
            print("open", flush=True)
            sys.stdin.read()
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "open\n"
        for attempt in (
            lambda: EpisodeWriter(path, ENV_ID),
            lambda: EpisodeWriter(path, ENV_ID, force=True),
            lambda: recover(path),
            *([lambda: EpisodeFile(path)] if sys.platform != "win32" else []),
        ):
            with pytest.raises(BunrakuError) as error:
                attempt()
            assert f"{path} is in use by another program" in message(error)
    finally:
        child.stdin.close()
        child.wait()
        child.stdout.close()
    with EpisodeWriter(path, ENV_ID) as writer:
        writer.append(make_episode())


def test_a_place_that_cannot_be_written_is_refused_before_recording(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where a folder is needed")
    with pytest.raises(BunrakuError) as error:
        EpisodeWriter(tmp_path / "file" / "demos.hdf5", ENV_ID)
    assert "cannot record to" in message(error)
    assert "folder that you can write to" in message(error)


@pytest.mark.skipif(sys.platform != "linux", reason="uses Linux's file system of process information")
def test_a_read_only_file_system_is_refused_before_recording() -> None:
    # Root writes to read-only folders; this one nobody can.
    with pytest.raises(BunrakuError, match=r"cannot record to /proc/demos\.hdf5"):
        EpisodeWriter("/proc/demos.hdf5", ENV_ID)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_refused_before_recording(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(BunrakuError, match="Permission denied"):
            EpisodeWriter(tmp_path / "demos.hdf5", ENV_ID)
    finally:
        tmp_path.chmod(0o700)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of a process's files")
def test_a_full_disk_loses_the_new_episode_only_and_recording_can_go_on(path: Path) -> None:
    script = f"""
        import os, resource, sys
        sys.path.insert(0, {str(Path(__file__).parents[2])!r})
        from bunraku.episode.writer import EpisodeWriter
        from bunraku.errors import BunrakuError
        from tests.kernel.episode_samples import make_episode
        with EpisodeWriter({str(path)!r}, {ENV_ID!r}) as writer:
            for seed in range(4):
                writer.append(make_episode(seed=seed))
            full = refused = 0
            # Room for ever more of the next episode, and at last for all of it.
            while not full:
                room = os.path.getsize({str(path)!r}) + 1000 * refused
                resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
                try:
                    writer.append(make_episode(seed=4))
                    full = True
                except BunrakuError as error:
                    refused += 1
                    said = str(error)
                assert len(writer) == 4 + full
            print(said)
            print(refused)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    said, refused = done.stdout.splitlines()
    assert f"no room left for {path}: demo_4 was not saved, the 4 before it are intact" in said
    assert int(refused) > 10
    with EpisodeFile(path) as file:
        for seed, name in enumerate(file.names()):
            assert_same(file.load(name), make_episode(seed=seed))
        assert len(file) == 5
    assert recover(path).changed is False


def test_ctrl_c_while_an_episode_is_saved_waits_until_it_is_saved(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = journal.AtomicFile.write
    with EpisodeWriter(path, ENV_ID) as writer:
        for moment in range(1, 100):
            calls: list[int] = []

            def interrupted(file: Any, data: Any, calls: list[int] = calls, moment: int = moment) -> int:
                calls.append(1)
                if len(calls) == moment:
                    signal.raise_signal(signal.SIGINT)
                return write(file, data)

            monkeypatch.setattr(journal.AtomicFile, "write", interrupted)
            try:
                writer.append(make_episode(steps=3, seed=moment - 1))
            except KeyboardInterrupt:
                assert len(writer) == moment
            else:
                break
        monkeypatch.setattr(journal.AtomicFile, "write", write)
        assert moment > 20
    with EpisodeFile(path) as file:
        assert len(file) == moment
        for seed, name in enumerate(file.names()):
            assert_same(file.load(name), make_episode(steps=3, seed=seed))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_every_length_of_a_truncated_file_is_a_clear_error(path: Path) -> None:
    record(path, 1)
    content = path.read_bytes()
    for length in {*range(120), *range(120, len(content), 997)}:
        path.write_bytes(content[:length])
        for attempt in (EpisodeFile, recover, lambda p: EpisodeWriter(p, ENV_ID, ENV_KWARGS, info=INFO)):
            with pytest.raises(FileFormatError) as error:
                attempt(path)
            assert str(path) in message(error)
        assert path.read_bytes() == content[:length]


def test_a_text_file_is_a_clear_error(path: Path) -> None:
    path.write_text("time,x,y\n0,1,2\n" * 50)
    for attempt in (EpisodeFile, recover, lambda p: EpisodeWriter(p, ENV_ID)):
        with pytest.raises(FileFormatError, match="is not an HDF5 file"):
            attempt(path)


def test_an_absent_file_and_a_folder_are_clear_errors(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.hdf5", tmp_path):
        for attempt in (EpisodeFile, recover):
            with pytest.raises(BunrakuError) as error:
                attempt(path)
            assert str(path) in message(error)


def test_a_file_of_a_newer_format_is_refused(path: Path) -> None:
    record(path, 1)
    with h5py.File(path, "r+") as h5:
        h5.attrs["bunraku_format"] = 7
    for attempt in (EpisodeFile, lambda p: EpisodeWriter(p, ENV_ID, ENV_KWARGS, info=INFO)):
        with pytest.raises(FileFormatError, match="format version 7, this bunraku reads up to 1; update"):
            attempt(path)


def test_an_hdf5_file_of_another_kind_is_refused(path: Path) -> None:
    with h5py.File(path, "w") as h5:
        h5["images"] = np.zeros(3)
    for attempt in (EpisodeFile, recover):
        with pytest.raises(FileFormatError, match="no /data group"):
            attempt(path)
    with pytest.raises(FileFormatError, match="not recorded by bunraku"):
        EpisodeWriter(path, ENV_ID)


def test_an_unknown_episode_or_list_names_those_that_are_there(path: Path) -> None:
    record(path, 2)
    with EpisodeFile(path) as file:
        with pytest.raises(UnknownNameError, match="did you mean 'demo_1'"):
            file.load("demo_11")
        with pytest.raises(UnknownNameError, match="did you mean 'success'"):
            file.names("sucess")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda demo: demo.__delitem__("actions"), "it has no actions"),
        (lambda demo: demo.attrs.__setitem__("num_samples", 19), "where num_samples is 19"),
        (
            lambda demo: demo.__delitem__("final_state") or demo.create_dataset("final_state", data=[1.0]),
            "final",
        ),
        (lambda demo: demo.attrs.__setitem__("meta", "{"), "damaged"),
        (lambda demo: demo.attrs.__setitem__("meta", "[]"), "not a JSON object"),
        (lambda demo: demo.__delitem__("rewards") or demo.create_group("rewards"), "is a group"),
        (
            lambda demo: (
                demo.__delitem__("rewards") or demo.create_dataset("rewards", (10**11,), "f8", chunks=(1000,))
            ),
            "claims to hold",
        ),
    ],
)
def test_a_damaged_episode_is_named_and_the_others_load(path: Path, damage: Any, said: str) -> None:
    recorded = record(path, 2)
    with h5py.File(path, "r+") as h5:
        damage(h5["data/demo_0"])
    with EpisodeFile(path) as file:
        with pytest.raises(FileFormatError) as error:
            file.load("demo_0")
        assert said in message(error)
        assert_same(file.load("demo_1"), recorded[1])


def test_a_half_written_episode_is_removed_and_totals_lists_and_index_are_rebuilt(path: Path) -> None:
    recorded = record(path, 4)
    with h5py.File(path, "r+") as h5:
        del h5["data/demo_1"]
        del h5["index"]
        h5["data/demo_7/actions"] = np.zeros((3, 4))
        h5["data/notes"] = np.zeros(3)
        h5["mask/train"] = np.array([b"demo_1", b"demo_2"])
    report = recover(path)
    assert report.removed == ("demo_7",)
    assert report.moved == ("notes",)
    assert set(report.rebuilt) == {"total", "index", "mask/failure", "mask/train"}
    assert "was mended: 3 episodes (60 steps) are intact; 1 unfinished episode removed" in report.sentence
    assert "notes moved" in report.sentence
    with EpisodeFile(path) as file:
        assert file.names() == ["demo_0", "demo_2", "demo_3"]
        assert_same(file.load("demo_3"), recorded[3])
        assert file.masks == {"success": ["demo_0", "demo_2"], "failure": ["demo_3"], "train": ["demo_2"]}
    again = recover(path)
    assert not again.changed
    assert "is whole" in again.sentence


def test_an_episode_that_lacks_only_its_row_count_is_completed(path: Path) -> None:
    recorded = record(path, 2)
    with h5py.File(path, "r+") as h5:
        del h5["data/demo_1"].attrs["num_samples"]
        h5["data"].attrs["total"] = 20
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO) as writer:
        assert writer.recovered is not None
        assert writer.recovered.completed == ("demo_1",)
    with EpisodeFile(path) as file:
        assert_same(file.load("demo_1"), recorded[1])


def test_an_unfinished_recording_behind_the_end_is_dropped_with_a_word(path: Path) -> None:
    recorded = record(path, 2)
    with open(path, "ab") as file:
        file.write(os.urandom(5000))
    with EpisodeFile(path) as opened:
        assert len(opened) == 2
    with EpisodeWriter(path, ENV_ID, ENV_KWARGS, info=INFO) as writer:
        assert writer.recovered is not None
        assert "2 episodes (40 steps) are intact; 1 unfinished episode removed" in writer.recovered.sentence
    with EpisodeFile(path) as opened:
        assert_same(opened.load("demo_1"), recorded[1])


def test_a_plain_robomimic_file_loads_and_what_it_lacks_is_named(path: Path) -> None:
    with h5py.File(path, "w") as h5:
        demo = h5.create_group("data/demo_1")
        demo["actions"], demo["obs/eef_pos"] = np.ones((5, 7)), np.arange(15.0).reshape(5, 3)
        demo["dones"], demo["states"] = np.array([0, 0, 0, 0, 1]), np.ones((5, 9))
        demo.attrs["num_samples"] = 5
        h5["data"].attrs["env_args"] = '{"env_name": "Lift", "type": 1, "env_kwargs": {"robots": ["Panda"]}}'
    with EpisodeFile(path) as file:
        assert (file.format_version, file.env_id, file.env_kwargs) == (None, "Lift", {"robots": ["Panda"]})
        episode = file.load("demo_1")
    assert len(episode) == 5
    assert episode.observations["eef_pos"].shape == (6, 3)
    assert episode.states.shape == (6, 9)
    assert episode.terminated.tolist() == [False, False, False, False, True]
    assert np.isnan(episode.sim_time).all()
    assert {"final_state", "next_obs", "sim_time", "applied"} <= set(episode.meta["missing"])
    assert recover(path).rebuilt == ("total",)
