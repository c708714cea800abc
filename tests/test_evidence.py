"""Evidence against what models state of their streams: valid, quick, and acted upon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from thorough import corners, thorough

import oco
from oco.backends import registry
from oco.compiler.evidence.bets import payments, stated_entries
from oco.compiler.evidence.wealth import Evidence, stakes
from oco.compiler.problem.canonical import Canonical, canonical
from oco.dsl.diagnostics import OcoError

Draw = Callable[[np.random.Generator, int, float], Any]
STATED: dict[str, tuple[str, Draw]] = {
    "poisson": ("~ poisson(40) in [0, 100]", lambda rng, n, f: np.minimum(rng.poisson(40 * f, n), 100)),
    "uniform": ("~ uniform(0, 1)", lambda rng, n, f: np.minimum(rng.random(n) * f, 1)),
    "bernoulli": ("~ bernoulli(0.3)", lambda rng, n, f: rng.random(n) < 0.3 * f),
    "exponential": ("~ exponential(1) in [0, 40]", lambda rng, n, f: np.minimum(rng.exponential(f, n), 40)),
    "normal": ("~ normal(5, 2) in [-15, 25]", lambda rng, n, f: rng.normal(5 * f, 2, n)),
    "iid": (
        "in [0, 1] iid mean = 0.4",
        lambda rng, n, f: rng.beta(2 * f, 3, n) if f == 1 else np.minimum(f * rng.beta(2, 3, n), 1),
    ),
}


def model_of(stated: str, rounds: int = 3000) -> Any:
    text = f"model m\nhorizon T = {rounds}\ndecision x in box(0, 1)\nstream s {stated}\nminimize square(x) - x * s\n"
    return oco.parse(text)


def evidence_of(stated: str, alpha: float, rounds: int = 3000) -> Evidence:
    return Evidence.of(canonical(model_of(stated, rounds)), alpha)


@pytest.mark.parametrize("name", STATED)
def test_bets_pay_one_in_the_mean(name: str) -> None:
    """Within four standard errors of 100,000 draws, whatever the bet."""
    stated, draw = STATED[name]
    values = np.asarray(draw(np.random.default_rng(0), 100_000, 1.0), dtype=np.float64)[:, None]
    paid = payments(stated_entries(canonical(model_of(stated))), {"s": values}, {})
    assert (paid > 0).all()
    error = paid.std(axis=0) / np.sqrt(len(paid))
    assert (np.abs(paid.mean(axis=0) - 1) <= 4.5 * error + 1e-9).all()


@pytest.mark.parametrize("streams", [40, thorough(100)])
@pytest.mark.parametrize("name", corners(STATED, ("poisson", "normal", "iid")))
def test_false_alarms_are_rare_and_changes_are_seen(name: str, streams: int) -> None:
    """Streams of 3,000 rounds at alpha = 5%; then a mean that is 20% larger from round 1,501 on."""
    stated, draw = STATED[name]
    rng, alpha = np.random.default_rng(1), 0.05
    start, false = evidence_of(stated, alpha), 0
    for _ in range(streams):
        false += start.after_rounds({"s": draw(rng, 3000, 1.0)}).alarm is not None
    assert false <= streams * alpha + 3 * np.sqrt(streams * alpha)
    delays = []
    for _ in range(5):
        values = np.concatenate([draw(rng, 1500, 1.0), draw(rng, 6000, 1.2)])
        alarm = start.after_rounds({"s": values}).alarm
        assert alarm is not None
        delays.append(alarm.round - 1500)
    assert 0 < np.median(delays) < 3000


def test_one_round_at_a_time_is_the_same() -> None:
    rng = np.random.default_rng(2)
    for name in ("poisson", "iid"):
        stated, draw = STATED[name]
        values = np.asarray(draw(rng, 200, 1.1), dtype=np.float64)
        start = evidence_of(stated, 1e-200)
        together, step = start.after_rounds({"s": values}), start
        for v in values:
            step = step.after({"s": v})
        assert step.rounds == together.rounds == 200 and start.rounds == 0
        np.testing.assert_allclose(step.begun, together.begun, rtol=1e-8)
        assert step.wealth == pytest.approx(together.wealth, rel=1e-8)


def test_wealth_begins_at_one_and_is_kept_by_sure_data() -> None:
    """With a horizon or none the shares sum to one; a value at the mean moves no bet on it."""
    for horizon in ("1000", "unknown"):
        text = f"model m\nhorizon T = {horizon}\ndecision x in box(0, 1)\nstream s in [0, 1] iid mean = 0.5\nminimize x * s\n"
        text = text.replace("T = unknown", "T unknown")
        start = Evidence.of(canonical(oco.parse(text)), 0.01)
        assert start.wealth == 1.0
        assert start.after_rounds({"s": np.full(500, 0.5)}).wealth == pytest.approx(1.0, abs=1e-9)


def test_dependence_is_seen() -> None:
    """Values of the stated mean that go from one side of it to the other more often than not."""
    rng = np.random.default_rng(3)
    sides = np.cumsum(rng.random(4000) < 0.9) % 2
    values = np.where(sides > 0, 0.6, 0.2) + 0.2 * rng.random(4000)
    alarm = evidence_of("in [0, 1] iid mean = 0.5", 0.01).after_rounds({"s": values}).alarm
    assert alarm is not None and "independent" in alarm.statement


def test_a_learner_goes_over() -> None:
    """On an alarm another rule decides, from the decision reached, and the learner says since when and why."""
    text = (
        "model m\nhorizon T = 400\ndecision x[2] in box(0, 1)\nstream s[2] in [0, 1] iid mean = 0.5\nminimize s @ x\n"
        "subject to\n    cap: s @ x >= 0.2 on average\nusing dpp\n"
    )
    plan, rng = oco.compile(oco.parse(text), settings="paper"), np.random.default_rng(4)
    learner = oco.alert(plan, 0.01)
    assert "`coldq` takes over" in learner.contract.alert.result and plan.algorithm == "dpp"
    same = plan.learner()
    for t in range(300):
        decided = learner.decide()
        assert ((decided >= 0) & (decided <= 1)).all() and learner.round == t + 1
        if learner.alarm is None:
            np.testing.assert_array_equal(decided, same.decide())
        values = rng.random(2) * (1.0 if t < 150 else 0.4)
        learner.observe(s=values)
        if learner.alarm is None:
            same.observe(s=values)
    assert learner.alarm is not None and 150 < learner.alarm.round < 250
    assert any(
        f"since round {learner.alarm.round} no longer claimed" in w and "takes over" in w for w in learner.warnings
    )
    assert learner.round == 301 and "Wang, Yan & Liu 2025" in learner.guarantee[0] != plan.contract.guarantee[0]


def test_without_a_range_the_rule_stays() -> None:
    text = "model m\nhorizon T = 90\ndecision x in box(0, 1)\nstream s ~ exponential(1)\nminimize square(x) - x * s\n"
    learner = oco.alert(oco.compile(oco.parse(text)), 0.01)
    for _ in range(60):
        learner.decide()
        learner.observe(s=9.0)
    assert learner.alarm is not None and any("there is no other" in w for w in learner.warnings)
    assert learner.guarantee == ("No guarantee: no theorem of the algorithm applies to this model.",)


@pytest.mark.parametrize(
    ("stated", "alpha"),
    [("in [0, 1]", 0.01), ("in [0, 1] iid", 0.01), ("~ uniform(0, 1)", 0.0), ("~ uniform(0, 1)", 1.0)],
)
def test_what_cannot_be_watched_says_so(stated: str, alpha: float) -> None:
    plan = oco.compile(model_of(stated), "ogd")
    with pytest.raises(OcoError) as error:
        oco.alert(plan, alpha)
    assert error.value.code == "OCO872"


def test_runs_warn_of_data_that_refute_the_model() -> None:
    plan, rng = oco.compile(model_of("~ uniform(0, 1)", 300), "ogd"), np.random.default_rng(5)
    assert not any("no longer claimed" in w for w in plan.run({"s": rng.random(300)}).warnings)
    assert any("no longer claimed" in w for w in plan.run({"s": rng.random(300) ** 2}).warnings)
    assert not any("no longer claimed" in w for w in plan.run().warnings), "draws are the model's own"


def test_of_a_large_stream_some_entries_are_watched() -> None:
    """A stream of 1.6 million entries is begun in moments; the last entry is among those that are watched, with its own arguments."""
    text = """
