"""The web page's server: bound to one address, for our own page alone, and aware of whether anyone is there.

MuJoCo's server listens on all interfaces, talks to any page that the operator's browser has open, and keeps
the last keys of a page that is hidden or gone. It has no options for these, so `Page.install` puts three
things in its place: the listening socket, the check of each request, and the class of its connections. All of
it happens in the viewer process, which does nothing else.
"""

from __future__ import annotations

import errno
import http
import os
import socket
import time
import urllib.parse
from collections.abc import Callable
from typing import Any

from mujoco.studio.web import web_server
from websockets.asyncio.server import ServerConnection
from websockets.frames import DATA_OPCODES, Frame
from websockets.http11 import Request, Response
from websockets.protocol import Event

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_SILENT_S = 0.5
"""A page that is on the screen sends its input with every frame; for so long it may be slow."""

Check = Callable[[ServerConnection, Request], Response | None]


class Page:
    """The listening socket of a web viewer and what is known of its visitor."""

    def __init__(self, host: str, port: int) -> None:
        """Bind to `host`, on `port` or on the first free port from 8080.

        Raises:
            OSError: If it cannot be bound.
        """
        self._socket = _first_free(host, (port,) if port else (*range(8080, 8100), 0))
        self._is_private = host in _LOOPBACK
        self._heard = -_SILENT_S
        self.bound = False
        self.url = _url(host, self._socket.getsockname()[1])

    def install(self) -> None:
        """Make MuJoCo's server use this page's socket, check and connections."""
        serve = web_server.serve
        web_server.bind_public_socket = self._hand_over
        web_server.serve = lambda handler, *, process_request, **options: serve(
            handler,
            process_request=self._guard(process_request),
            create_connection=self._connection_class(),
            **options,
        )

    def is_attended(self) -> bool:
        """Say whether a page that holds control is on somebody's screen."""
        return time.monotonic() - self._heard < _SILENT_S

    def _hand_over(self, _host: str, _port: int = 0) -> socket.socket:
        self.bound = True
        return self._socket

    def _guard(self, check: Check) -> Check:
        """Refuse model files, and pages of other sites while the server is for this machine alone."""

        def guarded(connection: ServerConnection, request: Request) -> Response | None:
            origin = request.headers.get("Origin")
            if request.path.startswith("/drop"):
                return connection.respond(http.HTTPStatus.FORBIDDEN, "the session's model is fixed\n")
            if self._is_private and origin and urllib.parse.urlsplit(origin).hostname not in _LOOPBACK:
                return connection.respond(http.HTTPStatus.FORBIDDEN, "only for pages of this machine\n")
            return check(connection, request)

        return guarded

    def _connection_class(self) -> type[ServerConnection]:
        page = self

        class Connection(ServerConnection):
            """Notes when the controlling page last sent its input."""

            def process_event(self, event: Event) -> None:
                super().process_event(event)
                # a hidden or closed page still answers pings and takes its leave: only input counts
                has_input = isinstance(event, Frame) and event.opcode in DATA_OPCODES
                if has_input and self.request is not None and self.request.path.startswith("/ui"):
                    page._heard = time.monotonic()

        return Connection


def _first_free(host: str, ports: tuple[int, ...]) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for port in ports:
        bound = socket.socket(family, socket.SOCK_STREAM)
        if os.name == "posix":  # elsewhere this option would let two servers share one port
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind((host, port))
        except OSError as error:
            bound.close()
            if error.errno != errno.EADDRINUSE or port == ports[-1]:
                raise OSError(f"cannot serve on {host} port {port}: {error.strerror}") from error
        else:
            return bound
    raise AssertionError("the last port either binds or raises")


def _url(host: str, port: int) -> str:
    """Return the address for a browser on this machine."""
    here: dict[str, Any] = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
    host = here.get(host, host)
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
