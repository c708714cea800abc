"""Restarts where the horizon is unknown: the run of each epoch is that of a plan whose horizon is the epoch's length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from driving import Run, situation
from test_c99 import needs_compiler
from thorough import corners

import oco
from oco.backends.python.state_file import pack
from oco.backends.registry import restored
from oco.compiler.selection.choice import Choice, named
from oco.compiler.selection.judging import judge
from oco.compiler.selection.plan import Plan, compile_plan
from oco.compiler.selection.verdicts import Applicability
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

Array = np.ndarray[Any, Any]
ROUNDS = 20

FIXED = """
model fixed
horizon T {horizon}
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
minimize c @ x + sum_squares(x)
subject to
    side: sum(x) <= 2 each round
{feedback}
"""
MEAN = """
model mean
horizon T {horizon}
decision x[3] in ball(1)
stream c[3] in [-1, 1] iid
stream a[3] in [-1, 1] iid mean = [0.1, 0, 0]
minimize c @ x + sum_squares(x)
subject to
    side: a @ x <= 0.2 on average
{feedback}
"""
STILL = """
model still
horizon T {horizon}
decision x[4] in simplex
stream c[4] in [-1, 1]
minimize c @ x
subject to
    side: x[0] + 0.2 * x[1] <= 0.5 on average
{feedback}
"""
FREE = """
model free
horizon T {horizon}
decision x[4] in simplex
stream c[4] in [-1, 1]
minimize c @ x
{feedback}
"""

CASES = [
    ("coldq", FIXED, ""),
    ("coldq-expert", FIXED, ""),
    ("ofw-tvc", FIXED, ""),
    ("scofw-tvc", FIXED, ""),
    ("sinha-vaze", FIXED, ""),
    ("pfs", FIXED, ""),
    ("bfw-tvc", FIXED, "feedback bandit"),
    ("scbfw-tvc", FIXED, "feedback bandit"),
    ("mirror-descent", MEAN, ""),
    ("projection-free", MEAN, ""),
    ("dpp", MEAN, ""),
    ("mahdavi", MEAN, ""),
    ("mirror-prox", STILL, ""),
    ("mirror-descent", STILL, ""),
    ("yu-neely", STILL, ""),
    ("oeg", FREE, ""),
    ("ofw", FREE, ""),
    ("bgd", FREE, "feedback bandit"),
    ("two-point", FREE, "feedback two_point"),
]
FROM_CENTRE = {("mirror-prox", STILL), ("mirror-descent", STILL), ("oeg", FREE)}


@cache
def alone(text: str, name: str) -> Plan:
    """The plan of an algorithm, without a word on the others."""
    s = situation(text)
    verdict = replace(judge(named(name), s), applicability=Applicability.CHOSEN)
    return Plan(s.canonical.model, s.canonical, s.facts, Choice(s, (verdict,), True))


def data_of(text: str, x: Sequence[Array], rng: np.random.Generator) -> dict[str, Any]:
    if "two_point" in text:
        return {"loss": rng.uniform(-1, 1), "second_loss": rng.uniform(-1, 1)}
    if "bandit" in text:
        limits = {"constraints": np.array([x[0].sum() - 2])} if "side" in text else {}
        return {"loss": rng.uniform(-1, 1)} | limits
    size = 4 if "x[4]" in text else 3
    return {"c": rng.uniform(-1, 1, size), "a": rng.uniform(-1, 1, size)}


def epochs(first: int) -> list[range]:
    """The rounds of each epoch up to ROUNDS, from 1."""
    found, start, T = [], 1, first
    while start <= ROUNDS:
        found.append(range(start, min(start + T, ROUNDS + 1)))
        start, T = start + T, 2 * T
    return found


def first_length(name: str, text: str) -> int:
    plan = alone(text, name)
    assert plan.choice.restarts is not None
    return plan.choice.restarts[0]


@pytest.mark.parametrize(("name", "text", "feedback"), corners(CASES, CASES[::3]))
def test_epochs_are_runs_of_their_own(name: str, text: str, feedback: str) -> None:
    unknown = text.format(horizon="unknown", feedback=feedback)
    plan = alone(unknown, name)
    rng = np.random.default_rng(2)
    draws = {"u": rng.normal(size=(ROUNDS + 1, 4 if "x[4]" in text else 3))}
    ours = Run(plan, draws=draws)
    first = first_length(name, unknown)
    start = [b.domain.centre() for b in plan.canonical.blocks]
    for epoch in epochs(first):
        T = first * 2 ** len([e for e in epochs(first) if e.stop <= epoch.start])
        own = {"u": draws["u"][epoch.start - 1 :]}
        own_run = Run(alone(text.format(horizon=f"= {T}", feedback=feedback), name), start, own)
        for _ in epoch:
            x = ours.decisions
            np.testing.assert_allclose(x[0], own_run.decisions[0], rtol=0, atol=1e-9)
            data = data_of(unknown, x, rng)
            drawn = own_run.drawn
            ours.play(data)
            own_run.play(data)
        reached = own_run.compiled.decide(*own_run.state, *drawn)
        centre = (name, text) in FROM_CENTRE
        start = [b.domain.centre() for b in plan.canonical.blocks] if centre else [np.asarray(reached[0])]


@pytest.mark.parametrize(("name", "text", "feedback"), CASES)
def test_bounds_are_sums_over_the_epochs(name: str, text: str, feedback: str) -> None:
    unknown = text.format(horizon="unknown", feedback=feedback)
    guarantee = alone(unknown, name).guarantee
    assert guarantee is not None and "restarted with T =" in guarantee.theorem
    first, total, numbers = first_length(name, unknown), 0.0, 0
    for T in (first, 2 * first, 4 * first):
        own = alone(text.format(horizon=f"= {T}", feedback=feedback), name).guarantee
        assert own is not None
        trivial, number = own.regret_bound.trivial * T, own.regret()
        total += trivial if number is None or not number < trivial else number
        numbers += number is not None
    promised = guarantee.regret(7 * first)
    assert promised is None if not numbers else promised == pytest.approx(total, rel=1e-9)


@pytest.mark.parametrize("name", ["coldq", "mirror-descent", "oeg"])
def test_every_prefix_keeps_the_promise(name: str) -> None:
    text = next(t for n, t, _ in CASES if n == name).format(horizon="unknown", feedback="")
    plan = compile_plan(parse(text), name)
    rng = np.random.default_rng(1)
    learner = oco.compile(parse(text), name).learner()
    lost, slopes, squares = 0.0, np.zeros(4 if "x[4]" in text else 3), 0
    for n in range(1, 200):
        data = {k: v for k, v in data_of(text, [learner.decide()], rng).items() if f"stream {k}" in text}
        data["c"] = np.sign(data["c"])
        learner.decide()
        seen = learner.observe(**data)
        lost, slopes, squares = lost + seen.loss, slopes + data["c"], squares + ("sum_squares" in text)
        # the least total loss over the whole domain is below that of every comparator
        least = slopes.min() if "simplex" in text else -(slopes**2).sum() / (4 * squares)
        regret = plan.guarantee.regret(n)
        assert regret is not None and lost - least <= regret + 1e-9


def test_methods_whose_memory_grows_ask_for_the_horizon() -> None:
    text = MEAN.format(horizon="unknown", feedback="")
    with pytest.raises(oco.OcoError, match="use T, which the model leaves unknown"):
        compile_plan(parse(text), "meta-frank-wolfe")
    assert str(compile_plan(parse(text), "projection-free").settings["oracle"].formula) in ("ocg", "orgfw")


def test_rates_without_a_power_gain_a_logarithm() -> None:
    guarantee = alone(FIXED.format(horizon="unknown", feedback=""), "coldq").guarantee
    assert guarantee is not None
    assert [str(r) for r in guarantee.rates.values()] == ["log(T)**2", "log(T)"]


EXPERTS = """\
model experts
horizon T unknown
decision x[3] in box(0, 1)
stream c[3] in [-1, 1]
stream need in [0, 1]
minimize c @ x
subject to
    cap: x[0] + x[1] - need - 0.5 <= 0  each round
