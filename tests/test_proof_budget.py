"""Budgets of proofs: facts whatever the clock says, words and a proposed effort where a search gives up, what more effort adds."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thorough import thorough

import oco
from oco.cli import main
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.ledger import ledger_text
from oco.compiler.prover.search_budget import MORE, STEPS, Allowance, SearchBudget
from oco.compiler.prover.types import ProofRule, Status, Step
from oco.dsl.diagnostics import OcoError

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
HEAD = "model m\nhorizon T = 100\n"
UPWARDS = (".lower", ".strong_convexity.l2", "slater.margin")
"""Facts of which the larger number says more."""


def squares(count: int) -> str:
    """A sum of so many squares, each with a stream of its own: the largest curvature is count / 3 times 2 towards each of three entries."""
    streams = "".join(f"stream s{k} in [0, 1]\n" for k in range(count))
    terms = " + ".join(f"s{k} * square(x[{k % 3}] - {k})" for k in range(count))
    return f"{HEAD}{streams}decision x[3] in box(0, 1)\nminimize {terms}\n"


def traces() -> str:
    """The larger of ten affine functions of a thousand entries in an l1 ball: ranges take long, and are much tighter than intervals."""
    traces = ", ".join(f"trace(outer(x - {k}, u))" for k in range(1, 11))
    return f"{HEAD}param u[1000] = 1..1000\ndecision x[1000] in l1_ball(2)\nminimize max([{traces}])\n"


def steps(facts: Facts, key: str) -> Iterator[Step]:
    """Every step of a derivation, once."""
    left, seen = [facts[key].why], set()
    while left:
        step = left.pop()
        if step is not None and id(step) not in seen:
            seen.add(id(step))
            yield step
            left += step.premises


def proposed(facts: Facts) -> dict[str, float]:
    """The efforts that are proposed where searches gave up, by the key of the fact."""
    efforts: dict[str, float] = {}
    for key in facts:
        for step in steps(facts, key):
            if step.rule == ProofRule.NOT_SEARCHED:
                assert ProofRule.NOT_SEARCHED in step.claim
                efforts[key] = max(efforts.get(key, 0.0), effort_in(step.claim))
    return efforts


def effort_in(words: str) -> float:
    command, argument = re.search(r"`oco --effort (\S+) \.\.\.` or `oco\.check\(model, effort=(\S+)\)`", words).groups()
    assert command == argument
    return float(command)


def assert_at_least_as_tight(before: Facts, after: Facts) -> None:
    """What was proved or refuted stays so, and no number became worse."""
    for key in before:
        was, now = before[key], after[key]
        if was.status in (Status.PROVED, Status.REFUTED):
            assert now.status is was.status, key
        if was.status is Status.PROVED and isinstance(was.value, float):
            room = 1e-9 * abs(was.value) if math.isfinite(was.value) else 0.0
            better = now.value >= was.value - room if key.endswith(UPWARDS) else now.value <= was.value + room
            assert better, f"{key}: {was.value}, then {now.value}"
            assert was.loose or not now.loose, key


# Facts and the clock.


@pytest.mark.parametrize("name", ("portfolio", thorough("tracking"), thorough("blind_pricing")))
def test_facts_of_two_processes_are_the_same_to_the_last_digit(name: str) -> None:
    """With hashes of strings that differ, at an effort at which searches give up."""
    code = (
        "import json, sys, oco\n"
        "print(json.dumps(oco.check(oco.load(sys.argv[1]), effort=0.001).as_data(), sort_keys=True))"
    )
    command = [sys.executable, "-c", code, str(EXAMPLES / f"{name}.oco")]
    texts = [
        subprocess.run(command, capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    ]
    assert texts[0] == texts[1]
    assert ProofRule.NOT_SEARCHED in texts[0]


@pytest.mark.parametrize("effort", (0.003, 1.0))
@pytest.mark.parametrize("name", ("online_qp", "job_scheduling"))
def test_a_clock_that_races_changes_no_fact(name: str, effort: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour passes at each look at the clock, and a solver is not given a time."""
    import cvxpy as cp

    def text() -> str:
        return json.dumps(oco.check(oco.load(EXAMPLES / f"{name}.oco"), effort=effort).as_data(), sort_keys=True)

    before, ticks, real = text(), iter(range(0, 10**12, 3600)), cp.Problem.solve

    def solve(problem, *args, **options):
        assert not any("time" in option for option in options), options
        return real(problem, *args, **options)

    monkeypatch.setattr(cp.Problem, "solve", solve)
    for clock in ("time", "monotonic", "perf_counter", "process_time"):
        monkeypatch.setattr(time, clock, lambda: float(next(ticks)))
    assert text() == before


