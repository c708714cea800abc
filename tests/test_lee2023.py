"""Algorithm 1 of Lee, Ho-Nguyen & Lee 2023, written out block by block with the oracles' own sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import pytest
from driving import Run, trajectory
from projection_free_cases import CASES, Case, Parts, Round, T, combine, model_of, rounds_of, total
from thorough import corners, one_in

from oco.compiler.algorithms.lee2023 import PROJECTION_FREE
from oco.compiler.selection.plan import analyzed, compile_plan, explain_choice
from oco.compiler.selection.verdicts import Applicability
from oco.compiler.theory.resolve import theorem_settings
from oco.compiler.theory.theorems import Theorem
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

Oracle = Callable[..., list[Parts]]
Sample = Sequence[tuple[Parts, float]]
Draws = Mapping[str, np.ndarray]

LIVELY = {"K": 7, "theta": 0.5, "mu": 0.3, "D": 3.0, "R": 2.5}
"""Settings with which every multiplier moves, in blocks that do not divide the horizon."""
LEADERS = {"k": 3, "delta": 4.0}
"""Of the oracles that follow a perturbed leader: three samples, and a ball in which they differ."""


def slope_of(case: Case, data: Round, x: Parts, lam: Sequence[float]) -> Parts:
    """The gradient of h_t = f_t + sum_n lambda^n g_t^n."""
    rows = case.rows(data, x)
    return total([case.slope(data, x), *([weight * p for p in row] for weight, row in zip(lam, rows))])


def ocg(
    case: Case, block: Sequence[Round], x_1: Parts, lam: list[float], draws: Sequence[Sample], *,
    D: float, R: float, K: int, **_: float,
) -> list[Parts]:  # fmt: skip
    """The decisions of a block and the one after it: Frank-Wolfe steps on eta sum <grad, x> + |x - x_1|^2 / 2."""
    x, gradients = [x_1], []
    eta, sigma = R / (2 * D * (1 + sum(lam))) * (3 / K) ** (3 / 4), min(1, math.sqrt(3 / K))
    for data in block:
        gradients.append(slope_of(case, data, x[-1], lam))
        slope = combine(eta, total(gradients), 1, combine(1, x[-1], -1, x_1))
        x.append(combine(1 - sigma, x[-1], sigma, case.lmo(slope)))
    return x


def leader(case: Case, S: Parts, samples: Sample, radius: float) -> Parts:
    """The mean of argmin <S + v, x> over the points v of a ball that the draws (u, p) make."""
    found = []
    for u, p in samples:
        length = math.sqrt(sum((part**2).sum() for part in u))
        d = sum(part.size for part in u)
        found.append(case.lmo(combine(1, S, radius * p ** (1 / d) / length, u)))
    return [part / len(found) for part in total(found)]


def ospf(
    case: Case, block: Sequence[Round], x_1: Parts, lam: list[float], draws: Sequence[Sample], *,
    k: int, delta: float, **_: float,
) -> list[Parts]:  # fmt: skip
    """Hazan & Minasyan: one decision for k rounds, then the leader of k samples."""
    x, gradients = [x_1], []
    for m, data in enumerate(block, start=1):
        gradients.append(slope_of(case, data, x[-1], lam))
        moves = m % k == 0
        x.append(leader(case, total(gradients), draws[m - 1], delta * (1 + sum(lam))) if moves else x[-1])
    return x


def sftrl(
    case: Case, block: Sequence[Round], x_1: Parts, lam: list[float], draws: Sequence[Sample], *,
    k: int, delta: float, **_: float,
) -> list[Parts]:  # fmt: skip
    """Hazan & Minasyan: the leader of k samples in every round."""
    return ospf(case, block, x_1, lam, draws, k=1, delta=delta)


def orgfw(
    case: Case, block: Sequence[Round], x_1: Parts, lam: list[float], draws: Sequence[Sample], **_: float
) -> list[Parts]:
    """Xie et al.: Frank-Wolfe steps along a recursive estimate of the gradient."""
    x, d = [x_1], slope_of(case, block[0], x_1, lam)
    for k, data in enumerate(block, start=1):
        if k > 1:
            rho = 1 / (k + 1)
            change = combine(1, d, -1, slope_of(case, data, x[-2], lam))
            d = combine(1, slope_of(case, data, x[-1], lam), 1 - rho, change)
        x.append(combine(k / (k + 1), x[-1], 1 / (k + 1), case.lmo(d)))
    return x


ORACLES: dict[str, Oracle] = {"ocg": ocg, "ospf": ospf, "orgfw": orgfw, "sftrl": sftrl}


def drawn(case: Case, samples: int, seed: int = 5) -> tuple[Draws, list[Sample]]:
    """The random arrays of a run, and the samples that each round makes of them."""
    rng = np.random.default_rng(seed)
    given = [rng.normal(size=(T, samples, *part.shape)) for part in case.start]
    p = rng.random((T, samples))
    names = ["u"] if len(given) == 1 else ["u_x", "u_Y"]
    rounds = [[([g[t, i] for g in given], p[t, i]) for i in range(samples)] for t in range(T)]
    return {**dict(zip(names, given)), "p": p}, rounds


def algorithm_1(
    case: Case,
    rounds: Sequence[Round],
    oracle: Oracle = ocg,
    draws: Sequence[Sample] = ((),) * T,
    *,
    K: int,
    theta: float,
    mu: float,
    **settings: float,
) -> tuple[list[Parts], list[float]]:
    """The decisions x_1, ..., x_{T+1}, and the last multipliers."""
    x = [case.start]
    lam = [0.0] * len(case.constraints(rounds[0], case.start))
    for first in range(0, len(rounds), K):
        block = rounds[first : first + K]
        played = oracle(case, block, x[-1], lam, draws[first : first + K], K=K, **settings)
        x += played[1:]
        if len(block) == K:
            values = np.array([case.constraints(data, z) for data, z in zip(block, played)])
            lam = [max((1 - theta * mu) * a + mu * v, 0.0) for a, v in zip(lam, values.sum(axis=0))]
    return x, lam


def check_equal(case: Case, ours: Sequence[Sequence[np.ndarray]], theirs: Sequence[Parts]) -> None:
    assert len(ours) == len(theirs)
    gap = max(np.linalg.norm(a - b) for x, z in zip(ours, theirs) for a, b in zip(x, z))
    assert gap <= 1e-6 * case.diameter


def in_domain(case: Case, points: Sequence[Sequence[np.ndarray]], domains: Sequence) -> None:
    assert all(d.contains(a, 1e-9) for x in points for a, d in zip(x, domains))


PAIRS = list(product(CASES, ORACLES))
BY_TURNS = [(n, o) for i, n in enumerate(CASES) for j, o in enumerate(ORACLES) if (i + j) % 2 == 0]


@pytest.mark.parametrize(("name", "oracle"), corners(PAIRS, BY_TURNS))
def test_algorithm_1(name: str, oracle: str) -> None:
    case, rounds = CASES[name], rounds_of(CASES[name])
    settings = LIVELY | (LEADERS if oracle in ("ospf", "sftrl") else {})
    draws, samples = drawn(case, LEADERS["k"])
    plan = compile_plan(model_of(case), "projection-free", {"oracle": oracle, "L": 1} | settings)
    run, most = Run(plan, draws=draws), 0.0
    ours = [run.decisions]
    for data in rounds[:-1]:
        run.play(data)
        ours.append(run.decisions)
        most = max(most, run.value("lam").max())
    theirs, lam = algorithm_1(case, rounds[:-1], ORACLES[oracle], samples, **settings)
    check_equal(case, ours, theirs)
    in_domain(case, ours, [b.domain for b in plan.canonical.blocks])
    np.testing.assert_allclose(run.value("lam"), lam, atol=1e-9)
    assert most > 0.01 or (name, oracle) == ("box", "orgfw")  # which stays where the constraints hold


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_the_settings_of_theorem_1(name: str) -> None:
    """(3) with alpha = 3/4: Q = T^(1/3), K = T^(2/3), rounded up, and theta = 3 C_1 D T^(1/2), for given constants."""
    case, rounds = CASES[name], rounds_of(CASES[name])
    D, R, beta = 3.0, case.diameter, 0.1
    plan = compile_plan(model_of(case), "projection-free", {"oracle": "ocg", "D": D, "R": R, "beta": beta})
    theta = 3 * (4 / 3**0.75) * R * D * T ** (1 / 2 - beta)
    settings = {"K": 16, "theta": theta, "mu": 1 / (theta * (4 + 1)), "D": D, "R": R}
    check_equal(case, trajectory(plan, rounds), algorithm_1(case, rounds, **settings)[0])


AVERAGE = """
model average
horizon T = {T}
decision x[3] in ball(1)
stream c[3] in [-1, 1]
stream a[3] in [-1, 1] iid mean = [0.1, 0, 0]
minimize c @ x
subject to
    side: a @ x <= 0.2 on average
