"""Each rule of proofs: a step by it is accepted by the audit, and refused once it says more."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from thorough import thorough

from oco.compiler.prover.audit.verify import RULES, AuditOutcome, verify
from oco.compiler.prover.check import check
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.search_budget import SearchBudget
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.build import call
from oco.dsl.expressions import constant
from oco.dsl.load import load, parse

HEAD = "model m\nhorizon T = 100\n"
EXAMPLES = Path(__file__).parent.parent / "examples"
R = ProofRule
QUADRATIC = """param P[3, 3] = [[2, 1, 0], [1, 3, 0.5], [0, 0.5, 1]]
decision x[3] in ball(1.5)
stream c[3] in [-1, 2]
minimize quad_form(x, P) + c @ x
"""
LINEAR = "decision x[4] in simplex\nstream c[4] in [-3, 1]\nstream q in [0, 2]\nminimize c @ x - q * x[0] + q\n"
SIMPLEX = "decision x[3] in simplex\nminimize -sum(sqrt(x + 0.1))\n"
BOX = """decision x[2] in box(-1, 1)
stream s in [0, 1]
minimize exp(x[0] - x[1]) + sum_squares(x) + s * x[0]
subject to
    a: sum(x) <= 0.5 each round
    b: [x[0], s + x[1]] ** 2 <= [4, 5] each round
"""
KINKS = "decision x[2] in box(0, 1)\nstream a[2] in [0, 2]\nminimize log_sum_exp(a * x) + max(x) - a @ x\n"
BALL = "decision x[3] in ball(1)\nstream a[3] in [0, 1]\nminimize log_sum_exp(x) - 0.1 * sum(a)\n"
LONG = (
    "decision x[4] in ball(2)\nstream a[4] in [-1, 1]\nminimize exp(x[0] * a[1] + x[2]) + square(x[0] - x[1] * a[3])\n"
)
TEXTS = {
    R.BALL: QUADRATIC,
    R.NORM: QUADRATIC,
    R.CONSTANT: BOX,
    R.EVERY_ENTRY: BOX,
    R.STRUCTURE: BOX,
    R.VERTICES: LINEAR,
    R.AT_A_POINT: BOX,
    R.SLATER_POINT: BOX,
    R.COMMON_POINT: BOX,
    R.SUPPORT: LINEAR,
    R.TANGENT: BALL,
    R.BRANCH_AND_BOUND: KINKS,
    R.PIECES: KINKS,
    R.ENTRY_BY_ENTRY: SIMPLEX,
    R.CHANGE_OF_GRADIENT: SIMPLEX,
    R.NO_CONSTRAINTS: SIMPLEX,
    R.EXP_CONCAVITY: "decision x in box(0.05, 3)\nminimize -log(x)\n",
    R.NOT_SEARCHED: LONG,
    R.REWRITE: "decision x[2] in box(0.5, 2)\nminimize sum(x * log(x) * x)\n",
    R.SECOND_DERIVATIVE_OF_ENTRIES: "decision x[2] in box(0.5, 2)\nminimize sum(x * log(x) * x)\n",
    R.SECOND_DERIVATIVE: "decision x[2] in box(0.5, 2)\nminimize x[0] * x[1] + square(x[0]) + square(x[1])\n",
    R.SECOND_DERIVATIVE_BY_TERMS: "decision x[2] in box(-1, 1)\nminimize sum_squares(x)\n",
    R.SECOND_DERIVATIVE_WRITTEN_OUT: "decision x[2] in box(0.5, 2)\nminimize x[0] * x[1] + sum_squares(x)\n",
    R.PRODUCT_DOMAIN: "decision x[2] in box(0, 1)\ndecision y[2] in ball(1)\nminimize sum(x) + sum(y)\n",
    R.INTERIOR_POINT: "datacenter",
    R.DEPENDENT_ROW: "datacenter",
    R.MIXTURE: "decision x[2] in box(-1, 1)\nminimize sum(x)\nsubject to\n    e: 0.1 * x[0] + 0.7 * x[1] == 0.3 each round\n",
    R.MIXTURE_OF_EACH_ROUND: """decision x[2] in box(-1, 1)
stream s in [0, 1]
minimize sum(x)
subject to
    e: x[0] + 2 * x[1] == s each round
""",
    R.CORNER_POLICY: """decision x in box(0, 2)
stream d in [0, 2]
minimize -x
subject to
    a: abs(x - d) <= 0.25 each round