model wide
horizon T = 10
param m[900, 1700]
decision x in box(0, 1)
stream P[900, 1700] ~ normal(m, 1)
stream c in [0, 1]
minimize c * x
subject to
    few: x * sum(P) <= 1  each round
"""
    means = np.zeros((900, 1700))
    means[-1, -1] = 7.0
    problem = canonical(oco.parse(text, params={"m": means}))
    entries = stated_entries(problem)
    assert len(entries) == 64 and entries[-1].place == means.size - 1
    (edges,) = [b.edges for b in entries[-1].bets if b.edges is not None]
    assert abs(float(np.median(edges)) - 7.0) < 0.1
    assert stated_entries(problem, frozenset({"c"})) == ()


def several_streams(horizon: str) -> tuple[Canonical, dict[str, Any]]:
    """Streams of several entries, of integers, of more entries than a vector holds with bins of their own, of more than are watched, and of
    a mean alone, in one of them far from the middle; over 900 rounds, in two of which a value is outside of its range.
    """
    rates = np.linspace(0.2, 6.0, 9)
    text = (
        f"model m\nhorizon {horizon}\ndecision x in box(0, 1)\nstream s[2, 3] ~ uniform(0, 1)\nstream k[2] ~ poisson(3) in [0, 9]\n"
        "stream u ~ exponential(1)\nstream free[2] in [0, 1]\nstream v[2] in [0, 1] iid mean = 0.4\n"
        "stream far in [0, 1000] iid mean = 0.5\nstream many[130] in [0, 1] iid mean = 0.5\n"
        "param r[9]\nstream n[9] ~ poisson(r) in [0, 20]\n"
        "minimize x * (sum(s) + sum(free) + sum(v) + sum(n) + far + sum(many)) + square(x) * (sum(k) + u)\n"
    )
    rng = np.random.default_rng(7)
    data = {
        "s": rng.random((900, 2, 3)),
        "k": np.minimum(rng.poisson(3.0, (900, 2)), 9),
        "u": rng.exponential(size=900),
        "v": rng.beta(2.0, 3.0, (900, 2)),
        "far": rng.exponential(0.5, 900),
        "many": rng.random((900, 130)),
        "n": np.minimum(rng.poisson(rates, (900, 9)), 20),
    }
    data["s"][450, 0, 1], data["v"][620, 0] = -0.3, 1.4
    return canonical(oco.parse(text, params={"r": rates})), data


@pytest.mark.skipif(not registry.usable("c"), reason="no C compiler")
@pytest.mark.parametrize("horizon", ["T = 900", "T unknown"])
def test_wealth_in_c_is_that_of_numpy(horizon: str) -> None:
    """Over several calls; the alarm comes in the same round, or in none."""
    problem, data = several_streams(horizon)
    for alpha, factor in ((1e-3, 1.0), (1e-3, 0.7), (1e-12, 0.7)):
        values = data | {"s": data["s"] * np.where(np.arange(900) < 300, 1.0, factor)[:, None, None]}
        start = Evidence.of(problem, alpha)
        growth, quick = registry.backend("c").growth(start.entries), start
        slow = start.after_rounds(values)
        for first, last in ((0, 1), (1, 450), (450, 900)):
            quick = quick.after_rounds({n: a[first:last] for n, a in values.items()}, growth)
        assert (quick.alarm, quick.rounds) == (slow.alarm, slow.rounds)
        assert (slow.alarm is None) == (factor == 1.0)
        np.testing.assert_allclose(quick.begun, slow.begun, rtol=1e-9)
        assert quick.wealth == pytest.approx(slow.wealth, rel=1e-9)


@pytest.mark.skipif(not registry.usable("c"), reason="no C compiler")
@pytest.mark.parametrize("horizon", ["T = 900", "T unknown"])
def test_bounds_of_wealth_in_c_are_above_it_and_near(horizon: str) -> None:
    """The wealth beside it is the recursion as it is written, over several calls."""
    problem, data = several_streams(horizon)
    start = Evidence.of(problem, 1e-3)
    growth, shares = registry.backend("c").growth(start.entries), start._shares(np.arange(1, 901))
    flat = {n: np.asarray(data[n], dtype=float).reshape(900, -1) for n in start.streams}
    wealth, before = payments(start.entries, flat, {}), np.zeros(len(start.begun))
    for share, row in zip(shares, wealth):
        row *= before + share
        before = row
    totals, bound, last = wealth @ stakes(start.entries), start.begun, {}
    for first, end in ((0, 1), (1, 450), (450, 900)):
        part = {n: a[first:end] for n, a in flat.items()}
        bound, most = growth.at_most(bound, part, last, shares[first:end])
        last = {n: a[-1] for n, a in part.items()}
        assert np.all(bound >= wealth[end - 1]) and most >= totals[first:end].max()
        np.testing.assert_allclose(bound, wealth[end - 1], rtol=2e-3, atol=1e-30)


@pytest.mark.skipif(not registry.usable("c"), reason="no C compiler")
def test_bounds_of_wealth_show_that_there_is_no_alarm_and_never_hide_one() -> None:
    problem, data = several_streams("T = 900")
    start = Evidence.of(problem, 1e-3)
    growth = registry.backend("c").growth(start.entries)
    halves = [{n: a[k : k + 450] for n, a in data.items()} for k in (0, 450)]
    assert start.after_rounds(data).alarm is None and start.surely_quiet(halves, growth)
    for where, factor in (((slice(300, None), 0, 0), 0.7), ((700, 1, 2), np.nan), ((5, 0, 0), 1e300)):
        wrong = data | {"s": data["s"].copy()}
        wrong["s"][where] *= factor
        assert start.after_rounds(wrong).alarm is not None
        assert not start.surely_quiet([{n: a[k : k + 450] for n, a in wrong.items()} for k in (0, 450)], growth)
