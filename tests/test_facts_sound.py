"""Soundness: no sample and no adversarial search ever breaks a proved bound, on the examples and on generated models."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from facts_models import GENERATED
from facts_oracle import Oracle
from thorough import corners, thorough

from oco.compiler.prover.check import check
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.suprema.bounds import above
from oco.compiler.prover.suprema.lower_bound import Attained
from oco.compiler.prover.types import Status
from oco.dsl.diagnostics import InternalError
from oco.dsl.load import load, parse
from oco.dsl.model import Model

EXAMPLES = Path(__file__).parent.parent / "examples"
SMALL = ("tracking", "online_qp", "job_scheduling", "datacenter", "portfolio", "blind_pricing", "matrix_completion")


@lru_cache
def example(name: str) -> tuple[Model, Facts]:
    model = load(EXAMPLES / f"{name}.oco")
    return model, check(model)


@lru_cache
def generated(text: str) -> tuple[Model, Facts]:
    model = parse(text)
    return model, check(model)


def assert_unbroken(model: Model, facts: Facts, samples: int, climbs: int) -> None:
    oracle = Oracle(model)
    for prefix, expr in oracle.functions():
        seen = oracle.sample(expr, samples)
        for what, value in seen.values.items():
            fact = facts[f"{prefix}.{what}"]
            if fact.status is not Status.PROVED:
                continue
            assert value <= fact.value, f"{prefix}.{what}: {value} at {seen.places[what]} breaks {fact.value}"
            climbed, place = oracle.climb(expr, what, seen.places[what], climbs)
            assert climbed <= fact.value, f"{prefix}.{what}: {climbed} at {place} breaks {fact.value}"


@pytest.mark.parametrize("share", [4, thorough(1)])
@pytest.mark.parametrize("name", SMALL)
def test_examples(name: str, share: int) -> None:
    few = name == "matrix_completion"  # each decision is a singular value decomposition
    assert_unbroken(*example(name), samples=(1000 if few else 10_000) // share, climbs=(16 if few else 100) // share)


@pytest.mark.parametrize("text", corners(GENERATED, GENERATED[::6]), ids=range(len(GENERATED)))
def test_generated_models(text: str) -> None:
    assert_unbroken(*generated(text), samples=10_000, climbs=100)


@pytest.mark.parametrize("name", ("tracking", "online_qp", "portfolio", "blind_pricing"))
def test_gradients_move_no_faster_than_the_smoothness_constant(name: str) -> None:
    model, facts = example(name)
    oracle = Oracle(model, seed=1)
    for prefix, expr in oracle.functions():
        smooth = facts.value(f"{prefix}.smoothness.l2")
        strong = facts.value(f"{prefix}.strong_convexity.l2")
        for _ in range(200):
            rate, inner = oracle.change_of_gradient(expr)
            assert rate <= smooth * (1 + 1e-9) + 1e-9
            assert inner >= strong * (1 - 1e-9) - 1e-9


@pytest.mark.parametrize("text", corners(GENERATED, GENERATED[::6]), ids=range(len(GENERATED)))
def test_local_optimization_breaks_nothing(text: str) -> None:
    model, facts = generated(text)
    oracle = Oracle(model, seed=2)
    for prefix, expr in oracle.functions():
        for what in ("bound", "lipschitz.l2"):
            fact = facts[f"{prefix}.{what}"]
            value, place = oracle.optimize(expr, what, starts=1, evaluations=60)
            assert fact.status is not Status.PROVED or value <= fact.value, f"{prefix}.{what}: {value} at {place}"


def test_rounding_of_an_attained_bound_is_measured_by_what_it_is_made_of() -> None:
    """A bound of 0 that is attained: what is reached beyond it is rounding of large values, or a proof that is wrong."""
    expr = load(EXAMPLES / "online_qp.oco").objective
    assert expr is not None
    beyond = Attained(5.7e-14, {}, sensitivity=100.0)
    assert above(beyond, 0.0, expr) == beyond.value
    with pytest.raises(InternalError, match="was bounded by 0"):
        above(Attained(1e-6, {}, sensitivity=100.0), 0.0, expr)


def test_oracle_can_break_a_bound() -> None:
    model = load(EXAMPLES / "online_qp.oco")
    oracle = Oracle(model)
    seen = oracle.sample(model.objective, 500)  # type: ignore[arg-type]
    assert seen.values["bound"] > 0.8 * 232 and np.isfinite(seen.values["lipschitz.l2"])
