"""The layout of the project: who imports whom, what the wheel holds, what an import loads."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.make_typings import make_typings

ROOT = Path(__file__).resolve().parents[2]
WINGS = ("envs", "retarget", "teleop_collect", "training")
ALLOWED = {
    "envs": set(),
    "retarget": set(),
    "teleop_collect": {"envs", "retarget"},
    "training": {"envs", "retarget"},
    "kernel": set(),
    "cli": set(WINGS),
}
"""The wings that a layer may import; all may import the kernel, and nobody imports `cli`."""
LIBRARIES = {
    "torch": r"training/.*",
    "pinocchio": r"retarget/.*",
    "numba": r"retarget/.*",
    "openvr": r"teleop_collect/(devices/)?_?openvr\w*\.py",
    "pyspacemouse": r"teleop_collect/devices/_?spacemouse\w*\.py",
    "pygame": r"teleop_collect/devices/_?gamepad\w*\.py",
}
"""Where a library may be imported, and only inside a function for those of devices."""
DEVICE_LIBRARIES = {"openvr", "pyspacemouse", "pygame"}


def module_imports(source: str) -> Iterator[tuple[str, bool]]:
    """Yield each module that a source imports, and whether that happens as the module loads."""

    def visit(node: ast.AST, top: bool) -> Iterator[tuple[str, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                yield from ((name, False) for name, _ in visit(child, top))
            elif isinstance(child, ast.Import):
                yield from ((alias.name, top) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = "." * child.level + (child.module or "")
                yield base, top
                yield from ((f"{base}.{alias.name}", top) for alias in child.names)
            elif isinstance(child, ast.Call) and ast.unparse(child.func) in (
                "importlib.import_module",
                "import_module",
                "__import__",
            ):
                if child.args and isinstance(child.args[0], ast.Constant):
                    yield str(child.args[0].value), top
                yield from visit(child, top)
            else:
                function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
                yield from visit(child, top and not function)

    yield from visit(ast.parse(source), True)


def layer_of(path: str) -> str:
    """Return the layer of a file, given by its path from the root."""
    first = path.split("/")[0]
    if first != "src":
        return first
    return "cli" if path.startswith("src/bunraku/cli/") else "kernel"


def faults(path: str, source: str) -> list[str]:
    """Return what a file imports and may not."""
    layer, found = layer_of(path), []
    for name, top in module_imports(source):
        parts = name.split(".")
        if name.startswith("."):
            found.append(f"{path}: relative import {name}")
        if parts[0] in WINGS:
            found.append(f"{path}: bare name {name}")
        if parts[0] == "bunraku" and len(parts) > 1:
            wing = parts[1]
            if wing in WINGS and wing != layer and wing not in ALLOWED[layer]:
                found.append(f"{path}: {layer} imports {name}")
            if wing in WINGS and layer == "cli" and top:
                found.append(f"{path}: {name} is imported before it is needed")
            if wing == "cli" and layer != "cli" and not re.fullmatch(WING_CLI, path):
                found.append(f"{path}: {layer} imports {name}")
        if parts[0] in LIBRARIES:
            if not re.fullmatch(LIBRARIES[parts[0]], path):
                found.append(f"{path}: library {name}")
            if parts[0] in DEVICE_LIBRARIES and top:
                found.append(f"{path}: {name} is imported before the device is opened")
    return found


WING_CLI = r"training/cli/.*|teleop_collect/cli/.*|retarget/cli/.*"


def sources() -> list[Path]:
    folders = ["src/bunraku", *WINGS]
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def test_every_file_imports_only_what_its_layer_may() -> None:
    found = []
    for path in sources():
        relative = path.relative_to(ROOT).as_posix()
        found += faults(relative, path.read_text(encoding="utf-8"))
    assert len(sources()) > 50
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("src/bunraku/sim.py", "def f():\n    from bunraku import envs"),
        ("src/bunraku/sim.py", "import torch"),
        ("src/bunraku/cli/replay.py", "from bunraku.teleop_collect.playback import play"),
        ("envs/single.py", "from bunraku.retarget.robot import x"),
        ("retarget/solve.py", "import bunraku.envs.single"),
        ("retarget/solve.py", "def f():\n    import torch"),
        ("teleop_collect/session.py", "from bunraku import training"),
        ("training/bc.py", "import bunraku.teleop_collect.session"),
        ("envs/single.py", "from envs.options import x"),
        ("envs/single.py", "from .options import x"),
        ("envs/single.py", "import importlib\nimportlib.import_module('bunraku.training')"),
        ("training/bc.py", "import numba"),
        ("envs/single.py", "import pinocchio as pin"),
        ("teleop_collect/devices/openvr.py", "import openvr"),
        ("teleop_collect/session.py", "def f():\n    import openvr"),
        ("teleop_collect/devices/gamepad.py", "def f():\n    import pyspacemouse"),
    ],
)
def test_a_forbidden_import_is_found(path: str, source: str) -> None:
    assert faults(path, source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("src/bunraku/cli/replay.py", "def f():\n    from bunraku.teleop_collect.playback import play"),
        ("training/bc.py", "import torch\nfrom bunraku.envs.single import x"),
        ("retarget/solve.py", "import pinocchio, numba\nfrom bunraku.geometry import Pose"),
        ("teleop_collect/devices/openvr.py", "def f():\n    import openvr"),
    ],
)
def test_an_allowed_import_is_not(path: str, source: str) -> None:
    assert not faults(path, source)


def test_the_wheel_holds_every_package_on_disk() -> None:
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    on_disk = set()
    for folder, package in {"src/bunraku": "bunraku", **{wing: f"bunraku.{wing}" for wing in WINGS}}.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            on_disk.add(".".join([package, *init.parent.relative_to(ROOT / folder).parts]))
        if (ROOT / folder).is_dir():
            assert setuptools["package-dir"][package] == folder
            for module in (ROOT / folder).rglob("*.py"):
                assert (module.parent / "__init__.py").exists(), f"{module.parent} is in no package"
    assert set(setuptools["packages"]) == on_disk
    assert len(setuptools["packages"]) == len(on_disk)


def test_the_folder_of_data_is_no_package() -> None:
    assert (ROOT / "datasets" / "README.md").exists()
    assert not list((ROOT / "datasets").rglob("*.py"))


def loaded_by(module: str) -> set[str]:
    """Return the names of all top-level modules that a fresh interpreter has after one import."""
    code = f"import sys, json, {module}; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("bunraku", "mujoco torch h5py openvr numba pinocchio"),
        ("bunraku.envs", "torch pinocchio numba pygame pyspacemouse"),
        ("bunraku.teleop_collect", "torch pinocchio numba pygame pyspacemouse"),
        ("bunraku.teleop_collect.session", "torch pinocchio numba pygame pyspacemouse openvr"),
    ],
)
def test_an_import_loads_no_library_that_it_does_not_need(module: str, absent: str) -> None:
    loaded = loaded_by(module)
    assert "bunraku" in loaded
    assert not loaded & set(absent.split())


def test_the_readme_starts_with_two_commands() -> None:
    block = re.search(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert block is not None
    commands = [line for line in block[1].splitlines() if line and not line.startswith("#")]
    assert len(commands) == 2


def test_the_changelog_has_a_section_and_says_something() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (Unreleased|\[?\d+\.\d+\.\d+).*\n\n### \w+\n\n- ", text, re.MULTILINE)


def test_stubs_lead_static_tools_to_the_mapped_folders(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    (tmp_path / "envs" / "tasks").mkdir(parents=True)
    for name in ("__init__.py", "single.py", "tasks/__init__.py", "tasks/reach.py"):
        (tmp_path / "envs" / name).touch()
    stale = tmp_path / "typings/bunraku/envs/gone.pyi"
    stale.parent.mkdir(parents=True)
    stale.touch()
    stubs = {p.relative_to(tmp_path / "typings").as_posix(): p.read_text() for p in make_typings(tmp_path)}
    assert stubs == {
        "bunraku/envs/__init__.pyi": "from envs import *\n",
        "bunraku/envs/single.pyi": "from envs.single import *\n",
        "bunraku/envs/tasks/__init__.pyi": "from envs.tasks import *\n",
        "bunraku/envs/tasks/reach.pyi": "from envs.tasks.reach import *\n",
    }
    assert not stale.exists()
