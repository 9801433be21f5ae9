"""Finding robots, environments and devices by name, ours and those of others."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bunraku import plugins
from bunraku.errors import BunrakuError, UnknownNameError

GROUPS = [plugins.DEVICES, plugins.ROBOTS, plugins.TASKS]


@pytest.fixture
def others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Another distribution on the path, with one plugin that works and two that do not."""
    info = tmp_path / "glove_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: glove-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[bunraku.devices]\nglove = glove_package:Glove\nlost = glove_package:Missing\n"
        "broken = glove_package_broken:Glove\n"
    )
    (tmp_path / "glove_package.py").write_text("class Glove:\n    pass\n")
    (tmp_path / "glove_package_broken.py").write_text("import a_library_that_nobody_has\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    plugins._others.cache_clear()
    yield
    plugins._others.cache_clear()


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.kind)
def test_every_name_of_ours_is_a_file_and_loads(group: plugins.Group) -> None:
    package = importlib.import_module(group.package)
    files = {p.stem for p in Path(next(iter(package.__path__))).glob("[!_]*.py")}
    assert files
    assert files <= set(plugins.names(group))
    assert plugins.names(group) == sorted(plugins.names(group))
    for name in files:
        assert plugins.load(group, name) is not None


@pytest.mark.parametrize(
    ("group", "wrong", "meant"),
    [
        (plugins.DEVICES, "spacemous", "spacemouse"),
        (plugins.ROBOTS, "pnada", "panda"),
        (plugins.TASKS, "panda_raech", "panda_reach"),
    ],
)
def test_a_wrong_name_gets_the_nearest(group: plugins.Group, wrong: str, meant: str) -> None:
    with pytest.raises(UnknownNameError, match=rf"did you mean '?{meant}\b") as error:
        plugins.load(group, wrong)
    assert "\n" not in str(error.value)
    assert wrong in str(error.value)


@pytest.mark.usefixtures("others")
def test_a_plugin_of_another_distribution_is_found_by_name() -> None:
    assert "glove" in plugins.names(plugins.DEVICES)
    assert plugins.load(plugins.DEVICES, "glove").__name__ == "Glove"
    assert "glove" not in plugins.names(plugins.ROBOTS)
    with pytest.raises(UnknownNameError, match=r"did you mean '?glove\b"):
        plugins.load(plugins.DEVICES, "glov")


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize(("name", "cause"), [("broken", "a_library_that_nobody_has"), ("lost", "Missing")])
def test_a_plugin_that_fails_is_named_with_its_cause(name: str, cause: str) -> None:
    with pytest.raises(BunrakuError) as error:
        plugins.load(plugins.DEVICES, name)
    text = str(error.value)
    assert "\n" not in text
    assert name in text
    assert cause in text
    assert plugins.load(plugins.DEVICES, "keyboard") is not None
