"""Options of a command from a TOML file."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from bunraku.errors import BunrakuError, UnknownNameError

T = TypeVar("T", bound=Any)
"""The options of a command, every one with a default, `config` among them."""


def with_config(args: T, argv: Sequence[str]) -> T:
    """Return the arguments with those of the config file that the command line does not give.

    Args:
        args: The arguments as parsed.
        argv: The words of the command line: a default that stands there was meant.

    Raises:
        BunrakuError: If the file cannot be read, or names an option that does not exist.
    """
    path: Path | None = args.config
    if path is None:
        return args
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BunrakuError(f"cannot read --config {path}: {error}") from error
    known = {f.name for f in fields(args)} - {"config"}
    defaults = type(args)()
    flags = [word[2:].partition("=")[0].replace("-", "_") for word in argv if word.startswith("--")]
    given = {flag if flag in known else flag.removeprefix("no_") for flag in flags}
    changed: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name not in known:
            raise UnknownNameError(f"option in {path}", key, sorted(known))
        if name not in given and getattr(args, name) == getattr(defaults, name):
            changed[name] = _as_type_of(type(args), name, value, path)
    return replace(args, **changed)


def _as_type_of(args_type: Any, name: str, value: Any, path: Path) -> Any:
    import tyro

    flag = "--" + name.replace("_", "-")
    try:
        if isinstance(value, bool):
            words = [flag] if value else []
        else:
            words = [flag, *(str(v) for v in (value if isinstance(value, list) else [value]))]
        # what tyro says of it has many lines; ours says it in one
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return getattr(tyro.cli(args_type, args=words), name)
    except SystemExit:
        raise BunrakuError(f"{path}: {name} = {value!r} is not a value for {flag}") from None
