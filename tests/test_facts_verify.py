"""The replay accepts the prover's derivations, and finds a step that was tampered with."""

from __future__ import annotations

import ast
from collections import Counter
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from facts_models import GENERATED
from thorough import corners, one_in

from oco.compiler.prover.audit.verify import NOT_AUDITED, RULES, AuditOutcome, verify
from oco.compiler.prover.check import check
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.intervals import Interval
from oco.dsl.load import load, parse

REPLAY = ("verify", "falsify", "replay_calculus", "replay_claims", "replay_points")
ROOT = Path(__file__).parent.parent
SMALL = ("tracking", "online_qp", "job_scheduling", "datacenter", "portfolio", "blind_pricing")


@lru_cache
def facts_of(name: str) -> Facts:
    return check(load(ROOT / "examples" / f"{name}.oco"))


@pytest.mark.parametrize("name", one_in(2, SMALL))
def test_examples_replay(name: str) -> None:
    found = verify(facts_of(name))
    assert [c for c in found if c.outcome is AuditOutcome.FAILED] == []
    outcomes = [c.outcome for c in found]
    assert outcomes.count(AuditOutcome.REPLAYED) > 10 and outcomes.count(AuditOutcome.TESTED) > 10
    assert outcomes.count(AuditOutcome.STATED) < 0.15 * len(outcomes)


@pytest.mark.parametrize("text", corners(GENERATED[::2], GENERATED[::12]), ids=range(0, len(GENERATED), 2))
def test_generated_models_replay(text: str) -> None:
    assert [c for c in verify(check(parse(text))) if c.outcome is AuditOutcome.FAILED] == []


def test_every_rule_is_audited_or_named():
    assert not RULES.keys() & NOT_AUDITED.keys()
    assert RULES.keys() | NOT_AUDITED.keys() == set(ProofRule)
    sources = [p.read_text() for p in (ROOT / "compiler").rglob("*.py") if p.parent.name != "audit"]
    assert all(any(f"ProofRule.{rule.name}" in text for text in sources) for rule in ProofRule)


@pytest.mark.parametrize("text", corners(GENERATED, GENERATED[::3]), ids=range(len(GENERATED)))
def test_facts_are_proved_by_rules_that_are_audited(text: str) -> None:
    assert {s.rule for s in all_steps(check(parse(text))).values()} <= RULES.keys()


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
    assert any(c.outcome is AuditOutcome.FAILED for c in found)


def test_a_strong_convexity_that_is_too_large_is_found() -> None:
    def larger(fact: Fact) -> Fact:
        assert fact.why is not None
        return replace(fact, value=2.5, why=replace(fact.why, value=2.5))

    found = verify(tampered(facts_of("online_qp"), "loss.strong_convexity.l2", larger))
    assert any(c.outcome is AuditOutcome.FAILED for c in found)


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
    assert any(c.outcome is AuditOutcome.FAILED for c in found)


def test_a_claim_of_convexity_that_is_false_is_found() -> None:
    facts = check(
        parse("model m\nhorizon T = 10\ndecision x in box(1, 4)\nstream c in [0, 1]\nminimize c * x - log(x)\n")
    )
    why = facts["loss.convex"].why
    assert why is not None
    false = Step(ProofRule.COMPOSITION, "it is concave", "concave", (), None, why.subject)
    found = verify(Facts(facts.model, {"k": Fact("k", True, Status.PROVED, false)}))
    assert found and all(c.outcome is AuditOutcome.FAILED for c in found)


def test_the_replay_shares_no_code_with_the_prover() -> None:
    allowed = {
        "oco.compiler.problem.canonical",
        "oco.compiler.prover.types",
        "oco.compiler.prover.fact",
        "oco.compiler.prover.facts",
        *(f"oco.compiler.prover.audit.{name}" for name in REPLAY),
    }
    for name in REPLAY:
        tree = ast.parse((ROOT / "compiler" / "prover" / "audit" / f"{name}.py").read_text())
        imports = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.module]
        ours = {n.module for n in imports if n.module.startswith("oco.compiler")}
        assert ours <= allowed, f"{name} imports {ours - allowed}"
        assert not any(n.module.startswith(("oco.dsl.intervals", "oco.dsl.enclose")) for n in imports)
        of_atoms = {a.name for n in imports if n.module.startswith("oco.dsl.atoms") for a in n.names}
        assert of_atoms <= {"ATOMS", "form_of", "forms"}, f"{name} imports {of_atoms}"
        columns = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and "ATOMS[" in ast.unparse(n.value)}
        assert columns <= {"replay"}, f"{name} reads the columns {columns} of atoms"
    second = ast.parse((ROOT / "dsl" / "atoms" / "replay.py").read_text())
    modules = {n.module for n in ast.walk(second) if isinstance(n, ast.ImportFrom)}
    assert modules == {"__future__", "collections.abc", "typing", "oco.dsl.expressions"}


