"""Dimensions: integers, or polynomials in integer params whose value is not known yet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from oco.dsl.diagnostics import InternalError
from oco.dsl.records import dataclass

Monomial = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SymbolicDim:
    """Polynomial with whole coefficients in the names of params: sum of coefficient * product of names."""

    terms: tuple[tuple[Monomial, int], ...]

    def __str__(self) -> str:
        parts = []
        for names, coefficient in self.terms:
            factors = ([] if coefficient == 1 and names else [str(coefficient)]) + list(names)
            parts.append(" * ".join(factors))
        return " + ".join(parts).replace("+ -", "- ")


Dim = int | SymbolicDim
Shape = tuple[Dim, ...]


def _terms(dim: Dim) -> Counter[Monomial]:
    return Counter({(): dim}) if isinstance(dim, int) else Counter(dict(dim.terms))


def _canonical(terms: Counter[Monomial]) -> Dim:
    kept = {names: c for names, c in terms.items() if c}
    if not kept.keys() - {()}:
        return kept.get((), 0)
    return SymbolicDim(tuple(sorted(kept.items(), key=lambda item: (-len(item[0]), item[0]))))


def symbol(name: str) -> Dim:
    """Dimension equal to a param."""
    return SymbolicDim((((name,), 1),))


def add(a: Dim, b: Dim) -> Dim:
    """Sum of two dimensions."""
    total = _terms(a)
    for names, c in _terms(b).items():
        total[names] += c
    return _canonical(total)


def multiply(a: Dim, b: Dim) -> Dim:
    """Product of two dimensions."""
    total: Counter[Monomial] = Counter()
    for left, c in _terms(a).items():
        for right, d in _terms(b).items():
            total[tuple(sorted(left + right))] += c * d
    return _canonical(total)


def substitute(dim: Dim, values: Mapping[str, int]) -> Dim:
    """Dimension with the values of the params in `values` inserted."""
    if isinstance(dim, int):
        return dim
    total: Dim = 0
    for names, c in dim.terms:
        term: Dim = c
        for name in names:
            term = multiply(term, values[name] if name in values else symbol(name))
        total = add(total, term)
    return total


def known(shape: Shape) -> tuple[int, ...]:
    """Lengths as integers, once every param is known."""
    if not all(isinstance(d, int) for d in shape):
        raise InternalError(f"the shape {show(shape)} is not known yet")
    return tuple(d for d in shape if isinstance(d, int))


def show(shape: Shape) -> str:
    """Text of a shape: `[3, n]`; `a number` for a scalar."""
    return f"[{', '.join(map(str, shape))}]" if shape else "a number"


def broadcast(*shapes: Shape) -> Shape | None:
    """Common shape of all shapes by NumPy's broadcasting rule; None if they do not fit."""
    rank = max(map(len, shapes), default=0)
    result: list[Dim] = []
    for axis in range(-rank, 0):
        sizes = {s[axis] for s in shapes if len(s) >= -axis} - {1}
        if len(sizes) > 1:
            return None
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)
