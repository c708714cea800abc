"""Forms and second readings of atoms: what a row says of an atom holds of its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from atom_cases import CASES, Case, each_case

from oco.dsl import algebra
from oco.dsl.atoms import ATOMS, Atom, Regularity, form_of, forms, kink_of, never_negative
from oco.dsl.build import applied, call
from oco.dsl.dims import known
from oco.dsl.evaluate import evaluate
from oco.dsl.expressions import Expr
from oco.dsl.intervals import interval


def each(row_has: Callable[[Atom], object]) -> Any:
    """Every case of an atom whose row has something."""
    return each_case(c for c in CASES if row_has(ATOMS[c.atom]))


DRAWS = 5


def values(case: Case, *exprs: Expr) -> list[list[np.ndarray]]:
    """The values of expressions over the names of a case, at several draws."""
    rng = np.random.default_rng(11)
    return [[np.asarray(evaluate(e, at), dtype=float) for e in exprs] for at in (case.draw(rng) for _ in range(DRAWS))]


def along(node: Expr) -> int | None:
    axis = node.option("axis")
    return None if axis is None else int(axis)


@each(lambda row: row.form and not isinstance(row.form, (forms.Extreme, forms.Scattered)))
def test_the_form_is_what_the_atom_computes(case: Case) -> None:
    node = case.call()
    form = form_of(node)
    for found, *args in values(case, node, *node.args):
        match form:
            case forms.Signed(signs):
                meant = sum(sign * a for sign, a in zip(signs, args, strict=True))
            case forms.TIMES:
                meant = args[0] * args[1]
            case forms.MATRIX_PRODUCT:
                meant = args[0] @ args[1]
            case forms.OUTER_PRODUCT:
                meant = np.multiply.outer(*args)
            case forms.Quotient():
                meant = args[0] / args[1]
            case forms.Remainder():
                meant = args[0] - args[1] * np.floor(args[0] / args[1])
            case forms.Power(exponent):
                meant = np.power(args[0], args[1] if exponent is None else exponent)
            case forms.Logarithm(shift):
                meant = np.log(shift + args[0])
            case forms.Exponential():
                meant = np.exp(args[0])
            case forms.Total(of, mean, root):
                entries = {"": args[0], "square": args[0] ** 2, "abs": abs(args[0])}[of]
                meant = entries.mean(along(node)) if mean else entries.sum(along(node))
                meant = np.sqrt(meant) if root else meant
            case forms.Transposed():
                meant = args[0].T
            case forms.Diagonal():
                meant = np.trace(args[0]) if not node.shape else np.diag(args[0])
            case forms.Quadratic():
                meant = args[0] @ args[1] @ args[0]
            case forms.SoftMaximum():
                meant = np.log(np.exp(args[0]).sum(along(node)))
            case forms.UnitVector():
                meant = found
                assert np.all(
                    np.linalg.norm(found if along(node) is not None else found.ravel(), axis=along(node)) <= 1 + 1e-12
                )
            case forms.SOFT_PLUS:
                meant = np.logaddexp(0.0, args[0])
            case forms.SIGN:
                meant = np.sign(args[0])
            case forms.STEP:
                meant = (args[0] > 0) * 1.0
            case forms.Uniform(value):
                meant = np.full(known(node.shape), value)
            case forms.Reshaped():
                meant = args[0].reshape(known(node.shape))
            case forms.Stretched():
                meant = np.broadcast_to(args[0], known(node.shape))
            case _:
                raise AssertionError(f"nothing is known of {form}")
        np.testing.assert_allclose(found, meant, rtol=1e-12, atol=1e-12)


@each(lambda row: isinstance(row.form, forms.Extreme))
def test_extremes_are_those_of_their_pieces(case: Case) -> None:
    node = case.call()
    form = form_of(node)
    assert isinstance(form, forms.Extreme)
    assert ATOMS[node.atom].regularity is Regularity.CONTINUOUS and kink_of(node) is form
    for found, *pieces in values(case, node, *form.pieces(algebra, *node.args)):
        extreme = (np.maximum if form.largest else np.minimum).reduce(np.broadcast_arrays(*pieces))
        if form.over:
            extreme = (np.max if form.largest else np.min)(extreme, axis=along(node))
        np.testing.assert_allclose(found, np.broadcast_to(extreme, found.shape), rtol=1e-12)


@each(lambda row: True)
def test_what_is_never_negative_is_not(case: Case) -> None:
    if never_negative(case.call()):
        assert all(np.all(found >= 0) for (found,) in values(case, case.call()))


@each(lambda row: row.decided)
def test_a_piece_has_the_values_of_the_whole(case: Case) -> None:
    node = case.call()
    rule = ATOMS[node.atom].decided
    assert rule is not None
    for found, *args in values(case, node, *node.args):
        piece = rule(algebra, node, *(interval(a, a) for a in args))
        if piece is not None:
            at = dict(zip((a.name for a in node.args if hasattr(a, "name")), args))
            np.testing.assert_allclose(found, np.broadcast_to(evaluate(piece, at), found.shape), rtol=1e-12)


@each(lambda row: row.replay)
def test_the_second_reading_of_a_range_agrees_with_the_first(case: Case) -> None:
    node = case.call()
    row = ATOMS[node.atom]
    assert row.replay is not None
    for _, *args in values(case, node, *node.args):
        ends = [(a - 0.125, a + 0.125) if k == 0 else (a, a) for k, a in enumerate(args)]
        fixed = applied(node.atom, node.args, node.options)
        bounds = row.bounds(fixed, *(interval(lo, hi) for lo, hi in ends))
        low, high = row.replay(fixed, *ends)
        wide = np.broadcast_to(bounds.lo, known(node.shape)), np.broadcast_to(bounds.hi, known(node.shape))
        assert np.all(wide[0] <= low + 1e-9 * (1 + abs(low))) and np.all(wide[1] >= high - 1e-9 * (1 + abs(high)))


@pytest.mark.parametrize("name", ["norm2", "nuclear_norm", "sigma_max"])
def test_norms_their_duals_and_projections_on_dual_balls(name: str) -> None:
    norm, rng = ATOMS[name].norm, np.random.default_rng(2)
    assert norm is not None
    a, b = rng.normal(size=(2, 50, 3, 2))
    most = rng.uniform(0.1, 3.0, 50)
    assert np.all((a * b).sum(axis=(1, 2)) <= norm.value(a) * norm.dual(b) * (1 + 1e-12))  # Hoelder's inequality
    near = norm.onto_dual_ball(a, most)
    assert np.all(norm.dual(near) <= most * (1 + 1e-12))
    inside = norm.onto_dual_ball(b, most)
    assert np.all(((a - near) * (inside - near)).sum(axis=(1, 2)) <= 1e-9)  # what characterises a projection
    matrix = a[0] if name != "norm2" else a[0].ravel()
    assert norm.value(a[:1])[0] == pytest.approx(float(evaluate(call(name, matrix), {})))
