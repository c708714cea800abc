"""Hypothesis strategies for whole models, built with the builder: every kind of statement, expressions of every kind of node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from oco.dsl.builder import ModelBuilder
from oco.dsl.checks import distribution_spec, domain_spec
from oco.dsl.expressions import constant
from oco.dsl.limits import LONGEST
from oco.dsl.model import Model
from oco.dsl.statements import Relation
from oco.dsl.terms import Comparison, DistributionTerm, DomainTerm, Term, apply, term

Shape = tuple[int, ...]

SHAPES: tuple[Shape, ...] = ((), (2,), (3,), (2, 3), (3, 3))
ELEMENTWISE = ("abs", "pos", "square", "exp", "logistic", "hinge", "log1p", "entr", "inv_pos", "huber")
REDUCTIONS = ("sum", "mean", "max", "min", "norm1", "norm2", "norm_inf", "log_sum_exp")
WHOLE = ("sum_squares", "nuclear_norm", "sigma_max")
NAMES = ("mean", "on", "each", "regret", "x1", "gradient_step", "beta", "in", "full", "unknown", "price", "Q_2")
"""Names for declarations: words of the language among them, which are names wherever they are not expected."""

FORMULAS = ("0.5", "sqrt(t)", "2 * sqrt(T)", "-1 / (t + 1) ** 0.5", "max(loss.bound, 1e-3)", "domain.diameter.l2 / T")

numbers = st.one_of(
    st.integers(-(10**6), 10**6),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, 1, -1, 0.0, -0.0, 0.1, 1e22, 1e-300, 5e-324, 1.7976931348623157e308, 123456789.123]),
)


@st.composite
def arrays(draw: st.DrawFn, shape: Shape) -> Any:
    """Integers or floats in a shape."""
    size = int(np.prod(shape))
    if draw(st.booleans()):
        values = np.array(draw(st.lists(st.integers(-50, 50), min_size=size, max_size=size)), dtype=np.int64)
    else:
        finite = st.floats(allow_nan=False, allow_infinity=False)
        values = np.array(draw(st.lists(finite, min_size=size, max_size=size)), dtype=np.float64)
    return values.reshape(shape)


class _Drawer:
    """Draws expressions of a wanted shape over the names declared so far."""

    def __init__(self, draw: st.DrawFn, builder: ModelBuilder) -> None:
        self.draw = draw
        self.builder = builder
        self.names: list[Term] = []

    def pick(self, options: Any) -> Any:
        return self.draw(st.sampled_from(list(options)))

    def expr(self, shape: Shape, depth: int) -> Term:
        """An expression of this shape, of at most this depth."""
        makers: list[Callable[[Shape, int], Term]] = [self.leaf]
        if depth > 0:
            makers += [self.binary, self.power, self.minus, self.function, self.extremum]
            makers += [self.reduction, self.product, self.round] if shape == () else []
            makers += [self.vector, self.slice, self.matrix_times_vector, self.entries] if len(shape) == 1 else []
            makers += [self.transpose, self.outer] if len(shape) == 2 else []
        return self.pick(makers)(shape, depth - 1)

    def leaf(self, shape: Shape, depth: int) -> Term:
        fitting = [n for n in self.names if n.shape == shape]
        if fitting and self.draw(st.integers(0, 3)):
            return self.pick(fitting)
        return term(self.draw(numbers) if shape == () else self.draw(arrays(shape)), None)

    def binary(self, shape: Shape, depth: int) -> Term:
        left, right = self.expr(shape, depth), self.expr(self.pick([shape, ()]), depth)
        if self.draw(st.booleans()):
            left, right = right, left
        return apply(self.pick(["add", "sub", "mul", "div"]), left, right)

    def power(self, shape: Shape, depth: int) -> Term:
        if self.draw(st.booleans()):
            return self.expr(shape, depth) ** self.draw(numbers)
        return apply("power", self.expr(shape, depth), 2)

    def minus(self, shape: Shape, depth: int) -> Term:
        return -self.expr(shape, depth)

    def function(self, shape: Shape, depth: int) -> Term:
        return apply(self.pick(ELEMENTWISE), self.expr(shape, depth))

    def extremum(self, shape: Shape, depth: int) -> Term:
        return apply(self.pick(["maximum", "minimum"]), self.expr(shape, depth), self.expr((), depth))

    def reduction(self, shape: Shape, depth: int) -> Term:
        inner = self.pick(SHAPES[1:])
        if len(inner) == 2 and self.draw(st.booleans()):
            return apply(self.pick(WHOLE), self.expr(inner, depth))
        if len(inner) == 1 and self.draw(st.booleans()):
            return apply(self.pick(REDUCTIONS), self.expr(inner, depth), axis=0)
        return apply(self.pick(REDUCTIONS), self.expr(inner, depth))

    def product(self, shape: Shape, depth: int) -> Term:
        return self.expr((3,), depth) @ self.expr((3,), depth)

    def round(self, shape: Shape, depth: int) -> Term:
        return self.builder.t

    def vector(self, shape: Shape, depth: int) -> Term:
        return term([self.expr((), depth) for _ in range(shape[0])], None)

    def slice(self, shape: Shape, depth: int) -> Term:
        if shape == (2,):
            return self.expr((3,), depth)[self.pick([slice(1, 3), slice(None, 2), slice(1, None)])]
        return self.expr((2, 3), depth)[self.pick([0, 1]), :]

    def entries(self, shape: Shape, depth: int) -> Term:
        chosen = self.draw(st.lists(st.integers(0, 2), min_size=shape[0], max_size=shape[0]))
        if self.draw(st.booleans()):
            return self.expr((3, 3), depth)[chosen, chosen]
        return self.expr((3,), depth)[chosen]

    def matrix_times_vector(self, shape: Shape, depth: int) -> Term:
        return self.expr((shape[0], 3), depth) @ self.expr((3,), depth)

    def transpose(self, shape: Shape, depth: int) -> Term:
        return self.expr(shape[::-1], depth).T if shape == (3, 3) else self.leaf(shape, depth)

    def outer(self, shape: Shape, depth: int) -> Term:
        return apply("outer", self.expr((shape[0],), depth), self.expr((shape[1],), depth))


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A model with every kind of statement that the draw brings up."""
    names = draw(st.permutations(NAMES))
    builder = ModelBuilder(names[0], draw(st.one_of(st.none(), st.integers(1, LONGEST))))
    drawer = _Drawer(draw, builder)
    free = iter(names[1:])
    for _ in range(draw(st.integers(0, 2))):
        drawer.names.append(_param(draw, builder, next(free)))
    for _ in range(draw(st.integers(1, 2))):
        drawer.names.append(_decision(draw, builder, next(free)))
    decisions = list(drawer.names)[-1:]
    for _ in range(draw(st.integers(0, 3))):
        drawer.names.append(_stream(draw, builder, next(free)))
    for _ in range(draw(st.integers(0, 2))):
        drawer.names.append(builder.let(next(free), drawer.expr(draw(st.sampled_from(SHAPES)), 3)))
    cost = apply("sum_squares", decisions[0])
    builder.minimize(draw(st.sampled_from([cost, -cost, 2 * cost])) + drawer.expr((), 4))
    for label in ("cap", "mean", "gradient_2")[: draw(st.integers(0, 3))]:
        right = drawer.expr(draw(st.sampled_from([(), decisions[0].shape])), 2)
        relation = draw(st.sampled_from(list(Relation)))
        comparison = Comparison(decisions[0] - drawer.expr((), 2), relation, right, None)
        builder.subject_to(comparison, name=label, each_round=draw(st.booleans()))
    _wishes(draw, builder)
    return builder.build()


