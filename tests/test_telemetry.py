"""Spans of OpenTelemetry: none where the program has not loaded it, and those of compile, run and calls of a service where it has."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
from opentelemetry import trace
from serving_cases import commits_of, round_of, store_of
from starlette.testclient import TestClient
from survival import TRACKING, plan_of

import oco
from oco.serving.service import Service


class Tracer(trace.Tracer):
    """Tracer of the interface alone, which keeps the spans that were begun, and how each ended."""

    def __init__(self):
        self.spans = []

    def start_span(self, name, context=None, kind=trace.SpanKind.INTERNAL, attributes=None, *rest, **options):
        raise NotImplementedError

    @contextmanager
    def start_as_current_span(self, name, context=None, kind=trace.SpanKind.INTERNAL, attributes=None, **options):
        parent = trace.get_current_span(context).get_span_context()
        one = SimpleNamespace(name=name, parent=parent, kind=kind, attributes=attributes, failed=None)
        self.spans.append(one)
        try:
            yield one
        except BaseException:
            one.failed = True
            raise
        one.failed = False


@pytest.fixture
def spans(monkeypatch):
    tracer = Tracer()
    monkeypatch.setattr(trace, "get_tracer", lambda name, *rest, **options: tracer)
    return tracer.spans


def test_compile_and_run_are_spans(spans):
    plan = oco.compile(oco.parse(TRACKING))
    plan.run({"goal": np.zeros((3, 4)), "limit": np.ones(3)})
    about = {"oco.model": "tracked"}
    assert [(s.name, s.attributes, s.failed) for s in spans] == [
        ("oco.compile", about, False),
        ("oco.run", {**about, "oco.algorithm": "coldq"}, False),
    ]


def test_calls_of_a_service_are_spans_of_the_trace_that_a_client_names(spans, tmp_path, monkeypatch):
    plan, sent = plan_of(TRACKING), []
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: SimpleNamespace(force_flush=sent.append))
    headers = {"traceparent": f"00-{7:032x}-{9:016x}-01"}
    spans.clear()
    with TestClient(Service(commits_of(store_of(TRACKING, tmp_path / "s.db"))), base_url="http://127.0.0.1") as client:
        client.post("/learners/a/decide", headers=headers)
        client.post("/learners/a/observe", json=round_of(plan, 1))
        assert client.post("/learners/a/observe", json=round_of(plan, 9), headers=headers).status_code == 409
        assert not sent
    assert len(sent) == 1  # when it shuts down
    own = trace.SpanKind.SERVER
    assert [(s.name, s.kind, s.attributes, s.failed) for s in spans] == [
        ("oco.decide", own, {"oco.key": "a"}, False),
        ("oco.observe", own, {"oco.key": "a", "oco.round": 1}, False),
        ("oco.observe", own, {"oco.key": "a", "oco.round": 9}, True),
    ]
    assert [(s.parent.trace_id, s.parent.span_id) for s in spans] == [(7, 9), (0, 0), (7, 9)]


def test_programs_without_spans_do_not_load_the_package():
    text = "import sys, oco; oco.compile(oco.parse(sys.argv[1])); print('opentelemetry' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", text, TRACKING], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
