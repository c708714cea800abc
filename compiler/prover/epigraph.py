"""Constraints with kinks, lifted: each kink that is the largest of smooth pieces gets a variable above all of them.

Where g(x) = G(x, node(x)), node(x) = max_i u_i(x) and G does not fall in its second argument,

    [g(x)]_+ = min over z of [G(x, z)]_+  subject to  u_i(x) <= z for all i.

The lifted constraints are smooth. The multipliers of the pieces of a node share what it weighs: they are not negative, and their sum is at
most the slope of G towards z times the multiplier of g. So a sum of d absolute values needs 2 d rows, not 2^d pieces.

A node's variable is written z = base + steepness level: its value at a decision near by, and its change in the units of `kinked_step`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from oco.compiler.domains.box import Box
from oco.compiler.problem.canonical import Canonical, DecisionBlock, Inequality, StreamRange
from oco.compiler.problem.jacobians import jacobian
from oco.compiler.problem.structure import Structure, is_affine, separable_over_box
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.ranges.enclosure import Enclosure
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms, kink_of
from oco.dsl.build import applied
from oco.dsl.dims import known
from oco.dsl.expressions import Call, Expr, Kind, Name, Slice, constant, names, rewrite, walk
from oco.dsl.limits import MOST_ROW_NUMBERS
from oco.dsl.records import dataclass
from oco.dsl.statements import Feedback, Stream

Floats = np.ndarray[Any, Any]
LEVELS, BASES, STEEPNESS = "_levels", "_bases", "_steepness"
_MIXED = "it is not seen that `{}` is a sum of its kinks with weights that are not negative"


@dataclass(frozen=True, eq=False)
class Epigraph:
    """The lifted problem and how it belongs to the other one.

    canonical  over the decisions and one more block, the levels, shape (K,); first the constraints of the model, then the rows u - z <= 0
    nodes      what the variables stand for: expressions in the decisions, with K entries together
    owner      of each row the level that stands above it, shape (P,)
    second_derivatives  of each row a bound of how fast its gradient changes, shape (P,)
    depth      how deep nodes stand in nodes
    """

    canonical: Canonical
    nodes: tuple[Expr, ...]
    owner: Floats
    second_derivatives: Floats
    depth: int

    @property
    def levels(self) -> int:
        """Number of levels, K."""
        return int(self.canonical.blocks[-1].shape[0])


class NoEpigraph(Exception):
    """Why constraints with kinks are not lifted, in words."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def has_kinks(c: Inequality) -> bool:
    """True if the constraint contains a maximum or minimum of pieces in which a decision occurs."""
    return any(_is_kink(n) for n in walk(c.expr))


def lifted(canonical: Canonical) -> Epigraph | None:
    """The lifted problem; None where kinks need no lifting, as over a box in sums of functions of single entries, or allow none."""
    try:
        return epigraph(canonical) if kinks_hinder(canonical) else None
    except NoEpigraph:
        return None


def kinks_hinder(canonical: Canonical) -> bool:
    """True if a step meets kinks that it cannot take as they are."""
    if not any(has_kinks(c) for c in canonical.inequalities):
        return False
    structure, _ = canonical.structure
    return structure is not Structure.AFFINE and not separable_over_box(structure, [b.domain for b in canonical.blocks])


