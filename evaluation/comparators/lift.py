"""Functions with kinks as smooth ones with more variables: |u| becomes s with u <= s and -u <= s.

By the rules of disciplined convex programming a convex atom stands where the function rises with it, and a concave one
where it falls, so that at an optimum the new variable equals the atom.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.domains.make import domain
from oco.compiler.problem.calculus import dependence
from oco.compiler.problem.canonical import Canonical, DecisionBlock, Inequality
from oco.dsl import algebra as e
from oco.dsl.atoms import ATOMS, Regularity, form_of, forms, kink_of, never_negative, norms, regularity_of
from oco.dsl.dims import known
from oco.dsl.enclose import enclose, enclosures
from oco.dsl.expressions import Call, Expr, Kind, Name, walk
from oco.dsl.intervals import Interval, interval
from oco.dsl.records import dataclass
from oco.dsl.statements import Timing
from oco.evaluation.comparators.functions import RoundArrays

Array = np.ndarray[Any, Any]
MARGIN = 0.05  # by how much of its range a new variable may leave the range of what it stands for


def _length(u: Expr, s: Expr) -> Expr:
    """Constraint |u|_2 <= s for s > 0, as the convex function |u|^2 / s - s; for each column of u where s has several
    entries.
    """
    squares = e.call("sum_squares", u) if s.shape == () else e.call("sum", e.call("square", u), axis=0)
    return e.sub(e.div(squares, s), s)


def _definitions(node: Call, s: Expr, args: tuple[Expr, ...], nonnegative: bool) -> list[Expr]:
    """Constraints on the new variable, each entry at most zero; norms of matrices are defined by `Lifted.norms` alone."""
    norm, form = ATOMS[node.atom].norm, kink_of(node)
    if norm is not None:
        return [_length(args[0], s)] if norm.second_order else []
    assert form is not None
    pieces = [p for p in form.pieces(e, *args) if not (nonnegative and e.value_of(p) == 0)]
    return [e.sub(p, s) if form.largest else e.sub(s, p) for p in pieces]


@dataclass(frozen=True, eq=False)
class NormOf:
    """Norm of `argument`, or of each of its columns where they are `several`."""

    norm: norms.Norm
    argument: Expr
    several: bool


@dataclass(frozen=True, eq=False)
class Lifted:
    """Problem with new decisions and their definitions; `each_round` names the new ones that differ by the round.

    `norms` has the arguments of Euclidean and spectral norms, by the name of the new decision, which is the origin of
    its definition.
    """

    problem: Canonical
    definitions: tuple[Inequality, ...]
    each_round: tuple[str, ...]
    norms: Mapping[str, NormOf]

    @property
    def smooth(self) -> bool:
        """True where the definitions are complete without the norms."""
        return all(n.norm.second_order for n in self.norms.values())


class Unliftable(Exception):
    """Raised for a function whose kinks have no form that is lifted."""


class _Lifting:
    def __init__(self, rounds: RoundArrays) -> None:
        self.rounds = rounds
        self.ranges = ranges_of(rounds)
        self.shared: list[DecisionBlock] = []
        self.local: list[DecisionBlock] = []
        self.definitions: list[Inequality] = []
        self.norms: dict[str, NormOf] = {}
        self.bounded = True

    def expression(self, root: Expr) -> Expr:
        """Expression with new variables for its kinks. Raises Unliftable."""
        nodes = list(walk(root))
        depends = dependence(nodes, self.rounds.variables)
        values = enclosures(root, self.ranges)
        done: dict[int, Expr] = {}
        for node in nodes:
            children = tuple(done[id(c)] for c in node.children)
            new = node.with_children(children) if children else node
            if isinstance(node, Call) and id(node) in depends and regularity_of(node) is not Regularity.SMOOTH:
                if ATOMS[node.atom].norm is None and kink_of(node) is None:
                    raise Unliftable
                new = self._variable(node, new.children, values)
            done[id(node)] = new
        return done[id(root)]

    def _variable(self, node: Call, args: tuple[Expr, ...], values: Mapping[int, Interval]) -> Expr:
        axis = dict(node.options).get("axis")
        whole = kink_of(node) is not None and isinstance(form_of(node), forms.Total)
        shape = known(node.args[0].shape if whole else node.shape)
        bounds = values[id(node.args[0])] if whole else values[id(node)]
        if not (np.all(np.isfinite(bounds.lo)) and np.all(np.isfinite(bounds.hi))):
            self.bounded, bounds = False, interval(0.0, 1.0, ())
        name = f"_{node.atom}{len(self.shared) + len(self.local)}"
        s = Name(name, Kind.DECISION, shape=shape)
        if axis == 1 and not whole:
            args = tuple(e.transpose(a) for a in args)
        nonnegative = never_negative(node)
        block = DecisionBlock(name, shape, _box(bounds, shape, nonnegative, whole))
        each = any(self.rounds.enters(a) for a in node.args) or any(b.name in _named(args) for b in self.local)
        (self.local if each else self.shared).append(block)
        if (norm := ATOMS[node.atom].norm) is not None:
            self.norms[name] = NormOf(norm, args[0], shape != ())
        for k, piece in enumerate(_definitions(node, s, args, nonnegative)):
            self.definitions.append(Inequality(f"{name}.{k}", known(piece.shape), piece, Timing.EACH_ROUND, name))
        return _summed(s, axis) if whole else s


def _summed(s: Expr, axis: Any) -> Expr:
    return e.call("sum", s) if axis is None else e.call("sum", s, axis=axis)


def _named(args: tuple[Expr, ...]) -> set[str]:
    return {n.name for a in args for n in walk(a) if isinstance(n, Name)}


def _box(bounds: Interval, shape: tuple[int, ...], nonnegative: bool, absolute: bool) -> Any:
    lo, hi = (np.broadcast_to(end, shape).astype(float) for end in (bounds.lo, bounds.hi))
    if absolute:
        lo, hi = np.zeros(shape), np.maximum(np.abs(lo), np.abs(hi))
    margin = MARGIN * np.maximum(hi - lo, 1e-3 * np.maximum(1.0, np.abs(hi)))
    return domain("box", shape, np.zeros(shape) if nonnegative else lo - margin, hi + margin)


def ranges_of(rounds: RoundArrays) -> dict[str, Interval]:
    """Ranges of the decisions and of the data of these rounds."""
    results = {b.name: interval(b.domain.lower, b.domain.upper, b.shape) for b in rounds.problem.blocks}
    for name, values in rounds.streams.items():
        results[name] = interval(values.min(axis=0), values.max(axis=0), tuple(values.shape[1:]))
    return results | {"t": interval(float(rounds.numbers.min()), float(rounds.numbers.max()), ())}


def least_loss(problem: Canonical, rounds: int) -> float:
    """Lower bound on the loss of a round, for all decisions and data; -inf where the ranges give none."""
    results = {b.name: interval(b.domain.lower, b.domain.upper, b.shape) for b in problem.blocks}
    results |= {s.name: interval(s.lower, s.upper, s.shape) for s in problem.streams}
    least = float(np.min(enclose(problem.objective, results | {"t": interval(1.0, float(rounds), ())}).lo))
    return -np.inf if np.isnan(least) else least


def lift(rounds: RoundArrays) -> Lifted | None:
    """Problem of these rounds without kinks; None where one is of no known form, or in an unbounded range."""
    lifting = _Lifting(rounds)
    problem = rounds.problem
    try:
        objective = lifting.expression(problem.objective)
        inequalities = tuple(replace(c, expr=lifting.expression(c.expr)) for c in problem.inequalities)
    except Unliftable:
        return None
    if not lifting.bounded:
        return None
    blocks = (*problem.blocks, *lifting.shared, *lifting.local)
    new = replace(problem, objective=objective, inequalities=inequalities, blocks=blocks)
    return Lifted(new, tuple(lifting.definitions), tuple(b.name for b in lifting.local), lifting.norms)
