"""Values of formulas: each as a function of the numbers, arrays or schedules that its symbols have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from operator import add, itemgetter, mul
from operator import pow as power
from typing import Any

import numpy as np

from oco.compiler.ir.symbolic import HALF, MINUS_ONE, Call, Formula, Sum, Symbol, SymbolicPower, SymbolicProduct
from oco.compiler.ir.symbolic_form import nearest_float
from oco.compiler.theory.schedule import Schedule

Floats = np.ndarray[Any, Any]


def evaluated(formula: Formula, values: Mapping[str, Floats | np.float64]) -> Floats:
    """The value of a formula where each symbol has the array `values[its name]`; inf or nan where it has none."""
    with np.errstate(all="ignore"):
        return np.asarray(value_at(formula, values), dtype=np.float64)


def value_at(formula: Formula, values: Mapping[str, Any]) -> Any:
    """Value of a formula where each symbol has the number, array or schedule `values[its name]`."""
    return _function(formula)(values)


@lru_cache(maxsize=4096)
def _function(node: Formula) -> Callable[[Mapping[str, Any]], Any]:
    """A formula as a function of the values of its symbols: walking it anew for each value would take most of a search's time.

    Operators instead of NumPy's functions: between two numbers they take a tenth of the time.
    """
    if isinstance(node, Symbol):
        return itemgetter(node.name)
    if not node.symbols:
        number = np.float64(math.nan if (value := nearest_float(node)) is None else value)
        return lambda values: number
    args = [_function(a) for a in node.args]
    if isinstance(node, SymbolicPower) and node.exponent in (MINUS_ONE, HALF):
        root = node.exponent == HALF
        return _kept(node, lambda values: np.sqrt(args[0](values)) if root else 1.0 / args[0](values))
    return _kept(node, _applied(_MEANINGS[node.name if isinstance(node, Call) else type(node)], args))


def _applied(meaning: Callable[..., Any], args: Sequence[Callable[[Mapping[str, Any]], Any]]) -> Callable[..., Any]:
    """Function of the values of symbols; calls are written out for few arguments, as they take most of a search's time."""
    match args:
        case [a]:
            return lambda values: meaning(a(values))
        case [a, b]:
            return lambda values: meaning(a(values), b(values))
        case [a, b, c]:
            return lambda values: meaning(meaning(a(values), b(values)), c(values))
        case _:
            return lambda values: reduce(meaning, [a(values) for a in args])


def _kept(node: Formula, work: Callable[[Mapping[str, Any]], Any]) -> Callable[[Mapping[str, Any]], Any]:
    """A search asks for other multiples of the same function of t, hundreds of times: it is worked out once."""
    if node.symbols != {"t"}:
        return work

    def look(values: Mapping[str, Any]) -> Any:
        t = values["t"]
        if not isinstance(t, Schedule) or t is not t.rounds.t:
            return work(values)
        if node not in t.rounds.known:
            t.rounds.known[node] = work(values)
        return t.rounds.known[node]

    return look


_MEANINGS: dict[str | type[Formula], Callable[..., Any]] = {
    Sum: add,
    SymbolicProduct: mul,
    SymbolicPower: power,
    "log": np.log,
    "exp": np.exp,
    "floor": np.floor,
    "ceiling": np.ceil,
    "abs": np.abs,
    "max": np.maximum,
    "min": np.minimum,
}
"""NumPy meaning of the nodes and functions of formulas."""
