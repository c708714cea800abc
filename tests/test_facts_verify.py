"""The replay accepts the prover's derivations, and finds a step that was tampered with."""

from __future__ import annotations

import ast
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from facts_models import GENERATED

from oco.compiler.facts.check import check
from oco.compiler.facts.types import Fact, Facts, Status, Step
from oco.compiler.facts.verify import Outcome, verify
from oco.dsl.load import load, parse

REPLAY = ("verify", "attack", "replay_calculus", "replay_claims", "replay_points", "replay_ranges")
ROOT = Path(__file__).parent.parent
SMALL = ("tracking", "online_qp", "job_scheduling", "datacenter", "portfolio", "blind_pricing")


@lru_cache
def facts_of(name: str) -> Facts:
    return check(load(ROOT / "examples" / f"{name}.oco"))


@pytest.mark.parametrize("name", SMALL)
def test_examples_replay(name: str) -> None:
    found = verify(facts_of(name))
    assert [c for c in found if c.outcome is Outcome.FAILED] == []
    outcomes = [c.outcome for c in found]
    assert outcomes.count(Outcome.REPLAYED) > 10 and outcomes.count(Outcome.TESTED) > 10
    assert outcomes.count(Outcome.STATED) < 0.15 * len(outcomes)


@pytest.mark.parametrize("text", GENERATED, ids=range(len(GENERATED)))
def test_generated_models_replay(text: str) -> None:
    assert [c for c in verify(check(parse(text))) if c.outcome is Outcome.FAILED] == []


def tampered(facts: Facts, key: str, change: Any) -> Facts:
    """The same ledger with the last step of one fact changed."""
    fact = facts[key]
    assert fact.why is not None
    return Facts(facts.model, {key: change(fact)})


def smaller(fact: Fact) -> Fact:
    assert fact.why is not None
    return replace(fact, value=fact.value * 0.9, why=replace(fact.why, value=fact.why.value * 0.9))


@pytest.mark.parametrize(
    ("name", "key"),
    (
        ("online_qp", "loss.bound"),
        ("online_qp", "loss.upper"),
        ("online_qp", "loss.lipschitz.l2"),
        ("online_qp", "loss.lipschitz.l1"),
        ("online_qp", "loss.smoothness.l2"),
        ("tracking", "loss.lipschitz.l2"),
        ("portfolio", "loss.lipschitz.l2"),
        ("job_scheduling", "constraints.service.bound"),
        ("blind_pricing", "loss.lipschitz.l2"),
        ("datacenter", "constraints.pacing[0].bound"),
    ),
)
def test_a_number_that_is_too_small_is_found(name: str, key: str) -> None:
    found = verify(tampered(facts_of(name), key, smaller))
    assert any(c.outcome is Outcome.FAILED for c in found)


def test_a_strong_convexity_that_is_too_large_is_found() -> None:
    def larger(fact: Fact) -> Fact:
        assert fact.why is not None
        return replace(fact, value=2.5, why=replace(fact.why, value=2.5))

    found = verify(tampered(facts_of("online_qp"), "loss.strong_convexity.l2", larger))
    assert any(c.outcome is Outcome.FAILED for c in found)


def inner_step(step: Step, rule: str) -> Step:
    stack = [step]
    while stack:
        found = stack.pop()
        if found.rule == rule:
            return found
        stack.extend(found.premises)
    raise AssertionError(f"no step by {rule}")


@pytest.mark.parametrize("rule", ("interval", "declared range"))
def test_a_range_that_is_too_narrow_is_found(rule: str) -> None:
    def narrowed(fact: Fact) -> Fact:
        assert fact.why is not None
        step = inner_step(fact.why, rule)
        return replace(
            fact, why=replace(step, value=replace(step.value, lo=step.value.lo * 0.5, hi=step.value.hi * 0.5))
        )

    facts = facts_of("tracking")
    fact = narrowed(facts["loss.bound"])
    found = verify(Facts(facts.model, {"some.fact": replace(fact, key="some.fact")}))
    assert any(c.outcome is Outcome.FAILED for c in found)


def test_a_claim_of_convexity_that_is_false_is_found() -> None:
    facts = check(
        parse("model m\nhorizon T = 10\ndecision x in box(1, 4)\nstream c in [0, 1]\nminimize c * x - log(x)\n")
    )
    why = facts["loss.convex"].why
    assert why is not None
    false = Step("composition", "it is concave", "concave", (), None, why.subject)
    found = verify(Facts(facts.model, {"k": Fact("k", True, Status.PROVED, false)}))
    assert found and all(c.outcome is Outcome.FAILED for c in found)


def test_the_replay_shares_no_code_with_the_prover() -> None:
    allowed = {
        "oco.compiler.canonical",
        "oco.compiler.facts.types",
        *(f"oco.compiler.facts.{name}" for name in REPLAY),
    }
    for name in REPLAY:
        tree = ast.parse((ROOT / "compiler" / "facts" / f"{name}.py").read_text())
        imported = {n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module}
        ours = {m for m in imported if m.startswith("oco.compiler")}
        assert ours <= allowed, f"{name} imports {ours - allowed}"
        assert not any(m.startswith(("oco.dsl.intervals", "oco.dsl.atoms", "oco.dsl.enclose")) for m in imported)
