"""Domains: what takes more than a look at the arguments (OCO41x)."""

from __future__ import annotations

from oco.dsl.codes.base import Code, Stage


def _model(domain: str, shape: str = "3", params: str = "") -> str:
    return f"model m\nhorizon T = 10\n{params}decision x[{shape}] in {domain}\nstream c[{shape}] in [-1, 1]\nminimize sum(c * x)\n"


SETS: dict[str, Code] = {
    "OCO413": Code(
        "a number that a domain is given is not finite",
        "Every guarantee needs a bounded domain, so infinite bounds and values that are not numbers are refused.",
        'oco.box(0, 1).project([0.5, float("nan")])\n',
        "Give finite numbers; bounds as wide as the decision can reasonably be.",
        Stage.BUILDER,
    ),
    "OCO418": Code(
        "the domain is unbounded",
        "The inequalities of a polytope leave a direction in which decisions grow without limit; every guarantee needs a bounded domain.",
        _model("polytope(A, b)", "2", "param A[1, 2] = [[1, 1]]\nparam b[1] = [1]\n"),
        "Add bounds on every entry.",
        Stage.CHECK,
    ),
    "OCO419": Code(
        "this does not narrow a domain",
        "What stands behind `with` compares affine expressions of the decision and of fixed data, and holds in every round.",
        _model("box(0, 1) with sum(square(x)) <= 1"),
        "Use a domain that has the form, such as ball(1), or write the constraint below `subject to`.",
        Stage.CHECK,
    ),
    "OCO417": Code(
        "the graph has no flow to decide on",
        "A unit flow needs a directed graph without cycles in which the sink can be reached from the source.",
        _model("flow(edges, 0, 2)", "2", "param edges[2, 2] in 0..2 = [[0, 1], [1, 0]]\n"),
        "Remove the cycle, or add the missing edges.",
        Stage.CHECK,
    ),
}
