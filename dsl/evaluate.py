"""Value of an expression, by the `lower` column of the atoms over NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oco.dsl.atoms import ATOMS
from oco.dsl.build import applied
from oco.dsl.diagnostics import InternalError
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, Slice, constant, entries, walk
from oco.dsl.primitives import ArrayOps

Floats = np.ndarray[Any, Any]
Meaning = Callable[[dict[int, Any], Mapping[str, Any], float | None], Any]
OPS = ArrayOps()
ENTRIES = 1000
"""Number of entries that take as long as the least time of a node."""


def evaluate(expr: Expr, env: Mapping[str, Any], t: float | None = None) -> Floats:
    """Evaluate with the names' values in `env`, in round t. Shared nodes are evaluated once.

    Outside the domain of a function (log of a negative number) the result is nan, without a warning.
    """
    return Evaluation(expr)(env, t)


class Evaluation:
    """Expressions prepared for evaluation at many points: what the kinds of their nodes ask for is looked up once."""

    def __init__(self, *exprs: Expr) -> None:
        self.nodes = _nodes(exprs)
        self.decomposed = sum(map(_decomposed, self.nodes))
        self.steps = len(self.nodes) + sum(map(entries, exprs)) // ENTRIES + self.decomposed
        self._roots = exprs
        self._work = tuple((id(node), _meaning(node)) for node in self.nodes)

    def __call__(self, env: Mapping[str, Any], t: float | None = None) -> Floats:
        """Value of the first expression at one point, as `evaluate`."""
        return self.each(env, t)[0]

    def each(self, env: Mapping[str, Any], t: float | None = None) -> tuple[Floats, ...]:
        """Values of the expressions at one point; nodes that they share are evaluated once."""
        values = self.values(env, t)
        return tuple(np.asarray(values[id(root)]) for root in self._roots)

    def values(self, env: Mapping[str, Any], t: float | None = None) -> dict[int, Any]:
        """Value of every node, by its `id`."""
        results: dict[int, Any] = {}
        with np.errstate(all="ignore"):
            for key, meaning in self._work:
                results[key] = meaning(results, env, t)
        return results


def _nodes(exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
    nodes: dict[int, Expr] = {}
    for expr in exprs:
        for node in walk(expr, nodes):
            nodes[id(node)] = node
    return tuple(nodes.values())


def _decomposed(node: Expr) -> int:
    """Number of steps for the singular values of a part."""
    if not isinstance(node, Call) or not ATOMS[node.atom].decomposes:
        return 0
    sides = [d for d in node.args[0].shape if isinstance(d, int)]
    return math.prod(sides) * min(sides, default=0) // 5_000


def _meaning(node: Expr) -> Meaning:
    """Value of a node as a function of those of its parts by their `id`, of the names and of the round."""
    match node:
        case Constant(value=value):
            return lambda results, env, t: value.array
        case Name(kind=Kind.ROUND):
            return lambda results, env, t: np.asarray(t, dtype=np.float64)
        case Name(name=name, integer=integer):
            dtype = np.int64 if integer else np.float64
            return lambda results, env, t: np.asarray(env[name], dtype=dtype)
        case Slice(start=start, stop=stop):
            return lambda results, env, t: tuple(None if e is None else int(results[id(e)]) for e in (start, stop))
        case Call():
            return _meaning_of_call(node)
        case Array(items=items):
            keys = [id(i) for i in items]
            return lambda results, env, t: np.stack([results[k] for k in keys])
        case Index(base=base, items=items):
            return lambda results, env, t: results[id(base)][tuple(_place(i, results[id(i)]) for i in items)]
    raise InternalError(f"no value of a {type(node).__name__}")


def _meaning_of_call(node: Call) -> Meaning:
    lower, keys = ATOMS[node.atom].lower, [id(a) for a in node.args]
    if not all(isinstance(d, int) for e in (node, *node.args) for d in e.shape):
        return lambda results, env, t: _measured(node, [results[k] for k in keys])
    match keys:
        case [a]:
            return lambda results, env, t: lower(OPS, node, results[a])
        case [a, b]:
            return lambda results, env, t: lower(OPS, node, results[a], results[b])
    return lambda results, env, t: lower(OPS, node, *(results[k] for k in keys))


def _measured(node: Call, args: list[Any]) -> Any:
    """Value of a call whose lengths params name: its arguments have them."""
    values = tuple(constant(np.asarray(a)) for a in args)
    call = applied(node.atom, values, node.options, span=node.span)
    return ATOMS[node.atom].lower(OPS, call, *args)


def _place(item: Expr, value: Any) -> Any:
    return slice(*value) if isinstance(item, Slice) else np.asarray(value, dtype=np.int64)
