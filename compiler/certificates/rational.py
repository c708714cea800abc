"""Values of expressions in exact rational arithmetic, over arrays of fractions; a double is the fraction that it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from oco.dsl.atoms import ATOMS
from oco.dsl.dims import known
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, Slice, walk
from oco.dsl.limits import LARGEST_EXPONENT
from oco.dsl.primitives import PRIMITIVES

Fractions = np.ndarray[Any, Any]
"""Array of fractions (dtype object)."""
SHAPES = ("reshape", "broadcast", "concat", "stack", "slice", "gather", "put", "transpose", "outer", "diag")
VALUES = ("neg", "abs", "add", "sub", "mul", "div", "maximum", "minimum", "sum", "max", "min", "matmul", "to_float")
MADE = ("full", "iota", "eye")
EXACT = frozenset((*SHAPES, *VALUES, *MADE))
"""Primitives whose result over fractions is exact."""


class NotRational(Exception):
    """An operation whose value need not be a fraction, by its name."""


class Exact:
    """Number that takes the place of a fraction in arrays: its arithmetic is exact, or recorded."""


def fractions(values: Any) -> Fractions:
    """Array of fractions from numbers. Raises NotRational where one is not finite."""
    array = np.asarray(values)
    result = np.empty(array.shape, dtype=object)
    for place, value in np.ndenumerate(array):
        if isinstance(value, Fraction | Exact):
            result[place] = value
        elif isinstance(value, int | np.integer | np.bool_) or np.isfinite(value):
            result[place] = Fraction(int(value) if isinstance(value, np.integer | np.bool_) else value)
        else:
            raise NotRational("a number that is not finite")
    return result


def exact_value(expr: Expr, env: Mapping[str, Fractions], t: int) -> Fractions:
    """Value with the names' values in `env`, in round t, of the expression's shape. Raises NotRational."""
    results: dict[int, Any] = {}
    for node in walk(expr):
        results[id(node)] = _value(node, results, env, t)
    return np.broadcast_to(fractions(results[id(expr)]), known(expr.shape))


def _value(node: Expr, results: Mapping[int, Any], env: Mapping[str, Fractions], t: int) -> Any:
    match node:
        case Constant(value=value):
            return fractions(value.array)
        case Name(kind=Kind.ROUND):
            return fractions(t)
        case Name(name=name):
            return env[name]
        case Slice():
            return slice(*(None if e is None else int(results[id(e)].item()) for e in (node.start, node.stop)))
        case Call(atom=atom):
            return ATOMS[atom].lower(_OPS, node, *(results[id(a)] for a in node.args))
        case Array(items=items):
            return np.stack([fractions(results[id(i)]) for i in items])
        case Index(base=base, items=items):
            places = tuple(_place(results[id(i)]) for i in items)
            return fractions(np.asarray(results[id(base)])[places])
    raise NotRational(type(node).__name__)


def _place(item: Any) -> Any:
    return item if isinstance(item, slice) else np.vectorize(int, otypes=[np.int64])(item)


class _RationalOps:
    """The primitives over arrays of fractions."""

    def __getattr__(self, name: str) -> Callable[..., Fractions]:
        if name == "pow":
            return _power
        if name == "scatter_add":
            return _scattered
        if name not in EXACT:
            raise NotRational(name)
        run = PRIMITIVES[name]

        def exact(*args: Any, **options: Any) -> Fractions:
            if name == "to_float":
                return fractions(args[0])
            return fractions(run(*(_operand(name, k, a) for k, a in enumerate(args)), **options))

        return exact


def _operand(name: str, position: int, value: Any) -> Any:
    """Operand as fractions; positions and sizes as integers."""
    places = name in ("gather", "put") and position > (0 if name == "gather" else 1)
    if places or name in MADE:
        return _place(value) if isinstance(value, np.ndarray) else value
    return fractions(value)


def _power(base: Any, exponent: Any) -> Fractions:
    power = fractions(exponent)
    if power.shape != () or power.item().denominator != 1 or not 0 <= power.item() <= LARGEST_EXPONENT:
        raise NotRational("pow")
    return fractions(fractions(base) ** int(power.item()))


def _scattered(values: Any, *indices: Any, shape: tuple[int, ...]) -> Fractions:
    result = fractions(np.zeros(shape, dtype=np.int64))
    np.add.at(result, tuple(map(_place, indices)), fractions(values))
    return result


_OPS = _RationalOps()
