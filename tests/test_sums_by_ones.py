"""Sums of vectors where every operation is a call: inner products with ones, as exact as a sum, for vectors that BLAS does not split."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_c99_log_sums import FLOAT
from test_reciprocals import learner

from oco.compiler.ir.build import trace_program
from oco.compiler.ir.dot_products import LONGEST, SHORTEST, sum_by_ones
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.program import Field, Program, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.verifier import check


def total(n: int) -> Program:
    return learner(lambda t, x, a, s: x * t.sum(a), n)


@pytest.mark.parametrize("n", [SHORTEST, 100, LONGEST])
def test_a_sum_is_as_exact_and_keeps_what_is_no_number(n):
    program = check(sum_by_ones(total(n)))
    assert "sum" not in {e.op for e in equations_of(program.update.body)}
    rng = np.random.default_rng(n)
    a = rng.normal(size=n) * 10 ** rng.uniform(-8, 8, n)
    found = interpret(program, "update", [np.array(1), np.ones(n), a, np.array(0.0)])[1]
    assert abs(found[0] - math.fsum(a)) <= n * 2.0**-53 * np.abs(a).sum()
    for wrong in (np.inf, -np.inf, np.nan):
        a[n // 2] = wrong
        found = interpret(program, "update", [np.array(1), np.ones(n), a, np.array(0.0)])[1]
        np.testing.assert_equal(found[0], a.sum())


@pytest.mark.parametrize("n", [SHORTEST - 1, LONGEST + 1])
def test_other_sums_stay(n):
    assert sum_by_ones(total(n)) == total(n)


def test_sums_of_a_length_share_their_ones_and_those_along_an_axis_stay():
    t = Tracer("sums")
    program = trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (4,)))],
        feedback=[Field("a", Type(FLOAT, (5, 4)))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": t.sum(seen["a"], axis=0) * t.sum(state["x"]) + t.sum(seen["a"][0])},
    )
    summed = sum_by_ones(program)
    assert [g.value.shape for g in summed.constants] == [(4,)]
    assert [e.op for e in equations_of(summed.update.body)].count("sum") == 1
