"""Description of a service by OpenAPI 3.1, of the schemas of its learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from oco.serving.calls import KEY, Action

ROUND = {"type": "integer", "minimum": 1}
TEXTS = {
    Action.DECIDE: "Decision of a round. Sent again it gives the recorded one.",
    Action.OBSERVE: "Take the data of a round that was decided. Sent again with the same data it changes nothing.",
    Action.SKIP: "Leave an open round out, whose data never come.",
    Action.CERTIFICATE: "Proved bound of the static regret so far, where the plan keeps it.",
    Action.STATE: "State of the learner for `oco.restore`, and its bytes for emitted C where it runs there.",
}


def openapi(schema: Mapping[str, Any], version: str, secured: bool, limited: bool) -> dict[str, Any]:
    """OpenAPI document of a service whose learners have this schema (`Learner.schema`)."""
    bodies = {
        Action.DECIDE: _with_round(schema["decide"], required=False),
        Action.OBSERVE: _with_round(schema["observe"], required=True),
        Action.SKIP: {"type": "object", "properties": {"round": ROUND}, "additionalProperties": False},
    }
    number, named = {"type": ["number", "null"]}, {"type": "string"}
    base64 = {"type": ["string", "null"], "contentEncoding": "base64"}
    texts = {"type": "array", "items": named}
    numbers = {"type": "object", "additionalProperties": number}
    results = {
        Action.DECIDE: {"key": named, "round": ROUND, "decision": schema["decision"]},
        Action.OBSERVE: {"key": named, "round": ROUND, "loss": number, "violation": numbers, "warnings": texts},
        Action.SKIP: {"key": named, "round": ROUND, "skipped": {"type": "boolean"}},
        Action.CERTIFICATE: {
            "key": named,
            "rounds": {"type": "integer"},
            **dict.fromkeys(("regret", "loss", "least"), number),
            **dict.fromkeys(("broken", "share_broken"), numbers),
            "statement": named,
            "guarantee": texts,
        },
        Action.STATE: {"key": named, "round": ROUND, "bytes": base64, "state": {"type": "object"}},
    }
    paths: dict[str, Any] = {}
    for action in Action:
        operation: dict[str, Any] = {
            "summary": TEXTS[action],
            "operationId": action.value,
            "parameters": [_KEY],
            "responses": {"200": _content(_whole(results[action])), "default": _PROBLEM},
        }
        if limited:
            operation["responses"]["429"] = _PROBLEM | {"headers": _RETRY}
        if action in bodies:
            operation["requestBody"] = {"required": action is Action.OBSERVE, **_content(bodies[action])}
        paths[f"/learners/{{key}}/{action}"] = {"post" if action.records else "get": operation}
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": f"Learners of {schema['model']}", "version": version},
        "paths": paths,
    }
    if secured:
        document["components"] = {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        document["security"] = [{"token": []}]
    return document


_KEY = {"name": "key", "in": "path", "required": True, "schema": {"type": "string", "pattern": f"^{KEY.pattern}$"}}
_PROBLEM = {
    "description": "Problem details (RFC 9457) with a code of oco",
    "content": {
        "application/problem+json": {
            "schema": {
                "type": "object",
                "properties": {
                    **{name: {"type": "string"} for name in ("type", "title", "detail", "code", "hint")},
                    "status": {"type": "integer"},
                },
                "required": ["type", "title", "status"],
                "additionalProperties": False,
            }
        }
    },
}
_RETRY = {"Retry-After": {"description": "Seconds until a request is let in", "schema": {"type": "integer"}}}


def _with_round(schema: Mapping[str, Any], required: bool) -> dict[str, Any]:
    names = [*schema["required"], *(["round"] if required else [])]
    return {**schema, "properties": {"round": ROUND, **schema["properties"]}, "required": names}


def _whole(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Schema of objects with these properties and no others."""
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _content(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": "", "content": {"application/json": {"schema": schema}}}