# Searches that give up.


@pytest.mark.parametrize("name", ("datacenter", "matrix_completion", "online_qp", "ratings", "tracking", "portfolio"))
def test_the_usual_effort_is_proposed_below_it_and_is_enough(name: str) -> None:
    model = oco.load(EXAMPLES / f"{name}.oco")
    little, usual = oco.check(model, effort=0.001), oco.check(model, effort=1)
    assert set(proposed(little).values()) == {1.0}
    assert not proposed(usual)
    assert_at_least_as_tight(little, usual)


def test_a_fact_that_is_unknown_says_that_it_is_not_searched_further_and_is_known_at_the_proposed_effort() -> None:
    """The smoothness is that of the closed form: 2 for each of the 17 squares of the first entry."""
    model, key = oco.parse(squares(50)), "loss.smoothness.l2"
    little = oco.check(model, effort=1 / 16)
    assert little[key].status is Status.UNKNOWN and little[key].value is None
    assert (
        little[key].why.rule == ProofRule.NOT_SEARCHED
        and "is not searched further: `oco --effort 1 ...`" in little[key].why.claim
    )
    assert f"unknown, {ProofRule.NOT_SEARCHED}: {key}\n`oco --effort 1 ...`" in ledger_text(little)
    more = oco.check(model, effort=1)
    assert not proposed(more)
    assert more[key].status is Status.PROVED and 2 * 17 <= more[key].value <= 2 * 17 * (1 + 1e-9)
    assert_at_least_as_tight(little, more)


def test_proposals_that_are_followed_come_to_an_end_and_each_tightens() -> None:
    """The first bounds are those of intervals; no later one is below the true supremum, that at x = 2 e_1000."""
    model, effort, results = oco.parse(traces()), 0.1, []
    for _ in range(4):
        results.append(oco.check(model, effort=effort))
        efforts = proposed(results[-1]).values()
        if not efforts:
            break
        assert max(efforts) > effort
        effort = max(efforts)
    assert len(results) > 1 and not efforts
    for before, after in pairwise(results):
        assert_at_least_as_tight(before, after)
    true = 2 * 1000 - 1000 * 1001 / 2  # the traces are u @ x - k * sum(u), and the largest is that of k = 1
    first, last = results[0]["loss.upper"].value, results[-1]["loss.upper"].value
    assert first > last >= true - 1e-9 * abs(true)


def test_an_undefined_expression_says_that_its_range_is_not_searched_further() -> None:
    """`log(r @ w)` over the simplex needs the support function, which takes steps: intervals alone begin at 0."""
    with pytest.raises(OcoError) as refused:
        oco.check(oco.load(EXAMPLES / "portfolio.oco"), effort=1e-4)
    (diagnostic,) = refused.value.diagnostics
    assert diagnostic.code == "OCO504" and ProofRule.NOT_SEARCHED in diagnostic.hint
    oco.check(oco.load(EXAMPLES / "portfolio.oco"), effort=effort_in(diagnostic.hint))


def test_a_vector_constraint_proposes_the_effort_of_entries_that_are_not_known() -> None:
    """Another entry, with a bound that is known but not searched further, proposes nothing: the value of its step is the bound."""
    model = oco.parse(
        f"{HEAD}decision x[2] in box(0, 1)\nstream a[2] in [0, 1e6]\nstream free[2]\nminimize sum(x)\nsubject to\n"
        "    rows: [1e6 * exp(a[0] * x[0] / 1e6 - x[1]) - a[1] * square(x[0]), free[0] * x[0]] <= 5\n"
    )
    facts = oco.check(model, effort=1e-5)
    known, unknown, whole = (facts[f"constraints.rows{place}.upper"] for place in ("[0]", "[1]", ""))
    assert known.status is Status.PROVED and known.why.rule == ProofRule.NOT_SEARCHED
    assert unknown.status is whole.status is Status.UNKNOWN
    assert whole.why is None or whole.why.value == effort_in(whole.why.claim)