def _param(draw: st.DrawFn, builder: ModelBuilder, name: str) -> Term:
    shape = draw(st.sampled_from(SHAPES))
    value = draw(numbers) if shape == () else draw(arrays(shape))
    bounds = (int(np.floor(value)), int(np.ceil(value))) if shape == () and abs(value) < 2**53 else None
    kind = draw(st.sampled_from(["plain", "bounded", "given later", "broadcast"]))
    if kind == "given later":
        return builder.param(name, shape or None)
    if kind == "bounded":
        return builder.param(name, shape or None, value, bounds=bounds)
    if kind == "broadcast" and shape:
        return builder.param(name, shape, draw(st.integers(-9, 9)))
    return builder.param(name, shape or None, value)


def _decision(draw: st.DrawFn, builder: ModelBuilder, name: str) -> Term:
    shape = draw(st.sampled_from(SHAPES))
    radius = draw(st.sampled_from([1, 2.5, 10000]))
    kinds: list[tuple[str, tuple[Any, ...]]] = [("box", (-radius, radius)), ("ball", (radius,))]
    if len(shape) == 1:
        kinds += [("simplex", ()), ("simplex", (radius,)), ("l1_ball", (radius,)), ("box", (np.zeros(shape), radius))]
    if len(shape) == 2:
        kinds += [("nuclear_ball", (radius,))]
    kind, args = draw(st.sampled_from(kinds))
    spec = domain_spec(kind, [constant(a) for a in args], {}, None)
    return builder.decision(name, shape or None, domain=DomainTerm(spec))


def _stream(draw: st.DrawFn, builder: ModelBuilder, name: str) -> Term:
    shape = draw(st.sampled_from(SHAPES)) or None
    kind = draw(st.sampled_from(["adversary", "integer", "iid", "mean", "law", "truncated", "categorical"]))
    if kind == "integer":
        return builder.stream(name, shape, bounds=(-1, draw(st.integers(0, 9))), integer=True)
    if kind == "iid":
        return builder.stream(name, shape, bounds=(-0.5, 1e3), iid=True)
    if kind == "mean":
        return builder.stream(name, shape, bounds=(-2, 2), iid=True, mean=draw(st.floats(-1, 1)))
    if kind == "law":
        spec = distribution_spec("normal", [constant(draw(st.floats(-9, 9))), constant(1)], {}, None)
        return builder.stream(name, shape, dist=DistributionTerm(spec))
    if kind == "truncated":
        spec = distribution_spec("pareto", [constant(3)], {"mean": constant(8)}, None)
        return builder.stream(name, shape, dist=DistributionTerm(spec), bounds=(0, 400))
    if kind == "categorical":
        spec = distribution_spec("categorical", [constant(np.array([0.25, 0.75]))], {}, None)
        return builder.stream(name, shape, dist=DistributionTerm(spec))
    return builder.stream(name, shape, bounds=(-1, 1))


def _wishes(draw: st.DrawFn, builder: ModelBuilder) -> None:
    """Measure, feedback, assumptions, algorithm."""
    builder.measure(draw(st.sampled_from(["static", "dynamic"])))
    builder.feedback(draw(st.sampled_from(["full", "gradient", "bandit"])))
    if draw(st.booleans()):
        builder.assume({"slater.margin": draw(st.floats(1e-9, 1e9)), "loss.lipschitz.l2": 3})
    if draw(st.booleans()):
        builder.using("mirror-descent", V=draw(st.sampled_from(FORMULAS)), alpha=draw(st.sampled_from(FORMULAS)))
    elif draw(st.booleans()):
        builder.using(None, alpha=draw(st.sampled_from(FORMULAS)))
