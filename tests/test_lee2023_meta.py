"""Algorithms 2 and 3 of Lee, Ho-Nguyen & Lee 2023, written out with a list for each inner step."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from driving import Run
from projection_free_cases import CASES, Case, Parts, Round, T, combine, model_of, rounds_of, total
from test_lee2023 import AVERAGE, check_equal, in_domain, slope_of

from oco.compiler.algorithms.lee2023_meta import META_FRANK_WOLFE
from oco.compiler.selection.explain import algorithm_data
from oco.compiler.selection.plan import compile_plan, explain_choice
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.load import parse

LIVELY = {"K": 5, "theta": 0.4, "mu": 0.3, "delta": 0.2, "D": 3.0, "R": 2.5}


def algorithm_2(
    case: Case, rounds: Sequence[Round], draws: Sequence[Sequence[Parts]], *,
    K: int, theta: float, mu: float, delta: float, **_: float,
) -> tuple[list[Parts], list[float]]:  # fmt: skip
    """The decisions, and the last multipliers. Erratum 9: x_1^k = x_1, x_{t+1}^1 = x_1, and the sum goes to t."""
    x, lam = [case.start], [0.0] * len(case.constraints(rounds[0], case.start))
    inner = [case.start] * K
    slopes: list[list[Parts]] = [[] for _ in range(K)]
    for data, p in zip(rounds, draws):
        point, following = case.start, []
        for k in range(1, K + 1):
            slopes[k - 1].append(slope_of(case, data, inner[k - 1], lam))
            v = case.lmo(combine(1, total(slopes[k - 1]), 1 / delta, p[k - 1]))
            following.append(point)
            point = combine(1 - 2 / (k + 1), point, 2 / (k + 1), v)
        values = case.constraints(data, x[-1])
        lam = [max((1 - theta * mu) * a + mu * g, 0.0) for a, g in zip(lam, values)]
        inner = following
        x.append(point)
    return x, lam


@pytest.mark.parametrize("name", CASES)
def test_algorithm_2(name: str) -> None:
    case, rounds = CASES[name], rounds_of(CASES[name])[:-1]
    rng = np.random.default_rng(4)
    given = [rng.random((T, LIVELY["K"], *part.shape)) for part in case.start]
    draws = [[[g[t, k] for g in given] for k in range(LIVELY["K"])] for t in range(T)]
    plan = compile_plan(model_of(case), "meta-frank-wolfe", LIVELY)
    run = Run(plan, draws=dict(zip(["p"] if len(given) == 1 else ["p_x", "p_Y"], given)))
    ours, most = [run.decisions], 0.0
    for data in rounds:
        run.play(data)
        ours.append(run.decisions)
        most = max(most, run.value("lam").max())
    theirs, lam = algorithm_2(case, rounds, draws, **LIVELY)
    check_equal(case, ours, theirs)
    in_domain(case, ours, [b.domain for b in plan.canonical.blocks])
    np.testing.assert_allclose(run.value("lam"), lam, atol=1e-9)
    assert most > 0.01


@pytest.mark.parametrize("T", [100, 10_000])
def test_theorem_2_in_numbers(T: int) -> None:
    """(5), and a guarantee of at most C_1 T^(1/2) and C_2 T^(3/4)."""
    plan = compile_plan(parse(AVERAGE.format(T=T).replace("c @ x", "c @ x + sum_squares(x)")), "meta-frank-wolfe")
    v = {name: setting.value for name, setting in plan.settings.items()}
    R, D, d = 2 * math.sqrt(3), v["D"], 3
    theta = 12 * R * D * math.sqrt(d / T)
    expected = {"R": R, "K": math.isqrt(T), "theta": theta, "mu": 1 / (theta * (T + 2))}
    assert {n: v[n] for n in expected} == pytest.approx(expected)
    assert v["delta"] == pytest.approx(1 / (2 * D * math.sqrt(d * T)))
    L, G = 2.0, plan.facts.value("constraints.side.bound")
    C_1 = 4 * R * D + 5 * R**2 * L + R * (4 * D + 5 * R * L) ** 2 / (4 * D * math.sqrt(d))
    C_1 += 3 * R * D * math.sqrt(d) + G**2 / (12 * R * D * math.sqrt(d))
    C_2 = math.sqrt(96 * R * D * math.sqrt(d) * (R * D + C_1))
    assert plan.guarantee is not None
    assert 0.02 * C_1 * math.sqrt(T) < plan.guarantee.regret() < C_1 * math.sqrt(T)
    assert 0.02 * C_2 * T**0.75 < plan.guarantee.violation() < C_2 * T**0.75
    assert [str(r) for r in plan.guarantee.rates.values()] == ["sqrt(T)", "T**(3/4)"]


def test_strong_duality_gives_the_same_rate_to_both() -> None:
    adversarial = AVERAGE.format(T=10**6).replace("<= 0.2", "<= 1.2")
    text = adversarial.replace("c[3] in [-1, 1]", "c[3] in [-1, 1] iid")
    plan = compile_plan(parse(text), "meta-frank-wolfe")
    assert plan.guarantee is not None
    assert plan.guarantee.theorem.endswith("Theorems 2 and 4")
    assert [str(r) for r in plan.guarantee.rates.values()] == ["sqrt(T)", "sqrt(T)"]
    without = compile_plan(parse(adversarial), "meta-frank-wolfe")
    assert plan.guarantee.violation() < without.guarantee.violation()


def test_what_it_asks_for() -> None:
    def objections(text: str) -> str:
        verdict = next(v for v in explain_choice(parse(text)).verdicts if v.name == "meta-frank-wolfe")
        assert verdict.applicability is Applicability.REFUSED
        return " ".join(verdict.reasons)

    text = AVERAGE.format(T=1000)
    assert "gradients away from the decision" in objections(text + "feedback gradient\n")
    assert "how fast the gradient of the loss changes" in objections(text.replace("c @ x", "norm1(x - c)"))
    assert "soft violation only" in objections(text.replace("on average", "each round"))


def test_theta_has_the_number_of_constraints_as_the_page_says() -> None:
    one = AVERAGE.format(T=100)
    two = one + "    other: x[0] <= 0.5 on average\n"
    theta = [compile_plan(parse(text), "meta-frank-wolfe").settings["theta"].value for text in (one, two)]
    assert theta[1] == pytest.approx(2 * theta[0])
    departures = " ".join(algorithm_data(META_FRANK_WOLFE)["departures"])
    assert "factor N" in departures and "anew in every round" in departures
