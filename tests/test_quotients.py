"""Products of quotients in which factors cancel become one quotient, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
from ir_programs import random_learner
from test_reciprocals import divisions, learner

import oco
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import Program
from oco.compiler.ir.quotients import cancel_quotients
from oco.compiler.ir.verifier import check

N = 6


def array_divisions(program: Program) -> int:
    """Divisions of arrays in a step of the multipliers, outside its branches."""
    (step,) = [f for f in program.functions if f.name == "ascent_step"]
    return sum(e.op == "div" and e.outs[0].type.shape != () for e in step.body.equations)


def curvature(t, x, a, s):
    """Sum over entries within (-1, 1) of (3 / u)^2 / (s^2 / u^2 + 2), for u = 1 + |a|."""
    u = 1.0 + abs(a)
    inner = t.where(t.and_(x > -1.0, x < 1.0), 1.0 / (s * s / (u * u) + 2.0), 0.0)
    slope = t.reshape(3.0 / u, (1, N))
    return x + (slope @ (slope * t.reshape(inner, (1, N))).T)[0, 0]


def difference(t, x, a, s):
    """(x / u) (|a| / (7 - min(|s|, 1) / u^2)), for u = 2 + |x|."""
    u = 2.0 + abs(x)
    return (x / u) * (abs(a) / (7.0 - t.minimum(abs(s), 1.0) / (u * u)))


def meant(name, x, a, s):
    """The same in extended precision."""
    x, a, s = (np.asarray(v, dtype=np.longdouble) for v in (x, a, s))
    if name == "curvature":
        u = 1 + abs(a)
        return x + (9 / (s * s + 2 * u * u))[(x > -1) & (x < 1)].sum()
    u = 2 + abs(x)
    return x * abs(a) * u / (7 * u * u - np.minimum(abs(s), 1))


@pytest.mark.parametrize("update", [curvature, difference], ids=lambda f: f.__name__)
def test_one_division_an_entry_is_left_and_values_are_meant(update):
    program = optimize(learner(update, N))
    shorter = check(optimize(cancel_quotients(program)))
    assert divisions(shorter) == [(N,)] and len(divisions(program)) >= 3
    rng = np.random.default_rng(0)
    for size in (1e-150, 1e-3, 1.0, 1e3):
        args = [np.array(1), rng.normal(size=N), size * rng.normal(size=N), np.array(size)]
        found = interpret(shorter, "update", args)[1]
        np.testing.assert_allclose(found, meant(update.__name__, *args[1:]).astype(float), rtol=1e-14, atol=1e-14)


def of_any_sign(t, x, a, s):
    return (x / a) * (a / (abs(s) + 1.0))


def apart(t, x, a, s):
    return (x / (abs(a) + 1.0)) * (a / (abs(x) + 1.0))


def needed(t, x, a, s):
    """The inner quotient is read elsewhere too."""
    u = abs(a) + 1.0
    inner = 1.0 / (s / u + 1.0)
    return inner + (2.0 / u) * inner


def too_small(t, x, a, s):
    u = t.maximum(a, 1e-200)
    return (x / (u * u)) * (u * u)


@pytest.mark.parametrize("update", [of_any_sign, apart, needed, too_small], ids=lambda f: f.__name__)
def test_quotients_stay_where_nothing_is_saved_or_a_factor_may_be_zero(update):
    program = optimize(learner(update, N))
    assert cancel_quotients(program) == program


def random_quotient(t, rng, leaves, depth):
    """A product, quotient or sum of random ones; divisors are sums of what is positive."""
    if depth == 0:
        return leaves[rng.integers(len(leaves))]
    a, b = (random_quotient(t, rng, leaves, depth - 1) for _ in range(2))
    return (a * b, a / b, a / b, a + b)[rng.integers(4)]


def test_random_quotients_keep_what_they_compute():
    changed = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)

        def update(t, x, a, s, rng=rng):
            u, v = abs(a) + 1.0, t.minimum(abs(x), 3.0) + 0.5
            found = random_quotient(t, rng, [u, v, abs(s) + 1.0, t.lift(2.0)], 4)
            return x + t.where(x > 0.0, found, 0.0) / u * t.minimum(u, 7.0) + (u / v) @ (v * found)

        program = optimize(learner(update, N))
        shorter = check(cancel_quotients(program))
        changed += shorter != program
        args = [np.array(1), rng.normal(size=N), rng.normal(size=N), rng.normal()]
        found, expected = (interpret(p, "update", args)[1] for p in (shorter, program))
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0)
    assert changed > 40


def test_what_cancels_to_a_number_counts_for_each_entry():
    def update(t, x, a, s):
        u = abs(a) + 1.0
        return x + (2.0 / u) @ (u * 3.0)

    shorter = check(optimize(cancel_quotients(optimize(learner(update, N)))))
    assert not divisions(shorter)
    found = interpret(shorter, "update", [np.array(1), np.zeros(N), np.arange(N) * 1.0, np.array(0.0)])[1]
    np.testing.assert_array_equal(found, np.full(N, 36.0))


def test_random_programs_keep_what_they_compute():
    for seed in range(60):
        program, args = random_learner(seed)
        program = optimize(program)
        expected, found = (interpret(p, "measure", args) for p in (program, check(cancel_quotients(program))))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_a_logarithm_under_a_multiplier_bends_with_one_division():
    model = oco.parse("""
model jobs
horizon T = 100
decision x[8] in box(0, 10)
stream jobs in [0, 20]
stream price[8] in [0, 1]
minimize dot(price, x)
subject to
    served: sum(log(1 + 4 * x)) >= jobs each round
""")
    plan = oco.compile(model, algorithm="coldq", settings="paper")
    divided = [array_divisions(p) for p in (plan.program, optimize(cancel_quotients(plan.program)))]
    assert divided[0] - divided[1] == 2
