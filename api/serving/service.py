"""HTTP service of learners by key: requests become calls, answers leave once they are on the disk."""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

import oco
from oco.dsl.diagnostics import OcoError, fail
from oco.serving.calls import Action, Call, Reply, call_of, json_object
from oco.serving.commits import GroupCommits
from oco.serving.openapi import openapi
from oco.serving.problems import INTERNAL, problem

BYTES_OF_CALL = 64 << 10
"""Bytes of a body beside the numbers of its arrays."""
BYTES_OF_NUMBER = 64
"""Bytes of a number in a body, with spaces around it."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
OPEN = ("/healthz",)
"""Addresses that need no token."""


class Service:
    """Handlers of requests, over the calls of one store."""

    def __init__(self, commits: GroupCommits) -> None:
        self.commits, self.metrics = commits, commits.metrics
        learner = commits.store.states.fresh("")
        self.schema = learner.schema()
        entries = sum(_entries(s) for part in ("decide", "observe") for s in self.schema[part]["properties"].values())
        self.most_bytes = BYTES_OF_CALL + BYTES_OF_NUMBER * entries

    async def call(self, request: Request, action: Action) -> Response:
        """Answer a request about the learner of a key."""
        began = time.perf_counter()
        key = request.path_params["key"]
        if action.records:
            body = await self._body(request)
            call = call_of(key, action, json_object(body) if body else {})
        else:
            call = Call(key, action)
        answer = await self._answer(call)
        self.metrics.seconds[action].add(time.perf_counter() - began)
        return Response(answer.text, media_type="application/json")

    async def _answer(self, call: Call) -> Reply:
        return await asyncio.wrap_future(self.commits.submit(call))

    async def _body(self, request: Request) -> bytes:
        """Body of a request, no longer than one may be. Raises OCO662, OCO663."""
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > self.most_bytes:
                message = f"the body of a call has {self.most_bytes:,} bytes at most"
                raise fail("OCO663", message, hint="send the data of one round, as the schema at /openapi.json says")
            parts.append(part)
        if size and request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            raise fail("OCO662", "a call is of the type application/json", hint="send the header Content-Type")
        return b"".join(parts)

    async def show_metrics(self, request: Request) -> Response:
        """Metrics for Prometheus."""
        store = self.commits.store
        regrets: dict[str, float] = {}
        for key in tuple(store.first_keys) if store.states.plan.certify else ():
            regret = json.loads((await self._answer(Call(key, Action.CERTIFICATE))).text)["regret"]
            regrets |= {} if regret is None else {key: regret}
        return Response(self.metrics.text(store.size, regrets), media_type="text/plain; version=0.0.4")

    async def show_health(self, request: Request) -> Response:
        """Sign of life: 503 once calls are not answered any more."""
        up = self.commits.alive
        about = {"status": "ok" if up else "down", "model": self.schema["model"], "version": oco.__version__}
        return _json(about, 200 if up else 503)

    async def show_openapi(self, request: Request, secured: bool) -> Response:
        """OpenAPI document of this service."""
        return _json(openapi(self.schema, oco.__version__, secured))


class Guard:
    """ASGI application before another: lets in requests with a token; without tokens, those that name this machine as their host."""

    def __init__(self, app: ASGIApp, tokens: Sequence[str]) -> None:
        self.app, self.tokens = app, [token.encode() for token in tokens]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (reason := self._objection(scope)) is not None:
            await _problem(None, reason)(scope, receive, send)
            return
        await self.app(scope, receive, send)

    def _objection(self, scope: Scope) -> OcoError | None:
        headers = dict(scope["headers"])
        if not self.tokens:
            host = headers.get(b"host", b"").decode("latin-1")
            if host.rsplit(":", 1)[0] not in LOOPBACK and host not in LOOPBACK:  # another site's name that leads here
                return fail(
                    "OCO664", "a service without tokens answers this machine alone", hint="call it at 127.0.0.1"
                )
            return None
        if scope["path"] in OPEN:
            return None
        kind, _, given = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() == b"bearer" and self._knows(given.strip()):
            return None
        return fail("OCO664", "the request has no token, or a wrong one")

    def _knows(self, given: bytes) -> bool:
        """True for a token; the time does not say how much of it is right, or of which."""
        return sum(hmac.compare_digest(given, token) for token in self.tokens) > 0


def application(commits: GroupCommits, tokens: Sequence[str] = ()) -> Starlette:
    """ASGI application of the learners of a store, which it closes when it shuts down."""
    service = Service(commits)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(commits.close)

    routes = [
        Route("/metrics", service.show_metrics),
        Route("/healthz", service.show_health),
        Route("/openapi.json", partial(service.show_openapi, secured=bool(tokens))),
    ]
    for action in Action:
        handler: Callable[..., Any] = partial(service.call, action=action)
        methods = ["POST"] if action.records else ["GET"]
        routes.append(Route(f"/learners/{{key}}/{action}", handler, methods=methods))
    handlers: dict[Any, Any] = {OcoError: _problem, HTTPException: _refusal, ClientDisconnect: _gone, Exception: _bug}
    app = Starlette(routes=routes, lifespan=life, exception_handlers=handlers)
    app.add_middleware(Guard, tokens=tokens)
    return app


def _entries(schema: dict[str, Any]) -> int:
    """Number of entries of an array that a schema describes."""
    return int(schema["minItems"]) * _entries(schema["items"]) if schema["type"] == "array" else 1


def _json(value: Any, status: int = 200, kind: str = "application/json") -> Response:
    return Response(json.dumps(value), status, media_type=kind)


def _problem(request: Request | None, error: Any) -> Response:
    about = problem(error)
    response = _json(about, about["status"], "application/problem+json")
    if about["status"] == 503:
        response.headers["Retry-After"] = "1"
    if about["status"] == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _refusal(request: Request, error: Any) -> Response:
    """Reply to a request of no address or of a wrong method."""
    about = {"type": "about:blank", "title": error.detail, "status": error.status_code}
    response = _json(about, error.status_code, "application/problem+json")
    response.headers.update(error.headers or {})
    return response


def _gone(request: Request, error: Any) -> Response:
    """Reply that nobody reads."""
    return Response(status_code=400)


def _bug(request: Request, error: Any) -> Response:
    return _json(INTERNAL, 500, "application/problem+json")
