"""Responses of the service to requests, and the messages of ASGI that carry them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from oco.dsl.diagnostics import OcoError
from oco.dsl.records import dataclass
from oco.serving.problems import problem

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

JSON, PROBLEM = "application/json", "application/problem+json"


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """Response to a request: its text, status, type, and headers beside those of its type and length."""

    text: str
    status: int = 200
    kind: str = JSON
    headers: tuple[tuple[str, str], ...] = ()

    async def send(self, send: Send) -> None:
        """Send it whole."""
        body = self.text.encode()
        headers = [(b"content-type", self.kind.encode()), (b"content-length", b"%d" % len(body))]
        headers += [(name.encode(), value.encode()) for name, value in self.headers]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def refusal(error: OcoError, *headers: tuple[str, str]) -> HttpResponse:
    """Response with the problem details of an error; 401 and 503 get the headers that they must have unless others are given."""
    about = problem(error)
    own = {401: (("www-authenticate", "Bearer"),), 503: (("retry-after", "1"),)}.get(about["status"], ())
    return HttpResponse(json.dumps(about), about["status"], PROBLEM, headers or own)


def no_address(status: int, title: str, *headers: tuple[str, str]) -> HttpResponse:
    """Response to a request of no address or of a wrong method."""
    return HttpResponse(json.dumps({"type": "about:blank", "title": title, "status": status}), status, PROBLEM, headers)
