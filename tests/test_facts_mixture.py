"""Equalities of each round over every set: proved where their right side lies between the ends, replayed, and never proved beyond."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from domain_cases import BRIEF, CASES, SLOW, Case
from thorough import corners

from oco.compiler.domains import Domain
from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.prover.audit.verify import AuditOutcome, _Replay, verify
from oco.compiler.prover.check import check
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.feasibility.mixture import Mixture, mixture
from oco.compiler.prover.feasibility.scenario import robust
from oco.compiler.prover.types import Status
from oco.dsl.load import parse

HEAD = "model m\nhorizon T = 100\n"
SEVERAL = ("box", "ball", "simplex", "birkhoff", "spectrahedron", "ellipsoid", "group_ball", "budget")


def over(d: Domain, body: str, **params: np.ndarray) -> Canonical:
    """A model whose decision lies in the set; W and b are its params."""
    dims = f"[{', '.join(map(str, d.shape))}]" if d.shape else ""
    declared = "".join(f"param {n}{list(v.shape) if v.shape else ''}\n" for n, v in params.items())
    text = (
        f"{HEAD}{declared}stream s in [0, 1]\ndecision x{dims} in box(-1, 1)\nminimize sum(x)\nsubject to\n    {body}\n"
    )
    problem = canonical(parse(text, params=dict(params)))
    return replace(problem, blocks=tuple(replace(b, domain=d) for b in problem.blocks))


def proof(problem: Canonical) -> Mixture | None:
    return mixture(robust(ProofContext(problem)))


@cache
def slope_and_ends(case: Case) -> tuple[np.ndarray, float, float]:
    """A function of random slope over the set, with the least and the greatest value of it."""
    W = np.random.default_rng(1).normal(size=case.at(1.0).shape)
    return W, -case.at(1.0).support(-W), case.at(1.0).support(W)


WIDE = [c for c in CASES if np.ptp(slope_and_ends(c)[1:]) > 1e-3]


@pytest.mark.parametrize("case", corners(WIDE, [c for c in WIDE if c.name not in SLOW]), ids=lambda c: c.name)
def test_a_right_side_between_the_ends_is_proved_and_replays(case: Case) -> None:
    W, least, most = slope_and_ends(case)
    b = np.array(least + 0.02 * (most - least))
    problem = over(case.at(1.0), "e: sum(W * x) == b each round", W=W, b=b)
    found = proof(problem)
    assert found is not None and found.common
    replay = _Replay(problem, np.random.default_rng(0))
    assert [replay.step(s)[0] for s in (found.step, *found.step.premises)] == [AuditOutcome.TESTED] * 5


@pytest.mark.parametrize("case", BRIEF, ids=lambda c: c.name)
def test_a_right_side_beyond_the_ends_is_never_proved(case: Case) -> None:
    W, least, most = slope_and_ends(case)
    size = max(most - least, abs(most), abs(least))
    for b in (least - 0.5 * size, most + 1e-7 * size):
        assert proof(over(case.at(1.0), "e: sum(W * x) == b each round", W=W, b=np.array(b))) is None


@pytest.mark.parametrize("name", corners(SEVERAL, ("ball", "simplex")))
def test_two_equalities_and_an_inequality_over_a_set(name: str) -> None:
    d = next(c for c in CASES if c.name == name).at(1.0)
    rng = np.random.default_rng(2)
    flat = d.sample(rng, 4000).reshape(4000, -1)
    W = rng.normal(size=(2, d.size))
    middle = flat.mean(axis=0)
    sums = " + ".join(f"x[{', '.join(map(str, at))}]" for at in np.ndindex(*d.shape))
    shaped = W.reshape(2, *d.shape)
    body = f"e: sum(A * x) == b[0] each round\n    f: sum(B * x) == b[1] each round\n    g: {sums} + s <= c each round"
    room = np.array(1 + middle.sum() + 0.5 * np.std(flat.sum(axis=1)) + 0.01)
    inside = over(d, body, A=shaped[0], B=shaped[1], b=W @ middle, c=room)
    found = proof(inside)
    assert found is not None and found.common
    replay = _Replay(inside, np.random.default_rng(0))
    assert all(replay.step(s)[0] is AuditOutcome.TESTED for s in (found.step, *found.step.premises))
    # Beyond what the set reaches in one direction of the two values.
    u = np.array([0.6, -0.8])
    top = d.support((u @ W).reshape(d.shape))
    outside = W @ middle + u * (top - u @ (W @ middle)) * 1.05
    assert proof(over(d, body, A=shaped[0], B=shaped[1], b=outside, c=room)) is None
    # The inequality leaves no room.
    low = np.array(-d.support(-np.ones(d.shape)) - 0.1)
    assert proof(over(d, body, A=shaped[0], B=shaped[1], b=W @ middle, c=low)) is None


BIRKHOFF = HEAD + (
    "param W[3, 3] = [[1, 2, 3], [2, 0, 1], [0, 1, 1]]\nstream c[3, 3] in [-1, 1]\ndecision X[3, 3] in birkhoff(3)\n"
    "minimize sum(c * X)\nsubject to\n    g: sum(W * X) == {} each round\n"
)


def test_the_facts_of_an_equality_on_doubly_stochastic_matrices() -> None:
    facts = check(parse(BIRKHOFF.format(4)))
    assert all(facts[f"feasible.{k}"].status is Status.PROVED for k in ("common", "each_round", "mean"))
    margin = facts["slater.margin"]
    assert margin.status is Status.REFUTED and margin.why is not None and "`g` is an equality" in margin.why.claim
    assert [c for c in verify(facts) if c.outcome is AuditOutcome.FAILED] == []
    beyond = check(parse(BIRKHOFF.format(7)))
    assert all(beyond[f"feasible.{k}"].status is Status.REFUTED for k in ("common", "each_round", "mean"))


BALANCE = HEAD + "decision x[2] in box(0, 1)\nstream d {}\nminimize x[0]\nsubject to\n    e: sum(x) == d each round\n"


def test_a_balance_that_data_enters_is_met_by_another_decision_in_each_round() -> None:
    facts = check(parse(BALANCE.format("in [0, 2]")))
    common = facts["feasible.common"]
    assert common.status is Status.CONDITION and facts["feasible.each_round"].value is True
    assert common.why is not None and "no single decision satisfies e for every value" in common.why.claim
    assert "OCO605" not in [w.code for w in facts.warnings]
    assert [c for c in verify(facts) if c.outcome is AuditOutcome.FAILED] == []


def test_a_balance_that_some_data_breaks_is_not_proved() -> None:
    facts = check(parse(BALANCE.format("in [0, 2.001]")))
    assert facts["feasible.each_round"].status is not Status.PROVED


def test_a_balance_in_the_mean_alone() -> None:
    facts = check(parse(BALANCE.format("~ uniform(0, 2.5)")))
    assert facts["feasible.mean"].value is True and facts["feasible.each_round"].status is not Status.PROVED
    assert [c for c in verify(facts) if c.outcome is AuditOutcome.FAILED] == []


def test_a_mixture_that_does_not_hold_is_found_out() -> None:
    facts = check(parse(BIRKHOFF.format(4)))
    step = facts["feasible.common"].why
    assert step is not None
    (first, second), streams, exprs = step.subject
    outside = {"X": first["X"] + np.eye(3)}
    for points in ((first, first), (outside, second), (first, {"X": 0.9 * first["X"] + 0.1 * second["X"]})):
        wrong = replace(step, subject=(points, streams, exprs))
        ledger = Facts(facts.model, {"k": Fact("k", True, Status.PROVED, wrong)})
        assert any(c.rule == "mixture" and c.outcome is AuditOutcome.FAILED for c in verify(ledger))


def test_a_mixture_of_one_round_does_not_serve_all() -> None:
    facts = check(parse(BALANCE.format("in [0, 2]")))
    step = facts["feasible.each_round"].why
    assert step is not None
    wrong = Facts(facts.model, {"k": Fact("k", True, Status.PROVED, replace(step, rule="mixture"))})
    assert any(c.rule == "mixture" and c.outcome is AuditOutcome.FAILED for c in verify(wrong))
