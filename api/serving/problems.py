"""Errors as problem details for HTTP (RFC 9457), with our codes and the way out."""

from __future__ import annotations

from typing import Any

from oco.dsl.codes import CODES
from oco.dsl.diagnostics import OcoError

STATUS = {
    "OCO661": 404,
    "OCO662": 400,
    "OCO663": 413,
    "OCO664": 401,
    "OCO665": 503,
    "OCO666": 429,
    "OCO735": 404,
    "OCO847": 409,
    "OCO850": 500,
    "OCO851": 500,
    "OCO853": 503,
    "OCO854": 500,
    "OCO855": 503,
    "OCO856": 409,
    "OCO858": 503,
    "OCO863": 409,
    "OCO869": 409,
}
"""HTTP status of a code; of all others 422: the call is understood, and its data are wrong."""
INTERNAL = {"type": "urn:oco:error:OCO999", "title": "a bug in oco", "status": 500, "code": "OCO999"}


def problem(error: OcoError) -> dict[str, Any]:
    """Problem details of an error: JSON values."""
    code = error.code
    status = STATUS.get(code, 422)
    title = CODES[code].title
    about = {"type": f"urn:oco:error:{code}", "title": title, "status": status, "detail": error.message}
    return about | {"code": code, "hint": error.hint}
