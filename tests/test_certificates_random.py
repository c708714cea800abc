"""Certificates of random losses, of kinks, exp-concave and quadratic terms: no decision does better than they say."""

from __future__ import annotations

import numpy as np
import pytest
from thorough import thorough

import oco
from oco.compiler.certificates.form import certificate_form
from oco.dsl.evaluate import evaluate

ROUNDS = 20
DOMAINS = ("box(-1, 2)", "box(0.5, 3)", "simplex", "simplex(3)", "ball(2)", "box(-2, [1, 2, -1])")
TERMS = (
    "sum(maximum({c} * x - a, 0))",
    "norm1(x - a)",
    "w * sum(abs(x - {d}))",
    "sum(maximum(a - {c} * x, {d} * x))",
    "(1 + w) * sum(pos(a - x)) + {c} * sum(pos(x - a))",
    "sum(abs(2 * x - a)) + sum(maximum(x, {d}))",
    "-log(19 + a @ x)",
    "logistic({c} * a @ x)",
    "-{c} * log(20 + w + sum(x))",
    "square(a @ x - w)",
    "w * sum_squares(x - a)",
    "norm2(x - a)",
    "a @ x",
    "-log(7 + w * x[0]) - 2 * log(20 + a @ x)",
)


@pytest.mark.parametrize("seed", [0, *(thorough(k) for k in range(1, 200))])
def test_no_decision_does_better(seed: int) -> None:
    """Against decisions drawn in the domain, those that were played and the point of the certificate, on random and repeated data."""
    rng = np.random.default_rng(seed)
    terms = [str(v) for v in rng.choice(TERMS, rng.integers(1, 4), replace=False)]
    loss = " + ".join(terms).format(c=f"{rng.uniform(0.3, 3):.2f}", d=f"{rng.uniform(-1, 1):.2f}")
    text = (
        f"model m\nhorizon T = {ROUNDS}\ndecision x[3] in {rng.choice(DOMAINS)}\nstream a[3] in [-2, 2]\nstream w in [0, 1]\n"
        f"minimize {loss}\nusing ogd\n"
    )
    plan = oco.compile(oco.parse(text), settings="paper")
    assert not isinstance(certificate_form(plan.canonical.standing), str)
    a, w = rng.uniform(-2, 2, (ROUNDS, 3)), rng.random(ROUNDS)
    a = (a, np.round(a), np.tile(a[0], (ROUNDS, 1)))[seed % 3]
    trace = plan.run({"a": a, "w": w}, backend="numpy")
    certificate, domain = trace.certificate(), plan.canonical.blocks[0].domain
    drawn = domain.sample(rng, 40).reshape(-1, 3)
    points = np.concatenate([drawn, np.asarray(trace.decisions)[::4], certificate.point[None]])

    def total(u: np.ndarray) -> float:
        rounds = ({"x": u, "a": a[t], "w": w[t]} for t in range(ROUNDS))
        return sum(float(evaluate(plan.canonical.objective, values, t)) for t, values in enumerate(rounds, start=1))

    best = min(total(u) for u in points if domain.contains(u))
    assert certificate.bound >= float(trace.loss.sum()) - best - 1e-9 * float(np.abs(trace.loss).sum())
