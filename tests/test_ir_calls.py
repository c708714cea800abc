"""Passes for targets where an operation is a call: small arrays as numbers, inner products; and lower bounds of numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from ir_programs import FLOAT, random_learner, same_bits
from test_ir_passes import learner, operations

from oco.compiler.ir.dead_code import remove_dead_code
from oco.compiler.ir.dot_products import make_dot_products
from oco.compiler.ir.interpret import interpret, run_function
from oco.compiler.ir.lower_bounds import lower_bounds
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import Block, Function, Type
from oco.compiler.ir.rewrite import equations_of
from oco.compiler.ir.scalar_factors import join_factors
from oco.compiler.ir.small_arrays import unroll_small_arrays
from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.verifier import check

PAIR = Type(FLOAT, (2,))
SQUARE = Type(FLOAT, (2, 2))


@pytest.mark.parametrize("largest", [1, 2, 3])
def test_numbers_instead_of_small_arrays_give_the_same_bits(largest):
    """At 3, most arrays of the random programs are small."""
    for seed in range(80):
        program, args = random_learner(3000 + seed)
        found = interpret(check(unroll_small_arrays(program, largest)), "measure", args)
        expected = interpret(program, "measure", args)
        products = any(e.op == "matmul" for f in (program.measure, *program.functions) for e in equations_of(f.body))
        for a, b in zip(found, expected, strict=True):
            near = np.allclose(a, b, rtol=1e-13, atol=0, equal_nan=True)  # a library adds products up as it likes
            assert near if products else same_bits(a, b), f"seed {seed}"


def test_functions_take_and_give_numbers():
    t = Tracer("pairs")

    def helper(a, m):
        return t.sum(a), t.solve(m, a) + t.transpose(m)[0], m @ a

    def update(_, x, seen):
        total, solved, product = t.call("helper", helper, t.maximum(seen["a"], x[:2]), seen["m"])
        (kept,) = t.while_(lambda v: t.sum(v) < 9.0, lambda v: (v * 2.0 + 1.0,), (solved,))
        return x + total + t.sum(kept * product)

    raw = learner(update, feedback=[("a", PAIR), ("m", SQUARE)], tracer=t)
    program = check(remove_dead_code(unroll_small_arrays(raw)))
    (function,) = program.functions
    assert all(not p.type.shape for p in function.body.params) and len(function.body.params) == 6
    assert [r.type.shape for r in function.body.results] == [()] * 5
    (loop,) = [e for e in program.update.body.equations if e.op == "while"]
    assert len(loop.outs) == 2
    assert operations(program).count("entries") == 2  # the two streams, once each, and nothing in a loop
    args = [1, np.array([1.0, -2.0, 3.0]), np.array([0.5, 2.0]), np.array([[3.0, 1.0], [0.5, 2.0]])]
    for a, b in zip(interpret(program, "update", args), interpret(raw, "update", args)):
        assert np.allclose(a, b, rtol=1e-15)


def test_what_is_an_array_throughout_stays_one():
    def update(t, x, seen):
        return x + t.stack(t.constant(1.0), t.sum(t.maximum(seen["A"] @ x, 0.0)), t.constant(2.0))

    program = unroll_small_arrays(learner(update, feedback=[("A", Type(FLOAT, (2, 3)))]))
    assert operations(program) == ["add", "matmul", "maximum", "entries", "add", "stack", "add"]


def test_sums_of_products_are_inner_products():
    def update(t, x, seen):
        kept = x * seen["a"]
        return x * t.sum(x * seen["a"]) + kept * t.sum(kept) + t.sum(t.outer(x, x) * t.outer(x, x))

    raw = learner(update, feedback=[("a", Type(FLOAT, (3,)))])
    program = check(make_dot_products(raw))
    assert operations(program).count("matmul") == 1 and operations(program).count("sum") == 2
    args = [1, np.array([1.0, -2.0, 3.0]), np.array([0.5, 2.0, -1.0])]
    assert np.allclose(interpret(program, "update", args)[1], interpret(raw, "update", args)[1], rtol=1e-15)


def test_no_number_is_below_its_bound():
    found = 0
    for seed in range(150):
        program, args = random_learner(4000 + seed)
        program = optimize(program)
        bounds = lower_bounds(program)["measure"]
        body = program.measure.body
        seen = tuple(v for e in body.equations for v in e.outs if v.name in bounds)
        probe = Function("probe", Block(body.params, body.equations, seen))
        for v, value in zip(seen, run_function(probe, args, program.functions, program.constants), strict=True):
            kept = np.isnan(value) | (value >= bounds[v.name])
            assert kept.all(), f"seed {seed}: {v.name} = {value}"
        found += len(seen)
    assert found > 60


def test_bounds_of_arguments_hold_at_every_call():
    t = Tracer("calls")

    def root(v):
        return t.sqrt(v) * 2.0

    def update(_, x, seen):
        shared = t.call("scaled", root, t.maximum(t.sum(x), 4.0))
        return x * shared * t.call("scaled", root, t.to_float(seen["n"]) * 0.0 + 1.0)

    program = learner(update, feedback=[("n", Type(FLOAT))], tracer=t)
    bounds = lower_bounds(program)
    (function,) = program.functions
    assert function.body.params[0].name not in bounds[function.name]  # 0 n + 1 is not known to be anything
    known = replace(program, update=replace(program.update, body=program.update.body))
    assert bounds["update"]["round"] == 1.0 and lower_bounds(known) == bounds


def test_factors_of_arrays_are_joined():
    def update(t, x, seen):
        a, b = t.maximum(t.sum(seen["a"]), 0.5), t.maximum(t.sum(x), 0.5)
        both = (-(seen["a"] / b) * a + x * b) / a  # a factor of each term
        kept = x * a  # read twice: stays
        return both * 2.0 - (kept / b + kept) + (seen["a"] + x) * b / a

    raw = learner(update, feedback=[("a", Type(FLOAT, (3,)))])
    program = check(remove_dead_code(join_factors(raw)))
    arrays = [e.op for e in equations_of(program.update.body) if e.outs[0].type.shape]
    assert arrays.count("div") == 1 and arrays.count("neg") == 0  # kept / b
    assert sum(op in ("mul", "div", "neg") for op in arrays) == 5
    args = [1, np.array([1.0, -2.0, 3.0]), np.array([0.5, 2.0, -1.0])]
    for a, b in zip(interpret(program, "update", args), interpret(raw, "update", args), strict=True):
        assert np.allclose(a, b, rtol=1e-14)


def test_divisors_that_may_be_tiny_stay():
    def update(t, x, seen):
        return x / t.max(t.abs(x)) * 2.0

    raw = learner(update, feedback=[("a", Type(FLOAT, (3,)))])
    program = join_factors(raw)
    args = [1, np.full(3, 1e-310), np.zeros(3)]
    assert operations(program) == operations(raw) and np.array_equal(
        interpret(program, "update", args)[1], np.full(3, 2.0)
    )


def test_joined_factors_change_rounding_alone():
    for seed in range(80):
        program, args = random_learner(7000 + seed)
        found = interpret(check(join_factors(program)), "measure", args)
        for a, b in zip(found, interpret(program, "measure", args), strict=True):
            assert np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True), f"seed {seed}"


def test_factors_outside_a_loop_stay_outside():
    def update(t, x, seen):
        scaled = x * t.sum(seen["a"])
        (result,) = t.while_(lambda v: t.sum(v) < 9.0, lambda v: (v + 1.0 + scaled * t.sum(v),), (x,))
        return result

    raw = learner(update, feedback=[("a", Type(FLOAT, (3,)))])
    assert operations(remove_dead_code(join_factors(raw))) == operations(raw)


def of_choice(t, x, a, b):
    """A choice between an array with a factor and a number over an array, in parts of b."""
    return t.where(x > 0.0, (2.0 * b) / (t.abs(a) + 1.0), 0.5 * (x - a)) / b


def of_inverse(t, x, a, b):
    """256 over a multiple of a square and a number, as the second derivatives of a logarithm are."""
    u = 1.0 + 4.0 * t.abs(x)
    return 256.0 / (64.0 * t.abs(t.sum(a)) + 2.0 * b * (u * u)) + 3.0 / (b * (t.abs(a) + 1.0))


def of_choices_in_sums(t, x, a, b):
    """A sum of choices, one of them between numbers, under a factor each."""
    return (t.where(x > 0.0, 0.5 * a, 2.0) * b + t.where(x > 2.0, 1.0, 4.0) * b) / b


@pytest.mark.parametrize(
    ("made", "fewer", "by_numbers"),
    [
        (of_choices_in_sums, 2, lambda x, a, b: (0.5 * a if x > 0 else 2.0) + (1.0 if x > 2 else 4.0)),
        (of_choice, 1, lambda x, a, b: 2 / (abs(a) + 1) if x > 0 else 0.5 * (x - a) / b),
        (of_inverse, 3, lambda x, a, b: 256 / (64 * 1.5 + 2 * b * (1 + 4 * abs(x)) ** 2) + 3 / (b * (abs(a) + 1))),
    ],
)
def test_factors_leave_choices_and_divisors(made, fewer, by_numbers):
    raw = learner(
        lambda t, x, seen: made(t, x, seen["a"], t.maximum(t.sum(x), 0.5)), feedback=[("a", Type(FLOAT, (3,)))]
    )
    program = check(remove_dead_code(join_factors(optimize(raw))))
    before, after = (
        sum(bool(e.outs[0].type.shape) for e in equations_of(p.update.body)) for p in (optimize(raw), program)
    )
    assert before - after == fewer
    x, a = np.array([1.0, -2.0, 3.5]), np.array([0.5, 2.0, -1.0])
    found = interpret(program, "update", [1, x, a])[1]
    assert np.allclose(found, [by_numbers(x_i, a_i, 2.5) for x_i, a_i in zip(x, a)], rtol=1e-14)


def test_divisors_that_may_be_tiny_keep_their_factors():
    raw = learner(lambda t, x, seen: 1.0 / (1.0 + t.abs(t.sum(x)) * (t.abs(x) + 1.0)))
    assert operations(remove_dead_code(join_factors(raw))) == operations(raw)
    args = [1, np.array([1e-310, 0.0, 0.0])]
    assert np.array_equal(interpret(join_factors(raw), "update", args)[1], np.ones(3))


@pytest.mark.parametrize("scale", [2.0**-1060, 2.0**1000])
def test_divisors_of_extreme_scale_keep_it(scale):
    def update(t, x, seen):
        u = 1.0 + scale * x
        return 1.0 / (1.0 + u * u)

    raw = learner(update)
    args = [1, np.array([2.0**-1000, 0.0, 1e-290])]
    assert np.array_equal(
        interpret(check(join_factors(raw)), "update", args)[1], interpret(raw, "update", args)[1], equal_nan=True
    )
