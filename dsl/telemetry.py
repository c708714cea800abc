"""Spans of OpenTelemetry: nothing unless the program, or what started it, has loaded the package.

A program that wants spans has configured a provider, and has loaded `opentelemetry.trace` with it; to import it here for the others would
cost them a tenth of a second.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

FLUSH = 5_000
"""Milliseconds that spans have to leave at the end."""
_NO_SPAN: AbstractContextManager[Any] = nullcontext()


def span(
    name: str, attributes: Mapping[str, str | int], headers: Iterable[tuple[bytes, bytes]] | None = None
) -> AbstractContextManager[Any]:
    """Span around what is done within, which an exception marks as failed.

    headers  of the request that is answered within: the span is that of a server, and goes on with the trace that they name
    """
    if "opentelemetry.trace" not in sys.modules:
        return _NO_SPAN
    from opentelemetry import propagate, trace

    tracer = trace.get_tracer("oco")
    if headers is None:
        return tracer.start_as_current_span(name, attributes=dict(attributes))
    given = {key.decode("latin-1"): value.decode("latin-1") for key, value in headers}
    parent = propagate.extract(given)
    return tracer.start_as_current_span(name, parent, trace.SpanKind.SERVER, attributes=dict(attributes))


def flush() -> None:
    """Send what the provider still holds, before the process ends by a signal."""
    if "opentelemetry.trace" in sys.modules:
        from opentelemetry import trace

        send = getattr(trace.get_tracer_provider(), "force_flush", None)  # of the SDK, not of the interface
        if send is not None:
            send(FLUSH)
