"""The projection-free methods against Algorithms 1 to 4 of Wang, Wan & Zhang 2025, written out with the paper's own sums and loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from driving import Run, solve, trajectory
from projection_free_cases import (
    CASES,
    LIVELY,
    Array,
    Case,
    Parts,
    Round,
    T,
    combine,
    inner,
    model_of,
    rounds_of,
    total,
    worst,
)
from thorough import corners, thorough

import oco
from oco.compiler.selection.plan import compile_plan


def check_equal(case: Case, ours: Sequence[Sequence[Array]], theirs: Sequence[Parts]) -> None:
    assert len(ours) == len(theirs)
    gap = max(np.linalg.norm(a - b) for x, z in zip(ours, theirs) for a, b in zip(x, z))
    assert gap <= 1e-6 * case.diameter


SETS: dict[str, Callable[[list[cp.Variable]], list[Any]]] = {
    "box": lambda v: [v[0] >= [0, 0, -1, -1], v[0] <= [1, 2, 1, 3]],
    "ball": lambda v: [cp.norm2(v[0]) <= 2],
    "simplex": lambda v: [v[0] >= 0, cp.sum(v[0]) == 1],
    "nuclear": lambda v: [cp.normNuc(v[0]) <= 3],
    "two": lambda v: [v[0] >= 0, v[0] <= 1, cp.norm(v[1], "fro") <= 1],
}


FEW = ("box", "nuclear", "two")
"""Cases with each kind of set: intervals, spectra and a product of two."""


@pytest.mark.parametrize("name", CASES)
def test_the_argmin_of_the_listings(name: str) -> None:
    """(11), (15), (24): the closed forms below are what CVXPY finds."""
    case, rng = CASES[name], np.random.default_rng(6)
    for _ in range(3):
        c = [rng.normal(size=p.shape) for p in case.start]
        v = [cp.Variable(p.shape) for p in case.start]
        solve(sum(cp.sum(cp.multiply(a, b)) for a, b in zip(c, v)), SETS[name](v))
        assert all(np.abs(a - b.value).max() <= 1e-6 for a, b in zip(case.lmo(c), v))


# Algorithm 1.


def algorithm_1(
    case: Case, rounds: Sequence[Round], G: float, D: float, beta: float, gamma: float, rate: float, guess: float
) -> tuple[list[Parts], int]:
    """The decisions x_1, ..., x_{T+1}, and how often the guess was doubled. Erratum 12: sigma is at most 1."""
    x, gradients, Gk, s, Q, doubled = [case.start], [], guess, 1, 0.0, 0
    for t, data in enumerate(rounds, start=1):
        violation, row = worst(case, data, x[-1])
        Q += violation
        phi = rate * math.exp(rate * beta * Q)
        while Gk < beta * G * (gamma + phi):
            Gk, s, doubled = 2 * Gk, t, doubled + 1
        gradients.append(combine(gamma * beta, case.slope(data, x[-1]), phi * beta, row))
        eta = D / (2 * Gk * T ** (3 / 4))
        slope = combine(eta, total(gradients[s - 1 : t]), 2, combine(1, x[-1], -1, x[s - 1]))
        v = case.lmo(slope)
        sigma = min(1, 2 * (t - s + 1) ** (-1 / 2))
        x.append(combine(1 - sigma, x[-1], sigma, v))
    return x, doubled


@pytest.mark.parametrize("name", corners(CASES, FEW))
def test_algorithm_1(name: str) -> None:
    """With the settings of Theorem 1, for given G and D."""
    case, rounds = CASES[name], rounds_of(CASES[name])
    G, D = 30.0, case.diameter
    beta, rate = 1 / (64 * G * D), 1 / (2 * T**0.75)
    plan = compile_plan(model_of(case), "ofw-tvc", {"G": G, "D": D})
    theirs, _ = algorithm_1(case, rounds, G, D, beta, 1.0, rate, 1.0)
    check_equal(case, trajectory(plan, rounds), theirs)


@pytest.mark.parametrize("name", corners(CASES, FEW))
def test_algorithm_1_doubles_its_guess(name: str) -> None:
    case, rounds = CASES[name], rounds_of(CASES[name])
    run = Run(compile_plan(model_of(case, "feedback full"), "ofw-tvc", LIVELY | {"D": 3.0}))
    ours = [run.decisions]
    for data in rounds:
        run.play(data)
        ours.append(run.decisions)
    theirs, doubled = algorithm_1(case, rounds, D=3.0, **LIVELY)
    check_equal(case, ours, theirs)
    assert run.value("k") == doubled >= 5


def test_the_queue_may_be_long() -> None:
    """Exponentials of the queue are in log space: a queue whose exponential is no float still moves the decision."""
    case = CASES["ball"]
    run = Run(compile_plan(model_of(case), "ofw-tvc", {"beta": 50.0, "rate": 50.0}))
    for data in rounds_of(case):
        run.play(data)
        assert np.isfinite(run.decisions[0]).all()
    assert 2500 * run.value("Q") > 800 and np.isfinite(run.value("S")).all()


# Algorithm 2.


def algorithm_2(case: Case, rounds: Sequence[Round], beta: float, gamma: float, alpha_f: float) -> list[Parts]:
    """(14) to (17), with sigma of (16)."""
    x, gradients, Q, C_1 = [case.start], [], 0.0, gamma * beta * alpha_f / 2
    for data in rounds:
        violation, row = worst(case, data, x[-1])
        Q += violation
        gradients.append(combine(gamma * beta, case.slope(data, x[-1]), (2 * beta * Q + 1) * beta, row))

        def F(y: Parts) -> float:
            squares = sum(inner(d, d) for d in (combine(1, y, -1, z) for z in x))
            return inner(total(gradients), y) + C_1 * squares

        slope = combine(1, total(gradients), 2 * C_1, total([combine(1, x[-1], -1, z) for z in x]))
        x.append(line_search(F, x[-1], case.lmo(slope)))
    return x


def line_search(F: Any, x: Parts, v: Parts) -> Parts:
    """The best point between x and v for a quadratic F, by its values at three points."""
    along = [F(combine(1 - s, x, s, v)) for s in (0.0, 0.5, 1.0)]
    smoothness = 2 * (along[0] + along[2] - 2 * along[1])
    first = along[2] - along[0] - smoothness
    sigma = min(max(-first / (2 * smoothness), 0.0), 1.0) if smoothness > 0 else float(first < 0)
    return combine(1 - sigma, x, sigma, v)


LARGE, SMALL = {"beta": 0.3, "gamma": 0.5}, {"beta": 0.002, "gamma": 0.9}


@pytest.mark.parametrize(
    ("name", "settings"),
    [*((n, LARGE) if n in FEW else thorough(n, LARGE) for n in CASES), ("simplex", SMALL), thorough("two", SMALL)],
)
def test_algorithm_2(name: str, settings: dict[str, float]) -> None:
    case, rounds = CASES[name], rounds_of(CASES[name])
    plan = compile_plan(model_of(case), "scofw-tvc", settings)
    assert plan.settings["alpha_f"].value == pytest.approx(case.strong, rel=1e-9)
    check_equal(case, trajectory(plan, rounds), algorithm_2(case, rounds, alpha_f=case.strong, **settings))


@pytest.mark.parametrize("algorithm", ["ofw-tvc", "scofw-tvc"])
def test_gradients_are_enough(algorithm: str) -> None:
    """Feedback of gradients at the decision gives the decisions of full feedback, bit for bit or nearly."""
    case = CASES["box"]
    full = Run(compile_plan(model_of(case), algorithm, {"beta": 0.1}))
    part = Run(compile_plan(model_of(case, "feedback gradient"), algorithm, {"beta": 0.1}))
    for data in rounds_of(case):
        x = list(part.decisions)
        rows = np.array([row[0] for row in case.rows(data, x)])
        part.play(
            {
                "loss": case.loss(data, x),
                "gradient": case.slope(data, x)[0],
                "constraints": np.array(case.constraints(data, x)),
                "constraint_gradients": rows,
            }
        )
        full.play(data)
        np.testing.assert_allclose(part.decisions[0], full.decisions[0], atol=1e-9)


# Algorithms 3 and 4.

BANDIT_CASES = ("box", "ball", "nuclear", "two")


def directions(case: Case, seed: int = 3) -> tuple[dict[str, Array], list[Parts]]:
    """The draws of a run, of any length, and the unit vectors that they are."""
    rng = np.random.default_rng(seed)
    given = [rng.normal(size=(T, *p.shape)) for p in case.start]
    unit = [[g[t] / math.sqrt(sum((h[t] ** 2).sum() for h in given)) for g in given] for t in range(T)]
    names = ["u"] if len(given) == 1 else ["u_x", "u_Y"]
    return dict(zip(names, given)), unit


def bandit_decisions(case: Case, algorithm: str, settings: dict[str, Any], rounds: Sequence[Round]) -> list[Parts]:
    draws, _ = directions(case)
    learner = oco.compile(model_of(case, "feedback bandit"), algorithm, settings).learner(draws=draws)
    found: list[Parts] = []
    for data in rounds:
        x = learner.decide()
        found.append(list(x.values()) if isinstance(x, dict) else [x])
        learner.observe(loss=case.loss(data, found[-1]), constraints=np.array(case.constraints(data, found[-1])))
    return found


def in_shrunk(case: Case, c: Parts, delta: float, r: float) -> Parts:
    """The linear minimisation over (1 - delta/r) (X - centre) + centre; the start is the centre."""
    return combine(delta / r, case.start, 1 - delta / r, case.lmo(c))


def algorithm_3(
    case: Case, rounds: Sequence[Round], *, G: float, D: float, beta: float, gamma: float, rate: float, guess: float,
    c: float, M: float, K: int, delta: float, epsilon: float, r: float,
) -> tuple[list[Parts], int]:  # fmt: skip
    """The decisions x_1, ..., x_T. Erratum 16: the guess is doubled while it is too small for some round of the block."""
    _, u = directions(case)
    d = sum(p.size for p in case.start)
    y, b, Gk, Q, played, doubled = [case.start], 1, guess, 0.0, [], 0
    sums: list[Parts] = []
    estimates: list[Parts] = []
    needs: list[float] = []
    for t, data in enumerate(rounds, start=1):
        m = len(y)
        x = combine(1, y[m - 1], delta, u[t - 1])
        played.append(x)
        violation = max(0.0, *case.constraints(data, x))
        Q += violation
        phi = rate * math.exp(rate * beta * Q)
        value = gamma * beta * case.loss(data, x) + phi * beta * violation
        estimates.append([d / delta * value * part for part in u[t - 1]])
        needs.append(beta * G * (gamma + phi))
        if t % K == 0:
            while any(Gk < need for need in needs[t - K : t]):
                Gk, b, doubled = 2 * Gk, m, doubled + 1
            sums.append(total(estimates[t - K : t]))
            eta = c * D / (d * M * Gk * T**0.75)
            pull, anchor, z = total(sums[b - 1 : m]), y[b - 1], y[m - 1]

            def F(w: Parts, eta: float = eta, pull: Parts = pull, anchor: Parts = anchor) -> float:
                away = combine(1, w, -1, anchor)
                return eta * inner(pull, w) + inner(away, away)

            while True:
                slope = combine(eta, pull, 2, combine(1, z, -1, anchor))
                v = in_shrunk(case, slope, delta, r)
                gap = inner(slope, combine(1, z, -1, v))
                z = line_search(F, z, v)
                if gap <= epsilon:
                    break
            y.append(z)
    return played, doubled


@pytest.mark.parametrize("name", corners(BANDIT_CASES, ("ball", "nuclear")))
def test_algorithm_3(name: str) -> None:
    case, rounds = CASES[name], rounds_of(CASES[name])
    settings = LIVELY | {"D": 3.0, "c": 1.5, "M": 0.2, "K": 7, "delta": 0.2, "r": case.radius}
    settings["epsilon"] = 0.5 if name == "nuclear" else 0.05  # near the optimum singular values meet, and steps part
    theirs, doubled = algorithm_3(case, rounds, **settings)
    check_equal(case, bandit_decisions(case, "bfw-tvc", settings, rounds), theirs)
    assert doubled >= 3


def algorithm_4(
    case: Case, rounds: Sequence[Round], *, beta: float, gamma: float, alpha_f: float, K: int, L: int, delta: float,
    r: float, center: str,
) -> list[Parts]:  # fmt: skip
    """The decisions x_1, ..., x_T. Erratum 15: F is about the iterates, or with center = "origin" as (27) prints it."""
    _, u = directions(case)
    d = sum(p.size for p in case.start)
    y, Q, played = [case.start], 0.0, []
    estimates: list[Parts] = []
    half = gamma * beta * alpha_f / 2
    for t, data in enumerate(rounds, start=1):
        x = combine(1, y[-1], delta, u[t - 1])
        played.append(x)
        violation = max(0.0, *case.constraints(data, x))
        Q += violation
        value = gamma * beta * case.loss(data, x) + 2 * beta * Q * beta * violation
        estimates.append([d / delta * value * part for part in u[t - 1]])
        if t % K == 0:
            anchors = [z for z in y for _ in range(K)] if center == "iterates" else [case.start] * t

            def F(w: Parts, anchors: list[Parts] = anchors) -> float:
                squares = sum(inner(a, a) for a in (combine(1, w, -1, z) for z in anchors))
                return inner(total(estimates), w) + half * squares

            z = y[-1]
            for _ in range(L):
                away = total([combine(1, z, -1, a) for a in anchors])
                v = in_shrunk(case, combine(1, total(estimates), 2 * half, away), delta, r)
                z = line_search(F, z, v)
            y.append(z)
    return played


@pytest.mark.parametrize(
    ("name", "center"),
    [
        *((n, "iterates") if n in ("ball", "nuclear") else thorough(n, "iterates") for n in BANDIT_CASES),
        ("box", "origin"),
        thorough("nuclear", "origin"),
    ],
)
def test_algorithm_4(name: str, center: str) -> None:
    case, rounds = CASES[name], rounds_of(CASES[name])
    settings = {"beta": 0.7, "gamma": 3.0, "K": 7, "L": 6, "delta": 0.2, "r": case.radius, "center": center}
    theirs = algorithm_4(case, rounds, alpha_f=case.strong, **settings)
    check_equal(case, bandit_decisions(case, "scbfw-tvc", settings, rounds), theirs)
