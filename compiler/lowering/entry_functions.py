"""Constraints that bend through one function of each entry: sum_n weights_n g_n(x) = sum_i w_i f(a_i x_i + b_i) + what is affine in x.

Found by putting a name in the place of each call of an atom with a closed proximal point (`dsl/atoms/proximal.py`) whose argument is
affine, entry by entry, in one decision; what is left has to be affine in the decisions and in these names.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.problem.jacobians import diagonal
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.atoms import ATOMS, form_of, forms
from oco.dsl.build import applied
from oco.dsl.evaluate import OPS
from oco.dsl.expressions import Call, Constant, Expr, Kind, Name, names, rewrite, walk
from oco.dsl.records import dataclass

MOST_NODES = 4000
"""Limit on the nodes of constraints that are looked at: nodes are compared with each other."""


@dataclass(frozen=True)
class NonlinearTerm:
    """f(z) of a decision: the call, its argument z, dz/dx of the decision's shape, and the name that stands for the call."""

    call: Call
    slope: Expr
    name: Name

    @property
    def argument(self) -> Expr:
        """Argument z of the nonlinearity."""
        return self.call.args[0]

    @property
    def never_flat(self) -> bool:
        """True if no entry of dz/dx is zero, whatever is revealed."""
        return isinstance(self.slope, Constant) and bool(self.slope.value.array.all())

    def pull(self, t: Tracer, v: Value, w: Value) -> Value:
        """w f'(z) at z = argmin (z - v)^2 / 2 + w f(z)."""
        rule = ATOMS[self.call.atom].proximal
        assert rule is not None
        result: Value = rule(t, self.call, v, w)
        return result


@dataclass(frozen=True)
class EntryFunctions:
    """Nonlinearity of each decision, by its place (None: it has none); `affine`: the constraints over the names of the bends."""

    blocks: tuple[NonlinearTerm | None, ...]
    affine: tuple[Expr, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names that stand for the nonlinear calls, in the order of the decisions."""
        return tuple(b.name.name for b in self.blocks if b is not None)


def nonlinear_terms(exprs: Sequence[Expr], decisions: Sequence[str]) -> EntryFunctions | None:
    """The bends of these constraints, at most one a decision; None where they are not of this form."""
    if sum(1 for e in exprs for _ in walk(e)) > MOST_NODES:
        return None
    results: dict[str, list[NonlinearTerm]] = {d: [] for d in decisions}

    def named(node: Expr) -> Expr:
        if isinstance(node, Call) and isinstance(form := form_of(node), forms.Total) and form.entrywise:
            return applied("sum", (named(algebra.call(form.of, *node.args)),), node.options)
        within = _nonlinear_term(node, decisions)
        if within is None:
            return node
        decision, term = within
        for known in results[decision]:
            if known.call == term.call:
                return known.name
        results[decision].append(term)
        return term.name

    affine = tuple(rewrite(e, named) for e in exprs)
    if any(len(several) > 1 for several in results.values()):
        return None
    functions = EntryFunctions(tuple(next(iter(results[d]), None) for d in decisions), affine)
    return functions if all(is_affine(e, (*decisions, *functions.names)) for e in affine) else None


def _nonlinear_term(node: Expr, decisions: Sequence[str]) -> tuple[str, NonlinearTerm] | None:
    """A call that bends in one decision, entry by entry."""
    if not isinstance(node, Call) or not _closed(node):
        return None
    within = names(node.args[0], Kind.DECISION)
    others = [n for a in node.args[1:] for n in names(a, Kind.DECISION)]
    if len(within) != 1 or others or within[0] not in decisions or not is_affine(node.args[0], tuple(decisions)):
        return None
    slope = diagonal(node.args[0], within[0])
    if slope is None or slope.shape not in ((), node.shape):
        return None
    return within[0], NonlinearTerm(node, slope, Name(f"_bend_{within[0]}", Kind.DECISION, shape=node.shape))


def _closed(node: Call) -> bool:
    rule = ATOMS[node.atom].proximal
    with np.errstate(all="ignore"):
        return rule is not None and rule(OPS, node, np.float64(1.0), np.float64(0.0)) is not None
