"""Expressions as CVXPY expressions: the second opinion of checks, and the problem of comparators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.dsl.atoms import ATOMS
from oco.dsl.atoms.index import places
from oco.dsl.diagnostics import InternalError
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, Slice, constant, walk


def to_cvxpy(expr: Expr, variables: Mapping[str, Any], env: Mapping[str, Any], t: float | None = None) -> Any:
    """The CVXPY twin: decisions are the given variables, every other name is its number in `env`.

    What does not depend on a decision is evaluated to a number first, so that CVXPY sees data only.
    """
    import cvxpy as cp

    results: dict[int, Any] = {}
    depends: set[int] = set()
    for node in walk(expr):
        if isinstance(node, Slice):
            results[id(node)] = node
        elif isinstance(node, Name) and node.kind is Kind.DECISION and node.name in variables:
            depends.add(id(node))
            results[id(node)] = variables[node.name]
        elif not any(id(c) in depends for c in node.children):
            results[id(node)] = cp.Constant(_number(node, results, env, t))
        else:
            depends.add(id(node))
            results[id(node)] = _in_cvxpy(cp, node, results)
    return results[id(expr)]


def _number(node: Expr, results: Mapping[int, Any], env: Mapping[str, Any], t: float | None) -> Any:
    """The value of a node over numbers, from its children's values: each is evaluated once."""
    if isinstance(node, (Constant, Name)):
        return evaluate(node, env, t)
    children = tuple(c if isinstance(c, Slice) else _as_constant(c, results[id(c)]) for c in node.children)
    return evaluate(node.with_children(children), env, t)


def _as_constant(node: Expr, value: Any) -> Constant:
    array = np.asarray(value.value)
    array = array.reshape(known(node.shape))
    whole = node.integer and bool((np.abs(array) < 2.0**63).all())
    return constant(np.rint(array).astype(np.int64) if whole else array)


def _in_cvxpy(cp: Any, node: Expr, results: Mapping[int, Any]) -> Any:
    match node:
        case Call(atom=atom, args=args):
            row = ATOMS[atom]
            if row.cvxpy is None:
                raise InternalError(f"{atom} has no CVXPY twin")
            return row.cvxpy(cp, node, *(results[id(a)] for a in args))
        case Array(items=items):
            parts = [cp.reshape(results[id(i)], (1, *i.shape), order="C") for i in items]
            return cp.reshape(cp.concatenate(parts, axis=0), node.shape, order="C")
        case Index(base=base, items=items):
            return _selected(cp, node, results[id(base)], results)
    raise InternalError(f"no CVXPY twin of a {type(node).__name__}")


def _selected(cp: Any, node: Index, base: Any, results: Mapping[int, Any]) -> Any:
    """The selected entries by their places in C order: one rule for slices, numbers and arrays."""
    sizes = base.shape
    flat = places(sizes, node.items, [results[id(i)] for i in node.items])
    return cp.reshape(cp.vec(base, order="C")[np.ravel(flat)], np.shape(flat), order="C")
