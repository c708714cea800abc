"""Long sums in C are added up in parts: every entry once, whatever the length, and NaN is not lost."""

from __future__ import annotations

import functools
import math
import operator

import numpy as np
import pytest
from ir_programs import same_bits
from test_c99 import build, needs_compiler

from oco.backends.c99.loops import FEW, PARTS_OF_LONG
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.loop_groups import LONG
from oco.compiler.ir.program import DType, Field, Program, Type
from oco.compiler.ir.sums_in_parts import FEWEST, PARTS, parts_of, sum_in_parts
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.verifier import check

FLOAT = DType.FLOAT
LENGTHS = (*(n + k for n, parts in ((FEWEST, PARTS), (LONG, PARTS_OF_LONG)) for k in (-1, 0, parts - 1)), 1003)


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
def test_short_sums_are_added_up_in_four_parts(natives) -> None:
    """To the bit: entry k joins part k modulo 4, which begins at 0, and halves are joined with halves."""
    rng = np.random.default_rng(1)
    for n, native in zip(LENGTHS[:3], natives):
        a, b, m = rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal((3, n))
        _, found, _ = native.measure(1, np.zeros(2), a, b, m)
        terms = [a, a * b, a * b, np.abs(a - b), *m, *(m * m * b)]
        assert same_bits(found[[0, 1, 2, 5, 8, 9, 10, 14, 15, 16]], np.array([in_parts(v) for v in terms])), n


def in_parts(terms: np.ndarray) -> float:
    """Sum of terms in four parts, one after the other where they are fewer than `FEWEST`."""
    if len(terms) < FEWEST:
        return functools.reduce(operator.add, terms, 0.0)
    one, two, three, four = (functools.reduce(operator.add, terms[k::4], 0.0) for k in range(4))
    return (one + three) + (two + four)


def test_marks_of_short_sums_change_no_value() -> None:
    """Sums and inner products of vectors are marked, and those of rows; all of a matrix, columns and extremes are not."""
    program, rng = sums(FEWEST), np.random.default_rng(2)
    marked = check(sum_in_parts(program))
    assert program.measure is not None and marked.measure is not None
    assert sum(parts_of(e) == PARTS for e in marked.measure.body.equations) == 6
    assert all(parts_of(e) == 1 for e in program.measure.body.equations)
    given = [1, np.zeros(2), rng.standard_normal(FEWEST), rng.standard_normal(FEWEST), rng.standard_normal((3, FEWEST))]
    for one, other in zip(interpret(marked, "measure", given), interpret(program, "measure", given), strict=True):
        assert same_bits(np.asarray(one), np.asarray(other))


def extremes(n: int) -> Program:
    """A program that measures the largest and the least of n numbers, and nothing else of them."""
    t = Tracer(f"extremes{n}")
    return trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (2,)))],
        feedback=[Field("a", Type(FLOAT, (n,)))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"]},
        measure=lambda now, x, seen: (t.max(seen["a"]), t.stack(t.min(seen["a"])), t.stack(t.sum(seen["a"]))),
    )


@needs_compiler
def test_extremes_of_few_numbers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of zeros the first, as one after the other is compared, and NaN wherever it stands."""
    lengths, rng = (FEW - 1, FEW, LONG - 1), np.random.default_rng(0)
    natives = build([extremes(n) for n in lengths], tmp_path_factory.mktemp("extremes"))
    assert [("_largest(" in c.source.code, "_least(" in c.source.code) for c in natives] == [
        (False,) * 2,
        *[(True,) * 2] * 2,
    ]
    for n, native in zip(lengths, natives):
        ends = [
            np.full(n, np.inf),
            np.full(n, -np.inf),
            np.full(n, -0.0),
            np.r_[np.zeros(n - 1), -0.0],
            rng.normal(size=n),
        ]
        for a in [*ends, *(np.where(np.arange(n) == k, np.nan, 1.0) for k in range(n))]:
            largest, least, _ = native.measure(1, np.zeros(2), a)
            expected = (np.nan,) * 2 if np.isnan(a).any() else (max(a), min(a))
            assert same_bits(np.array([largest, *least]), np.array(expected)), a


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
