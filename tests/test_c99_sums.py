"""Long sums in C are added up in parts: every entry once, whatever the length, and NaN is not lost."""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_c99 import build, needs_compiler

from oco.backends.c99.arithmetic import EXACT
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.trace import Tracer

FLOAT = DType.FLOAT
LENGTHS = (*(n + k for n, parts in EXACT.parts.items() for k in (-1, 0, parts - 1)), 1003)


def sums(n: int) -> Program:
    """A program that measures all kinds of sums of a vector, of two, and of the rows and columns of a matrix with rows of n."""
    t = Tracer(f"sums{n}")

    def measure(now, x, seen):
        a, b, m = seen.values()
        found = [t.sum(a), t.sum(a * b), a @ b, t.max(a), t.min(a), t.sum(t.abs(a - b)), t.sum(m), t.max(m * 2.0)]
        numbers = t.stack(*found)
        return t.lift(0.0), t.concat(numbers, t.sum(m, axis=1), t.max(m, axis=1), (m * m) @ b), t.sum(m, axis=0)

    return trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (2,)))],
        feedback=[Field("a", Type(FLOAT, (n,))), Field("b", Type(FLOAT, (n,))), Field("m", Type(FLOAT, (3, n)))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"]},
        measure=measure,
    )


@pytest.fixture(scope="module")
def natives(tmp_path_factory: pytest.TempPathFactory):
    return build([sums(n) for n in LENGTHS], tmp_path_factory.mktemp("sums"))


@needs_compiler
def test_sums_have_every_entry_once(natives) -> None:
    rng = np.random.default_rng(0)
    for n, native in zip(LENGTHS, natives):
        a, b, m = rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((3, n))
        _, found, columns = native.measure(1, np.zeros(2), a, b, m)
        dot = math.fsum(a * b)
        numbers = [math.fsum(a), dot, dot, a.max(), a.min(), math.fsum(abs(a - b)), math.fsum(m.ravel()), 2 * m.max()]
        rows = [math.fsum(row) for row in m], m.max(axis=1), [math.fsum(row * row * b) for row in m]
        np.testing.assert_allclose(found, np.concatenate([numbers, *rows]), rtol=0, atol=1e-16 * n * 8, err_msg=str(n))
        np.testing.assert_allclose(columns, m.sum(axis=0), rtol=1e-15)


@needs_compiler
def test_sums_keep_nan_and_infinities(natives) -> None:
    """Wherever they stand: at the beginning, in the middle of a part, and in what is left after the last."""
    for n, native in zip(LENGTHS, natives):
        for place in (0, n // 2, n - 1):
            a, b, m = np.ones(n), np.ones(n), np.ones((3, n))
            a[place], m[1, place] = np.nan, np.inf
            _, found, _ = native.measure(1, np.zeros(2), a, b, m)
            expected = [np.nan] * 6 + [np.inf, np.inf, n, np.inf, n, 1, np.inf, 1, n, np.inf, n]
            np.testing.assert_array_equal(found, expected, err_msg=f"{n}, {place}")
