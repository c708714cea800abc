"""Constraints that bend at kinks alone: sum_n weights_n g_n(x) = sum_i sum_k w_ik max(a_ik x_i + b_ik, 0) + what is affine in x.

Every call that is the larger of two pieces u and v is v + max(u - v, 0), so that absolute values, parts, hinges and maxima of two are all
of this form, and means of such losses over samples of their data too. The minimizer under a quadratic has a closed form, in each entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce

from oco.compiler.ir.value import Value
from oco.compiler.lowering.entry_functions import MOST_NODES
from oco.compiler.problem.calculus import vector_jacobian
from oco.compiler.problem.derivatives import weights_of
from oco.compiler.problem.jacobians import diagonal
from oco.compiler.problem.structure import is_affine
from oco.dsl import algebra
from oco.dsl.atoms import form_of, forms
from oco.dsl.build import applied
from oco.dsl.expressions import Call, Expr, Kind, Name, names, rewrite, walk
from oco.dsl.records import dataclass

MOST_KINKS = 24
"""Kinks of one entry, at most: each is compared with each."""


@dataclass(frozen=True)
class Kink:
    """max(z, 0) of a decision: z, dz/dx of the decision's shape or a number, and the name that stands for it."""

    argument: Expr
    slope: Expr
    name: Name


@dataclass(frozen=True)
class KinkedFunctions:
    """Kinks of each decision, by its place; `affine`: the functions over their names."""

    blocks: tuple[tuple[Kink, ...], ...]
    affine: tuple[Expr, ...]

    @cached_property
    def jumps(self) -> tuple[tuple[Expr, ...], ...]:
        """Derivative of the weighted sum of the functions towards each kink, over the names of `weights_of`."""
        pairs = list(zip(weights_of(self.affine), self.affine, strict=True))

        def jump(kink: str) -> Expr:
            return reduce(algebra.add, (vector_jacobian(e, w, (kink,))[kink] for w, e in pairs))

        return tuple(tuple(jump(k.name.name) for k in kinks) for kinks in self.blocks)


def kinked_functions(exprs: Sequence[Expr], decisions: Sequence[str]) -> KinkedFunctions | None:
    """The kinks of these constraints; None where they are not of this form."""
    functions = kinks_named(exprs, decisions)
    if functions is None:
        return None
    names_of_kinks = tuple(k.name.name for kinks in functions.blocks for k in kinks)
    return functions if all(is_affine(e, (*decisions, *names_of_kinks)) for e in functions.affine) else None


def kinks_named(exprs: Sequence[Expr], decisions: Sequence[str]) -> KinkedFunctions | None:
    """Functions over names in the place of their kinks, whatever they are beside them; None where these are too many."""
    if sum(1 for e in exprs for _ in walk(e)) > MOST_NODES:
        return None
    results: dict[str, list[Kink]] = {d: [] for d in decisions}

    def named(node: Expr) -> Expr:
        match form_of(node) if isinstance(node, Call) else None:
            case forms.Total(entrywise=True, of=of) if isinstance(node, Call) and len(node.args) == 1:
                return applied("sum", (named(algebra.call(of, *node.args)),), node.options)
            case forms.Extreme(over=False) as extreme if isinstance(node, Call):
                return _split(node, extreme, results)
        return node

    affine = tuple(rewrite(e, named) for e in exprs)
    if max(map(len, results.values()), default=0) > MOST_KINKS:
        return None
    return KinkedFunctions(tuple(map(tuple, results.values())), affine)


def _split(call: Call, extreme: forms.Extreme, results: dict[str, list[Kink]]) -> Expr:
    """v + max(u - v, 0) with a name for the maximum, or v - max(v - u, 0); the call itself where it is no kink in one decision."""
    pieces = extreme.pieces(algebra, *call.args)
    if len(pieces) != 2:
        return call
    u, v = pieces
    z = algebra.sub(u, v) if extreme.largest else algebra.sub(v, u)
    within = names(z, Kind.DECISION)
    if len(within) != 1 or within[0] not in results or not is_affine(z, tuple(results)):
        return call
    kinks = results[within[0]]
    known = next((k for k in kinks if k.argument == z), None)
    if known is None:
        slope = diagonal(z, within[0])
        if slope is None or slope.shape not in ((), z.shape):
            return call
        known = Kink(z, slope, Name(f"_kink{len(kinks)}_{within[0]}", Kind.DECISION, shape=z.shape))
        kinks.append(known)
    rest = algebra.broadcast(v, call.shape)
    return algebra.add(rest, known.name) if extreme.largest else algebra.sub(rest, known.name)


def nearest_of_kinks(slope: Value, scale: Value, kinks: Sequence[Value], jumps: Sequence[Value]) -> Value:
    """argmin_d slope d + scale d^2 / 2 + sum_k jumps_k max(d - kinks_k, 0) of each entry, the whole being convex.

    Left of the kink k the minimizer is u_k = -(slope + sum of the jumps before k) / scale, so that it is the largest of the numbers
    min(kinks_k, u_k) and of u beyond all kinks: a form of the median of Li & Osher (Commun. Math. Sci. 7, 2009) that needs no order.

    slope, kinks and jumps have the shape of d or are numbers; scale > 0 is a number
    """
    t, shape = slope.tracer, slope.shape
    if len(kinks) == 1:
        return t.maximum(-(slope + jumps[0]) / scale, t.minimum(kinks[0], -slope / scale))
    at, by = (t.stack(*(v if v.shape == shape else v + t.zeros(shape) for v in values)) for values in (kinks, jumps))
    count = len(kinks)
    before = t.reshape(at, (1, count, *shape)) < t.reshape(at, (count, 1, *shape))
    passed = t.sum(t.where(before, t.reshape(by, (1, count, *shape)), 0.0), axis=1)
    inside = t.max(t.minimum(at, -(slope + passed) / scale), axis=0)
    return t.maximum(inside, -(slope + t.sum(by, axis=0)) / scale)
