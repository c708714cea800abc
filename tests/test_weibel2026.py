"""Online Frank-Wolfe with optimized constants: the promise, its constant, and linear losses that an adversary chooses."""

from __future__ import annotations

import math

import numpy as np
import pytest

import oco
from oco.compiler.algorithms import ALGORITHMS

TEXT = """\
model fw
horizon T = {T}
decision x[{n}] in ball(1)
stream c[{n}] in [-1, 1]
minimize c @ x / sqrt({n})
using ofw
"""


@pytest.mark.parametrize("T", [3, 16, 400, 10_000])
def test_the_constant_is_4_over_3_to_the_three_quarters(T: int) -> None:
    plan = oco.compile(oco.parse(TEXT.format(T=T, n=2)), settings="paper")
    own = plan.guarantee.regret_curve(T)[-1]
    assert own == pytest.approx(4 / 3**0.75 * 2 * T**0.75, rel=1e-9)


def adversary(kind: str, t: int, x: np.ndarray, total: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Gradient of norm at most 1 of round t, after the decision x and the gradients before."""
    n = len(x)
    size = np.linalg.norm(x)
    if kind == "against the decision":
        return x / size if size > 0 else np.ones(n) / math.sqrt(n)
    if kind == "alternating":
        return np.eye(n)[0] * (-1) ** t
    if kind == "along the sum":
        away = total + 0.3 * (x / size if size > 0 else np.zeros(n)) + 1e-9
        return away / np.linalg.norm(away)
    if kind == "turning":
        return np.append([math.cos(t / 30), math.sin(t / 30)], np.zeros(n - 2))
    return rng.normal(size=n) / (3 * math.sqrt(n))


KINDS = ("against the decision", "alternating", "along the sum", "turning", "drawn")


def test_regret_keeps_the_promise_of_every_round_against_adversaries() -> None:
    worst, horizons = [], (64, 256, 1024)
    for T in horizons:
        plan, rng, largest = (
            oco.compile(oco.parse(TEXT.format(T=T, n=3)), settings="paper"),
            np.random.default_rng(1),
            0.0,
        )
        bound = plan.guarantee.regret_curve(T)
        for kind in KINDS:
            learner, total, lost = plan.learner(), np.zeros(3), 0.0
            for t in range(1, T + 1):
                x = np.asarray(learner.decide())
                g = np.clip(adversary(kind, t, x, total, rng) * math.sqrt(3), -1, 1) / math.sqrt(3)
                learner.observe(c=g * math.sqrt(3))
                total, lost = total + g, lost + float(g @ x)
                assert lost + np.linalg.norm(total) <= bound[t - 1] * (1 + 1e-9)
            largest = max(largest, lost + float(np.linalg.norm(total)))
        worst.append(largest)
    exponent = np.polyfit(np.log(horizons), np.log(worst), 1)[0]
    assert 0.4 < exponent < 0.8, worst


def test_ocg_promises_a_block_the_same_constant() -> None:
    projection_free = next(a for a in ALGORITHMS if a.name == "projection-free")
    text = TEXT.replace("using ofw", "subject to\n    mean: sum(x) <= 0.5\nusing projection-free with oracle = ocg")
    plan = oco.compile(oco.parse(text.format(T=400, n=2)), settings="paper")
    assert plan.algorithm == projection_free.name
    assert plan.settings["C_1"].value == pytest.approx(4 / 3**0.75 * 2)
