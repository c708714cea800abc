"""HTTP service of learners by key: requests become calls, answers leave once they are on the disk."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import oco
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.telemetry import flush, span
from oco.serving.admission import Admission, whole_seconds
from oco.serving.calls import Action, Call, call_of, json_object
from oco.serving.commits import GroupCommits
from oco.serving.openapi import openapi
from oco.serving.problems import INTERNAL
from oco.serving.responses import PROBLEM, HttpResponse, Message, Receive, Scope, Send, no_address, refusal

BYTES_OF_CALL = 64 << 10
"""Bytes of a body beside the numbers of its arrays."""
BYTES_OF_NUMBER = 64
"""Bytes of a number in a body, with spaces around it."""
LEARNERS = re.compile(rf"/learners/([^/]+)/({'|'.join(Action)})")


class Service:
    """ASGI application of the learners of one store, which it closes when it shuts down.

    Written to the interface itself: layers of a framework between the server and a call took a third of its time.
    """

    def __init__(self, commits: GroupCommits, admission: Admission | None = None) -> None:
        self.commits, self.metrics = commits, commits.metrics
        self.admission = admission or Admission()
        learner = commits.store.states.fresh("")
        self.schema = learner.schema()
        entries = sum(_entries(s) for part in ("decide", "observe") for s in self.schema[part]["properties"].values())
        self.most_bytes = BYTES_OF_CALL + BYTES_OF_NUMBER * entries
        self.pages: dict[str, Callable[[], Awaitable[HttpResponse]]] = {
            "/metrics": self.show_metrics,
            "/healthz": self.show_health,
            "/openapi.json": self.show_openapi,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            try:
                answer = await self._answer(scope, receive)
            except OcoError as error:
                self.metrics.refused(error)
                answer = refusal(error)
            except ConnectionResetError:
                return
            except Exception:  # a bug: the server writes it to its log
                await HttpResponse(json.dumps(INTERNAL), 500, PROBLEM).send(send)
                raise
            await answer.send(send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Take part in the life of the server: what waits at its end is answered, and its spans are sent."""
        while (event := (await receive())["type"]) != "lifespan.shutdown":
            await send({"type": f"{event}.complete"})
        await self.commits.close()
        flush()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive) -> HttpResponse:
        """Response to a request. Raises any error of the input as an OcoError."""
        began = time.perf_counter()
        if wait := self.admission.check(scope):
            error = fail("OCO666", f"this client may send again in {wait:.3g} s")
            self.metrics.refused(error)
            return refusal(error, ("retry-after", str(whole_seconds(wait))))
        path, method = scope["path"], scope["method"]
        if (address := LEARNERS.fullmatch(path)) is not None:
            action = Action(address[2])
            allowed = ("POST",) if action.records else ("GET", "HEAD")
            if method in allowed:
                answer = await self.call(address[1], action, scope, receive)
                self.metrics.seconds[action].add(time.perf_counter() - began)
                return answer
        elif (page := self.pages.get(path)) is not None:
            allowed = ("GET", "HEAD")
            if method in allowed:
                return await page()
        else:
            return no_address(404, "Not Found")
        return no_address(405, "Method Not Allowed", ("allow", ", ".join(allowed)))

    async def call(self, key: str, action: Action, scope: Scope, receive: Receive) -> HttpResponse:
        """Response to a request about the learner of a key."""
        body = await self._body(scope, receive) if action.records else b""
        call = call_of(key, action, json_object(body) if body else {})
        about: dict[str, str | int] = {"oco.key": key}
        about |= {} if call.round is None else {"oco.round": call.round}
        with span(f"oco.{action}", about, scope["headers"]):
            reply = await self.commits.submit(call)
        return HttpResponse(reply.text)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Body of a request, no longer than one may be. Raises OCO662, OCO663, ConnectionResetError."""
        parts, size, more = [], 0, True
        while more:
            message: Message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError
            part: bytes = message.get("body", b"")
            size, more = size + len(part), message.get("more_body", False)
            if size > self.most_bytes:
                text = f"the body of a call has {self.most_bytes:,} bytes at most"
                raise fail("OCO663", text, hint="send the data of one round, as the schema at /openapi.json says")
            parts.append(part)
        if size:
            kind = next((value for name, value in scope["headers"] if name == b"content-type"), b"")
            if kind.split(b";")[0].strip().lower() != b"application/json":
                hint = "send the header Content-Type"
                raise fail("OCO662", "a call is of the type application/json", hint=hint)
        return b"".join(parts)

    async def show_metrics(self) -> HttpResponse:
        """Metrics for Prometheus."""
        store = self.commits.store
        regrets: dict[str, float] = {}
        for key in tuple(store.first_keys) if store.states.plan.certify else ():
            regret = json.loads((await self.commits.submit(Call(key, Action.CERTIFICATE))).text)["regret"]
            regrets |= {} if regret is None else {key: regret}
        return HttpResponse(self.metrics.text(store.size, regrets), kind="text/plain; version=0.0.4")

    async def show_health(self) -> HttpResponse:
        """Sign of life: 503 once calls are not answered any more."""
        up = self.commits.alive
        about = {"status": "ok" if up else "down", "model": self.schema["model"], "version": oco.__version__}
        return HttpResponse(json.dumps(about), 200 if up else 503)

    async def show_openapi(self) -> HttpResponse:
        """OpenAPI document of this service."""
        limited = self.admission.limit is not None
        return HttpResponse(json.dumps(openapi(self.schema, oco.__version__, bool(self.admission.tokens), limited)))


def _entries(schema: dict[str, Any]) -> int:
    """Number of entries of an array that a schema describes."""
    return int(schema["minItems"]) * _entries(schema["items"]) if schema["type"] == "array" else 1