"""


def test_the_theorem_in_numbers() -> None:
    """The constants of the proof of Theorem 1, where T is a cube, so that nothing is rounded."""
    T = 10**3
    plan = compile_plan(parse(AVERAGE.format(T=T)), "projection-free", {"oracle": "ocg"})
    assert plan.guarantee is not None
    D, R, G = plan.settings["D"].value, 2.0, plan.facts.value("constraints.side.bound")
    C = 4 / 3**0.75 * R * D
    Q, K, theta = 10, 10**2, 3 * C * T**0.5
    mu = 1 / (theta * (Q + 1))
    A = C * K**0.75
    # The last line of Lemma A.3's proof holds with theta^2 mu - theta/2 <= -theta/6 - A-terms; ours is at most as large.
    paper = G**2 * K**2 * Q * mu + Q * A + Q / 2 * A
    assert 0 < plan.guarantee.regret() <= paper * (1 + 1e-9)
    F = plan.choice.situation.loss_range
    by_hand = G**2 * K**2 * Q * mu + Q * A + Q * A**2 / (2 * theta * (1 - 2 / (Q + 1)))
    assert plan.guarantee.regret() == pytest.approx(by_hand, rel=1e-9)
    assert plan.guarantee.violation() == pytest.approx(
        math.sqrt(2 * (1 / mu + Q * theta) * (F * T + by_hand)), rel=1e-9
    )
    assert [str(r) for r in plan.guarantee.rates.values()] == ["T**(5/6)", "T**(11/12)"]


def test_what_the_theorem_asks_for() -> None:
    def objections(text: str) -> str:
        verdict = next(v for v in explain_choice(parse(text)).verdicts if v.name == "projection-free")
        assert verdict.applicability is Applicability.REFUSED
        return " ".join(verdict.reasons)

    text = AVERAGE.format(T=1000)
    assert "soft violation only" in objections(text.replace("on average", "each round"))
    assert "an adversary chooses" in objections(text.replace(" iid mean = [0.1, 0, 0]", ""))


def test_settings_that_break_the_theorem() -> None:
    plan = compile_plan(parse(AVERAGE.format(T=1000)), "projection-free", {"oracle": "ocg", "beta": 0.3})
    assert any("beta must lie between 0 and" in w.message for w in plan.warnings)


def test_what_the_oracles_ask_for() -> None:
    text = AVERAGE.format(T=1000)
    refused = compile_plan(parse(text), "projection-free", {"oracle": "orgfw"})
    assert any("the loss uses the stream `c`, which an adversary chooses" in w.message for w in refused.warnings)
    rough = text.replace("minimize c @ x", "minimize norm1(x - c)")
    bent = compile_plan(parse(rough), "projection-free", {"oracle": "ospf", "L": 1})
    assert any("how fast the gradient of the loss changes" in w.message for w in bent.warnings)
    assert str(compile_plan(parse(rough), "projection-free").settings["oracle"].formula) == "ocg"
    assert not compile_plan(parse(rough), "projection-free", {"oracle": "sftrl"}).warnings
    with pytest.raises(OcoError, match="oracle is one of ocg, ospf, orgfw, sftrl"):
        compile_plan(parse(text), "projection-free", {"oracle": "lloo"})


def theorem(name: str) -> Theorem:
    return next(t for t in PROJECTION_FREE.theorems if t.name == name)


OPEN = (
    AVERAGE.replace("c[3] in [-1, 1]", "c[3] in [-1, 1] iid")
    .replace("iid mean = [0.1, 0, 0]", "iid")
    .replace("<= 0.2", "<= -0.2")
)


def test_strong_duality_is_a_condition_of_the_guarantee() -> None:
    """With draws of unknown mean a margin s > 0 is a condition; the bound keeps the symbol s, and is a number where s is assumed."""
    s = analyzed(parse(OPEN.format(T=1000)))
    three = theorem("Theorem 3 with ocg")
    assert not three.objections(s)
    assert [c.key for c in three.conditions(s)] == ["feasible.mean", "slater.margin"]
    settings = theorem_settings(three, s, {"oracle": "ocg"}, None)
    guarantee = three.guarantee(s, settings)
    assert guarantee.violation_bound is not None and guarantee.violation() is None
    assert "s" in guarantee.violation_bound.expression.symbols
    stated = analyzed(parse(OPEN.format(T=1000) + "assume slater.margin >= 0.25\nassume feasible.mean\n"))
    assert not three.conditions(stated)
    known = three.guarantee(stated, settings)
    v = {n: settings[n].value for n in ("K", "theta", "mu")}
    Q, F = math.ceil(1000 / v["K"]), stated.loss_range
    plain = theorem("Theorem 1 with ocg").guarantee(stated, settings)
    dual = (1 / v["mu"] + Q * v["theta"]) * (F / 0.25 + 1) ** 2 / 2 + known.regret()
    assert known.violation() == pytest.approx(min(dual, plain.violation()))


def test_without_a_margin_bounded_multipliers_are_the_condition() -> None:
    tight = OPEN.replace("side: a @ x <= -0.2", "flat: x[0] <= 0 on average\n    steep: x[0] >= 0")
    s = analyzed(parse(tight.format(T=1000)))
    (condition,) = theorem("Theorem 3 with ocg").conditions(s)
    assert condition.key == "multipliers.bounded" and "strong duality" in condition.words
