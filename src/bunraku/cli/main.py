"""Entry points `bunraku` and `collect`: find the command, parse its arguments, turn errors into one line."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from bunraku.errors import BunrakuError, did_you_mean

COMMANDS: dict[str, str] = {
    "collect": "drive a robot with a controller and record demonstrations",
    "doctor": "say what works here, and what to do where it does not",
    "verify": "replay recorded actions and compare every state, bit for bit",
    "replay": "show recorded episodes in the viewer",
    "dataset": "sum up, check, edit, export and import files of demonstrations",
    "render": "render recorded episodes to a video",
    "screw": "play an arm that drives a screw, and check it against MuJoCo",
    "retarget": "turn human motion into robot motion",
    "view": "show a robot motion, or render it to a video",
    "train": "clone demonstrations, or learn by reinforcement",
    "evaluate": "run a policy on fresh episodes: success with its interval",
    "policy": "export a policy to ONNX, or compare runs on one page",
    "play": "show a policy at work, in a video",
    "bench": "measure speed against a named peer, in one run",
    "wbc": "solve and check the planar whole-body control problem",
    "motion": "check a robot's motion before training on it, and repair it",
    "robots": "list the humanoids, or describe a new one by reading its model",
    "calibrate": "find out which way the operator faces, and save it in a profile",
}
"""Command (its file in this package, and its name): what it does."""

EXIT_OK, EXIT_CHECK_FAILED, EXIT_WRONG_INPUT = 0, 1, 2
EXIT_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run `bunraku <command> ...`; return the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        with suppress(BrokenPipeError):
            print(_overview(), flush=True)  # noqa: T201
        return EXIT_OK if arguments else EXIT_WRONG_INPUT
    if arguments[0] == "--version":
        from importlib.metadata import version

        print(version("bunraku"))  # noqa: T201
        return EXIT_OK
    name, *rest = arguments
    if name not in COMMANDS:
        return _fail(f"unknown command {name!r}{did_you_mean(name, COMMANDS)}")
    return run_command(name, rest, prog=f"bunraku {name}")


def collect_main() -> int:
    """Run `collect ...`, which is `bunraku collect ...`."""
    return run_command("collect", sys.argv[1:], prog="collect")


def run_command(name: str, arguments: Sequence[str], prog: str) -> int:
    """Parse and run one command.

    Args:
        name: Its name.
        arguments: What follows the name.
        prog: How the program was called, for its help.

    Returns:
        The exit code: 0 done, 1 the check that was asked for failed, 2 wrong input or environment.
    """
    debug = "--debug" in arguments
    rest = [argument for argument in arguments if argument != "--debug"]
    module = importlib.import_module(f"bunraku.cli.{name}")
    try:
        args = _parse(module.Args, rest, prog, module.__doc__ or "")
        return int(module.run(args))
    except BunrakuError as error:
        if debug:
            raise
        return _fail(str(error))
    except BrokenPipeError:
        # the reader of our output has gone; there is nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    except (ValueError, OSError) as error:
        # what a constructor deeper down refuses, or the operating system does
        if debug:
            raise
        return _fail(str(error) or type(error).__name__)
    except RuntimeError as error:
        # mujoco refuses to be imported with it
        if debug or "MUJOCO_GL" not in str(error):
            raise
        return _fail(f"{error}; unset it, or set it to egl, osmesa or glfw")
    except KeyboardInterrupt:
        if debug:
            raise
        say("interrupted")
        return EXIT_INTERRUPTED


def _parse(args_type: Callable[..., Any], arguments: Sequence[str], prog: str, description: str) -> Any:
    import tyro

    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            return tyro.cli(
                args_type,
                args=list(arguments),
                prog=prog,
                description=description,
                config=(tyro.conf.OmitArgPrefixes,),
            )
    except SystemExit as end:
        if not end.code:
            raise
        raise BunrakuError(f"{_unboxed(told.getvalue())}; see {prog} --help") from None


def _unboxed(text: str) -> str:
    """Return what a box of tyro's says first, in one line: what is wrong, without the help that follows."""
    words: list[str] = []
    for line in text.splitlines():
        inside = line.strip().strip("│╭╮╰╯").strip()
        if line.lstrip().startswith("╭") or not inside:
            continue
        if inside.startswith(("───", "Got errors", "For full helptext")):
            break
        words += inside.split()
    return " ".join(words)


def _overview() -> str:
    width = max(len(name) for name in COMMANDS)
    lines = [f"  {name:{width}s}  {what}" for name, what in COMMANDS.items()]
    return "\n".join(
        [
            "usage: bunraku <command> [options]",
            "",
            "A person's motion becomes robot data.",
            "",
            "commands:",
            *lines,
            "",
            "bunraku <command> --help shows a command's options.",
            "Every command: --json prints one JSON object on stdout, --debug shows tracebacks.",
        ]
    )


def say(message: str) -> None:
    """Tell a person something: one line on stderr."""
    # a closed terminal refuses to be written to, and nothing that is being kept may fail for that
    with suppress(OSError):
        print(message, file=sys.stderr, flush=True)  # noqa: T201


def _fail(message: str) -> int:
    say("bunraku: error: " + " ".join(message.split()))
    return EXIT_WRONG_INPUT


if __name__ == "__main__":
    sys.exit(main())
