"""Structure of an expression in the decisions: separability (a diagonal Hessian), and smoothness."""

from __future__ import annotations

from enum import IntEnum

from oco.compiler.problem.calculus import dependence
from oco.compiler.problem.degrees import degree
from oco.dsl.atoms import Regularity, form_of, forms, is_entrywise, regularity_of
from oco.dsl.expressions import Call, Expr, Index, Kind, Name, walk


class Part(IntEnum):
    """Dependence of a node's entries on the entries of one decision."""

    FIXED = 0
    OWN = 1
    """Entry i depends on entry i of the decision alone."""
    PICKED = 2
    """Each entry depends on one entry of the decision, which the round's data may choose."""
    SUMMED = 3
    """A sum of functions of single entries."""
    MIXED = 4


def separable(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """True where a scalar expression is a sum of functions of single entries of the decisions, so that its Hessian is
    diagonal.
    """
    nodes = list(walk(expr))
    depends = dependence(nodes, decisions)
    results: dict[int, Part] = {}
    for node in nodes:
        results[id(node)] = _part(node, results, decisions) if id(node) in depends else Part.FIXED
    return results[id(expr)] is not Part.MIXED


def _part(node: Expr, results: dict[int, Part], decisions: tuple[str, ...]) -> Part:
    if isinstance(node, Name):
        return Part.OWN
    if isinstance(node, Index) and results[id(node.base)] in (Part.OWN, Part.PICKED):
        return Part.PICKED
    if node.shape == () and degree(node, decisions) <= 1:
        return Part.SUMMED
    if not isinstance(node, Call):
        return Part.MIXED
    parts = [results[id(a)] for a in node.args]
    moving = [a for a, p in zip(node.args, parts) if p is not Part.FIXED]
    worst = max(parts)
    if worst is Part.OWN and _entry_by_entry(node, moving):
        return Part.OWN
    if worst is Part.PICKED and _entry_by_entry(node, moving) and len(moving) == 1:
        return Part.PICKED
    if worst is Part.MIXED or node.shape != ():
        return Part.MIXED
    return Part.SUMMED if _adds_up(node, moving, worst) else Part.MIXED


def _entry_by_entry(node: Call, moving: list[Expr]) -> bool:
    smooth = is_entrywise(node) and regularity_of(node) is Regularity.SMOOTH
    return smooth and _same_decision(moving) and all(a.shape == node.shape for a in moving)


def _adds_up(node: Call, moving: list[Expr], worst: Part) -> bool:
    """True where a scalar node only sums and scales its arguments."""
    match form_of(node):
        case forms.Signed():
            return True
        case forms.TIMES:
            return len(moving) == 1
        case forms.QUOTIENT:
            return len(moving) == 1 and moving[0] is node.args[0]
        case forms.TOTAL | forms.MEAN | forms.SUM_OF_SQUARES | forms.MATRIX_PRODUCT:
            return len(moving) == 1 and worst in (Part.OWN, Part.PICKED)
    return False


def _same_decision(moving: list[Expr]) -> bool:
    """True where entries belong to one decision: two decisions of equal shape would be mixed by an entrywise product."""
    results = {n.name for a in moving for n in walk(a) if isinstance(n, Name) and n.kind is Kind.DECISION}
    return len(results) <= 1


def smooth(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """True where no atom that depends on the decisions has a kink."""
    nodes = list(walk(expr))
    depends = dependence(nodes, decisions)
    return all(regularity_of(n) is Regularity.SMOOTH for n in nodes if id(n) in depends)
