"""Sums of many terms: nested additions, subtractions and signs as one list, however deep they nest."""

from __future__ import annotations

from oco.dsl.atoms import form_of, forms
from oco.dsl.build import call
from oco.dsl.expressions import Expr

Terms = list[tuple[int, Expr]]


def is_sum(node: Expr) -> bool:
    """True if the node only adds up its arguments, with signs."""
    return isinstance(form_of(node), forms.Signed)


def summands(expr: Expr) -> Terms:
    """Terms with signs 1 or -1 that add up to `expr`, from left to right, each of its shape: one that stretches stays in its sum."""
    results: Terms = []
    stack = [(1, expr)]
    while stack:
        sign, e = stack.pop()
        match form_of(e):
            case forms.Signed(signs) if all(a.shape == e.shape for a in e.children):
                stack += reversed([(sign * own, a) for own, a in zip(signs, e.children)])
            case _:
                results.append((sign, e))
    return results


def total(terms: Terms) -> Expr:
    """The sum of at least one term, from left to right."""
    (sign, whole), *rest = terms
    if sign < 0:
        whole = call("minus", whole)
    for sign, term in rest:
        whole = call("add" if sign > 0 else "sub", whole, term)
    return whole


def within_sums(root: Expr, nodes: list[Expr]) -> set[int]:
    """The ids of the sums among `nodes` that stand in other sums alone."""
    outside = {id(root)}
    for node in nodes:
        if not is_sum(node):
            outside.update(id(c) for c in node.children)
    return {id(n) for n in nodes if is_sum(n) and id(n) not in outside}
