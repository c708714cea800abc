"""Values of formulas: a SymPy expression as a function of the numbers, arrays or schedules that its symbols have."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import add, itemgetter, mul
from operator import pow as power
from typing import Any

import numpy as np

from oco.compiler.theory.schedule import Schedule

Floats = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Partial:
    """A SymPy formula with numbers for some of its symbols: substituting them thousands of times, as a search does, would take seconds."""

    expr: Any
    numbers: tuple[tuple[str, float], ...]

    def __rmul__(self, factor: int) -> Partial:
        return Partial(factor * self.expr, self.numbers)


def evaluated(formula: Any, values: Mapping[str, Floats | np.float64]) -> Floats:
    """The value of a SymPy formula where each symbol has the array `values[its name]`; inf or nan where it has none."""
    with np.errstate(all="ignore"):
        return np.asarray(value_at(formula, values), dtype=np.float64)


def value_at(formula: Any, values: Mapping[str, Any]) -> Any:
    """Value of a formula where each symbol has the number, array or schedule `values[its name]`."""
    if isinstance(formula, Partial):
        return value_at(formula.expr, {**values, **dict(formula.numbers)})
    return _function(formula)(values)


@lru_cache(maxsize=4096)
def _function(node: Any) -> Callable[[Mapping[str, Any]], Any]:
    """A formula as a function of the values of its symbols: walking it anew for each value would take most of a search's time.

    Operators instead of NumPy's functions: between two numbers they take a tenth of the time.
    """
    if node.is_Symbol:
        return itemgetter(node.name)
    if node.is_number:
        number = np.float64(node if node.is_real else math.nan)
        return lambda values: number
    args = [_function(a) for a in node.args]
    if node.is_Pow and node.exp in (-1, 0.5):
        root = node.exp == 0.5
        return _kept(node, lambda values: np.sqrt(args[0](values)) if root else 1.0 / args[0](values))
    return _kept(node, _applied(_MEANINGS[type(node).__name__], args))


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


def _kept(node: Any, work: Callable[[Mapping[str, Any]], Any]) -> Callable[[Mapping[str, Any]], Any]:
    """A search asks for other multiples of the same function of t, hundreds of times: it is worked out once."""
    if symbols_of(node) != {"t"}:
        return work

    def look(values: Mapping[str, Any]) -> Any:
        t = values["t"]
        if not isinstance(t, Schedule) or t is not t.rounds.t:
            return work(values)
        if node not in t.rounds.known:
            t.rounds.known[node] = work(values)
        return t.rounds.known[node]

    return look


@lru_cache(maxsize=4096)
def symbols_of(formula: Any) -> frozenset[str]:
    """The names of a formula's symbols."""
    if isinstance(formula, Partial):
        return symbols_of(formula.expr).difference(name for name, _ in formula.numbers)
    return frozenset(s.name for s in formula.free_symbols)


_MEANINGS: dict[str, Callable[..., Any]] = {
    "Add": add,
    "Mul": mul,
    "Pow": power,
    "log": np.log,
    "exp": np.exp,
    "floor": np.floor,
    "ceiling": np.ceil,
    "Abs": np.abs,
    "Max": np.maximum,
    "Min": np.minimum,
}
"""NumPy meaning of a node of a formula, by the name of its SymPy class."""
