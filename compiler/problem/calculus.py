"""Derivatives of expressions, as expressions, by reverse accumulation over the `vjp` column of the atoms.

At a kink the rules give one subgradient (of pos at 0: 0; of max at a tie: equal shares).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce

import numpy as np

from oco.dsl import algebra as e
from oco.dsl.atoms import ATOMS, form_of, forms
from oco.dsl.chains import PLAIN, balanced
from oco.dsl.diagnostics import InternalError
from oco.dsl.dims import Shape
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, Slice, constant, walk


def gradient(expr: Expr, decisions: Iterable[str]) -> dict[str, Expr]:
    """The gradient of a scalar expression towards each decision, of the decision's shape (a constant 0 where it does not occur)."""
    if expr.shape != ():
        raise InternalError(f"the gradient of an expression of shape {expr.shape}")
    return vector_jacobian(expr, e.number(1), decisions)


def vector_jacobian(expr: Expr, weights: Expr, decisions: Iterable[str]) -> dict[str, Expr]:
    """sum_i weights_i grad expr_i towards each decision: the gradient of <weights, expr> with the weights fixed."""
    wanted = tuple(decisions)
    nodes = list(walk(expr))
    depends = dependence(nodes, wanted)
    cotangents: dict[int, list[Expr]] = {id(expr): [weights]}
    towards: dict[str, list[Expr]] = {}
    shapes: dict[str, Shape] = {}
    for node in reversed(nodes):
        shares = cotangents.pop(id(node), None)
        if shares is None or id(node) not in depends:
            continue
        if isinstance(node, Name):
            shapes[node.name] = node.shape
            towards.setdefault(node.name, []).append(_total(shares))
            continue
        for child, share in zip(node.children, _shares(node, _total(shares))):
            if share is not None and id(child) in depends:
                cotangents.setdefault(id(child), []).append(share)
    return {n: e.broadcast(_total(towards[n]), shapes[n]) if n in towards else e.number(0) for n in wanted}


def _total(shares: list[Expr]) -> Expr:
    """The sum, the last share first. What many terms give to single entries becomes one list of entries."""
    if len(shares) > PLAIN:
        shares = _gathered(shares)
    if len(shares) > PLAIN:  # along left arguments, as `balanced` reads them
        return balanced(reduce(e.add, reversed(shares)))
    total = shares[0]
    for share in shares[1:]:
        total = e.add(share, total)
    return total


def _gathered(shares: list[Expr]) -> list[Expr]:
    """The shares with those that are one number each, at a known entry, put together."""
    single = [s for s in shares if isinstance(s, Call) and isinstance(form_of(s), forms.Scattered) and _is_entry(s)]
    if not single:
        return shares
    ids = {id(s) for s in single}
    values, *places = zip(*(s.args for s in single))
    items = (constant(np.array([i.value.array for i in place if isinstance(i, Constant)])) for place in places)
    gathered = e.call("_scatter", e.array(values), *items, shape=single[0].shape)
    return [*(s for s in shares if id(s) not in ids), gathered]


def _is_entry(scatter: Call) -> bool:
    value, *places = scatter.args
    return (
        len(places) == len(scatter.shape)
        and not value.shape
        and all(isinstance(p, Constant) and not p.shape for p in places)
    )


def dependence(nodes: Iterable[Expr], decisions: Iterable[str]) -> set[int]:
    """The ids of the nodes (children first) whose value depends on the decisions."""
    wanted = set(decisions)
    results: set[int] = set()
    for node in nodes:
        named = isinstance(node, Name) and node.kind is Kind.DECISION and node.name in wanted
        if named or any(id(c) in results for c in node.children):
            results.add(id(node))
    return results


def _shares(node: Expr, g: Expr) -> tuple[Expr | None, ...]:
    """The cotangent of each child."""
    match node:
        case Call(atom=atom):
            shares: tuple[Expr | None, ...] = ATOMS[atom].vjp(e, node, g)
            return shares
        case Index(base=base, items=items):
            scattered = e.call("_scatter", e.broadcast(g, node.shape), *items, shape=base.shape)
            return (scattered, *(None for _ in items))
        case Array(items=items):
            whole = e.broadcast(g, node.shape)
            return tuple(e.index(whole, (constant(i),)) for i in range(len(items)))
        case Constant() | Slice():
            return ()
    raise InternalError(f"no derivative of a {type(node).__name__}")


def hessian_vector(expr: Expr, direction: Mapping[str, Expr]) -> dict[str, Expr]:
    """The second derivative of a scalar expression times a direction: the gradient of <gradient, direction>."""
    first = gradient(expr, direction)
    total: Expr = e.number(0)
    for name, part in direction.items():
        along = e.mul(first[name], part)
        total = e.add(total, along if along.shape == () else e.call("sum", along))
    return gradient(total, direction)
