"""Sums of many terms: nested additions, subtractions and signs as one list, however deep they nest."""

from __future__ import annotations

from oco.dsl.build import call
from oco.dsl.expressions import Call, Expr

Terms = list[tuple[int, Expr]]
ADDITIVE = ("add", "sub", "minus")


def summands(expr: Expr) -> Terms:
    """Terms with signs 1 or -1 that add up to `expr`, from left to right, each of its shape: one that stretches stays in its sum."""
    found: Terms = []
    stack = [(1, expr)]
    while stack:
        sign, e = stack.pop()
        if not isinstance(e, Call) or e.atom not in ADDITIVE or any(a.shape != e.shape for a in e.args):
            found.append((sign, e))
        elif e.atom == "minus":
            stack.append((-sign, e.args[0]))
        else:
            stack += [(-sign if e.atom == "sub" else sign, e.args[1]), (sign, e.args[0])]
    return found


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
        if not (isinstance(node, Call) and node.atom in ADDITIVE):
            outside.update(id(c) for c in node.children)
    return {id(n) for n in nodes if isinstance(n, Call) and n.atom in ADDITIVE and id(n) not in outside}