using coldq-expert {settings}
"""


@pytest.mark.parametrize(("M", "rows"), [("16", 16), ("17", 17), ("100", 100), ("floor(log(1 + T) / log(2)) + 1", 32)])
def test_there_is_room_for_the_experts_of_the_longest_epoch(M, rows):
    """Of 2^31 - 1 rounds."""
    plan = oco.compile(oco.parse(EXPERTS.format(settings=f"with M = {M}")))
    assert plan.learner(backend="numpy").values["Q"].shape == (rows, 1)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=needs_compiler)])
@pytest.mark.parametrize("length", [2.0**40, 1e300, 0.0])
def test_a_state_made_up_has_no_more_experts_than_there_is_room_for(backend, length):
    """Its epoch is so long that the default has more than 16: what lies behind their queues is never touched."""
    plan = oco.compile(oco.parse(EXPERTS.format(settings="")))
    state = plan.learner(backend=backend).state()
    state["values"]["T"] = pack(np.float64(length))
    learner = restored(state, plan.compiled(backend), plan.contract)
    for _ in range(3):
        try:
            learner.decide()
            learner.observe(c=[1, 0, -1], need=0.0)
        except OcoError as error:
            assert error.code == "OCO859"
    assert all(np.isfinite(v).all() for v in learner.values.values()) and learner.values["Q"].shape == (16, 1)