def all_steps(facts: Facts) -> dict[int, Step]:
    found: dict[int, Step] = {}
    stack = [f.why for f in facts.values() if f.status is Status.PROVED and f.why is not None]
    while stack:
        step = stack.pop()
        if id(step) not in found:
            found[id(step)] = step
            stack.extend(step.premises)
    return found


def falsified(step: Step) -> Any:
    """A value that says more than the step may: a cut range, a lower top, a higher bottom, the other word; None where none is known."""
    value = step.value
    if isinstance(value, Interval) and np.all(np.isfinite(value.hi - value.lo)):
        if step.rule in ("norm", "interval") and step.subject.shape == () and step.subject.atom == "quad_form":
            return None  # its range is wider than what it reaches: a narrower one may be true
        return replace(value, hi=value.hi - 0.3 * (value.hi - value.lo) - 1e-3)
    if step.rule in ("largest", "square root", "smoothness") and value > 1e-9:
        return value * 0.7
    if step.rule in ("strong convexity", "negative", "slater point"):
        return value + 0.2 * abs(value) + 0.1
    if step.rule in ("composition", "second derivative"):
        return {"convex": "concave", "concave": "convex", "affine": "constant"}[value]
    return {"variable": "constant", "oracle": "O(1)"}.get(step.rule)


@pytest.mark.parametrize("name", ("online_qp", "portfolio", "job_scheduling"))
def test_each_step_that_is_falsified_is_refused(name: str) -> None:
    facts = facts_of(name)
    seen: Counter[str] = Counter()
    for step in all_steps(facts).values():
        value = falsified(step)
        if value is None or seen[step.rule] >= 4:
            continue
        seen[step.rule] += 1
        false = Fact("some.fact", None, Status.PROVED, replace(step, value=value))
        found = verify(Facts(facts.model, {"some.fact": false}))
        assert any(c.outcome is AuditOutcome.FAILED for c in found), f"{step.rule}: {step.claim} with {value}"
    assert len(seen) >= 9 and seen["interval"] == 4


@pytest.mark.parametrize(
    "rule",
    one_in(3, ("hearsay", "declared range", "variable", "domain", "largest", "slater point", "rewrite")),
)
def test_a_step_by_a_rule_that_is_not_its_own_is_refused(rule: str) -> None:
    facts = facts_of("portfolio")
    own: set[str] = {rule}
    for step in all_steps(facts).values():
        if step.rule not in own:
            own.add(step.rule)
            renamed = Fact("some.fact", None, Status.PROVED, replace(step, rule=rule))
            found = verify(Facts(facts.model, {"some.fact": renamed}))
            assert found[-1].outcome is AuditOutcome.FAILED, f"{step.rule} as {rule}: {step.claim}"


def test_a_fact_that_says_more_than_its_derivation_is_refused() -> None:
    facts = facts_of("online_qp")
    claimed = replace(facts["domain.diameter.l2"], value=0.5 * facts["domain.diameter.l2"].value)
    found = verify(Facts(facts.model, {"domain.diameter.l2": claimed}))
    assert [c.outcome for c in found][-1] is AuditOutcome.FAILED


def test_a_false_cost_of_a_penalized_step_is_found() -> None:
    """Said to be that of affine constraints, of one that is not."""
    text = "model m\nhorizon T = 10\ndecision x[2] in ball(1)\nminimize sum(x)\nsubject to\n    u: [x[0], sum(x)] ** 2 <= 1 each round\n"
    facts = check(parse(text))
    true = facts["domain.penalized_step"]
    assert all(
        c.outcome is not AuditOutcome.FAILED for c in verify(Facts(facts.model, {"domain.penalized_step": true}))
    )
    said = "a few Newton steps in 2 multipliers, each with a projection onto the domain and its derivative"
    false = Fact("k", said, Status.PROVED, Step(ProofRule.ORACLE, f"it costs {said}", said))
    assert any(c.outcome is AuditOutcome.FAILED for c in verify(Facts(facts.model, {"k": false})))


@pytest.mark.parametrize(
    "text",
    (
        "decision x in box(0, 2)\nstream d in [0, 2]\nminimize -x\nsubject to\n    a: abs(x - d) <= 0.25   each round\n",
        "decision x in box(0, 2)\ndecision y in box(0, 1)\nminimize -x\nsubject to\n    a: square(x) + exp(y) <= 3\n",
    ),
)
def test_single_numbers_and_several_decisions_replay(text: str) -> None:
    found = verify(check(parse("model m\nhorizon T = 100\n" + text)))
    assert [c for c in found if c.outcome is AuditOutcome.FAILED] == []
