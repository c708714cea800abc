"""Smoothness and strong convexity of functions of ordinary use: never false, within 1.2 of closed forms, loose where beyond 1.05."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from second_differences import STEP
from second_order_cases import CASES, Case
from thorough import corners

from oco.compiler.prover.check import check
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.types import Status
from oco.dsl.load import parse

ROUNDING, PROMISED, LOOSE = 1e-9, 1.2, 1.05
DIFFERENCES = 2e-6  # relative error of second differences
every = pytest.mark.parametrize("case", corners(CASES, CASES[::3]), ids=lambda case: f"{case.loss}, {case.domain.kind}")


@lru_cache
def facts_of(text: str) -> Facts:
    return check(parse(text))


def test_the_table_is_large() -> None:
    assert len(CASES) >= 40


@every
def test_the_closed_forms_are_those_of_second_differences(case: Case) -> None:
    """No second difference lies outside of what is stated, and some come within 2% of it."""
    low, high = case.differences.extremes(np.random.default_rng(3), 4000)
    if case.smooth is not None:
        assert 0.98 * case.smooth <= high <= case.smooth * (1 + DIFFERENCES)
        if case.strong is not None:
            slack = DIFFERENCES * case.smooth
            assert case.strong - slack <= low <= 1.02 * case.strong + STEP * case.smooth


@every
def test_nothing_is_false(case: Case) -> None:
    """Against closed forms, and against second differences at places of its own."""
    facts = facts_of(case.text)
    smooth, strong = facts["loss.smoothness.l2"], facts["loss.strong_convexity.l2"]
    low, high = case.differences.extremes(np.random.default_rng(4), 1000)
    assert strong.status is Status.PROVED and strong.value <= low + DIFFERENCES * max(1.0, abs(high))
    if case.smooth is None:
        assert smooth.status is Status.UNKNOWN
        return
    assert smooth.value >= max(high * (1 - DIFFERENCES), case.smooth * (1 - ROUNDING))
    assert case.strong is None or strong.value <= case.strong * (1 + ROUNDING)
    if case.l2 is not None:
        assert facts["loss.lipschitz.l2"].value >= case.l2 * (1 - ROUNDING)


@every
def test_what_is_promised_is_within_a_fifth(case: Case) -> None:
    facts = facts_of(case.text)
    if case.smooth is not None and "smoothness" in case.tight:
        assert facts["loss.smoothness.l2"].value <= PROMISED * case.smooth
    if "strong_convexity" in case.tight and case.strong is not None:
        assert case.strong <= PROMISED * facts["loss.strong_convexity.l2"].value
    if case.l2 is not None:
        assert facts["loss.lipschitz.l2"].value <= PROMISED * case.l2


@every
def test_what_is_beyond_a_twentieth_is_loose(case: Case) -> None:
    """And what is promised is known to be tight: the search finds where it is attained."""
    facts = facts_of(case.text)
    smooth, strong, l2 = (facts[f"loss.{key}"] for key in ("smoothness.l2", "strong_convexity.l2", "lipschitz.l2"))
    _, high = case.differences.extremes(np.random.default_rng(5), 2000)
    low = case.strong
    if case.smooth is not None:
        assert smooth.loose or smooth.value <= LOOSE * case.smooth
        assert not smooth.loose or smooth.value > 1.02 * high
    if low is not None:
        assert strong.loose or low <= LOOSE * strong.value + ROUNDING
    if case.l2 is not None:
        assert l2.loose or l2.value <= LOOSE * case.l2
