"""Tightness: proved numbers within 5% of the true suprema where the structure allows it, marked loose where they are not within twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from facts_models import GENERATED
from facts_oracle import Oracle
from facts_tight_cases import CASES, Case
from thorough import corners

from oco.compiler.prover.check import check
from oco.compiler.prover.types import Status
from oco.dsl.load import load, parse

EXAMPLES = Path(__file__).parent.parent / "examples"
ROUNDING = 1e-9  # of the numbers stated in the cases


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_within_five_percent(case: Case) -> None:
    facts = check(parse(case.model))
    for key, true in case.stated.items():
        fact = facts[f"loss.{key}"]
        assert fact.status is Status.PROVED
        assert true * (1 - ROUNDING) <= fact.value <= 1.05 * true, f"{key}: {fact.value} for {true}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_stated_suprema_are_not_too_small(case: Case) -> None:
    model = parse(case.model)
    oracle = Oracle(model, seed=5)
    seen = oracle.sample(oracle.canonical.objective, 2000)
    for key, true in case.stated.items():
        assert seen.values[key] <= true * (1 + ROUNDING)


EXAMPLES_COMPARED = ("tracking", "online_qp", "job_scheduling", "datacenter", "portfolio", "blind_pricing")


@pytest.mark.parametrize("name", corners(EXAMPLES_COMPARED, EXAMPLES_COMPARED[::2]))
def test_examples_within_twice_what_is_reached_or_loose(name: str) -> None:
    model = load(EXAMPLES / f"{name}.oco")
    facts, oracle = check(model), Oracle(model, seed=6)
    for prefix, expr in oracle.functions():
        seen = oracle.sample(expr, 3000)
        for key, value in seen.values.items():
            fact = facts[f"{prefix}.{key}"]
            climbed, _ = oracle.climb(expr, key, seen.places[key], 100)
            assert fact.loose or fact.value <= 2 * max(value, climbed)


@pytest.mark.parametrize("text", corners(GENERATED, GENERATED[::12]), ids=range(len(GENERATED)))
def test_what_is_not_marked_loose_is_reached(text: str) -> None:
    model = parse(text)
    facts, oracle = check(model), Oracle(model, seed=7)
    seen = oracle.sample(oracle.canonical.objective, 2000)
    for key, value in seen.values.items():
        fact = facts[f"loss.{key}"]
        climbed, _ = oracle.climb(oracle.canonical.objective, key, seen.places[key], 150)
        assert fact.loose or fact.value <= 1.8 * max(value, climbed)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    (
        ("job_scheduling", "loss", "linear"),
        ("job_scheduling", "constraints.service", "separable"),
        ("online_qp", "loss", "quadratic"),
        ("online_qp", "constraints.resources", "affine"),
        ("tracking", "loss", "quadratic"),
        ("portfolio", "loss", "general"),
        ("matrix_completion", "loss", "quadratic, of 100 entries that streams pick"),
    ),
)
def test_structure(name: str, key: str, value: str) -> None:
    assert check(load(EXAMPLES / f"{name}.oco"))[f"{key}.structure"].value == value


def test_a_constraint_with_very_many_entries_has_facts_of_its_worst() -> None:
    n = 20_000
    text = (
        f"model m\nhorizon T = 5\ndecision x[{n}] in box(0, 2)\nstream p[{n}] in [1, 3]\nminimize sum(p * x)\nsubject to\n"
        "    limit: p * x - 1 <= 4\n    bend: square(x) <= 5   each round\n"
    )
    facts = check(parse(text))
    assert facts["constraints.limit.bound"].value == 5 and facts["constraints.limit.lipschitz.l2"].value == 3
    assert facts["constraints.bend.convex"].value is True and facts["constraints.bend.lipschitz.l1"].value == 4
    assert not any("[" in key for key in facts)


@pytest.mark.parametrize("loss", ("abs(x[1])", "pos(x[1])", "maximum(0, x[1])", "neg(-x[1])", "norm1(x) - x[0] - x[2]"))
def test_a_kink_at_the_end_of_a_range_does_not_flatten_the_function(loss: str) -> None:
    """At 0 the derivative of abs is not that of the side on which the decision lives."""
    facts = check(parse(f"model m\nhorizon T = 10\ndecision x[3] in simplex\nminimize {loss}\n"))
    assert 1 <= facts["loss.upper"].value <= 1 + 1e-9


def test_jumps_are_no_quadratics_over_a_ball() -> None:
    """The slopes of |x_i| have derivative 0 wherever they have one, and are no constants."""
    head = "model m\nhorizon T = 5\ndecision X[3, 3] in ball(0.5)\nstream r[3] in 0..2\n"
    for loss, slope in (("norm1(X[[0, 1, 2], r])", 3**0.5), ("nuclear_norm(X)", 3**0.5)):
        fact = check(parse(f"{head}minimize {loss} + 0 * r[0]\n"))["loss.lipschitz.l2"]
        assert fact.value >= slope


@pytest.mark.parametrize("shift", (-1.0, 0.0, 3.0))
def test_what_is_affine_on_its_range_alone_is_not_taken_at_0(shift: float) -> None:
    """norm1(x + c) is sum(x + c) for x >= 2 and c >= -1, but not at x = 0: over the ellipsoid about 3 the least sum is 6 - sqrt(1' P 1)."""
    text = (
        "model m\nhorizon T = 5\ndecision x[2] in ellipsoid([[0.63, -0.12], [-0.12, 0.95]], 3)\n"
        f"stream c[2] in [{shift}, 3.5]\nminimize norm1(x + c)\n"
    )
    facts, reach = check(parse(text)), (0.63 - 0.24 + 0.95) ** 0.5
    least, most = 6 + 2 * shift - reach, 13 + reach
    assert facts["loss.lower"].value <= least * (1 + ROUNDING) and facts["loss.upper"].value >= most * (1 - ROUNDING)
    assert facts["loss.lower"].value >= 0.95 * least and facts["loss.upper"].value <= 1.05 * most
