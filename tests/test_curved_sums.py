"""Curvature of exp-concave losses in certificates: never below the regret, and near it where linearised losses are not."""

from __future__ import annotations

from functools import cache
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from thorough import corners

import oco
from oco.compiler.certificates.form import HessianForm, certificate_form
from oco.compiler.problem.canonical import canonical
from oco.plan import Plan

ROUNDS = 30
HEAD = f"model m\nhorizon T = {ROUNDS}\n"
CASES = {
    "wealth": "decision x[4] in simplex\nstream a[4] in [0.2, 3]\nminimize -log(a @ x)\n",
    "logistic": "decision x[4] in ball(1)\nstream a[4] in [0.2, 3]\nminimize logistic(a @ x - 2)\n",
    "covered": "decision x[4] in box(0, 2)\nstream a[4] in [0.2, 3]\nminimize sum(x) - 2 * log(1 + a @ x)\n",
    "two blocks": (
        "decision x[3] in simplex\ndecision y in box(0, 2)\nstream a[4] in [0.2, 3]\nminimize y - log(a[0:3] @ x + a[3] * y)\n"
    ),
}


def comparator(case: str, a: np.ndarray) -> float:
    """Least loss of a fixed decision over rounds a (T, 4), by CVXPY."""
    x = cp.Variable(4)
    problems = {
        "wealth": (-cp.sum(cp.log(a @ x)), [x >= 0, cp.sum(x) == 1]),
        "logistic": (cp.sum(cp.logistic(a @ x - 2)), [cp.norm(x) <= 1]),
        "covered": (len(a) * cp.sum(x) - 2 * cp.sum(cp.log(1 + a @ x)), [x >= 0, x <= 2]),
        "two blocks": (len(a) * x[3] - cp.sum(cp.log(a @ x)), [x >= 0, cp.sum(x[:3]) == 1, x[3] <= 2]),
    }
    objective, constraints = problems[case]
    return float(cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL))


@cache
def plan_of(case: str) -> Plan:
    return oco.compile(oco.parse(HEAD + CASES[case]), "ogd", "paper", certify="static")


@pytest.mark.parametrize(
    ("case", "hostile"),
    corners(product(CASES, (False, True)), [("wealth", False), *((case, True) for case in list(CASES)[-2:])]),
)
def test_sound(case: str, hostile: bool) -> None:
    """On prefixes of random rounds and of rounds that pay least where the learner has most, in two backends."""
    plan, rng = plan_of(case), np.random.default_rng(3)
    assert plan.terms is not None and plan.terms.theta > 0
    learner, rows, loss = plan.learner(backend="numpy"), list[np.ndarray](), 0.0
    for t in range(ROUNDS):
        decision = learner.decide()
        x = np.concatenate([np.ravel(decision["x"]), np.ravel(decision["y"])]) if case == "two blocks" else decision
        worst = np.where(x >= np.max(x), 0.2, 3.0)
        rows.append(worst if hostile else rng.uniform(0.2, 3, 4))
        loss += float(learner.observe(a=rows[-1]).loss)
        if t in (0, 7, ROUNDS - 1):
            true = loss - comparator(case, np.array(rows))
            assert learner.certificate().bound >= true - 1e-6 * (1 + abs(loss))
    other = plan.run({"a": np.array(rows)}, backend="c").certificate()
    assert other.bound == pytest.approx(learner.certificate().bound, rel=1e-6, abs=1e-6)


def test_tight() -> None:
    """On price relatives near 1 the certificate is within a tenth of what linearised losses leave."""
    rng = np.random.default_rng(0)
    a = np.exp(rng.normal(0, 0.05, (ROUNDS, 4)) + np.array([0.0, 0.0, 0.02, 0.0]))
    trace = plan_of("wealth").run({"a": a}, backend="numpy")
    x = np.asarray(trace.decisions)
    linear = (a / (a * x).sum(axis=1, keepdims=True) - 1).sum(axis=0).max()
    true = float(trace.loss.sum()) - comparator("wealth", a)
    certificate = trace.certificate()
    assert true - 1e-6 <= certificate.bound <= true + 0.1 * (linear - true)
    assert "exp(-theta n_t) is concave, theta = 1" in certificate.derivation[0]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("decision x[65] in simplex\nstream a[65] in [0.5, 2]\nminimize -log(a @ x)\n", HessianForm.NONE),
        ("decision x in box(-20, 20)\nstream a in [-1, 1]\nminimize logistic(a * x)\n", HessianForm.NONE),
        ("decision x in box(-1, 1)\nstream a in [-1, 1]\nminimize logistic(a * x)\n", HessianForm.EXP_CONCAVE),
    ],
)
def test_where_it_is_kept(text: str, form: HessianForm) -> None:
    """Not for many decisions, nor where the curvature says next to nothing."""
    own = certificate_form(canonical(oco.parse(HEAD + text)).standing)
    assert not isinstance(own, str) and own.curvature is form
