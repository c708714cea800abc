"""Sums of logarithms in C are logarithms of products: as exact as a sum, for every positive number and what is none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_c99 import build, contract, needs_compiler

from oco.backends.c99.module import emit
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.loop_groups import FEWEST_LOGARITHMS
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer

FLOAT = DType.FLOAT
LENGTHS = (FEWEST_LOGARITHMS - 1, 100, 1103)


def log_sum(n: int, least: float | None = None) -> Program:
    """A program whose loss is the sum of the logarithms of n numbers, of none less than the least one."""
    t = Tracer(f"logs{n}" if least is None else f"logs{n}_above")

    def measure(now, x, seen):
        total = t.sum(t.log(seen["a"] * 1.0 if least is None else t.maximum(seen["a"], least)))
        return total, t.stack(total), t.stack(total)

    return trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (2,)))],
        feedback=[Field("a", Type(FLOAT, (n,)))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"]},
        measure=measure,
    )


@pytest.fixture(scope="module")
def losses(tmp_path_factory: pytest.TempPathFactory):
    natives = build([log_sum(n) for n in LENGTHS], tmp_path_factory.mktemp("logs"))
    assert "sum_of_logs(" in natives[-1].source.code and "sum_of_logs(" not in natives[0].source.code
    return {n: lambda a, native=native: native.measure(1, np.zeros(2), a)[0] for n, native in zip(LENGTHS, natives)}


@needs_compiler
@pytest.mark.parametrize("spread", [0.01, 1.0, 300.0])
def test_a_rounding_for_each_number(losses, spread: float) -> None:
    rng = np.random.default_rng(1)
    for n, loss in losses.items():
        a = 10 ** (spread * rng.uniform(-1, 1, n))
        exact = math.fsum(map(math.log, a))
        assert abs(loss(a) - exact) <= 2.0**-52 * (n + np.abs(np.log(a)).sum()), n


@needs_compiler
def test_the_extremes_of_positive_numbers(losses) -> None:
    for n, loss in losses.items():
        for value in (5e-324, 1e-310, 2.0**-1022, 1.0, np.nextafter(2.0, 0), np.finfo(float).max):
            assert loss(np.full(n, value)) == pytest.approx(n * math.log(value), rel=1e-12, abs=1e-300)
        mixed = np.resize([5e-324, np.finfo(float).max, 3.0], n)
        assert loss(mixed) == pytest.approx(math.fsum(map(math.log, mixed)), rel=1e-13)


@needs_compiler
@pytest.mark.parametrize(
    "wrong, expected", [(0.0, -np.inf), (-0.0, -np.inf), (np.inf, np.inf), (-1.0, np.nan), (np.nan, np.nan)]
)
def test_what_has_no_logarithm(losses, wrong: float, expected: float) -> None:
    for n, loss in losses.items():
        for place in (0, n // 2, n - 1):
            a = np.full(n, 2.0)
            a[place] = wrong
            np.testing.assert_equal(loss(a), expected)


LEAST = 0.125


@pytest.fixture(scope="module")
def above(tmp_path_factory: pytest.TempPathFactory):
    natives = build([log_sum(n, LEAST) for n in LENGTHS], tmp_path_factory.mktemp("above"))
    assert "sum_of_logs_above(" in natives[-1].source.code and "sum_of_logs_above(" not in natives[0].source.code
    return {n: lambda a, native=native: native.measure(1, np.zeros(2), a)[0] for n, native in zip(LENGTHS, natives)}


@needs_compiler
@pytest.mark.parametrize("most", [1.0, 1e3, 1e12, 1e300])
def test_numbers_that_are_known_not_to_be_small_have_a_rounding_each(above, most: float) -> None:
    """Products of more and of less than the largest number of double."""
    rng = np.random.default_rng(2)
    for n, loss in above.items():
        a = LEAST * (most / LEAST) ** rng.uniform(0, 1, n)
        exact = math.fsum(map(math.log, a))
        assert abs(loss(a) - exact) <= 2.0**-52 * (n + np.abs(np.log(a)).sum()), n
        assert loss(np.full(n, LEAST)) == pytest.approx(n * math.log(LEAST), rel=1e-13)


@needs_compiler
@pytest.mark.parametrize("wrong", [np.inf, np.nan])
def test_infinite_numbers_and_none_among_them(above, wrong: float) -> None:
    for n, loss in above.items():
        for place in (0, n // 2, n - 1):
            a = np.full(n, 2.0)
            a[place] = wrong
            np.testing.assert_equal(loss(a), wrong)


def test_where_numbers_may_be_small_their_bits_are_taken_apart() -> None:
    program = log_sum(100, 0.124)
    source = emit(program, contract(program))
    assert "sum_of_logs(" in source.code and "sum_of_logs_above(" not in source.code
