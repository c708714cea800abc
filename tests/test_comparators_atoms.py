"""Every atom of the language has certified comparators: in a loss and in a constraint, with and without data in it, against CVXPY."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from comparator_cases import check_certificate, drawn, problem, reference
from thorough import corners, thorough

from oco.compiler.problem.canonical import Canonical
from oco.dsl.atoms import ATOMS
from oco.evaluation.batch import values_of
from oco.evaluation.comparators import ComparatorStatus, first_order
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.comparators.functions import RoundArrays

ROUNDS = 3
VECTOR, MATRIX = "decision x[3] in box(0.2, 2)\n", "decision X[2, 3] in box(-1, 1)\n"
PARAMS = (
    "param P[3, 3] = [[2, -0.5, 0.25], [-0.5, 1.5, 0], [0.25, 0, 1]]\n"
    "param L[3, 3] = [[0.5, -1, 0.3], [0.2, 0.7, -0.4], [-0.6, 0.1, 0.9]]\nparam Q[2, 3] = [[0.5, -1, 0.3], [0.2, 0.7, -0.4]]\n"
)
STREAMS = {"a": "a[3] in [-1, 1]", "p": "p[3] in [0.5, 1.5]", "B": "B[2, 3] in [-1, 1]", "k": "k[3] in 0..7"}

FORMS = {
    "range": ("sum(x * (1..3))", "sum(a * x * (1..3))"),
    "add": ("sum(x + 1)", "sum(x + a)"),
    "sub": ("sum(1 - x)", "sum(a - x)"),
    "mul": ("sum(L[0] * x)", "sum(a * x)"),
    "div": ("sum(x / 3)", "sum(p / x)"),
    "mod": ("sum(((1..3) % 2) * x)", "sum((k % 3) * x)"),
    "matmul": ("sum_squares(L @ x)", "(a @ x) ** 2"),
    "minus": ("sum(-x)", "sum(-(p * x))"),
    "pow": ("sum((x - 1) ** 2)", "sum((x - a) ** 4)"),
    "transpose": ("sum_squares(X.T @ [1, 2])", "sum_squares((X - B).T @ [1, 2])"),
    "abs": ("sum(abs(x - 0.7))", "sum(abs(x - p))"),
    "pos": ("sum(pos(x - 0.7))", "sum(pos(x - p))"),
    "neg": ("sum(neg(x - 0.7))", "sum(neg(x - p))"),
    "square": ("sum(square(x - 0.7))", "sum(square(x - p))"),
    "sqrt": ("-sum(sqrt(x))", "-sum(p * sqrt(x))"),
    "exp": ("sum(exp(-x))", "sum(exp(a * x))"),
    "log": ("-sum(log(x))", "-log(p @ x)"),
    "log1p": ("-sum(log1p(x))", "-sum(p * log1p(x))"),
    "logistic": ("sum(logistic(x - 1))", "sum(logistic(a * x))"),
    "huber": ("sum(huber(x - 1, 0.3))", "sum(huber(x - p, 0.3))"),
    "entr": ("-sum(entr(x))", "-sum(p * entr(x))"),
    "kl_div": ("sum(kl_div(x, x[1] + 1))", "sum(kl_div(x, p))"),
    "rel_entr": ("sum(rel_entr(1, x))", "sum(rel_entr(x, p))"),
    "inv_pos": ("sum(inv_pos(x))", "sum(inv_pos(x + p))"),
    "power": ("sum(power(x, 1.5))", "sum(power(x + p, 3))"),
    "hinge": ("sum(hinge(x))", "hinge(a @ x)"),
    "maximum": ("sum(maximum(x, 1, 2 - x))", "sum(maximum(x, p))"),
    "minimum": ("-sum(minimum(x, 1))", "-sum(minimum(x, p))"),
    "sum": ("sum(x)", "sum(a * x)"),
    "mean": ("mean(x)", "mean(a * x)"),
    "max": ("sum(max(X - Q, axis = 0))", "max(a * x)"),
    "min": ("-sum(min(X - Q, axis = 1))", "-min(x + a)"),
    "norm1": ("max(norm1(X - Q, axis = 0))", "norm1(x - p)"),
    "norm2": ("sum(norm2(X - Q, axis = 0))", "max(norm2(X - B, axis = 1))"),
    "norm_inf": ("norm_inf(x - 1)", "sum(norm_inf(X - B, axis = 1))"),
    "sum_squares": ("sum_squares(x - 1)", "sum_squares(x - p)"),
    "log_sum_exp": ("log_sum_exp(x)", "sum(log_sum_exp(X - B, axis = 0))"),
    "quad_form": ("quad_form(x - 1, P)", "quad_form(x - p, P)"),
    "dot": ("dot([1, -1, 0.5], x)", "dot(a, x)"),
    "outer": ("sum_squares(outer(x, [1, 2]))", "sum_squares(outer(x - p, [1, 2]))"),
    "trace": ("trace(X @ L[0:3, 0:2])", "trace(X @ B.T)"),
    "diag": ("sum_squares(diag(x) @ L)", "sum_squares(diag(diag(x - a)))"),
    "nuclear_norm": ("nuclear_norm(X - Q)", "nuclear_norm(X - B)"),
    "sigma_max": ("sigma_max(X - Q)", "sigma_max(X - B)"),
    "ones": ("sum(x * ones(3))", "sum(a * ones(3) * x)"),
    "zeros": ("sum_squares(x - zeros(3))", "sum_squares(x - a - zeros(3))"),
    "eye": ("sum_squares(eye(3) @ x - 1)", "sum_squares(eye(3) @ (x - p))"),
    "repeat": ("sum_squares(repeat(x, 2) - 1)", "sum_squares(repeat(x - p, 2))"),
}
"""A convex form of each atom without data and one with it, over x or X."""

WITHOUT: dict[str, str] = {}
"""Atoms that have no comparator, and the reason."""

NESTED = {
    "a bent norm": ("norm2(square(x) + 1)", "norm2(square(x) + p)"),
    "the square of a norm": ("square(nuclear_norm(X - Q))", "nuclear_norm(X - B) ** 2"),
    "a norm in an exponent": ("exp(sigma_max(X - Q))", "exp(sigma_max(X - B)) + sum(exp(X))"),
    "the positive part of a norm": ("pos(nuclear_norm(X - Q) - 0.5)", "pos(nuclear_norm(X - B) - 0.5)"),
    "the larger of two norms": ("maximum(sigma_max(X), norm1(X - Q))", "maximum(nuclear_norm(X) / 2, norm1(X - B))"),
}


def test_every_atom_of_the_language_is_here() -> None:
    assert set(FORMS) | set(WITHOUT) == {name for name in ATOMS if not name.startswith("_")}
    assert not set(FORMS) & set(WITHOUT)


def _text(loss: str, limit: str, timing: str) -> str:
    """The loss and a linear one, over the decisions that satisfy the limit where its form is at most LEVEL."""
    used = f"{loss} {limit}"
    decisions = [d for d, name in ((VECTOR, "x"), (MATRIX, "X")) if re.search(rf"\b{name}\b", used)]
    linear = " + ".join("sum(a * x)" if d is VECTOR else "sum(B * X)" for d in decisions)
    streams = [f"stream {s}\n" for n, s in STREAMS.items() if re.search(rf"\b{n}\b", f"{used} {linear}")]
    head = PARAMS + "".join(decisions + streams)
    return f"{head}minimize {loss} + {linear}\nsubject to\n    limit: {limit} <= LEVEL    {timing}\n"


def _model(loss: str, limit: str, timing: str) -> Canonical:
    """A level that the middle of the domain satisfies barely."""
    text = _text(loss, limit, timing)
    p = problem(text.replace("LEVEL", "0"), ROUNDS)
    rounds = RoundArrays.of(p, drawn(p, ROUNDS).read(0, ROUNDS), np.arange(ROUNDS) + 1)
    middle = np.concatenate([b.domain.inner_centre.ravel() for b in p.blocks])[None]
    level = values_of(rounds.evaluate(p.inequalities[0].expr, middle, rounds.everything), ROUNDS).max() + 0.05
    return problem(text.replace("LEVEL", f"{level:.4f}"), ROUNDS)


def _check(loss: str, limit: str, timing: str) -> None:
    p = _model(loss, limit, timing)
    data = drawn(p, ROUNDS)
    static, dynamic = compare(p, data, "static"), compare(p, data, "dynamic")
    check_certificate(static)
    check_certificate(dynamic)
    assert static.value == pytest.approx(reference(p, data, list(range(ROUNDS)), averages=True), rel=1e-6, abs=1e-6)
    assert dynamic.losses is not None
    assert dynamic.losses[1] == pytest.approx(reference(p, data, [1], averages=False), rel=1e-6, abs=1e-6)


WAYS = ("each round", "on average")
ALIKE = (
    "the square of a norm",
    "a norm in an exponent",
    "add",
    "sub",
    "ones",
    "zeros",
    "eye",
    "transpose",
    "repeat",
    "outer",
)
"""Norms below an increasing function, as another is, and atoms whose result is affine, as those of products are."""
BY_TURNS = [(name, WAYS[k % 2]) for k, name in enumerate([*FORMS, *NESTED]) if name not in ALIKE]


@pytest.mark.parametrize(("name", "timing"), corners(product([*FORMS, *NESTED], WAYS), BY_TURNS))
def test_every_atom_has_certified_comparators(name: str, timing: str) -> None:
    """As the loss with what is revealed and as the limit without, each round; the other way round on average."""
    plain, revealed = (FORMS | NESTED)[name]
    _check(*((revealed, plain) if timing == "each round" else (plain, revealed)), timing)


@pytest.mark.parametrize("name", ["nuclear_norm", "sigma_max", "norm2", "a bent norm", "huber"])
def test_prefixes_of_atoms_beyond_the_interior_point_method(name: str) -> None:
    """Euclidean lengths of what is not affine were once taken as affine here, and a wrong number called certified."""
    plain, revealed = (FORMS | NESTED)[name]
    p = _model(plain, revealed, "each round")
    data = drawn(p, ROUNDS)
    found = compare_prefixes(p, data, np.array([1, ROUNDS]))
    for end, value, bound, status in zip((1, ROUNDS), found.value, found.bound, found.status):
        exact = reference(p, data, list(range(end)), averages=True)
        assert status is ComparatorStatus.CERTIFIED and value == pytest.approx(exact, rel=1e-6, abs=1e-6)
        assert bound == pytest.approx(exact, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("most", [3, thorough(first_order.OUTER)])
def test_kinks_of_functions_without_a_bound_give_an_interval(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """-log(x) has no largest value on the simplex, so that no variable in a box stands for its maximum."""
    monkeypatch.setattr(first_order, "OUTER", most)
    p = problem("decision x[3] in simplex\nstream a[3] in [-1, 1]\nminimize max(-log(x)) + a @ x\n", ROUNDS)
    data = drawn(p, ROUNDS)
    found, exact = compare(p, data, "static"), reference(p, data, list(range(ROUNDS)), averages=True)
    assert found.status is ComparatorStatus.INTERVAL and found.bound <= exact <= found.value + 1e-6
    assert found.value == pytest.approx(exact, rel=1e-3)
    assert compare(p, data, "dynamic").bound <= found.value
