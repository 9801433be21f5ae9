"""The way back: what was exported is imported with the same numbers, and nothing outside a dataset is read."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from bunraku.dataset.exchange import ExportOptions, export
from bunraku.dataset.importing import ImportReport, import_from
from bunraku.dataset.validate import validate
from bunraku.episode.episode import Episode
from bunraku.episode.reader import EpisodeFile
from bunraku.episode.writer import EpisodeWriter
from bunraku.errors import BunrakuError, FileFormatError, UnknownNameError
from bunraku.plugins import EXPORTERS, IMPORTERS, load, names
from tests.kernel.episode_samples import make_episode
from tests.others.test_exports import FPS, LABELS, STEPS, with_images

ENV = "test/Images-v0"


def episode_of(i: int) -> Episode:
    episode = with_images(make_episode(steps=STEPS[i], seed=i, label=LABELS[i]), i)
    episode.success[:] = False
    episode.success[-1] = LABELS[i] == "success"
    episode.terminated[:] = episode.success
    episode.truncated[:] = False
    episode.truncated[-1] = not episode.success[-1]
    return episode


@pytest.fixture(scope="module")
def episodes() -> list[Episode]:
    return [episode_of(i) for i in range(4)]


@pytest.fixture(scope="module")
def recorded(episodes: list[Episode], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "demos.hdf5"
    with EpisodeWriter(path, ENV, {"control_freq": FPS}) as writer:
        for episode in episodes:
            writer.append(episode)
    with h5py.File(path, "r+") as h5:
        h5["mask/train"] = np.array([b"demo_1", b"demo_3"], dtype="S16")
    return path


def there_and_back(recorded: Path, form: str, tmp_path: Path, **options: Any) -> tuple[Path, ImportReport]:
    export(recorded, load(EXPORTERS, form), tmp_path / "out", ExportOptions(**options))
    back = tmp_path / "back.hdf5"
    report = import_from(tmp_path / "out", form, load(IMPORTERS, form), back, env_id=ENV, hz=FPS)
    assert (report.episodes, report.frames) == (4, sum(STEPS))
    assert not [finding for finding in validate(back) if finding.severity == "error"]
    return back, report


def test_every_import_format_is_tested_here() -> None:
    assert names(IMPORTERS) == ["lerobot", "minari", "robomimic"]


@pytest.mark.parametrize("form", ["robomimic", "minari"])
def test_files_with_all_observations_come_back_with_the_same_bits(
    form: str, recorded: Path, episodes: list[Episode], tmp_path: Path
) -> None:
    back, report = there_and_back(recorded, form, tmp_path)
    with EpisodeFile(back) as file:
        assert file.env_id == ENV
        assert file.info["imported"] == {"format": form, "missing": list(report.missing)}
        for number, episode in enumerate(episodes):
            found = file.load(f"demo_{number}")
            assert found.observations.keys() == episode.observations.keys()
            for key, array in episode.observations.items():
                assert found.observations[key].dtype == array.dtype
                if form == "robomimic":
                    # next_obs overlaps obs by all but one row
                    np.testing.assert_array_equal(found.observations[key], array, err_msg=key)
                np.testing.assert_array_equal(found.observations[key][:-1], array[:-1], err_msg=key)
            np.testing.assert_array_equal(found.actions, episode.actions)
            np.testing.assert_array_equal(found.rewards, episode.rewards)
            np.testing.assert_array_equal(found.success, episode.success)
            assert found.meta["seed"] == number
            if form == "minari":
                np.testing.assert_array_equal(found.terminated, episode.terminated)
                np.testing.assert_array_equal(found.truncated, episode.truncated)
            else:
                assert found.label == episode.label
                assert file.masks["train"] == ["demo_1", "demo_3"]
                # the samples' model is none, so their states cannot be vouched for
                np.testing.assert_array_equal(found.streams["imported/states"], episode.states[:-1])


@pytest.mark.parametrize("lossless", [True, False])
def test_lerobot_datasets_come_back(
    lossless: bool, recorded: Path, episodes: list[Episode], tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    pytest.importorskip("av")
    back, _ = there_and_back(recorded, "lerobot", tmp_path, lossless=lossless, task="reach the goal")
    with EpisodeFile(back) as file:
        for number, episode in enumerate(episodes):
            found = file.load(f"demo_{number}")
            np.testing.assert_array_equal(found.actions, episode.actions)
            np.testing.assert_array_equal(found.rewards, episode.rewards.astype(np.float32))
            np.testing.assert_array_equal(found.success, episode.success)
            np.testing.assert_array_equal(found.truncated, episode.truncated)
            assert (found.meta["task"], found.label) == (
                "reach the goal",
                "success" if episode.label == "success" else "unlabelled",
            )
            for key in ("observation", "desired_goal"):
                expected = episode.observations[key][:-1].astype(np.float32)
                np.testing.assert_array_equal(found.observations[key][:-1], expected)
            there, here = (e.observations["front_image"][:-1].astype(float) for e in (episode, found))
            error = ((there - here) ** 2).mean()
            assert error == 0.0 if lossless else 10 * np.log10(255.0**2 / error) > 35.0


def test_real_recordings_replay_bit_for_bit_after_robomimic(tmp_path: Path) -> None:
    from bunraku.episode.verify import verify

    path = tmp_path / "reach.hdf5"
    command = [
        sys.executable,
        "-m",
        "bunraku.cli.main",
        "collect",
        "--env",
        "PandaReach",
        "--device",
        "scripted",
    ]
    command += ["--viewer", "none", "--episodes", "1", "--out", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    export(path, load(EXPORTERS, "robomimic"), tmp_path / "out", ExportOptions())
    command = [sys.executable, "-m", "bunraku.cli.main", "dataset", "import", str(tmp_path / "out")]
    command += ["--from", "robomimic", "--out", str(tmp_path / "back.hdf5"), "--json"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["episodes"] == 1
    assert "device streams" in done.stderr
    assert verify(tmp_path / "back.hdf5").ok


def test_an_archive_is_imported_and_one_that_leads_out_is_refused(recorded: Path, tmp_path: Path) -> None:
    importer = load(IMPORTERS, "robomimic")
    export(recorded, load(EXPORTERS, "robomimic"), tmp_path / "out", ExportOptions())
    good = tmp_path / "good archive ü.tar.gz"
    with tarfile.open(good, "w:gz") as archive:
        archive.add(tmp_path / "out", "out")
    assert import_from(good, "robomimic", importer, tmp_path / "back.hdf5", hz=FPS).episodes == 4

    def member(name: str, link: str = "") -> Path:
        path = tmp_path / "bad.tar"
        with tarfile.open(path, "w") as archive:
            info = tarfile.TarInfo(name)
            info.size = 0 if link else 4
            if link:
                info.type, info.linkname = tarfile.SYMTYPE, link
            archive.addfile(info, io.BytesIO(b"evil"))
        return path

    outside = tmp_path / "evil.hdf5"
    for bad in (
        lambda: member("../evil.hdf5"),
        lambda: member("a/../../evil.hdf5"),
        lambda: member(str(outside)),
        lambda: member("demos.hdf5", link=str(recorded)),
        lambda: member("demos.hdf5", link="../demos.hdf5"),
    ):
        with pytest.raises(FileFormatError, match=r"nothing was unpacked"):
            import_from(bad(), "robomimic", importer, tmp_path / "no.hdf5", hz=FPS)
    zipped = tmp_path / "bad.zip"
    with zipfile.ZipFile(zipped, "w") as file:
        file.writestr("..\\evil.hdf5", b"evil")
    with pytest.raises(FileFormatError, match="leads out"):
        import_from(zipped, "robomimic", importer, tmp_path / "no.hdf5", hz=FPS)
    assert not outside.exists()
    assert not (tmp_path / "no.hdf5").exists()
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"out", good.name, "back.hdf5", "bad.tar", "bad.zip"}


def test_links_to_what_lies_outside_a_dataset_are_refused(recorded: Path, tmp_path: Path) -> None:
    def refused(source: Path, form: str) -> None:
        with pytest.raises(FileFormatError, match=r"outside|leads out|points to|another file"):
            import_from(source, form, load(IMPORTERS, form), tmp_path / "no.hdf5", hz=FPS)
        assert not (tmp_path / "no.hdf5").exists()

    links = tmp_path / "links"
    links.mkdir()
    (links / "demos.hdf5").symlink_to(recorded)
    refused(links, "robomimic")

    external = tmp_path / "external.hdf5"
    with h5py.File(recorded) as source, h5py.File(external, "w") as h5:
        source.copy("data", h5)
        h5["data/demo_9"] = h5py.ExternalLink(str(recorded), "/data/demo_0")
    refused(external, "robomimic")

    export(recorded, load(EXPORTERS, "lerobot"), tmp_path / "lerobot", ExportOptions())
    info = tmp_path / "lerobot/meta/info.json"
    described = json.loads(info.read_text())
    described["video_path"] = "../../etc/passwd"
    info.write_text(json.dumps(described))
    refused(tmp_path / "lerobot", "lerobot")


def test_what_cannot_be_imported_is_said_in_a_line(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="robomimic"):
        load(IMPORTERS, "robomimik")
    text = tmp_path / "notes.txt"
    text.write_text("no dataset")
    for source, form, said in (
        (tmp_path / "absent", "minari", "does not exist"),
        (text, "minari", "neither a folder nor a zip or tar"),
        (tmp_path, "lerobot", "no meta/info.json"),
        (tmp_path, "minari", "no metadata.json"),
        (tmp_path, "robomimic", "0 HDF5 files"),
    ):
        with pytest.raises(BunrakuError, match=said):
            import_from(source, form, load(IMPORTERS, form), tmp_path / "no.hdf5")
    export(recorded, load(EXPORTERS, "minari"), tmp_path / "minari", ExportOptions())
    with pytest.raises(BunrakuError, match="--env"):
        import_from(tmp_path / "minari", "minari", load(IMPORTERS, "minari"), tmp_path / "no.hdf5")
    with pytest.raises(BunrakuError, match="--hz"):
        import_from(
            tmp_path / "minari", "minari", load(IMPORTERS, "minari"), tmp_path / "no.hdf5", env_id=ENV
        )
    (tmp_path / "minari/data/main_data.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n" + b"\0" * 100)
    with pytest.raises(FileFormatError, match="damaged"):
        import_from(tmp_path / "minari", "minari", load(IMPORTERS, "minari"), tmp_path / "no.hdf5", hz=FPS)
