"""Kinked losses in certificates: never below the regret to comparators of CVXPY, and within a few percent of the loss of it."""

from __future__ import annotations

from functools import cache
from itertools import product

import cvxpy as cp
import numpy as np
import pytest
from thorough import corners

import oco
from oco.compiler.certificates.form import HessianForm, certificate_form
from oco.compiler.certificates.kinked_losses import BUCKETS
from oco.compiler.problem.canonical import canonical
from oco.plan import Plan

ROUNDS = 30
HEAD = f"model m\nhorizon T = {ROUNDS}\n"
STREAMS = "stream d[3] in [-2, 12]\nstream w in [0, 2]\n"
CASES = {
    "orders": "decision x[3] in box(0, 10)\n" + STREAMS + "minimize 2 * sum(x) - (3 + w) * sum(minimum(x, d))\n",
    "limit": "decision x[3] in box(0, 10)\n"
    + STREAMS
    + "minimize 2 * sum(x) - 5 * sum(minimum(x, d))\nsubject to\n    room: sum(x) <= 16 - 3 * w each round\n",
    "distances": "decision x[3] in box(0, 10)\n" + STREAMS + "minimize norm1(2 * x - d) + 0.1 * w * sum_squares(x)\n",
    "yields": "decision x[3] in box(0, 10)\n"
    + STREAMS
    + "minimize 2 * sum(x) + 4 * sum(pos(d - (1 - 0.2 * w) * x)) + sum(pos((1 + w) * x - 8))\n",
    "shares": "decision x[3] in simplex(10)\n"
    + STREAMS
    + "minimize w * sum(maximum(d - x, 0)) + sum(maximum(x - 4, 0))\n",
}


def comparator(case: str, d: np.ndarray, w: np.ndarray) -> float:
    """Least loss of a fixed decision over rounds d (T, 3) and w (T,), by CVXPY."""
    x = cp.Variable(3)
    box = [x >= 0, x <= 10]
    u = cp.vstack([x] * len(d))
    short, over = cp.sum(cp.pos(d - u), axis=1), cp.sum(cp.pos(u - d), axis=1)
    sold = d.sum(axis=1) - short
    problems = {
        "orders": (2 * len(d) * cp.sum(x) - (3 + w) @ sold, box),
        "limit": (2 * len(d) * cp.sum(x) - 5 * cp.sum(sold), [*box, cp.sum(x) <= 16 - 3 * w.max()]),
        "distances": (cp.sum(cp.abs(2 * u - d)) + 0.1 * w.sum() * cp.sum_squares(x), box),
        "yields": (
            2 * len(d) * cp.sum(x)
            + 4 * cp.sum(cp.pos(d - cp.multiply((1 - 0.2 * w)[:, None], u)))
            + cp.sum(cp.pos(cp.multiply((1 + w)[:, None], u) - 8)),
            box,
        ),
        "shares": (w @ short + len(d) * cp.sum(cp.pos(x - 4)), [x >= 0, cp.sum(x) == 10]),
    }
    objective, constraints = problems[case]
    assert over.shape == (len(d),)
    return float(cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL))


@cache
def plan_of(case: str) -> Plan:
    algorithm = "coldq" if case == "limit" else "ogd"
    return oco.compile(oco.parse(HEAD + CASES[case]), algorithm, "paper", certify="static")


@pytest.mark.parametrize(
    ("case", "hostile"),
    corners(
        product(CASES, (False, True)),
        [("limit", False), ("yields", False), *((case, True) for case in list(CASES)[-2:])],
    ),
)
def test_sound_and_tight(case: str, hostile: bool) -> None:
    """On prefixes of random rounds, and of rounds whose kinks are where the learner is, or at the ends and beyond them; alike in C."""
    plan, rng = plan_of(case), np.random.default_rng(7)
    learner, rows, weights, loss, scale = plan.learner(backend="numpy"), list[np.ndarray](), list[float](), 0.0, 0.0
    for t in range(ROUNDS):
        x = np.asarray(learner.decide())
        aimed = (x, np.full(3, -2.0), np.full(3, 12.0), np.array([0.0, 10.0, 5.0]))[t % 4]
        rows.append(aimed if hostile else rng.uniform(2, 9, 3))
        weights.append(float(rng.integers(0, 3)) if hostile else float(rng.uniform(0, 2)))
        own = float(learner.observe(d=rows[-1], w=weights[-1]).loss)
        loss, scale = loss + own, scale + abs(own)
        if t in (0, 7, ROUNDS - 1):
            true = loss - comparator(case, np.array(rows), np.array(weights))
            certificate = learner.certificate()
            assert certificate.bound >= true - 1e-5 * (1 + scale)
    assert certificate.bound <= true + (0.1 if hostile else 0.03) * scale
    assert certificate.terms.kinked and "Jensen" in certificate.derivation[1]
    other = plan.run({"d": np.array(rows), "w": np.array(weights)}, backend="c").certificate()
    assert other.bound == pytest.approx(certificate.bound, rel=1e-6, abs=1e-6)


def test_few_rounds_are_exact() -> None:
    """Where each part of the range has one kink at most, and none is near the best decision, nothing is lost but rounding."""
    model = oco.parse(
        HEAD + "decision x in box(0, 32)\nstream d in [0, 32]\nminimize 3 * maximum(d - x, 0) + maximum(x - d, 0)\n"
    )
    learner = oco.compile(model, "ogd", "paper", certify="static").learner(backend="numpy")
    d, loss = np.arange(20) + 0.5, 0.0
    for value in d:
        learner.decide()
        loss += float(learner.observe(d=value).loss)
    best = min(float(np.sum(3 * np.maximum(d - u, 0) + np.maximum(u - d, 0))) for u in d)
    bound = learner.certificate().bound
    assert BUCKETS == 32 and loss - best - 1e-9 <= bound <= loss - best + 1e-4 * loss


@pytest.mark.parametrize(
    ("text", "kinks", "curvature"),
    [
        ("minimize norm1(x - d) + sum_squares(x)\n", 1, HessianForm.DIAGONAL),
        ("minimize sum(maximum(w * x - d, 0))\n", 0, HessianForm.NONE),
        ("minimize sum(maximum((w - 1) * x - d, 0))\n", 0, HessianForm.NONE),
        ("minimize sum(maximum((w + 0.1) * x - d, 0))\n", 1, HessianForm.NONE),
        ("minimize (w - 1) * sum(maximum(x - d, 0)) + 3 * sum(maximum(x - d, 0))\n", 1, HessianForm.NONE),
        ("minimize sum(maximum(maximum(x - d, 0), 1))\n", 0, HessianForm.NONE),
        ("minimize norm2(x - d) + sum(abs(x))\n", 1, HessianForm.NONE),
    ],
)
def test_where_kinks_are_summed(text: str, kinks: int, curvature: HessianForm) -> None:
    """Not where the signs of their slopes may change with the round, nor where a weight may be negative or the rest is not convex."""
    form = certificate_form(canonical(oco.parse(HEAD + "decision x[3] in box(0, 10)\n" + STREAMS + text)).standing)
    assert not isinstance(form, str) and (len(form.kinks), form.curvature) == (kinks, curvature)
