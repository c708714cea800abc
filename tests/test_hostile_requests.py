"""Requests made from the service's own OpenAPI document, right ones and broken ones: no bug, no answer beside the document, no trace."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from serving_cases import CONTEXT, DELAYED, commits_of, store_of
from survival import TRACKING

from oco.serving.responses import Message
from oco.serving.service import Service

MODELS = {"tracking": TRACKING, "context": CONTEXT, "delayed": DELAYED}
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(["a", "b", "a%20b", "%00", "..", "..%2f..", "ä", "x" * 300, "%ff", "a?b", ""]) | st.text(
    max_size=6
)
TYPES = st.sampled_from([b"application/json", b"application/json; charset=utf-8", b"text/plain", b"\xff", b""])


def right(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that a schema allows."""
    match schema["type"]:
        case "array":
            return st.lists(right(schema["items"]), min_size=schema["minItems"], max_size=schema["maxItems"])
        case "object":
            return st.fixed_dictionaries({name: right(s) for name, s in schema["properties"].items()})
        case "integer":
            return st.integers(schema.get("minimum", 0), 2)
        case _:
            return st.floats(schema["minimum"], schema["maximum"])


@st.composite
def broken(draw: Any, schema: dict[str, Any]) -> bytes:
    """Bytes near a value that a schema allows: a part exchanged, a name left out or added, the text cut."""
    value = draw(right(schema))
    names = sorted(value)
    match draw(
        st.sampled_from(["part", "missing", "more", "cut", "junk", "none"] if names else ["junk", "more", "none"])
    ):
        case "part":
            value[draw(st.sampled_from(names))] = draw(JUNK)
        case "missing":
            del value[draw(st.sampled_from(names))]
        case "more":
            value[draw(st.text(max_size=8))] = draw(JUNK)
        case "cut":
            text = json.dumps(value).encode()
            return text[: draw(st.integers(1, len(text)))] + draw(st.binary(max_size=3))
        case "junk":
            value = draw(JUNK)
        case _:
            return b""
    return json.dumps(value).encode("utf-8", "surrogatepass")


async def asked(service: Service, method: str, path: str, kind: bytes, body: bytes) -> tuple[int, bytes, Any]:
    """Status, content type and value of the answer to a request that comes in two parts."""
    parts = [body[: len(body) // 2], body[len(body) // 2 :]]
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [(b"host", b"localhost:8000"), (b"content-type", kind)]
    scope = {"type": "http", "method": method, "path": path, "headers": headers, "client": ("127.0.0.1", 1)}
    await service(scope, receive, send)
    begin, end = sent
    assert int(dict(begin["headers"])[b"content-length"]) == len(end["body"])
    return begin["status"], dict(begin["headers"])[b"content-type"], json.loads(end["body"])


@pytest.mark.parametrize("name", MODELS)
def test_requests_of_any_kind_are_answered_as_the_document_says(name: str, tmp_path: Any) -> None:
    commits = commits_of(store_of(MODELS[name], tmp_path / "s.db"))
    service = Service(commits)
    with asyncio.Runner() as runner:

        def ask(method: str, path: str, kind: bytes = b"application/json", body: bytes = b"") -> tuple[int, bytes, Any]:
            return runner.run(asked(service, method, path, kind, body))

        document = ask("GET", "/openapi.json")[2]
        operations = {
            (method.upper(), path): operation
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        }
        decide = json.dumps({"round": 1, **({"load": 0.5} if name == "context" else {})}).encode()
        assert ask("POST", "/learners/kept/decide", body=decide)[0] == 200
        unknown = ask("POST", "/learners/new/decide", body=b'{"round": 1, "self": 1}')
        assert unknown[0] == 422 and unknown[2]["code"] == "OCO840"
        kept = ask("GET", "/learners/kept/state")
        answered: set[int] = set()

        @given(st.data())
        def requests(data: Any) -> None:
            method, path = data.draw(st.sampled_from(sorted(operations)))
            operation = operations[method, path]
            schema = (
                _schema(operation["requestBody"])
                if "requestBody" in operation
                else {"type": "object", "properties": {}}
            )
            tried, key, kind = method, data.draw(st.sampled_from("abc")), b"application/json"
            body = data.draw(right(schema).map(lambda value: json.dumps(value).encode()))
            match data.draw(st.sampled_from(["right", "right", "method", "key", "type", "body", "body"])):
                case "method":
                    tried = data.draw(st.sampled_from(["GET", "POST", "PUT", "DELETE", "OPTIONS", "BREW"]))
                case "key":
                    key = data.draw(KEYS)
                case "type":
                    kind = data.draw(TYPES)
                case "body":
                    body = data.draw(broken(schema))
            status, given, value = ask(tried, unquote(path.replace("{key}", key)), kind, body)
            answered.add(status)
            if status == 200:
                Draft202012Validator(_schema(operation["responses"]["200"])).validate(value)
            else:
                problem = operation["responses"]["default"]["content"]
                assert 400 <= status < 500 and given == b"application/problem+json" and value["status"] == status
                Draft202012Validator(problem[given.decode()]["schema"]).validate(value)

        requests()
        assert answered >= {200, 400, 404, 422} and ask("GET", "/learners/kept/state") == kept
        runner.run(commits.close())


def _schema(part: dict[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = part["content"]["application/json"]["schema"]
    return schema
