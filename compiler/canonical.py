"""The model in the form that every later stage reads: minimize f, g <= 0, h = 0, with params folded to constants.

Lets stand where they are used (one shared node each), `a >= b` is `b - a <= 0`, and everything that is known before the first round
is a constant. Decisions and streams keep their names; the round `t` stays symbolic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from oco.compiler.cuts import Sets
from oco.compiler.domains import Domain
from oco.compiler.domains.programs import MOST_STEPS
from oco.compiler.structure import Structure, structure_of
from oco.compiler.vectorize import Together
from oco.dsl.build import call
from oco.dsl.diagnostics import Findings, InternalError, fail
from oco.dsl.dims import SymbolicDim
from oco.dsl.distributions import TruncatedDistribution, truncated
from oco.dsl.domains import DOMAINS
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Call, Constant, Data, Expr, Kind, Name, Slice, constant, names, rewrite
from oco.dsl.limits import Made, Sizes, check_entries, numbers
from oco.dsl.model import Decision, Feedback, Measure, Model, Param, Relation, Stream, Timing
from oco.dsl.source import Span

Floats = np.ndarray[Any, Any]
FEWEST_STEPS = 5_000_000
"""What the linear programs of one decision may take at least: some ten small ones."""


@dataclass(frozen=True)
class Block:
    """One decision and the set it lies in."""

    name: str
    shape: tuple[int, ...]
    domain: Domain
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, eq=False)
class StreamRange:
    """What a stream may reveal: `lower <= value <= upper` entrywise (both broadcast to `shape`; infinite where nothing is said).

    `mean` is the expected value where it is known: of the distribution, cut to the bounds, or as declared after `iid`.
    `distribution` is the distribution, cut to the bounds, where the model states it: `distribution.sample(rng, rounds)` draws.
    """

    name: str
    shape: tuple[int, ...]
    lower: Floats
    upper: Floats
    integer: bool
    stream: Stream
    distribution: TruncatedDistribution | None = None
    mean: Floats | None = None

    @property
    def stochastic(self) -> bool:
        """Whether the values of different rounds are independent draws of one distribution."""
        return self.stream.iid or self.stream.distribution is not None


@dataclass(frozen=True)
class Inequality:
    """`expr <= 0` entry by entry, for the entries of `shape`. `origin` is the label in the text."""

    label: str
    shape: tuple[int, ...]
    expr: Expr
    timing: Timing
    origin: str
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Equality:
    """`expr == 0` entry by entry, on average over the rounds; affine in the decisions."""

    label: str
    shape: tuple[int, ...]
    expr: Expr
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class Assumed:
    """`assume key relation value`, the value worked out."""

    key: str
    relation: Relation
    value: float
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Canonical:
    """The problem of one round: minimize `objective` over the blocks, subject to inequalities and equalities in the order of the text.

    `horizon` is None where the model says that it is unknown.
    """

    model: Model
    horizon: int | None
    blocks: tuple[Block, ...]
    streams: tuple[StreamRange, ...]
    objective: Expr
    inequalities: tuple[Inequality, ...]
    equalities: tuple[Equality, ...]
    assumptions: tuple[Assumed, ...] = ()

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def measure(self) -> Measure:
        return self.model.measure

    @property
    def feedback(self) -> Feedback:
        return self.model.feedback

    @property
    def constraints(self) -> tuple[Inequality | Equality, ...]:
        """All constraints: the inequalities, then the equalities on average."""
        return (*self.inequalities, *self.equalities)

    @cached_property
    def size(self) -> int:
        """How many numbers a decision is made of."""
        return sum(int(np.prod(b.shape, dtype=np.int64)) for b in self.blocks)

    @cached_property
    def fixed(self) -> bool:
        """Whether no inequality changes from round to round."""
        return not any(names(c.expr, kind) for c in self.inequalities for kind in (Kind.ROUND, Kind.STREAM))

    @cached_property
    def structure(self) -> tuple[Structure, str]:
        """How all inequalities depend on the decisions, and the label of the first that is no better (`constraint_structure`)."""
        return structure_of(self.inequalities, tuple(b.name for b in self.blocks))

    @cached_property
    def revealed_on_average(self) -> tuple[str, ...]:
        """The inequalities, as they are named in the model, that data enters and that bind on average only."""
        loose = (c.origin for c in self.inequalities if c.timing is Timing.ON_AVERAGE and names(c.expr, Kind.STREAM))
        return tuple(dict.fromkeys(loose))

    @cached_property
    def constraint_labels(self) -> tuple[str, ...]:
        """One label for each entry of the inequalities: `service`, `limits[0]`, `limits[1]`."""
        return tuple(label for c in self.inequalities for label in entry_labels(c.label, c.shape))

    @cached_property
    def equality_labels(self) -> tuple[str, ...]:
        """One label for each entry of the equalities."""
        return tuple(label for c in self.equalities for label in entry_labels(c.label, c.shape))


@lru_cache(maxsize=64)
def entry_labels(label: str, shape: tuple[int, ...]) -> tuple[str, ...]:
    """`limits[0]`, `limits[1]`; for a scalar the label itself."""
    if not shape:
        return (label,)
    return tuple(f"{label}[{', '.join(map(str, i))}]" for i in np.ndindex(*shape))


def canonical(model: Model) -> Canonical:
    """Bring a model into canonical form. Raises OcoError where a param has no value or a bound or domain is not acceptable."""
    folding = _Folding(model)
    findings = Findings()
    if model.objective is None:
        raise fail("OCO207", "the model has nothing to minimize", model.span, "add a line: minimize EXPRESSION")
    check_entries(model)
    blocks: list[Block] = []
    streams: list[StreamRange] = []
    steps = _steps(model)
    for decision in model.decisions:
        with findings.guard():
            blocks.append(_block(decision, folding, steps))
    for stream in model.streams:
        with findings.guard():
            streams.append(_range(stream, folding))
    findings.raise_if_any()
    inequalities: list[Inequality] = []
    equalities: list[Equality] = []
    for c in model.constraints:
        shape = folding.shape(c.shape, c.span)
        left, right = folding.fold(c.left), folding.fold(c.right)
        if c.relation is Relation.EQ and c.timing is Timing.ON_AVERAGE:
            equalities.append(Equality(c.label, shape, _difference(left, right), c.span))
            continue
        if c.relation is Relation.EQ:
            above, below = _difference(left, right), _difference(right, left)
            inequalities.append(Inequality(f"{c.label}.above", shape, above, c.timing, c.label, c.span))
            inequalities.append(Inequality(f"{c.label}.below", shape, below, c.timing, c.label, c.span))
            continue
        g = _difference(left, right) if c.relation is Relation.LE else _difference(right, left)
        inequalities.append(Inequality(c.label, shape, g, c.timing, c.label, c.span))
    horizon = None if model.horizon.rounds is None else _horizon(folding.fold(model.horizon.rounds))
    assumptions = tuple(Assumed(a.key, a.relation, folding.number(a.value, a.key), a.span) for a in model.assumptions)
    objective = folding.fold(model.objective)
    return Canonical(
        model, horizon, tuple(blocks), tuple(streams), objective, tuple(inequalities), tuple(equalities), assumptions
    )


class _Folding:
    """Replaces params by their values and lets by what they stand for, and evaluates whatever is then constant."""

    def __init__(self, model: Model) -> None:
        self.params: Mapping[str, Param] = {p.name: p for p in model.params}
        self.values = {p.name: p.data for p in model.params if p.data is not None}
        self.lets = {let.name: let.value for let in model.lets}
        self.data: dict[str, Data] = {}
        self.done: dict[str, Expr] = {}
        self.worked_out: dict[object, tuple[Expr, Data]] = {}
        self.sizes = Sizes()
        self.made, self.sets = Made(), Sets()
        self.together = Together()

    def fold(self, expr: Expr) -> Expr:
        return self.together(self._written(expr))

    def _written(self, expr: Expr) -> Expr:
        """With lets and params put in, as it was written."""
        written = rewrite(expr, self._node)
        self.sizes.check(written, expr.span)
        return written

    def array(self, expr: Expr) -> Floats:
        """The value of an expression that must be known before the first round."""
        folded = self.fold(expr)
        if not isinstance(folded, Constant):
            raise InternalError("a bound or an argument of a domain depends on the round's data")
        return folded.value.array

    def number(self, expr: Expr, what: str) -> float:
        """The same of what is one number."""
        value = self.array(expr)
        if value.shape:
            raise fail("OCO654", f"`{what}` is bounded by one number; here it has shape {list(value.shape)}", expr.span)
        return float(value)

    def shape(self, shape: tuple[Any, ...], span: Span | None) -> tuple[int, ...]:
        for dim in shape:
            if isinstance(dim, SymbolicDim):
                raise _no_value(dim.terms[0][0][0], span)
        return tuple(int(d) for d in shape)

    def _node(self, node: Expr) -> Expr:
        if isinstance(node, Name) and node.kind is Kind.PARAM:
            return self._param(node)
        if isinstance(node, Name) and node.kind is Kind.LET:
            self._fold_let(node.name)
            return self.done[node.name]
        if isinstance(node, (Constant, Name, Slice)) or not all(_is_constant(c) for c in node.children):
            return node
        data = self._worked_out(node)
        return Constant(data, shape=data.array.shape, integer=node.integer, span=node.span)

    def _worked_out(self, node: Expr) -> Data:
        """The value of a part without decisions and streams; parts with the same arguments share one array."""
        own: object = id(node)
        if isinstance(node, Call):
            own = (
                node.atom,
                node.options,
                node.shape,
                *(id(a.value if isinstance(a, Constant) else a) for a in node.args),
            )
        if own not in self.worked_out:
            self.made.add(numbers(node), "this part of the model", node.span)
            value = np.asarray(evaluate(node, {}))
            if not np.isfinite(value).all():
                raise fail(
                    "OCO807",
                    "this part of the model is not a finite number",
                    node.span,
                    "look for a division by zero or a huge power",
                )
            self.worked_out[own] = node, constant(value).value
        return self.worked_out[own][1]

    def _fold_let(self, name: str) -> None:
        """A let after those that it uses, however long the chain of them is."""
        waiting = [] if name in self.done else [name]
        while waiting:
            used = [n for n in names(self.lets[waiting[-1]], Kind.LET) if n not in self.done]
            waiting += used
            if not used:
                last = waiting.pop()
                self.done[last] = self._written(self.lets[last])

    def _param(self, node: Name) -> Expr:
        param = self.params[node.name]
        if param.data is None:
            raise _no_value(node.name, node.span)
        if node.name not in self.data:
            self.data[node.name] = constant(param.data).value
        data = self.data[node.name]
        return Constant(data, shape=tuple(data.array.shape), integer=param.integer or node.integer, span=node.span)


def _is_constant(node: Expr) -> bool:
    return isinstance(node, Constant) or (isinstance(node, Slice) and all(_is_constant(c) for c in node.children))


def _no_value(name: str, span: Span | None) -> Exception:
    return fail(
        "OCO216", f"the param `{name}` has no value", span, f"give one: --param {name}=..., or params={{{name!r}: ...}}"
    )


def _difference(left: Expr, right: Expr) -> Expr:
    """`left - right`, without the subtraction of a zero that changes nothing."""
    if isinstance(right, Constant) and not right.value.array.any() and right.shape in ((), left.shape):
        return left
    return call("sub", left, right)


def _horizon(rounds: Expr) -> int:
    if not isinstance(rounds, Constant) or rounds.shape != ():
        raise fail("OCO323", "the horizon is one whole number", rounds.span)
    value = float(rounds.value.array)
    if value < 1 or value != int(value):
        raise fail("OCO323", f"the horizon is a whole number of rounds, at least 1; here it is {value:g}", rounds.span)
    return int(value)


def _steps(model: Model) -> int:
    """What the linear programs of one decision may take: a share of those of all."""
    polyhedra = sum(DOMAINS[d.domain.kind].polyhedral or bool(d.domain.cuts) for d in model.decisions)
    return max(MOST_STEPS // max(1, polyhedra), FEWEST_STEPS)


def _block(decision: Decision, folding: _Folding, steps: int) -> Block:
    shape = folding.shape(decision.shape, decision.span)
    for argument in decision.domain.args:
        folding.fold(argument)  # names a param without a value
    domain = folding.sets.made(decision.domain, shape, folding.values, steps)
    if decision.domain.cuts:
        cuts = decision.domain.cuts
        sides = [(_difference(folding.fold(c.left), folding.fold(c.right)), c.relation, c.span) for c in cuts]
        domain = folding.sets.narrowed(domain, decision.name, sides, steps)
    return Block(decision.name, shape, domain, decision.span)


def _range(stream: Stream, folding: _Folding) -> StreamRange:
    """The values that a stream may take: its bounds, cut to the support of its distribution, whole numbers where it says so."""
    shape = folding.shape(stream.shape, stream.span)
    lower, upper = np.asarray(-np.inf), np.asarray(np.inf)
    if stream.bounds is not None:
        lower, upper = (np.asarray(folding.array(b), dtype=np.float64) for b in stream.bounds)
    mean = None if stream.mean is None else np.asarray(folding.array(stream.mean), dtype=np.float64)
    distribution = None
    if stream.distribution is not None:
        distribution = truncated(
            stream.distribution, folding.array, shape, None if stream.bounds is None else (lower, upper)
        )
        lower, upper, mean = distribution.lower, distribution.upper, distribution.mean()
    if stream.integer:
        lower, upper = np.ceil(lower), np.floor(upper)
    if not bool(np.all(lower <= upper)):
        raise fail("OCO426", f"no value is left for the stream `{stream.name}`: its bounds are empty", stream.span)
    return StreamRange(stream.name, shape, lower, upper, stream.integer, stream, distribution, mean)
