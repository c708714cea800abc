"""Certificates as files: what a run's certificate says, with all numbers that prove it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from oco.dsl.diagnostics import fail
from oco.dsl.limits import MOST_TEXT_BYTES
from oco.dsl.text.printer import print_model
from oco.dsl.writing import write_text
from oco.evaluation.measured_run import MeasuredRun

VERSION = 1
NUMBERS = ("loss", "least", "rounding", "bound")


def certificate_data(run: MeasuredRun) -> dict[str, Any]:
    """Certificate of a run as JSON values; `digest` is over all others. Raises OCO735, OCO833."""
    result = run.certificate()
    content: dict[str, Any] = {
        "version": VERSION,
        "model": print_model(run.problem.model),
        "data": data_digest(run),
        "rounds": result.rounds,
        "loss": result.loss,
        "least": result.least,
        "rounding": result.rounding,
        "bound": result.bound,
        "impossible": result.impossible,
        "point": [float(v) for v in result.point],
        "multipliers": [[label, value] for label, value in result.multipliers.items()],
        "broken": dict(result.broken),
        "statement": result.statement,
        "derivation": list(result.derivation),
    }
    return content | {"digest": digest(content)}


def write_certificate(run: MeasuredRun, path: str | Path) -> None:
    """Write `certificate.json`, completely or not at all."""
    write_text(Path(path), json.dumps(certificate_data(run), indent=2, allow_nan=True) + "\n")


def read_certificate(path: str | Path) -> dict[str, Any]:
    """Certificate from a file, with every part checked for its kind. Raises OCO737."""
    try:
        if Path(path).stat().st_size > MOST_TEXT_BYTES:
            raise fail("OCO737", f"{path} is no certificate: it is too large")
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise fail("OCO737", f"{path} cannot be read as a certificate: {error}") from None
    return checked(content)


def checked(content: Any) -> dict[str, Any]:
    """Content of a certificate's file, if it has every part in the right kind and its own digest. Raises OCO737."""
    if not isinstance(content, Mapping) or content.get("version") != VERSION:
        raise fail("OCO737", "this is no certificate of a version that is known")
    parts = dict(content)
    texts = all(isinstance(parts.get(name), str) for name in ("model", "data", "digest"))
    numbers = all(_is_finite(parts.get(name)) for name in NUMBERS)
    rounds = type(parts.get("rounds")) is int and parts["rounds"] > 0 and parts.get("impossible") is False
    point, weights = parts.get("point"), parts.get("multipliers")
    lists = isinstance(point, list) and all(map(_is_finite, point)) and isinstance(weights, list)
    if not (texts and numbers and rounds and lists and all(map(_is_weight, weights or ()))):
        raise fail("OCO737", "the certificate is not whole: a part is missing, or is no finite number")
    if parts.pop("digest") != digest(parts):
        raise fail("OCO737", "the certificate was changed: its digest is that of another one")
    return dict(content)


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and bool(np.isfinite(value))


def _is_weight(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and _is_finite(value[1])


def digest(content: Mapping[str, Any]) -> str:
    """Hash of JSON values."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def data_digest(run: MeasuredRun) -> str:
    """Hash of the data and the decisions of a run."""
    result = hashlib.sha256()
    arrays = {**{f"stream {n}": run.data.array(n) for n in sorted(run.data.names)}, **run.record.decisions}
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        result.update(f"{name} {array.dtype.str} {array.shape}".encode())
        result.update(array.tobytes())
    return result.hexdigest()
