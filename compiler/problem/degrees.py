"""Degree of an expression as a polynomial in the decisions or in streams."""

from __future__ import annotations

import math
from collections.abc import Callable

from oco.compiler.problem.calculus import dependence
from oco.dsl.atoms import form_of, forms
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, walk


def degree(expr: Expr, decisions: tuple[str, ...]) -> float:
    """Degree 0, 1 or 2 where the expression is such a polynomial in the decisions; infinity otherwise."""
    nodes = list(walk(expr))
    return degrees(nodes, dependence(nodes, decisions))[id(expr)]


def degree_in(expr: Expr, stream: str) -> float:
    """Degree of the expression in one stream, for any decisions."""
    return _degree_in(expr, lambda name: name.name == stream)


def degree_in_streams(expr: Expr) -> float:
    """Degree of the expression in all streams together, for any decisions."""
    return _degree_in(expr, lambda name: name.kind is Kind.STREAM)


def _degree_in(expr: Expr, varies: Callable[[Name], bool]) -> float:
    nodes = list(walk(expr))
    depends: set[int] = set()
    for node in nodes:
        if (isinstance(node, Name) and varies(node)) or any(id(c) in depends for c in node.children):
            depends.add(id(node))
    return degrees(nodes, depends)[id(expr)]


def degrees(nodes: list[Expr], depends: set[int]) -> dict[int, float]:
    """Degree of each node (children first) in the nodes of `depends`, which vary."""
    results: dict[int, float] = {}
    for node in nodes:
        results[id(node)] = _degree(node, [results[id(c)] for c in node.children]) if id(node) in depends else 0
    return results


def _degree(node: Expr, below: list[float]) -> float:
    if isinstance(node, Name):
        return 1
    if isinstance(node, Index):
        return below[0] if not any(below[1:]) else math.inf
    if isinstance(node, Array):
        return max(below)
    if not isinstance(node, Call):
        return math.inf
    match form_of(node):
        case forms.Signed() | forms.TOTAL | forms.MEAN | forms.TRANSPOSE | forms.Diagonal():
            result = max(below)
        case forms.Bilinear():
            result = sum(below)
        case forms.QUOTIENT:
            result = below[0] if not below[1] else math.inf
        case forms.SQUARE | forms.SUM_OF_SQUARES:
            result = 2 * below[0]
        case forms.Power(exponent=None):
            result = below[0] * _exponent(node.args[1])
        case forms.Quadratic():
            result = 2 * below[0] + below[1]
        case _:
            result = math.inf
    return result if result <= 2 else math.inf


def _exponent(expr: Expr) -> float:
    if isinstance(expr, Constant) and expr.shape == () and float(expr.value.array) in (1.0, 2.0):
        return float(expr.value.array)
    return math.inf
