"""Functions with kinks as smooth ones with more variables: |u| becomes s with u <= s and -u <= s.

In the grammar of disciplined convex programming a convex atom stands where the function rises with it, and a concave one where
it falls, so that at an optimum the new variable equals the atom.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from oco.compiler.calculus import dependence
from oco.compiler.canonical import Block, Canonical, Inequality
from oco.compiler.domains.make import domain
from oco.dsl import algebra as e
from oco.dsl.dims import known
from oco.dsl.enclose import enclose, enclosures
from oco.dsl.expressions import Call, Expr, Kind, Name, walk
from oco.dsl.intervals import Interval, interval
from oco.dsl.model import Timing
from oco.evaluation.comparators.functions import Rounds
from oco.evaluation.comparators.structure import KINKED

Array = np.ndarray[Any, Any]
Pieces = tuple[Expr, ...]

MARGIN = 0.05  # by how much of its range a new variable may leave the range of what it stands for


def _both(u: Expr, s: Expr) -> Pieces:
    return e.sub(u, s), e.sub(e.minus(u), s)


def _length(u: Expr, s: Expr) -> Pieces:
    """|u|_2 <= s for s > 0, as the convex function |u|^2 / s - s; of each column of u where s has several entries."""
    squares = e.call("sum_squares", u) if s.shape == () else e.call("sum", e.call("square", u), axis=0)
    return (e.sub(e.div(squares, s), s),)


PIECES: Mapping[str, Callable[..., Pieces]] = {
    "abs": lambda s, u: _both(u, s),
    "norm1": lambda s, u: _both(u, s),
    "norm_inf": lambda s, u: _both(u, s),
    "norm2": lambda s, u: _length(u, s),
    "pos": lambda s, u: (e.sub(u, s),),
    "neg": lambda s, u: (e.sub(e.minus(u), s),),
    "hinge": lambda s, u: (e.sub(e.sub(e.number(1), u), s),),
    "max": lambda s, u: (e.sub(u, s),),
    "maximum": lambda s, *us: tuple(e.sub(u, s) for u in us),
    "min": lambda s, u: (e.sub(s, u),),
    "minimum": lambda s, *us: tuple(e.sub(s, u) for u in us),
}
"""What holds of the new variable, each entry at most zero."""

SPECTRAL = frozenset({"nuclear_norm", "sigma_max"})
"""Norms that no smooth functions of this kind describe: those of `Lifted.norms` alone say what their variables are."""

NEVER_NEGATIVE = frozenset({"abs", "norm1", "norm_inf", "norm2", "pos", "neg", "hinge"}) | SPECTRAL


@dataclass(frozen=True, eq=False)
class Norm:
    """The norm `atom` of `argument`, or of each of its columns where they are `several`."""

    atom: str
    argument: Expr
    several: bool


@dataclass(frozen=True, eq=False)
class Lifted:
    """The problem with new decisions and what defines them; `each_round` names the new ones that differ by the round.

    `norms` has what the Euclidean and spectral norms are of, by the name of the new decision, which is the origin of its definition.
    """

    problem: Canonical
    definitions: tuple[Inequality, ...]
    each_round: tuple[str, ...]
    norms: Mapping[str, Norm]

    @property
    def smooth(self) -> bool:
        """Whether the definitions say everything."""
        return not any(n.atom in SPECTRAL for n in self.norms.values())


class _Lifting:
    def __init__(self, rounds: Rounds) -> None:
        self.rounds = rounds
        self.ranges = ranges_of(rounds)
        self.shared: list[Block] = []
        self.local: list[Block] = []
        self.definitions: list[Inequality] = []
        self.norms: dict[str, Norm] = {}
        self.bounded = True

    def expression(self, root: Expr) -> Expr:
        """The expression with new variables for its kinks."""
        nodes = list(walk(root))
        depends = dependence(nodes, self.rounds.variables)
        values = enclosures(root, self.ranges)
        done: dict[int, Expr] = {}
        for node in nodes:
            children = tuple(done[id(c)] for c in node.children)
            new = node.with_children(children) if children else node
            if isinstance(node, Call) and node.atom in KINKED and id(node) in depends:
                new = self._variable(node, new.children, values)
            done[id(node)] = new
        return done[id(root)]

    def _variable(self, node: Call, args: tuple[Expr, ...], values: Mapping[int, Interval]) -> Expr:
        axis = dict(node.options).get("axis")
        whole = node.atom == "norm1"
        shape = known(node.args[0].shape if whole else node.shape)
        bounds = values[id(node.args[0])] if whole else values[id(node)]
        if not (np.all(np.isfinite(bounds.lo)) and np.all(np.isfinite(bounds.hi))):
            self.bounded, bounds = False, interval(0.0, 1.0, ())
        name = f"_{node.atom}{len(self.shared) + len(self.local)}"
        s = Name(name, Kind.DECISION, shape=shape)
        if axis == 1 and not whole:
            args = tuple(e.transpose(a) for a in args)
        block = Block(name, shape, _box(bounds, shape, node.atom in NEVER_NEGATIVE, whole))
        each = any(self.rounds.enters(a) for a in node.args) or any(b.name in _named(args) for b in self.local)
        (self.local if each else self.shared).append(block)
        if node.atom == "norm2" or node.atom in SPECTRAL:
            self.norms[name] = Norm(node.atom, args[0], shape != ())
        pieces = () if node.atom in SPECTRAL else PIECES[node.atom](s, *args)
        for k, piece in enumerate(pieces):
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


def ranges_of(rounds: Rounds) -> dict[str, Interval]:
    """Where the decisions may lie, and where the data of these rounds lies."""
    found = {b.name: interval(b.domain.lower, b.domain.upper, b.shape) for b in rounds.problem.blocks}
    for name, values in rounds.streams.items():
        found[name] = interval(values.min(axis=0), values.max(axis=0), tuple(values.shape[1:]))
    return found | {"t": interval(float(rounds.numbers.min()), float(rounds.numbers.max()), ())}


def least_loss(problem: Canonical, rounds: int) -> float:
    """What no loss of a round is below, whatever is decided and revealed; -inf where the ranges do not tell."""
    found = {b.name: interval(b.domain.lower, b.domain.upper, b.shape) for b in problem.blocks}
    found |= {s.name: interval(s.lower, s.upper, s.shape) for s in problem.streams}
    least = float(np.min(enclose(problem.objective, found | {"t": interval(1.0, float(rounds), ())}).lo))
    return -np.inf if np.isnan(least) else least


def lift(rounds: Rounds) -> Lifted | None:
    """The problem of these rounds without kinks; None where the range of an atom that has one is not bounded."""
    lifting = _Lifting(rounds)
    problem = rounds.problem
    objective = lifting.expression(problem.objective)
    inequalities = tuple(replace(c, expr=lifting.expression(c.expr)) for c in problem.inequalities)
    if not lifting.bounded:
        return None
    blocks = (*problem.blocks, *lifting.shared, *lifting.local)
    new = replace(problem, objective=objective, inequalities=inequalities, blocks=blocks)
    return Lifted(new, tuple(lifting.definitions), tuple(b.name for b in lifting.local), lifting.norms)
