"""Admission of requests: tokens, hosts, and how many a client may send."""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oco.dsl.diagnostics import fail

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
OPEN = ("/healthz",)
"""Addresses that need no token and do not count."""
MOST_CLIENTS = 10_000
"""Clients that are remembered, at least, before those that have sent nothing lately are forgotten."""


class RateLimit:
    """Requests that each client may send: `rate` a second, and as many at once.

    Generic cell rate algorithm (ITU-T I.371, annex A): each client has the time at which its next request is due, and may be early by the
    time that a second's requests take.
    """

    def __init__(self, rate: int) -> None:
        self.interval = 1 / rate
        self.early = (rate - 1) * self.interval
        self._due: dict[str | bytes, float] = {}
        self._most = MOST_CLIENTS

    def wait(self, client: str | bytes, now: float) -> float:
        """Seconds until a client may send a request; 0 where it may now, and then this one counts."""
        due = max(self._due.get(client, now), now)
        if (wait := due - now - self.early) > self.interval * 1e-6:
            return wait
        if len(self._due) >= self._most:
            self._due = {known: time for known, time in self._due.items() if time > now}
            self._most = max(MOST_CLIENTS, 2 * len(self._due))
        self._due[client] = due + self.interval
        return 0.0


class Admission:
    """Rules of who is let in: requests with a token; without tokens those that name this machine as their host.

    rate   requests a second that each client may send; None: any number. A client is a token, or an address of the network
    clock  gives the time in seconds
    """

    def __init__(
        self, tokens: Sequence[str] = (), rate: int | None = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.tokens = [token.encode() for token in tokens]
        self.clock = clock
        self.limit = None if rate is None else RateLimit(rate)

    def check(self, scope: Mapping[str, Any]) -> float:
        """Seconds until a request is admitted: 0 where it is now, and counts. Raises OCO664."""
        free = scope["path"] in OPEN
        if free and self.tokens:
            return 0.0
        headers = dict(scope["headers"])
        token = self._token(headers.get(b"authorization", b"")) if self.tokens else None
        if self.limit is not None and not free:
            address: str = (scope.get("client") or ("",))[0]
            if wait := self.limit.wait(address if token is None else token, self.clock()):
                return wait
        if self.tokens and token is None:
            raise fail("OCO664", "the request has no token, or a wrong one")
        if not self.tokens:
            host = headers.get(b"host", b"").decode("latin-1")
            if host.rsplit(":", 1)[0] not in LOOPBACK and host not in LOOPBACK:  # another site's name that leads here
                hint = "call it at 127.0.0.1"
                raise fail("OCO664", "a service without tokens answers this machine alone", hint=hint)
            if b"origin" in headers:  # a browser sends it with what a page of some site asks for
                hint = "call it from a program, or serve with --token-file"
                raise fail("OCO664", "a service without tokens answers no web pages", hint=hint)
        return 0.0

    def _token(self, authorization: bytes) -> bytes | None:
        """Token of a header that is one of ours; the time does not say how much of it is right, or of which."""
        kind, _, given = authorization.partition(b" ")
        given = given.strip()
        known = sum(hmac.compare_digest(given, token) for token in self.tokens) > 0
        return given if known and kind.lower() == b"bearer" else None


def whole_seconds(wait: float) -> int:
    """Whole seconds of a time to wait, for `Retry-After`: at least one."""
    return max(1, math.ceil(wait))
