"""Alike terms of sums that are lowered together have the values that they have one by one, bit for bit, in fewer equations."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest
from atom_cases import CASES, Case, each_case

from oco.compiler.ir.interpret import run_function
from oco.compiler.ir.program import DType, Function, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.trace import Tracer
from oco.compiler.lowering.alike_terms import FEWEST_CALLS, LEAST
from oco.compiler.lowering.expressions import Lowering
from oco.compiler.problem.calculus import gradient
from oco.dsl import algebra
from oco.dsl.build import call
from oco.dsl.diagnostics import OcoError
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr, Kind, Name, constant, rewrite

Arrays = dict[str, np.ndarray]
SAMPLES, KNOTS = LEAST + 3, LEAST + 1


def traced(t: Tracer, expr: Expr, at: Arrays) -> Function:
    """Function of the program with the value of an expression, and a parameter for each name."""

    def value(*vs):
        return Lowering(t, dict(zip(at, vs)))(expr)

    return t.function("value", value, [(n, Type(DType.FLOAT, np.shape(v))) for n, v in at.items()])


def check(expr: Expr, at: Arrays) -> int:
    """Hold the value against the meaning of the atoms in NumPy; the number of equations."""
    t = Tracer("test")
    function = traced(t, expr, at)
    (found,) = run_function(function, list(at.values()), t.functions, t.constants)
    assert np.array_equal(found, evaluate(expr, at), equal_nan=True)
    return sum(1 for _ in equations_of(function.body))


def total(terms: list[Expr], atom: str = "add") -> Expr:
    return reduce(lambda a, b: call(atom, a, b), terms)


def of_sample(expr: Expr, k: int) -> Expr:
    """The expression with the k-th stream of each name in the place of the name."""

    def own(node: Expr) -> Expr:
        return Name(f"{node.name}_{k}", Kind.STREAM, shape=node.shape) if isinstance(node, Name) else node

    return rewrite(expr, own)


@each_case(CASES)
def test_every_atom(case: Case) -> None:
    """Sums of an atom over samples of its arguments, which stand in further atoms of few arguments."""
    rng = np.random.default_rng(0)
    at = {f"{n}_{k}": v for k in range(SAMPLES) for n, v in case.draw(rng).items()}
    term = call("square", call("abs", call("add", case.call(), 0.5)))
    check(total([of_sample(term, k) for k in range(SAMPLES)]), at)
    summed = term if term.shape == () else call("sum", term)
    check(total([call("mul", 2.0, of_sample(summed, k)) for k in range(SAMPLES)], "sub"), at)


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)], ids=str)
def test_sums_within_sums(shape: tuple[int, ...]) -> None:
    """The mean over samples of a piecewise linear function, its slopes, and both with the names of a sample in several terms."""
    rng = np.random.default_rng(1)
    x, price = Name("x", Kind.DECISION, shape=shape), Name("price", Kind.STREAM)
    knots = [Name(f"knot{k}", Kind.STREAM, shape=shape) for k in range(KNOTS)]
    drops = [Name(f"drop{k}", Kind.STREAM, shape=shape) for k in range(KNOTS)]

    def loss(sample: Name) -> Expr:
        left = call("sub", x, sample)
        kinks = [call("mul", d, call("pos", call("sub", left, k))) for d, k in zip(drops, knots)]
        parts = [call("mul", price, left), *kinks, call("square", left), call("mul", price, sample)]
        return total([e if shape == () else call("sum", e) for e in parts], "sub")

    def mean(count: int) -> Expr:
        samples = [Name(f"sample{j}", Kind.STREAM, shape=shape) for j in range(count)]
        return call("mul", 1.0 / count, total([loss(s) for s in samples]))

    at: Arrays = {"x": rng.normal(size=shape), "price": rng.normal(size=())}
    for n in (*knots, *drops, *(Name(f"sample{j}", Kind.STREAM) for j in range(SAMPLES))):
        at[n.name] = np.asarray(rng.normal(size=shape))
    few, many = (check(mean(n), at) for n in (LEAST, SAMPLES))
    assert many - few <= 3 * (SAMPLES - LEAST) < KNOTS * FEWEST_CALLS  # a sample more: its row, its term, and a name
    assert check(gradient(mean(SAMPLES), ["x"])["x"], at) < SAMPLES * KNOTS


def test_terms_that_are_the_same_are_no_rows() -> None:
    """Terms of which one comes several times, or all are the same."""
    rng = np.random.default_rng(2)
    a, b = (Name(n, Kind.STREAM, shape=(3,)) for n in "ab")
    others = [Name(f"s{k}", Kind.STREAM, shape=(3,)) for k in range(SAMPLES)]
    at = {n.name: rng.normal(size=3) for n in (a, b, *others)}

    def term(s: Expr) -> Expr:
        return call("square", call("exp", call("sub", s, b)))

    check(total([term(a) for _ in range(SAMPLES)]), at)
    check(total([term(s) for s in (*others, a, a, *others[:2])]), at)
    check(total([call("mul", term(s), call("abs", term(a))) for s in others]), at)


def test_terms_of_several_shapes_stand_beside_each_other() -> None:
    """Numbers, vectors and matrices of a sample in one term, and what all terms share."""
    rng = np.random.default_rng(3)
    x = Name("x", Kind.DECISION, shape=(2, 3))
    at: Arrays = {"x": rng.normal(size=(2, 3))}
    terms = list[Expr]()
    for k in range(SAMPLES):
        number, row = Name(f"n{k}", Kind.STREAM), Name(f"r{k}", Kind.STREAM, shape=(3,))
        at |= {number.name: rng.normal(size=()), row.name: rng.normal(size=3)}
        spread = algebra.broadcast(call("square", number), (3,))
        shifted = call("mul", call("add", call("mul", x, row), number), call("exp", x))
        column = algebra.reshape(call("abs", call("add", row, spread)), (1, 3))
        terms.append(call("sub", shifted, column))
    check(total(terms), at)


def test_rows_of_other_samples_stand_beside_arrays_of_more_axes() -> None:
    """Numbers of which one is that of the sample and the others are of none, in a sum with a vector."""
    rng = np.random.default_rng(5)
    fixed = [Name(f"b{k}", Kind.STREAM) for k in range(LEAST)]
    at: Arrays = {b.name: rng.normal(size=()) for b in fixed}
    terms = list[Expr]()
    for k in range(SAMPLES):
        number, row = Name(f"n{k}", Kind.STREAM), Name(f"r{k}", Kind.STREAM, shape=(4,))
        at |= {number.name: rng.normal(size=()), row.name: rng.normal(size=4)}
        numbers = [call("square", call("exp", call("abs", n))) for n in (number, *fixed)]
        terms.append(call("square", total([row, *numbers])))
    check(total(terms), at)


def test_few_or_deep_terms_stay_one_by_one() -> None:
    """As many equations as the terms have."""
    rng = np.random.default_rng(4)

    def deep(s: Expr, levels: int) -> Expr:
        return reduce(lambda e, _: call("sqrt", call("abs", e)), range(levels), s)

    for count, levels in ((LEAST - 1, 2), (SAMPLES, 400)):
        samples = [Name(f"s{k}", Kind.STREAM) for k in range(count)]
        at = {s.name: np.asarray(rng.normal()) for s in samples}
        assert check(total([deep(s, levels) for s in samples]), at) == count * 2 * levels + count - 1


def test_names_that_nothing_tells_are_an_error_as_elsewhere() -> None:
    terms = [call("square", call("abs", call("add", Name(f"s{k}", Kind.STREAM), 1.0))) for k in range(SAMPLES)]
    at = {f"s{k}": np.zeros(()) for k in range(SAMPLES - 1)}
    with pytest.raises(OcoError, match=f"s{SAMPLES - 1}"):
        check(total(terms), at)
    assert check(call("mul", constant(2.0), total(terms[:-1])), at) > 0