def epigraph(canonical: Canonical) -> Epigraph:
    """The lifted problem of one whose constraints have kinks. Raises NoEpigraph."""
    lifting = _KinkNames()
    roots = tuple(replace(c, expr=rewrite(c.expr, lifting.of(c))) for c in canonical.inequalities)
    count = sum(node.size for node in lifting.nodes)
    vectors = {
        LEVELS: Name(LEVELS, Kind.DECISION, shape=(count,)),
        BASES: Name(BASES, Kind.STREAM, shape=(count,)),
        STEEPNESS: Name(STEEPNESS, Kind.STREAM, shape=(count,)),
    }
    starts = np.cumsum([0, *(node.size for node in lifting.nodes)])
    variables = {n.name: _variable(n, int(a), vectors) for n, a in zip(lifting.nodes, starts)}
    owners = {n.name: a + np.arange(n.size).reshape(n.shape) for n, a in zip(lifting.nodes, starts)}

    def written(expr: Expr) -> Expr:
        return rewrite(expr, lambda e: variables.get(e.name, e) if isinstance(e, Name) else e)

    rows, owner = list[Inequality](), list[Floats]()
    for k, row in enumerate(lifting.rows):
        expr = algebra.sub(written(row.piece), algebra.reshape(variables[row.node.name], row.stretched))
        shape = known(expr.shape)
        rows.append(Inequality(f"{row.of.label}.kink{k}", shape, expr, row.of.timing, row.of.origin))
        owner.append(np.broadcast_to(owners[row.node.name].reshape(row.stretched), shape).ravel())
    above = replace(
        canonical,
        model=replace(canonical.model, feedback=Feedback.FULL),
        blocks=(*canonical.blocks, _levels(canonical, count)),
        streams=(*canonical.streams, _range(BASES, count, -1.0), _range(STEEPNESS, count, 0.0)),
        inequalities=(*(replace(c, expr=written(c.expr)) for c in roots), *rows),
    )
    _check(above, [*roots, *(replace(row.of, expr=row.piece) for row in lifting.rows)])
    second_derivatives = _curvatures(above, [*canonical.inequalities, *(row.of for row in lifting.rows)])[len(roots) :]
    each = [np.full(c.size, second_derivative) for c, second_derivative in zip(rows, second_derivatives)]
    depth = max(n.depth for n in lifting.nodes)
    return Epigraph(above, tuple(n.value for n in lifting.nodes), np.concatenate(owner), np.concatenate(each), depth)


@dataclass(frozen=True, eq=False)
class _Node:
    """A kink: the name that stands for its variable, its value over the decisions, how deep nodes stand in it."""

    name: str
    shape: tuple[int, ...]
    value: Expr
    depth: int

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class _LevelRow:
    """piece <= variable of the node, brought to the shape `stretched`; it comes from the constraint `of`."""

    of: Inequality
    node: _Node
    piece: Expr
    stretched: tuple[int, ...]


class _KinkNames:
    """Puts a name in the place of each kink, from the inside out."""

    def __init__(self) -> None:
        self.nodes: list[_Node] = []
        self.rows: list[_LevelRow] = []
        self.values: dict[str, _Node] = {}
        self.pieces = 0

    def of(self, c: Inequality) -> Any:
        def lift(expr: Expr) -> Expr:
            if not isinstance(expr, Call) or not _is_kink(expr):
                return expr
            match form_of(expr):
                case forms.Total(of):
                    return _total(expr, self.named(c, algebra.call(of, *expr.args)))
                case forms.Extreme(largest=False):
                    return algebra.minus(self.named(c, expr))
            return self.named(c, expr)

        return lift

    def named(self, c: Inequality, call: Call) -> Expr:
        """A name for the largest of the pieces of a call; of a smallest, for the largest of their negatives."""
        inner = [self.values[n] for n in names(call, Kind.DECISION) if n in self.values]
        value: Expr = rewrite(call, self.over_decisions)
        form = form_of(call)
        assert isinstance(form, forms.Extreme)
        shape, stretched = known(call.shape), known(call.shape)
        if form.over:
            axis = call.option("axis")
            base = known(call.args[0].shape)
            stretched = (1,) * len(base) if axis is None else (*base[: int(axis)], 1, *base[int(axis) + 1 :])
        name = f"_node{len(self.nodes)}"
        depth = 1 + max((n.depth for n in inner), default=0)
        node = _Node(name, shape, value if form.largest else algebra.minus(value), depth)
        self.nodes.append(node)
        self.values[name] = node
        for piece in form.pieces(algebra, *call.args):
            self.rows.append(_LevelRow(c, node, piece if form.largest else algebra.minus(piece), stretched))
            self.pieces += math.prod(np.broadcast_shapes(known(piece.shape), stretched))
        if self.pieces**2 > MOST_ROW_NUMBERS:  # each has a multiplier, and systems of them are dense
            most = math.isqrt(MOST_ROW_NUMBERS)
            raise NoEpigraph(f"its step takes kinks of at most {most:,} pieces in all constraints together")
        return Name(name, Kind.DECISION, shape=call.shape)

    def over_decisions(self, e: Expr) -> Expr:
        """Expression that a name stands for."""
        return self.values[e.name].value if isinstance(e, Name) and e.name in self.values else e


