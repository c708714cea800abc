"""Functions in which the round `t` stands: what is said of them holds in every round, or is not said."""

from __future__ import annotations

import numpy as np
import pytest

from oco.compiler.prover.audit.verify import AuditOutcome, verify
from oco.compiler.prover.check import check
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.types import Status
from oco.dsl.diagnostics import OcoError
from oco.dsl.load import parse

HEAD = "model m\nhorizon T = 10\ndecision x[2] in box(0, 1)\n"


def facts_of(body: str) -> Facts:
    return check(parse(HEAD + body))


def test_an_equality_that_holds_in_the_first_round_alone_is_not_judged_by_it() -> None:
    facts = facts_of("minimize sum(x)\nsubject to\n    move: x[0] + x[1] == 0.5 * t\n")
    assert facts["feasible.mean"].status is Status.UNKNOWN  # in round 10 no decision satisfies it
    assert facts["multipliers.bounded"].status is Status.UNKNOWN
    fixed = facts_of("minimize sum(x)\nsubject to\n    move: x[0] + x[1] + t == 0.5 + t\n")
    assert fixed["feasible.mean"].value is True


def test_an_inequality_holds_where_it_holds_in_every_round() -> None:
    late = facts_of("minimize sum(x)\nsubject to\n    cap: 0.2 * t - x[0] <= 0   each round\n")  # from round 6 on none
    assert late["feasible.common"].value is not True and late["slater.margin"].status is not Status.PROVED
    always = facts_of("minimize sum(x)\nsubject to\n    cap: x[0] <= 0.5 * t   each round\n")
    assert always["feasible.common"].value is True
    assert always["slater.margin"].value == pytest.approx(0.5)  # at x = 0 in round 1


def test_no_margin_in_the_last_round_refutes_none_on_average() -> None:
    facts = facts_of("minimize sum(x)\nsubject to\n    cap: x[0] + t <= 8   on average\n")
    assert facts["slater.margin"].status is not Status.REFUTED  # x = 0 has 8 - 5.5 to spare in the mean
    assert facts["feasible.mean"].status is not Status.REFUTED


def test_bounds_are_those_of_the_last_round_and_tight() -> None:
    facts = facts_of("minimize t * square(x[0] - 0.25) + x[1]\n")
    assert facts["loss.bound"].value == pytest.approx(10 * 0.5625 + 1) and not facts["loss.bound"].loose
    assert facts["loss.smoothness.l2"].value == pytest.approx(20)
    assert facts["loss.strong_convexity.l2"].value == 0


def test_a_loss_that_is_convex_at_first_is_refuted_by_a_later_round() -> None:
    with pytest.raises(OcoError) as caught:
        facts_of("minimize (5 - t) * square(x[0]) + x[1]\n")
    assert "with t = " in str(caught.value)


def test_variations_count_what_the_round_changes() -> None:
    facts = check(
        parse(HEAD + "stream c in [0, 1]\nminimize (t * c) * x[0]\nsubject to\n    cap: x[1] <= c + t\n"),
        {"c": np.array([1.0, 0.5, 0.5, 1.0])},
    )
    slopes = np.array([1, 2, 3, 4]) * np.array([1.0, 0.5, 0.5, 1.0])
    assert facts["variation.gradient"].value == pytest.approx(np.sum(np.diff(slopes) ** 2))
    assert facts["variation.constraint"].value == pytest.approx(0.5 + 1 + 1.5)


def test_derivations_with_rounds_replay() -> None:
    text = "minimize t * sum_squares(x) + exp(x[0] / t)\nsubject to\n    cap: x[0] * sqrt(t) <= 4   each round\n"
    assert [c for c in verify(facts_of(text)) if c.outcome is AuditOutcome.FAILED] == []