# Allowances.

REQUESTS = st.lists(st.floats(1.0, 1e9), min_size=1, max_size=20)


@given(effort=st.floats(1e-3, 1e3), share=st.floats(0.01, 1.0), requests=REQUESTS)
def test_a_request_that_was_refused_is_met_at_the_proposed_effort(effort, share, requests) -> None:
    allowance, needed = SearchBudget(effort).allowance(share), 0.0
    for request in requests:
        before, refused = allowance.left, allowance.refused
        if allowance.take(request):
            assert request <= before and allowance.left == before - request
        else:
            assert request > before and allowance.left == before and allowance.refused == refused + 1
            needed = max(needed, allowance.steps - before + request)
    assert bool(needed) is bool(allowance.refused)
    if needed:
        assert SearchBudget(allowance.more).allowance(share).steps >= needed * (1 - 1e-6)
        power = math.log(allowance.more / effort, MORE)
        assert allowance.more == 1.0 or abs(power - round(power)) < 1e-9
        if allowance.more > max(1.0, MORE * effort):  # the power before would not do
            assert SearchBudget(allowance.more / MORE).allowance(share).steps < needed * (1 + 1e-6)


@given(share=st.floats(0.01, 0.9), requests=st.lists(st.tuples(st.booleans(), st.floats(1.0, STEPS)), max_size=20))
def test_a_nested_allowance_spends_both(share, requests) -> None:
    whole = SearchBudget().allowance(1.0)
    part = whole.part(share)
    of_part = of_whole = 0.0
    for nested, request in requests:
        fits = of_whole + request <= whole.steps and (not nested or of_part + request <= part.steps)
        taker = part if nested else whole
        refused = taker.refused, whole.refused
        assert taker.affords(request) is fits
        if fits:
            assert taker.take(request)
            of_part, of_whole = of_part + nested * request, of_whole + request
        else:  # the whole proposes the effort: it counts what its part refuses
            assert (taker.refused, whole.refused) == tuple(n + 1 for n in refused)
        assert part.left == pytest.approx(part.steps - of_part, rel=1e-9, abs=1e-3)
        assert whole.left == pytest.approx(whole.steps - of_whole, rel=1e-9, abs=1e-3)
    assert whole.more >= part.more


def test_a_nested_allowance_ends_with_its_own_steps_and_with_those_of_the_whole() -> None:
    whole = SearchBudget().allowance(1.0)
    part = whole.part(1 / 8)
    assert part.take(STEPS / 8) and not part.take(1) and whole.take(1)
    assert part.refused == whole.refused == 1
    other = whole.part(1 / 2)
    assert whole.take(STEPS * 0.8) and not other.take(STEPS / 4), "half of its own, and more than the whole has left"
    assert isinstance(other, Allowance) and other.left == STEPS / 2


# Efforts.


@pytest.mark.parametrize("effort", (0, -1, 0.0, -0.0, math.nan, math.inf, -math.inf, True, "4", None, 1j, [1]))
def test_an_effort_that_is_no_positive_number_is_refused(effort) -> None:
    text = f"{HEAD}decision x[2] in box(0, 1)\nminimize sum(x)\n"
    for use in (
        SearchBudget,
        lambda e: oco.check(oco.parse(text), effort=e),
        lambda e: oco.compile(oco.parse(text), effort=e),
    ):
        with pytest.raises(OcoError) as refused:
            use(effort)
        (diagnostic,) = refused.value.diagnostics
        assert diagnostic.code == "OCO526" and "positive number" in diagnostic.message and diagnostic.hint


@pytest.mark.parametrize("effort", ("0", "-1", "nan", "inf"))
def test_the_command_refuses_them_too(effort: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "m.oco"
    model.write_text(f"{HEAD}decision x[2] in box(0, 1)\nminimize sum(x)\n", encoding="utf-8")
    assert main(["--effort", effort, "check", str(model)]) != 0
    assert "OCO526" in capsys.readouterr().err
