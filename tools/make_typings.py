"""Write stubs so that static tools find the packages that the build maps under `bunraku` from other folders.

Type checkers and editors do not follow an editable install's finder. For each module of a mapped package this
writes `typings/bunraku/envs/x.pyi` with `from envs.x import *`, which they do follow. Run it again after adding a
module:

    python tools/make_typings.py
"""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def mapped_folders(root: Path) -> dict[str, str]:
    """Return the packages that `pyproject.toml` maps to a folder of another name, as `{package: folder}`."""
    tool = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    return {package: folder for package, folder in tool["package-dir"].items() if package.count(".") == 1}


def make_typings(root: Path) -> list[Path]:
    """Write the stubs of all mapped packages anew under `root/typings/bunraku`; return their paths."""
    written = []
    for package, folder in mapped_folders(root).items():
        target = root / "typings" / Path(*package.split("."))
        shutil.rmtree(target, ignore_errors=True)
        for source in sorted((root / folder).rglob("*.py")):
            relative = source.relative_to(root).with_suffix("")
            parts = relative.parts[:-1] if relative.name == "__init__" else relative.parts
            stub = (target / source.relative_to(root / folder)).with_suffix(".pyi")
            stub.parent.mkdir(parents=True, exist_ok=True)
            stub.write_text(f"from {'.'.join(parts)} import *\n", encoding="utf-8")
            written.append(stub)
    return written


if __name__ == "__main__":
    print(f"{len(make_typings(ROOT))} stubs in {ROOT / 'typings'}")
