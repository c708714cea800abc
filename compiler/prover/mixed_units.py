"""Sums whose terms are of so different sizes that they look as if they were in different units."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.phrasing import number, say
from oco.dsl.atoms import ATOMS, form_of, forms
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.expressions import Call, Constant, Expr, Kind, names, walk
from oco.dsl.records import dataclass
from oco.dsl.source import Span

APART = 1e6
"""Ratio of the largest values of two terms beyond which their units look mixed."""
SCALING = (
    forms.Signed,
    forms.Bilinear,
    forms.Extreme,
    forms.Transposed,
    forms.Reshaped,
    forms.Stretched,
    forms.Diagonal,
)
"""Forms whose values grow as their arguments do, so that their sizes are sizes of units."""


@dataclass(frozen=True)
class _Term:
    """Term with its largest absolute value, and the number that it is multiplied by where that is meant to change its scale, else 1."""

    expr: Expr
    size: float
    meant: float


def mixed_units(setting: ProofContext) -> Iterator[Diagnostic]:
    """Warn of a sum in which one term is more than a million times as large as another, over the declared ranges.

    Numbers are no terms here, and neither is what a power, an exponential or a logarithm makes of its argument. A coefficient that is
    below 1, or a power of ten, is taken as meant: of a regularizer, a penalty, a conversion.
    """
    problem = setting.canonical
    functions = [(problem.objective, problem.objective.span), *((c.expr, c.span) for c in problem.constraints)]
    seen: set[int] = set()
    for expr, span in functions:
        mixed: set[int] = set()
        for whole, terms in reversed(list(_sums(expr, seen))):
            if any(id(node) in mixed for node in walk(whole)):
                continue  # its parts are as mixed as it is
            sized = [t for term in terms if (t := _sized(setting, term)) is not None]
            small, large = min(sized, key=_size, default=None), max(sized, key=_size, default=None)
            if small is None or large is None or large.size < APART * small.size:
                continue
            if large.size / max(large.meant, 1.0) >= APART * small.size / min(small.meant, 1.0):
                mixed.add(id(whole))
                yield _warning(small, large, whole.span or span)


def _warning(small: _Term, large: _Term, span: Span | None) -> Diagnostic:
    sizes = f"{say(large.expr)} is up to {number(large.size)}, {say(small.expr)} up to {number(small.size)}"
    hint = "write both in the same units, or the conversion as a coefficient that is a power of ten"
    return Diagnostic("OCO634", f"units look mixed in a sum: {sizes}", span, hint, Severity.WARNING)


def _size(term: _Term) -> float:
    return term.size


def _sums(root: Expr, seen: set[int]) -> Iterator[tuple[Expr, list[Expr]]]:
    """Each sum of an expression with its terms, a sum before those within it; shared nodes once."""
    stack = [root]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(form_of(node), forms.Signed):
            terms = list(_terms(node))
            yield node, terms
            stack += terms
        else:
            stack += node.children


def _terms(node: Expr) -> Iterator[Expr]:
    stack = [node]
    while stack:
        part = stack.pop()
        if isinstance(form_of(part), forms.Signed):
            stack += reversed(part.children)
        else:
            yield part


def _sized(setting: ProofContext, term: Expr) -> _Term | None:
    """Term with its size; None of a number, of what is never but 0 or not bounded, and of what grows otherwise than its names."""
    if not any(names(term, kind) for kind in (Kind.DECISION, Kind.STREAM)) or not all(map(_scales, walk(term))):
        return None
    size = 0.0 if (values := setting.plain_range(term)) is None else float(np.max(values.magnitude))
    return _Term(term, size, _meant(term)) if 0 < size < math.inf else None


def _scales(node: Expr) -> bool:
    if not isinstance(node, Call):
        return True
    form = form_of(node)
    if isinstance(form, forms.Total):
        return not form.of or isinstance(ATOMS[form.of].form, SCALING)
    if isinstance(form, forms.Quotient):
        return isinstance(node.args[1], Constant)
    return isinstance(form, SCALING) or ATOMS[node.atom].norm is not None


def _meant(term: Expr) -> float:
    """Absolute number that a term is multiplied by where it is below 1 or a power of ten; else 1."""
    for factor in term.children if isinstance(form_of(term), forms.Bilinear) else ():
        if isinstance(factor, Constant) and factor.shape == ():
            value = abs(float(factor.value.array))
            if 0 < value < 1 or (value and math.log10(value).is_integer()):
                return value
    return 1.0