""",
    R.TANGENT_BOUND: "decision x[2] in box(-1, 1)\nminimize sum(x)\nsubject to\n    a: sum(exp(x)) <= 0.5 each round\n",
}
"""Models with a step by each rule; `BOX` has the others."""


@cache
def facts_of(text: str, effort: float) -> Facts:
    model = load(EXAMPLES / f"{text}.oco") if text == "datacenter" else parse(HEAD + text)
    return check(model, budget=SearchBudget(effort))


def below(facts: Iterable[Fact]) -> list[Step]:
    """Every step of the derivations of some facts, once."""
    found: dict[int, Step] = {}
    stack = [f.why for f in facts if f.why is not None]
    while stack:
        step = stack.pop()
        if id(step) not in found:
            found[id(step)] = step
            stack.extend(step.premises)
    return list(found.values())


def steps_by(rule: ProofRule) -> tuple[Facts, list[Step]]:
    """The steps by a rule in one model; those of proved facts, where there are any."""
    facts = facts_of(TEXTS.get(rule, BOX), 1e-4 if rule is R.NOT_SEARCHED else 1.0)
    proved, every = below(f for f in facts.values() if f.status is Status.PROVED), below(facts.values())
    return facts, [s for s in proved if s.rule is rule] or [s for s in every if s.rule is rule]


def less(step: Step) -> Step:
    """A number that is smaller by more than bounds are loose; a pair of numbers, both nearer to the least."""
    if isinstance(step.value, tuple):
        low, high = step.value
        return replace(step, value=(low, low + 0.1 * (high - low)) if high > low else (0.5 * low, 0.5 * high))
    return replace(step, value=step.value - 0.5 * abs(step.value) - 0.1)


def more(step: Step) -> Step:
    return replace(step, value=step.value + 0.5 * abs(step.value) + 0.1)


def narrower(step: Step) -> Step:
    own = step.value
    return replace(step, value=replace(own, hi=own.hi - 0.5 * (own.hi - own.lo) - 1e-3))


def size(step: Step) -> Step:
    return replace(step, value=step.value * (1.5 if step.subject[0] == "domain.inner_radius" else 0.6))


def raised(expr: Any) -> Any:
    return call("add", expr, constant(np.asarray(1.0)))


def with_subject(change: Callable[[Any], Any]) -> Callable[[Step], Step]:
    return lambda step: replace(step, subject=change(step.subject))


def with_value(value: Any) -> Callable[[Step], Step]:
    return lambda step: replace(step, value=value)


def otherwise(step: Step) -> Step:
    return replace(step, value={"convex": "concave", "concave": "convex", "affine": "constant"}[step.value])


def from_nothing(step: Step) -> Step:
    return replace(step, premises=())


FALSE: dict[ProofRule, Callable[[Step], Step]] = {
    **dict.fromkeys((R.INTERVAL, R.DECLARED_RANGE, R.CONSTANT, R.SUPPORT, R.NORM), narrower),
    **dict.fromkeys((R.VERTICES, R.ENTRY_BY_ENTRY, R.BALL, R.TANGENT, R.BRANCH_AND_BOUND), less),
    **dict.fromkeys((R.LARGEST, R.SQUARE_ROOT, R.SMOOTHNESS, R.AT_A_POINT, R.CHANGE_OF_GRADIENT), less),
    **dict.fromkeys((R.SECOND_DERIVATIVE_BY_TERMS, R.SECOND_DERIVATIVE_WRITTEN_OUT), less),
    **dict.fromkeys((R.NEGATIVE, R.STRONG_CONVEXITY, R.SLATER_POINT, R.INTERIOR_POINT, R.EVERY_ENTRY), more),
    **dict.fromkeys((R.DOMAIN, R.PRODUCT_DOMAIN), size),
    **dict.fromkeys((R.COMPOSITION, R.SECOND_DERIVATIVE, R.SECOND_DERIVATIVE_OF_ENTRIES), otherwise),
    **dict.fromkeys((R.MIXTURE, R.MIXTURE_OF_EACH_ROUND), with_subject(lambda s: ((s[0][0], s[0][0]), *s[1:]))),
    R.COMMON_POINT: from_nothing,
    R.EXP_CONCAVITY: lambda step: replace(step, value=4 * step.value),
    R.NOT_SEARCHED: lambda step: replace(step, value=step.value - 0.98 * abs(step.value) - 1),
    R.REWRITE: with_subject(lambda pair: (pair[0], raised(pair[1]))),
    R.GRADIENT: with_subject(lambda pair: (pair[0], {n: raised(g) for n, g in pair[1].items()})),
    R.PIECES: with_subject(lambda pair: (pair[0], [raised(p) for p in pair[1]])),
    R.STRUCTURE: with_value("linear"),
    R.VARIABLE: with_value("constant"),
    R.ORACLE: with_value("O(1)"),
    R.DEPENDENT_ROW: with_value("load[0]"),
    R.NO_CONSTRAINTS: with_value(False),
    R.CORNER_POLICY: with_subject(lambda corners: corners[:-1]),
    R.TANGENT_BOUND: with_subject(lambda s: (s[0], -s[1], *s[2:])),
}
"""A step that is false, from a true one."""


def outcomes(facts: Facts, step: Step) -> set[AuditOutcome]:
    """What the audit says of a step, its premises left out."""
    checks = verify(Facts(facts.model, {"some.fact": Fact("some.fact", None, Status.PROVED, step)}))
    return {c.outcome for c in checks if c.rule == step.rule and c.claim == step.claim}


def is_large(step: Step) -> bool:
    """True of a step that says something: no range of one number, no modulus of 0, no part of a decision alone."""
    value = step.value
    if hasattr(value, "lo"):
        return bool(np.all(value.hi > value.lo)) or step.rule is R.CONSTANT
    if isinstance(value, tuple):
        return bool(value[1] > 1e-6)
    if step.rule is R.EVERY_ENTRY:
        return isinstance(value, float) and bool(step.premises)
    if step.rule is R.STRUCTURE:
        return bool(value.startswith("general"))
    return not isinstance(value, float) or abs(value) > 1e-6 or step.rule is R.STRONG_CONVEXITY


def test_every_rule_has_a_step_that_is_false() -> None:
    assert FALSE.keys() == RULES.keys()


@pytest.mark.parametrize("count", [1, thorough(3)])
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_step_is_accepted_and_refused_once_it_says_more(rule: ProofRule, count: int) -> None:
    facts, steps = steps_by(rule)
    steps = [s for s in steps if is_large(s)]
    assert steps, "no model has such a step"
    for step in steps[:count]:
        assert AuditOutcome.FAILED not in outcomes(facts, step), step.claim
        assert AuditOutcome.FAILED in outcomes(facts, FALSE[rule](step)), step.claim
