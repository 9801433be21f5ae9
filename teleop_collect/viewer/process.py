"""The viewer process: shows what comes through standard input, tells keys and commands on standard output.

The viewer lives in a process of its own because its Python code would otherwise take the interpreter lock
from the control loop sixty times a second, and because a crash in a graphics driver must not take a recording
with it. It is started by `bunraku.teleop_collect.viewer.studio`, and ends when its standard input ends.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from bunraku.teleop_collect.viewer import link

_NICENESS = 5
"""The control loop goes first where the two share a core."""


def main() -> None:
    """Run the viewer that the first message on standard input asks for."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    output = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # The messages have this pipe for themselves: what libraries print goes nowhere.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    stream = os.fdopen(os.dup(sys.stdin.fileno()), "rb")

    def say(message: object) -> None:
        with contextlib.suppress(OSError):  # the control process is gone, and the end of its pipe says so too
            link.send(output, message)

    def listen(take: Callable[[Any], None], end: Callable[[], None]) -> None:
        def run() -> None:
            with contextlib.suppress(EOFError):
                while True:
                    take(link.receive(stream))
            end()

        threading.Thread(target=run, daemon=True).start()

    status = 0
    try:
        _show(link.receive(stream), say, listen)
    except (ImportError, OSError, RuntimeError) as error:
        say(link.Failed(" ".join(str(error).split())))
        status = 1
    # The listening thread may still wait on the pipe, and the interpreter cannot shut down around it.
    os._exit(status)


def _show(options: link.Options, say: link.Say, listen: link.Listen) -> None:
    if options.kind == "web":
        from bunraku.teleop_collect.viewer import web

        web.run(options, say, listen)
    else:
        from bunraku.teleop_collect.viewer import native

        native.run(options, say, listen)


if __name__ == "__main__":
    main()
