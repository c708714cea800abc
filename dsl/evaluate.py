"""Value of an expression, by the `lower` column of the atoms over NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from oco.dsl.atoms import ATOMS
from oco.dsl.build import applied
from oco.dsl.diagnostics import InternalError
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, Slice, constant, entries, walk
from oco.dsl.primitives import ArrayOps

Floats = np.ndarray[Any, Any]
OPS = ArrayOps()
ENTRIES = 1000
"""Number of entries that take as long as the least time of a node."""


def evaluate(expr: Expr, env: Mapping[str, Any], t: float | None = None) -> Floats:
    """Evaluate with the names' values in `env`, in round t. Shared nodes are evaluated once.

    Outside the domain of a function (log of a negative number) the result is nan, without a warning.
    """
    return Evaluation(expr)(env, t)


class Evaluation:
    """Expression prepared for evaluation at many points."""

    def __init__(self, expr: Expr) -> None:
        self.nodes = tuple(walk(expr))
        self.decomposed = sum(map(_decomposed, self.nodes))
        self.steps = len(self.nodes) + entries(expr) // ENTRIES + self.decomposed

    def __call__(self, env: Mapping[str, Any], t: float | None = None) -> Floats:
        """Value at one point, as `evaluate`."""
        return np.asarray(self.values(env, t)[id(self.nodes[-1])])

    def values(self, env: Mapping[str, Any], t: float | None = None) -> dict[int, Any]:
        """Value of every node, by its `id`."""
        results: dict[int, Any] = {}
        with np.errstate(all="ignore"):
            for node in self.nodes:
                results[id(node)] = _value(node, results, env, t)
        return results


def _decomposed(node: Expr) -> int:
    """Number of steps for the singular values of a part."""
    if not isinstance(node, Call) or not ATOMS[node.atom].decomposes:
        return 0
    sides = [d for d in node.args[0].shape if isinstance(d, int)]
    return math.prod(sides) * min(sides, default=0) // 5_000


def _value(node: Expr, results: dict[int, Any], env: Mapping[str, Any], t: float | None) -> Any:
    match node:
        case Constant(value=value):
            return value.array
        case Name(kind=Kind.ROUND):
            return np.asarray(t, dtype=np.float64)
        case Name(name=name, integer=integer):
            return np.asarray(env[name], dtype=np.int64 if integer else np.float64)
        case Slice():
            return tuple(None if e is None else int(results[id(e)]) for e in (node.start, node.stop))
        case Call():
            args = [results[id(a)] for a in node.args]
            return ATOMS[node.atom].lower(OPS, _concrete(node, args), *args)
        case Array(items=items):
            return np.stack([results[id(i)] for i in items])
        case Index():
            base = results[id(node.base)]
            return base[tuple(_place(item, results[id(item)]) for item in node.items)]
    raise InternalError(f"no value of a {type(node).__name__}")


def _place(item: Expr, value: Any) -> Any:
    return slice(*value) if isinstance(item, Slice) else np.asarray(value, dtype=np.int64)


def _concrete(node: Call, args: list[Any]) -> Call:
    """Call with lengths as integers, where params named them."""
    if all(isinstance(d, int) for e in (node, *node.args) for d in e.shape):
        return node
    values = tuple(constant(np.asarray(a)) for a in args)
    return applied(node.atom, values, node.options, span=node.span)
