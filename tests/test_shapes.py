"""Shapes that are easy to forget: each statement ends in rounds with decisions in the domain, or in an error with its code."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from shape_cases import outcome, played, sample
from thorough import thorough

import oco

HEAD = "model m\nhorizon T = 100\nparam A[1, 3] = [[1.0, -0.5, 0.25]]\n"
ONE_ENTRY = {
    # a constraint of one entry that depends on streams: the lines of the model behind `A`
    "row": "stream b[1] in [0.5, 1]\nstream c[3] in [-1, 1]\nminimize c @ x\nsubject to\n    q: A @ x <= b",
    "row_signed": "stream b[1] in [-1, 1]\nstream c[3] in [-1, 1]\nminimize c @ x\nsubject to\n    q: b * (A @ x) <= 0.9",
    "slice": "stream s in [-1, 1]\nstream c[3] in [-1, 1]\nminimize c @ x\nsubject to\n    q: s * x[0:1] <= 0.9",
    "bracket": "stream b[1] in [-1, -0.5]\nstream c[3] in [-1, 1]\nminimize c @ x\nsubject to\n    q: [x[0]] + b <= 0.9",
    "stream_row": "stream R[1, 3] in [-1, 1]\nstream c[3] in [-1, 1]\nminimize c @ x\nsubject to\n    q: 0.5 * (R @ x) <= 0.9",
}
DOMAINS = ("box(-1, 1)", "ball(1)", "simplex", "l1_ball(1)", "nonneg_ball(1)", "box(-1, 1) with sum(x) <= 1")


def one_entry(form: str, domain: str, timing: str) -> str:
    return f"{HEAD}decision x[3] in {domain}\n{ONE_ENTRY[form]} {timing}\n"


PAIRS = list(product(ONE_ENTRY, ("each round", "on average")))


@pytest.mark.parametrize("every", [False, thorough(True)])
@pytest.mark.parametrize(("form", "timing"), PAIRS)
def test_a_constraint_of_one_entry_has_the_facts_of_the_number(form: str, timing: str, every: bool) -> None:
    """Its margin, and a learner that stays in the domain; a law that the text with the entry written as a number obeys too.

    Over every domain, or over one of them that is another for the next pair.
    """
    for domain in DOMAINS if every else DOMAINS[PAIRS.index((form, timing)) % len(DOMAINS) :][:1]:
        text = one_entry(form, domain, timing)
        facts = played(text, "paper").facts, oco.check(oco.parse(as_number(text)))
        margins = [f["slater.margin"].value for f in facts]
        assert margins[0] == pytest.approx(margins[1], rel=1e-6), text


def as_number(text: str) -> str:
    """The same constraint between numbers: each side summed over its one entry."""
    head, _, constraint = text.partition("    q: ")
    left, _, right = constraint.partition(" <= ")
    bound, _, timing = right.partition(" ")
    return f"{head}    q: sum({left}) <= {f'{bound}[0]' if bound == 'b' else bound} {timing}"


@pytest.mark.parametrize("domain", DOMAINS)
def test_an_equality_of_one_entry_each_round(domain: str) -> None:
    text = f"{HEAD}decision x[3] in {domain}\nstream b[1] in [0.5, 1]\nminimize sum(x)\nsubject to\n    q: b * (A @ x) == 0 each round\n"
    assert outcome(text, "paper") in ("", "OCO708")


@pytest.mark.parametrize(
    "statement", ["param w[0] = 1", "stream s[0] in [0, 1]", "decision y[0] in box(0, 1)", "param w[2, 0] = 1"]
)
def test_arrays_without_entries_are_refused_where_they_are_declared(statement: str) -> None:
    text = f"model m\nhorizon T = 10\ndecision x[2] in box(0, 1)\n{statement}\nstream c[2] in [0, 1]\nminimize c @ x\n"
    with pytest.raises(oco.OcoError) as caught:
        oco.parse(text)
    assert caught.value.code == "OCO308" and caught.value.diagnostics[0].span.line == 4


@pytest.mark.parametrize("count", [6, thorough(40)])
def test_statements_of_all_kinds_over_these_shapes(count: int) -> None:
    """Some models of the thousands that `tests/fuzz/shapes.py` goes through."""
    ends = {text: outcome(text, "paper") for text in sample(count, seed=0)}
    assert [text for text, code in ends.items() if code == "OCO999"] == []
    assert np.mean([code == "" for code in ends.values()]) > 0.5


@pytest.mark.parametrize("domain", ["box(1, 1)", "simplex", "budget(0, 1, 0.5)", "capped_simplex(1)"])
@pytest.mark.parametrize("constraint", ["", "subject to\n    q: s * x <= 1.5 each round\n"])
def test_the_regret_over_a_domain_of_one_point_is_none(domain: str, constraint: str) -> None:
    """The best decision in hindsight is the one that is always taken."""
    text = (
        f"model m\nhorizon T = 50\ndecision x[1] in {domain}\nstream s[1] in [-1, 1]\nminimize sum(s * x)\n{constraint}"
    )
    plan = oco.compile(oco.parse(text))
    regret = plan.guarantee.bounds[0]
    assert regret.number(50) == 0 and "OCO608" not in [w.code for w in plan.warnings]
