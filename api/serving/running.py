"""Server process of a service: Uvicorn on one socket, until SIGTERM or Ctrl-C."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from oco.dsl.diagnostics import fail
from oco.dsl.writing import reason_of
from oco.serving.admission import Admission
from oco.serving.commits import GroupCommits
from oco.serving.metrics import Metrics
from oco.serving.service import Service
from oco.serving.store import Store

DRAIN = 30
"""Seconds that open connections have to end when the service goes down."""


def run(store: Store, host: str, port: int, admission: Admission, announce: Callable[[str], None]) -> None:
    """Serve a store until the process is asked to end; calls that wait then are answered. Raises OCO667 where the address is taken."""
    try:
        listening = _bound(host, port)
    except BaseException:
        store.close()
        raise
    contract = store.states.plan.contract
    labels = (*store.states.plan.program.labels, *contract.equalities)
    commits = GroupCommits(store, Metrics(labels))
    try:
        config = uvicorn.Config(
            Service(commits, admission),
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,  # anyone may write them, and clients are told apart by their address
            ws="none",
            timeout_graceful_shutdown=DRAIN,
        )
        where = f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"
        announce(
            f"{store.path}: {store.size:,} learners of {store.states.plan.model.name} at {where} (Ctrl-C ends this)"
        )
        uvicorn.Server(config).run([listening])
    finally:
        store.close()
        listening.close()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, so that asyncio sends without waiting for acknowledgements (TCP_NODELAY).
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(2048)
    except OSError as error:
        listening.close()
        message = f"{host}:{port} cannot be listened at: {reason_of(error)}"
        raise fail("OCO667", message, hint="name another --port; 0 takes a free one") from None
    return listening
