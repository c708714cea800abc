"""`oco watch`: a page on the loopback with the last rounds of a running learner, from its journal."""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oco.cli.options import Json
from oco.cli.output import say, show_json
from oco.dsl.diagnostics import OcoError, contained
from oco.evaluation.report.watch_page import watch_page

if TYPE_CHECKING:
    from oco.following import Follower

HOST = "127.0.0.1"
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
"""Content security policy of the page: nothing from elsewhere."""


class WatchServer(ThreadingHTTPServer):
    """Server of the page and of its rounds, for this machine alone."""

    daemon_threads = True

    def __init__(self, follower: Follower, port: int) -> None:
        super().__init__((HOST, port), _Handler)
        self.follower = follower
        self.turn = Lock()

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://{HOST}:{self.server_address[1]}/"

    def state(self) -> dict[str, Any]:
        """Rounds for the page, as `Follower.read` gives them; of a bug its text alone, as `problem`."""
        try:
            with self.turn, contained("reading this journal"):
                return self.follower.read()
        except OcoError as error:
            return {"version": 1, "folder": str(self.follower.folder), "problem": str(error), "rounds": []}


class _Handler(BaseHTTPRequestHandler):
    server: WatchServer

    def do_GET(self) -> None:
        if self.headers.get("Host", "").rsplit(":", 1)[0] not in (HOST, "localhost"):
            self.send_error(HTTPStatus.FORBIDDEN)  # another site's name that leads here
        elif self.path == "/":
            self._send("text/html; charset=utf-8", watch_page())
        elif self.path == "/rounds.json":
            self._send("application/json", json.dumps(self.server.state()))
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _send(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(HTTPStatus.OK)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", POLICY),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """No line for each request."""


def watch(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of the journal of a learner.")],
    port: Annotated[int, typer.Option("--port", min=0, metavar="PORT", help="Port of the page; 0: any free one.")] = 0,
    as_json: Json = False,
) -> None:
    """Watch a running learner: a page on this machine with its last rounds, losses, violations and certificate.

    It reads copies of the journal and touches nothing. Ctrl-C ends it. --json prints what the page shows, once.
    """
    from oco.following import Follower

    follower = Follower(folder)
    first = follower.read()
    if as_json:
        show_json(first)
        raise typer.Exit(1 if first["problem"] else 0)
    with WatchServer(follower, port) as server:
        say(f"{folder}: watch it at {server.address} (Ctrl-C ends this)")
        if first["problem"]:
            say(first["problem"])
        sys.stdout.flush()  # pipes and files keep it until the server ends
        server.serve_forever()
