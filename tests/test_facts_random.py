"""Soundness on random DAGs of atoms: bounds, Lipschitz constants, convexity and moduli that are proved are never broken."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from facts_dags import random_dag
from facts_matrices import random_matrices
from facts_oracle import Oracle
from thorough import corners

from oco.compiler.problem.calculus import gradient
from oco.compiler.problem.canonical import canonical
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.function import ScalarFunction
from oco.compiler.prover.types import Status
from oco.dsl.diagnostics import OcoError
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr
from oco.dsl.load import parse

SEEDS = corners(range(14), range(2))
OFF = 1e-11  # how far, relatively, a sample may lie outside of a domain that is not a box


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_is_proved_is_broken(seed: int) -> None:
    _attack(random_dag(seed, deepest=2 + seed % 3), seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_that_is_proved_of_matrices_and_groups_is_broken(seed: int) -> None:
    _attack(random_matrices(seed, deepest=2 + seed % 2), seed)


def _attack(text: str, seed: int) -> None:
    model = parse(text)
    setting, oracle = ProofContext(canonical(model)), Oracle(model, seed)
    for prefix, expr in oracle.functions():
        try:
            setting.ranges.must_be_defined(expr)
        except OcoError as error:
            assert error.code == "OCO504"
            continue
        facts = {f.key.removeprefix(f"{prefix}."): f for f in ScalarFunction(setting, expr, prefix, prefix).facts()}
        proved = {k: f.value for k, f in facts.items() if f.status is Status.PROVED}
        with np.errstate(all="ignore"):
            _attack_values(oracle, expr, proved)
            _attack_between(oracle, expr, proved)


def _attack_values(oracle: Oracle, expr: Expr, proved: Mapping[str, float]) -> None:
    seen = oracle.sample(expr, 1000)
    for what, value in seen.values.items():
        if what in proved:
            assert value <= proved[what] * (1 + OFF) + OFF, what
            climbed, place = oracle.climb(expr, what, seen.places[what], 15)
            assert climbed <= proved[what] * (1 + OFF) + OFF, f"{what} at {place}"


def _attack_between(oracle: Oracle, expr: Expr, proved: Mapping[str, float]) -> None:
    """Pairs of decisions: convexity with its modulus, the Lipschitz constant of values and of gradients."""
    slopes = gradient(expr, oracle.blocks)
    first, second = oracle.draws(40), oracle.draws(40)
    horizon = float(oracle.canonical.horizon or 1)
    for i in range(40):
        env = {n: v[i] for n, v in first.items() if n not in oracle.blocks}
        x, y = ({n: draws[n][i] for n in oracle.blocks} for draws in (first, second))
        t = 1.0 if i % 2 else horizon
        fx, fy, middle = (float(evaluate(expr, {**env, **p}, t)) for p in (x, y, {n: x[n] / 2 + y[n] / 2 for n in x}))
        gap = sum(float(np.sum((x[n] - y[n]) ** 2)) for n in x)
        slack = 1e-9 * max(1e-3, abs(fx), abs(fy), abs(middle))
        if "convex" in proved:
            assert middle + proved.get("strong_convexity.l2", 0.0) / 8 * gap <= fx / 2 + fy / 2 + slack
        if "lipschitz.l2" in proved:
            assert abs(fx - fy) <= proved["lipschitz.l2"] * np.sqrt(gap) + slack
        if "smoothness.l2" in proved:
            parts = [
                np.ravel(evaluate(g, {**env, **x}, t) - evaluate(g, {**env, **y}, t) + np.zeros(np.shape(x[n])))
                for n, g in slopes.items()
            ]
            moved = float(np.linalg.norm(np.concatenate(parts)))
            assert moved <= proved["smoothness.l2"] * np.sqrt(gap) * (1 + 1e-7) + 1e-8
