"""The exact step of COLDQ over boxes whose entries have widths from 1e-6 to 1e6, beside bisection in 50 digits."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import mpmath
import numpy as np
import pytest
from thorough import corners

import oco
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.settings import along

N, ROUNDS = 6, 40
MODEL = """
model uneven
horizon T = {rounds}
param s[{n}] = {steep}
decision x[{n}] in box({lower}, {upper})
stream c[{n}] in [-1, 1]
stream a[{n}] in [-1, 1]
minimize (c * s) @ x
subject to
    q: (a * s) @ x <= 0.2 each round
"""
SHARE_OF_WIDTH = {1.0: 1e-12, 1e2: 1e-11, 1e4: 1e-10, 1e6: 1e-9, 1e8: 1e-7, 1e10: 1e-5, 1e12: 1e-3}
"""Errors that are allowed, as shares of an entry's width: those of a sum of six numbers in doubles, with two digits to spare."""


@dataclass(frozen=True)
class Step:
    """min c x + alpha |x - y|^2 + Q [a x - b]_+ over |x_i| <= widths_i."""

    widths: np.ndarray
    y: np.ndarray
    c: np.ndarray
    a: np.ndarray
    b: float
    alpha: float
    Q: float

    def minimizer(self) -> np.ndarray:
        """By bisection on the multiplier: a x(lam) falls in lam."""
        with mpmath.workdps(50):
            columns = [[mpmath.mpf(float(v)) for v in part] for part in (self.widths, self.y, self.c, self.a)]
            b, alpha, low, high = (mpmath.mpf(float(v)) for v in (self.b, self.alpha, 0.0, self.Q))

            def x(lam):
                return [max(-w, min(w, y - (c + lam * a) / (2 * alpha))) for w, y, c, a in zip(*columns)]

            def g(lam):
                return sum(a * v for a, v in zip(columns[3], x(lam))) - b

            if g(low) <= 0:
                high = low
            elif g(high) >= 0:
                low = high
            for _ in range(170):
                middle = (low + high) / 2
                low, high = (middle, high) if g(middle) > 0 else (low, middle)
            return np.array([float(v) for v in x(high)])


def written(values: np.ndarray) -> str:
    return str([float(v) for v in values])


def shares_of_widths(ratio: float, backend: str) -> np.ndarray:
    """Errors of the decisions of a run, each step from the learner's own decision, as shares of widths, shape (ROUNDS, N)."""
    rng, widths = np.random.default_rng(0), np.logspace(-np.log10(ratio) / 2, np.log10(ratio) / 2, N)
    text = MODEL.format(rounds=ROUNDS, n=N, steep=written(1 / widths), lower=written(-widths), upper=written(widths))
    plan = oco.compile(oco.parse(text), "coldq", backend=backend)
    alpha, gamma, eta = (
        along(plan.settings[k].formula, Rounds.every(ROUNDS), ROUNDS).last for k in ("alpha", "gamma", "eta")
    )  # on the problem without units
    scales = plan.choice.winner.scales
    radius, loss, unit = float(scales.radius), float(scales.loss), float(scales.inequalities[0])
    learner, Q, found = plan.learner(), gamma[0], []
    for t in range(ROUNDS):
        c, a = rng.uniform(-1, 1, (2, N))
        y = np.asarray(learner.decide())
        learner.observe(c=c, a=a)
        if t:
            Q = max((1 - eta[t]) * Q + max(float((a / widths) @ y - 0.2) / unit, 0.0), gamma[t])
        step = Step(widths, y, c / widths / loss, a / widths / unit, 0.2 / unit, alpha[t] / radius**2, Q)
        found.append(np.abs(np.asarray(learner.decide()) - step.minimizer()) / (2 * widths))
    return np.array(found)


@pytest.mark.parametrize(
    ("ratio", "backend"), corners(product(SHARE_OF_WIDTH, ("numpy", "c")), [(1e6, "numpy"), (1e12, "c")])
)
def test_every_entry_is_known_to_a_share_of_its_width(ratio: float, backend: str) -> None:
    assert shares_of_widths(ratio, backend).max() <= SHARE_OF_WIDTH[ratio]


def test_widths_beyond_doubles_are_a_warning() -> None:
    def codes(ratio: float) -> list[str]:
        head = f"model m\nhorizon T = 9\ndecision x[2] in box([0, 0], [1, {ratio}])\nstream c[2] in [0, 1]\nminimize c @ x\n"
        return [w.code for w in oco.check(oco.parse(head + "subject to\n    q: c @ x <= 1 each round\n")).warnings]

    assert "OCO614" in codes(1e10) and "OCO614" not in codes(1e8)
