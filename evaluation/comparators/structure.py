"""What kind of function an expression is in the decisions: its degree, whether its Hessian is diagonal, whether it is smooth."""

from __future__ import annotations

import math
from enum import IntEnum

from oco.compiler.calculus import dependence
from oco.dsl.expressions import Array, Call, Constant, Expr, Index, Kind, Name, walk

_LINEAR = frozenset({"add", "sub", "minus", "sum", "mean", "transpose", "trace", "diag"})
_PRODUCTS = frozenset({"mul", "matmul", "dot", "outer"})
_SQUARES = frozenset({"square", "sum_squares"})
_ENTRYWISE = frozenset(
    {
        "add",
        "sub",
        "minus",
        "mul",
        "div",
        "pow",
        "power",
        "square",
        "sqrt",
        "exp",
        "log",
        "log1p",
        "logistic",
        "huber",
        "entr",
    }
    | {"kl_div", "rel_entr", "inv_pos"}
)
KINKED = frozenset(
    {
        "abs",
        "pos",
        "neg",
        "hinge",
        "max",
        "min",
        "maximum",
        "minimum",
        "norm1",
        "norm2",
        "norm_inf",
        "nuclear_norm",
        "sigma_max",
    }
)


def degree(expr: Expr, decisions: tuple[str, ...]) -> float:
    """0, 1 or 2 where the expression is a polynomial of that degree in the decisions; infinity otherwise."""
    nodes = list(walk(expr))
    return degrees(nodes, dependence(nodes, decisions))[id(expr)]


def degree_in(expr: Expr, stream: str) -> float:
    """The same in one stream, whatever the decisions are."""
    nodes = list(walk(expr))
    depends: set[int] = set()
    for node in nodes:
        if (isinstance(node, Name) and node.name == stream) or any(id(c) in depends for c in node.children):
            depends.add(id(node))
    return degrees(nodes, depends)[id(expr)]


def degrees(nodes: list[Expr], depends: set[int]) -> dict[int, float]:
    """The degree of each node (children first) in what `depends` tells to vary."""
    found: dict[int, float] = {}
    for node in nodes:
        found[id(node)] = _degree(node, [found[id(c)] for c in node.children]) if id(node) in depends else 0
    return found


def _degree(node: Expr, below: list[float]) -> float:
    if isinstance(node, Name):
        return 1
    if isinstance(node, Index):
        return below[0] if not any(below[1:]) else math.inf
    if isinstance(node, Array):
        return max(below)
    if not isinstance(node, Call):
        return math.inf
    if node.atom in _LINEAR:
        result = max(below)
    elif node.atom in _PRODUCTS:
        result = sum(below)
    elif node.atom == "div":
        result = below[0] if not below[1] else math.inf
    elif node.atom in _SQUARES:
        result = 2 * below[0]
    elif node.atom in ("pow", "power"):
        result = below[0] * _exponent(node.args[1])
    elif node.atom == "quad_form":
        result = 2 * below[0] + below[1]
    else:
        result = math.inf
    return result if result <= 2 else math.inf


def _exponent(expr: Expr) -> float:
    if isinstance(expr, Constant) and expr.shape == () and float(expr.value.array) in (1.0, 2.0):
        return float(expr.value.array)
    return math.inf


class Part(IntEnum):
    """How the entries of a node depend on the entries of one decision."""

    FIXED = 0
    OWN = 1
    """Entry i on entry i of the decision alone."""
    PICKED = 2
    """Each entry on one entry of the decision, which the round's data may choose."""
    SUMMED = 3
    """A sum of functions of single entries."""
    MIXED = 4


def separable(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """Whether a scalar expression is a sum of functions of single entries of the decisions, so that its Hessian is diagonal."""
    nodes = list(walk(expr))
    depends = dependence(nodes, decisions)
    found: dict[int, Part] = {}
    for node in nodes:
        found[id(node)] = _part(node, found, decisions) if id(node) in depends else Part.FIXED
    return found[id(expr)] is not Part.MIXED


def _part(node: Expr, found: dict[int, Part], decisions: tuple[str, ...]) -> Part:
    if isinstance(node, Name):
        return Part.OWN
    if isinstance(node, Index) and found[id(node.base)] in (Part.OWN, Part.PICKED):
        return Part.PICKED
    if node.shape == () and degree(node, decisions) <= 1:
        return Part.SUMMED
    if not isinstance(node, Call):
        return Part.MIXED
    parts = [found[id(a)] for a in node.args]
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
    return node.atom in _ENTRYWISE and _same_decision(moving) and all(a.shape == node.shape for a in moving)


def _adds_up(node: Call, moving: list[Expr], worst: Part) -> bool:
    """Whether a scalar node only sums and scales its arguments."""
    if node.atom in ("add", "sub", "minus"):
        return True
    if len(moving) != 1:
        return False
    if node.atom == "mul":
        return True
    if node.atom == "div":
        return moving[0] is node.args[0]
    return worst in (Part.OWN, Part.PICKED) and node.atom in ("sum", "mean", "sum_squares", "matmul", "dot")


def _same_decision(moving: list[Expr]) -> bool:
    """Entries of one decision: two decisions of the same shape would be mixed by an entrywise product."""
    found = {n.name for a in moving for n in walk(a) if isinstance(n, Name) and n.kind is Kind.DECISION}
    return len(found) <= 1


def smooth(expr: Expr, decisions: tuple[str, ...]) -> bool:
    """Whether no atom that the decisions reach has a kink."""
    nodes = list(walk(expr))
    depends = dependence(nodes, decisions)
    return not any(isinstance(n, Call) and n.atom in KINKED for n in nodes if id(n) in depends)