def _is_kink(e: Expr) -> bool:
    return kink_of(e) is not None and bool(names(e, Kind.DECISION))


def _total(call: Call, sizes: Expr) -> Expr:
    """The sum of the absolute values, along the axis of the call."""
    return applied("sum", (sizes,), call.options) if sizes.shape else sizes


def _variable(node: _Node, start: int, vectors: Mapping[str, Name]) -> Expr:
    """base + steepness level of a node, of its shape."""
    whole = node.size == known(vectors[LEVELS].shape)[0]
    items = (Slice(constant(start), constant(start + node.size)),)
    level, base, steepness = (v if whole else algebra.index(v, items) for v in (vectors[k] for k in vectors))
    return algebra.reshape(algebra.add(base, algebra.mul(steepness, level)), node.shape)


def _levels(canonical: Canonical, count: int) -> DecisionBlock:
    """The levels lie in a box half as wide as the domain: many times what they move, by the choice of the steepness."""
    diameter = math.sqrt(sum(b.domain.diameter("l2") ** 2 for b in canonical.blocks)) or 1.0
    return DecisionBlock(LEVELS, (count,), Box((count,), np.asarray(-diameter / 4), np.asarray(diameter / 4)))


def _range(name: str, count: int, least: float) -> StreamRange:
    """Range of `base` and `steepness`, up to a factor: only their signs are used."""
    stream = Stream(name, (constant(count),), (count,), None)
    return StreamRange(name, (count,), np.asarray(least), np.asarray(1.0), False, stream)


def _check(lifted: Canonical, parts: list[Inequality]) -> None:
    """Check that nothing falls where a node rises: each of `parts` stands over the names of the nodes."""
    box = ProofContext(lifted).box
    for part in parts:
        inner = [n for n in names(part.expr, Kind.DECISION) if n.startswith("_node")]
        if not inner:
            continue
        slopes = jacobian(part.expr, inner)
        for slope in slopes.values():
            if names(slope, Kind.DECISION):
                raise NoEpigraph(_MIXED.format(part.origin))
            if not bool(np.all(Enclosure(box)(slope).lo >= 0)):
                raise NoEpigraph(_MIXED.format(part.origin))


def _curvatures(lifted: Canonical, origins: list[Inequality]) -> list[float]:
    """Smoothness constants of the lifted constraints; raises where nothing bounds that of one with kinks."""
    setting, decisions, result = ProofContext(lifted), tuple(b.name for b in lifted.blocks), list[float]()
    for c, origin in zip(lifted.inequalities, origins, strict=True):
        if is_affine(c.expr, decisions) or not has_kinks(origin):
            result.append(0.0)
            continue
        exprs = (
            [c.expr]
            if not c.shape
            else [algebra.index(algebra.reshape(c.expr, (c.size,)), (constant(i),)) for i in range(c.size)]
        )
        ends = [setting.hessians.eigenvalues(setting.simplify(e))[:2] for e in exprs]
        second_derivative = reduce(max, (max(abs(a), abs(b)) for a, b in ends), 0.0)
        if not math.isfinite(second_derivative):
            raise NoEpigraph(f"nothing bounds how fast the gradient of a piece of `{origin.origin}` changes")
        result.append(second_derivative)
    return result
