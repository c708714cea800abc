"""Comparators of random models: every interval contains the value of CVXPY, which is solved as the model is written."""

from __future__ import annotations

import numpy as np
import pytest
from comparator_cases import check_certificate, problem
from comparator_random import checked
from thorough import thorough

from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.data import load_data


@pytest.mark.parametrize("seed", [2, thorough(20), 26])
def test_random_models_match_cvxpy(seed: int) -> None:
    ends, wrong = checked(seed)
    assert not wrong and {"static certified", "dynamic certified"} <= set(ends)


def test_means_in_expectation_beside_kinks_of_single_rounds() -> None:
    """Kinks that differ by the round have variables of their own there; what binds on average has its expectation all the same."""
    text = (
        "decision x in box(0, 10)\nstream c in [-1, 1]\nstream need ~ uniform(1, 3)\nminimize x + abs(x - c)\n"
        "subject to\n    cover: x >= need    on average\n    mixed: x - 8 + pos(c) <= need    on average\n"
    )
    p = problem(text, 6)
    data = load_data(p, {"c": np.linspace(-1, 1, 6)}, seed=3)
    found = compare(p, data, "static")
    check_certificate(found)
    assert found.decision["x"] == pytest.approx(2.0, abs=1e-6)
    assert abs(float(data.array("need").mean()) - 2.0) > 1e-2
    several = compare_prefixes(p, data, np.array([2, 6]))
    np.testing.assert_allclose(several.decision["x"], 2.0, atol=1e-5)


def test_prefixes_of_bent_functions_with_kinks_are_nearly_closed() -> None:
    """Newton's method on rounded kinks begins where a larger radius ended: from afar it went astray, and the intervals were wide."""
    text = (
        "decision x[3] in box(0, 2)\nstream a[3] in [-1, 1]\nminimize 1.3 * sum(abs(x - a)) - 1.7 * sum(entr(x + 0.1))\n"
        "subject to\n    level: sum(sqrt(x + 0.1)) >= 0.97    each round\n"
    )
    p = problem(text, 40)
    data = load_data(p, {"a": np.random.default_rng(0).uniform(-1, 1, (40, 3))})
    ends = np.array([1, 5, 13, 40])
    several = compare_prefixes(p, data, ends)
    for k, end in enumerate(ends):
        one = compare(p, data.first(int(end)), "static")
        check_certificate(one)
        assert several.bound[k] - 1e-6 <= one.value <= several.value[k] + 1e-6
        assert several.value[k] - several.bound[k] <= 1e-4 * max(1.0, abs(one.value))
