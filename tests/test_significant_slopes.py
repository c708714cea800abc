"""Slopes that are rounding count as 0: sizes of terms bound the rounding of sums, and normalised steps do not follow last digits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from ir_programs import CASES
from test_ir_passes import learner

import oco
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import DType, Type
from oco.compiler.ir.term_sizes import term_sizes

UNIT = 2.0**-53
VECTOR, MATRIX = Type(DType.FLOAT, (3,)), Type(DType.FLOAT, (3, 3))


def _total(a):
    return a.sum() if isinstance(a, np.ndarray) else a.tracer.sum(a)


SUMS = {
    "difference": lambda x, a, m: x - a,
    "scaled": lambda x, a, m: -3.0 * (x - a) / (a * a),
    "total": lambda x, a, m: x * _total(x - a),
    "squares": lambda x, a, m: m.T @ (m @ x - a),
    "entries": lambda x, a, m: (x - a)[1:] * abs(a - x)[:2],
}


@pytest.mark.parametrize("name", SUMS)
def test_rounding_is_a_share_of_the_sizes_of_the_terms(name):
    """Against the same sums in fractions, at points where they cancel but for the last digits."""
    f, found = SUMS[name], list[float]()

    def update(_, x, seen):
        t, v = x.tracer, f(x, seen["a"], seen["m"])
        sizes = term_sizes(t, v)
        assert sizes is not None and sizes.shape == v.shape
        return x + t.sum(t.concat(v, sizes))

    program = learner(update, feedback=[("a", VECTOR), ("m", MATRIX)])
    rng = np.random.default_rng(4)
    exact = np.vectorize(Fraction, otypes=[object])
    for _ in range(40):
        x, m = rng.uniform(0.1, 1, 3), rng.uniform(-1, 1, (3, 3))
        a = m @ x if name == "squares" else x * (1 + rng.integers(-2, 3, 3) * UNIT)
        (after,) = interpret(program, "update", [1, x, a, m])[1:]
        value, true = f(x, a, m), f(exact(x), exact(a), exact(m))
        size = after[0] - x[0] - value.sum()  # the sum of the sizes, since none is below 0
        off = np.array([float(Fraction(v) - e) for v, e in zip(value, true, strict=True)])
        assert np.abs(off).sum() <= 20 * UNIT * size
        assert size >= 0.999 * np.abs(value).sum()
        found.append(np.abs(value).sum() / size)
    assert min(found) < 1e-14, "the sums cancel"


NEAR = ("div", "minimum")
"""A quotient is as far off as its first argument only where the second one is exact, and the least of two as its smaller size says only
where the other one is a limit far away.
"""
OF_FLOATS = [c for c in CASES if c.args and c.args[0].dtype == float and np.all(np.isfinite(c.args[0]))]


@pytest.mark.parametrize("case", [c for c in OF_FLOATS if OPS[c.op].sizes and c.op not in NEAR], ids=lambda c: c.op)
def test_an_operation_passes_errors_on_as_its_sizes_say(case):
    """Arguments off by a share of their terms give a result off by that share of the terms that its row derives."""
    row, rng, share = OPS[case.op], np.random.default_rng(8), 1e-7
    floats = [a for a in case.args if a.dtype == float]
    others = [a for a in case.args if a.dtype == int]
    counted = row.sizes.counted or len(floats)
    attrs = dict(case.attrs)
    for _ in range(20):
        values = [rng.normal(size=a.shape) for a in floats]
        sizes = [abs(v) * (10 ** rng.uniform(0, 4, v.shape) if k < counted else 1) for k, v in enumerate(values)]
        moved = [v + share * s * rng.choice((-1, 1), s.shape) for v, s in zip(values, sizes)]
        on_sizes = OPS[row.sizes.on_sizes or row.name]
        derived = sizes[0] if row.sizes.on_sizes is None else on_sizes.value([*sizes, *others], attrs)
        off = row.value([*moved, *others], attrs) - row.value([*values, *others], attrs)
        assert (abs(off) <= 2 * share * derived + 1e-15).all()


def test_no_operation_on_sums_lacks_a_rule_of_sizes():
    """Those with floats for results that are proportional to their first argument, but decompositions and orders of entries."""
    proportional, rng = set[str](), np.random.default_rng(3)
    for c in OF_FLOATS:
        row, rest, first = OPS[c.op], c.args[1:], rng.uniform(0.5, 2, np.shape(c.args[0]))
        first = first + first.T if c.op == "eigh" else first
        with np.errstate(all="ignore"):
            before, after = row.value([first, *rest], dict(c.attrs)), row.value([2 * first, *rest], dict(c.attrs))
        if all(np.asarray(b).dtype == float and np.array_equal(a, 2 * b) for b, a in _pairs(before, after)):
            proportional.add(c.op)
    ordered = {"sort", "max", "min", "weighted_quantile", "entries", "eigh", "svd", "mod"}
    assert {op for op in proportional if OPS[op].sizes is None} <= ordered


def _pairs(before, after):
    return zip(before, after) if isinstance(before, tuple) else [(before, after)]


def test_what_is_no_sum_has_no_terms():
    def update(_, x, seen):
        assert term_sizes(x.tracer, 2.0 * x * seen["a"][0]) is None
        return x

    learner(update, feedback=[("a", VECTOR)])


BEST = """
model best
horizon T = 100
decision x in box(0.1, 0.7)
stream a in [0, 1]
{rest}
"""
SQUARES = "minimize square(x - a)"
CASES = {
    "nested": f"{SQUARES}\nsubject to\n    cap: x <= 0.6 + a each round",
    "sinha-vaze": f"{SQUARES}\nsubject to\n    cap: x <= 0.6 + a each round",
    "distance-penalty": f"{SQUARES}\nsubject to\n    cap: x <= 0.6 + a each round",
    "ons": SQUARES,
    "optimistic": f"{SQUARES}\npredict a = last(a)",
    "hedged": SQUARES,
}


@pytest.mark.parametrize("algorithm", CASES)
def test_a_decision_that_is_best_up_to_rounding_stays(algorithm):
    """All begin in the middle of the set, 0.39999999999999997, and the data are its next number."""
    learner = oco.compile(oco.parse(BEST.format(rest=CASES[algorithm])), algorithm).learner(backend="numpy")
    for _ in range(4):
        assert abs(learner.decide() - 0.4) <= 1e-12
        learner.observe(a=0.4)


@pytest.mark.parametrize("algorithm", [name for name in CASES if name != "ons"])
def test_slopes_of_any_size_move_decisions_alike(algorithm):
    """Steps have no units: data that move 1e-7 of what is declared count as much as others."""
    for wide in (1.0, 1e7):
        rest = CASES[algorithm].replace("square(x - a)", "a * x")
        text = BEST.format(rest=rest).replace("a in [0, 1]", f"a in [0, {wide!r}]")
        learner = oco.compile(oco.parse(text), algorithm).learner(backend="numpy")
        for _ in range(4):
            last = learner.decide()
            learner.observe(a=1.0)
        assert last < 0.2


FLAT = """
model flat
horizon T = 60
decision x[2] in box(-5, 8)
stream p in [0, 9]
stream s[2] in [0, 6]
context c in [0, 5]
state q = q + 0.9 * x[1] + s[0] - c in [0, 60] start 20
state r = r + x[0] - s[1] in [0, 60] start 20
minimize p * (0.37 * x[0] + 1.21 * x[1]) + 8 * pos(-(q + 0.9 * x[1] + s[0] - c)) + 8 * pos(-(r + x[0] - s[1]))
"""


def test_targets_agree_where_what_is_left_is_worth_what_it_costs():
    """Predicted slopes are 1e-18, in the sign of which targets differ, for they add up in orders of their own."""
    rounds = ((0.35, (1.13, 2.74), 1.54), (7.88, (3.76, 2.75), 4.04), (5.99, (3.93, 2.71), 0.06))
    plan = oco.compile(oco.parse(FLAT), "hedged")
    sides = [plan.learner(backend=b) for b in ("numpy", "c")]
    for p, s, c in rounds:
        decided = [side.decide(c=c) for side in sides]
        np.testing.assert_allclose(*decided, rtol=0, atol=1e-9)
        for side in sides:
            side.observe(p=p, s=s)


MET = """
model met
horizon T = 60
decision x[5] in {domain}
stream a[5] in [-1, 1]
minimize {loss}
subject to
    met: {row} each round
