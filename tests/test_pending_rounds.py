"""Rounds that wait until the sums of a certificate take many at once: the same sums, wherever a run is stopped and whatever runs it."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from thorough import corners

import oco
from oco.backends.learner import Learner
from oco.compiler.certificates import pending
from oco.compiler.certificates.pending import MOST_NUMBERS, MOST_PENDING, PENDING
from oco.plan import Plan

pytestmark = pytest.mark.usefixtures("waiting")
ROUNDS = 2 * MOST_PENDING + 13
HEAD = f"model m\nhorizon T = {ROUNDS}\nparam price[{ROUNDS}]\ndecision x[3] in box(0, 1)\nstream a[3] in [-1, 1]\nstream b in [0, 1]\n"
SHORT = "model m\nhorizon T = 9\ndecision x[3] in box(0, 1)\nstream a[3] in [-1, 1]\n"
ROWS = "subject to\n    cap: a @ x <= 1 each round\n    two: sum_squares(x - a) <= 3 each round\n"
CASES = {
    "affine": "minimize a @ x\nsubject to\n    cap: sum(x) <= 1 + b each round\n    mean: a @ x <= 0.5 on average\n",
    "of the round": "minimize (a + price[t - 1]) @ x + sum_squares(x)\n",
    "rows": "minimize -sum(x)\nsubject to\n    cap: a @ x <= b each round\n    two: sum_squares(x - a) <= 3 each round\n",
    "linearised": "minimize sum(huber(x - a))\n",
}


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the data of rounds wait whose terms are few operations, too."""
    monkeypatch.setattr(pending, "FEWEST_OPERATIONS", 0)


@cache
def planned(case: str) -> tuple[Plan, dict[str, np.ndarray]]:
    """Plan that keeps sums, and its data; constraints have multipliers of the rule's own."""
    rng = np.random.default_rng(0)
    model = oco.parse(HEAD + CASES[case])
    algorithm = "coldq" if "subject" in CASES[case] else "ogd"
    plan = oco.compile(model, algorithm, params={"price": rng.random(ROUNDS)}, certify="static")
    return plan, {"a": rng.uniform(-1, 1, (ROUNDS, 3)), "b": rng.random(ROUNDS)}


def played(learner: Learner, data: dict[str, np.ndarray], start: int, stop: int) -> Learner:
    """Learner after these rounds."""
    for t in range(start, stop):
        learner.decide()
        learner.observe(a=data["a"][t], b=data["b"][t])
    return learner


@pytest.mark.parametrize("case", corners(CASES, ["of the round", "rows"]))
def test_sums_are_those_of_each_round(case: str) -> None:
    """Losses, broken rounds and the bound against a learner that sums each round, before, at and after sums of many, in both backends."""
    plan, data = planned(case)
    assert PENDING in [f.name for f in plan.program.state]
    one = replace(plan, pending=False)
    assert PENDING not in [f.name for f in one.program.state]
    learners = [plan.learner(backend="numpy"), plan.learner(backend="c"), one.learner(backend="numpy")]
    done = 0
    for end in (1, MOST_PENDING - 1, MOST_PENDING, MOST_PENDING + 1, ROUNDS):
        many, compiled, single = (played(a, data, done, end).certificate() for a in learners)
        done = end
        for certificate in (many, compiled):
            assert certificate.rounds == end and certificate.broken == single.broken
            assert certificate.loss == pytest.approx(single.loss, rel=1e-12, abs=1e-12)
            assert certificate.bound == pytest.approx(single.bound, rel=1e-6, abs=1e-6)


def test_a_state_between_two_sums_goes_on() -> None:
    """A learner that is restored with rounds that wait, by the other backend too, keeps the sums of the one that went on."""
    plan, data = planned("of the round")
    learner = played(plan.learner(backend="numpy"), data, 0, 100)
    kept = learner.state()
    played(learner, data, 100, ROUNDS)
    for backend in ("numpy", "c"):
        restored = played(oco.restore(kept, backend=backend), data, 100, ROUNDS)
        assert restored.certificate().bound == pytest.approx(learner.certificate().bound, rel=1e-9, abs=1e-9)
    again = played(oco.restore(kept, backend="numpy"), data, 100, ROUNDS)
    assert all(np.array_equal(again.values[n], v) for n, v in learner.values.items())


def test_fleets_sum_at_once() -> None:
    """A compiled fleet writes all of its states anew in each round, so that no data wait there; its certificates are those of learners."""
    plan, data = planned("affine")
    fleet, learner = plan.fleet(2, backend="c"), played(plan.learner(backend="numpy"), data, 0, 80)
    for t in range(80):
        fleet.decide()
        fleet.observe(a=np.stack([data["a"][t]] * 2), b=np.stack([data["b"][t]] * 2))
    assert PENDING not in fleet.values
    for certificate in fleet.certificates():
        assert certificate.bound == pytest.approx(learner.certificate().bound, rel=1e-6, abs=1e-6)


def test_long_rows_do_not_wait() -> None:
    """Rows of which few would fit are summed at once: copying them would cost more."""
    n = MOST_NUMBERS
    model = oco.parse(
        f"model m\nhorizon T = 9\ndecision x[{n}] in box(0, 1)\nstream a[{n}] in [-1, 1]\nminimize a @ x\n"
    )
    plan = oco.compile(model, "ogd", certify="static")
    assert PENDING not in [f.name for f in plan.program.state]


def test_short_terms_do_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of an affine loss are taken at once, those of many products wait."""
    monkeypatch.undo()
    for text, waits in (("minimize a @ x\n", False), ("minimize square(a @ x - 1) + norm2(x - a)\n" + ROWS, True)):
        plan = oco.compile(oco.parse(SHORT + text), "ogd", certify="static")
        assert (PENDING in [f.name for f in plan.program.state]) is waits