"""
MET_AS_EQUALITIES = {
    "sinha-vaze": ("simplex", "a @ x", (1, 1, 1, 1, 1), 1),
    "scofw-tvc": ("box(-1, 1)", "sum_squares(x - a)", (0.1, 0.2, 0.3, -0.6, 0), 0),
}


@pytest.mark.parametrize("algorithm", MET_AS_EQUALITIES)
def test_a_constraint_that_is_met_as_an_equality_does_not_hang_on_the_order_of_its_terms(algorithm):
    """Decisions on a simplex sum to 1, and those at a corner have 0.1 + 0.2 + 0.3 - 0.6 = 0: in another order rounding has another sign."""
    domain, loss, factors, limit = MET_AS_EQUALITIES[algorithm]
    a, order = np.clip(np.random.default_rng(0).normal(0.3, 0.4, (60, 5)), -1, 1), np.array([3, 0, 2, 1, 4])

    def decisions(places):
        row = " + ".join(f"({factors[k]}) * x[{n}]" for n, k in enumerate(places))
        text = MET.format(domain=domain, loss=loss, row=f"{row} <= {limit}")
        learner = oco.compile(oco.parse(text), algorithm).learner(backend="numpy")
        for now in a[:, places]:
            yield learner.decide()
            learner.observe(a=now)

    found, moved = (np.array([*decisions(places)]) for places in (np.arange(5), order))
    np.testing.assert_allclose(found[:, order], moved, rtol=0, atol=1e-9)
