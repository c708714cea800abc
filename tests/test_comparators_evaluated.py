"""Many rounds: comparators that store no coefficients against CVXPY, rules that decide once, and bounds of all losses."""

from __future__ import annotations

from functools import partialmethod

import numpy as np
import pytest
from comparator_cases import MODELS, check_certificate, drawn, problem, reference

from oco.compiler.problem.canonical import Canonical
from oco.evaluation.baselines.base import Game
from oco.evaluation.baselines.predictions import Stated
from oco.evaluation.baselines.resolve import NoMargin, Resolve, distinct
from oco.evaluation.batch import RoundArray, matmul
from oco.evaluation.certified import beyond_all_losses
from oco.evaluation.comparators import evaluated
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.comparators.evaluated import evaluated_rows
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.of_expressions import implicit
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data, load_data

BODY = MODELS["quadratic under random limits"]


@pytest.fixture
def nothing_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluated, "MANY", 0)


def all_rounds(p: Canonical, data: Data) -> RoundArrays:
    return RoundArrays.of(p, data.read(0, data.rounds), np.arange(data.rounds) + 1)


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("name", ["quadratic under random limits", "ball with a linear limit"])
def test_the_best_fixed_decision_is_that_of_cvxpy(name: str) -> None:
    p = problem(MODELS[name], 150)
    data, ends = drawn(p, 150), np.array([40, 150])
    assert evaluated_rows(all_rounds(p, data), p.inequalities[0].expr) is not None
    found = compare(p, data, "static")
    check_certificate(found)
    assert found.value == pytest.approx(reference(p, data, list(range(150)), averages=True), rel=3e-6, abs=1e-6)
    several = compare_prefixes(p, data, ends)
    for value, end in zip(several.value, ends):
        assert value == pytest.approx(reference(p, data, list(range(end)), averages=True), rel=3e-6, abs=1e-6)


@pytest.mark.usefixtures("nothing_stored")
def test_rows_that_are_evaluated_are_those_of_the_coefficients() -> None:
    p = problem(BODY, 30)
    rounds, rng = all_rounds(p, drawn(p, 30)), np.random.default_rng(1)
    rows, stored = evaluated_rows(rounds, p.inequalities[0].expr), implicit(rounds, p.inequalities[0].expr).apart
    assert rows is not None and rows.affine_in == stored.affine_in == rounds.size
    chosen = rng.permutation(60)[:23]
    for x in (rng.uniform(0, 5, (1, 4)), rng.uniform(0, 5, (23, 4))):
        for found, expected in zip(rows.jet(x, chosen), stored.jet(x, chosen)):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(rows.values(x, chosen), stored.values(x, chosen), rtol=1e-12, atol=1e-12)


def test_rows_that_differ_by_constants_are_stored_once() -> None:
    p = problem(BODY.replace("A @ x <= b", "sum(x) <= sum(b)"), 30)
    rounds = all_rounds(p, drawn(p, 30))
    found = implicit(rounds, p.inequalities[0].expr)
    assert found.linear.shape == (1, 1, 4) and found.constant.shape == (30, 1)
    np.testing.assert_allclose(found.constant[:, 0], -rounds.streams["b"].sum(axis=1))


def test_a_rule_that_predicts_the_same_in_all_rounds_decides_once() -> None:
    p = problem(BODY.replace("A[2, 4] in [0, 1]", "A[2, 4] ~ uniform(0, 1)"), 500)
    game = Game.of(p, drawn(p, 500), Trade.at_price(p, 1.0))
    x = Resolve(Stated(), NoMargin()).decide(game)
    assert x.shape == (500, 4) and x.strides[0] == 0
    means = {s.name: np.broadcast_to((s.lower + s.upper) / 2, (1, *s.shape)) for s in p.streams}
    expected = reference(p, load_data(p, means), [0], averages=False)
    assert game.play("", x).loss.shape == (500,)
    y, H = means["y"][0], means["H"][0]
    assert 0.5 * float(((H @ x[0] - y) ** 2).sum()) == pytest.approx(expected, abs=1e-6)


def test_rounds_that_are_stored_once_do_not_differ() -> None:
    same, own = np.broadcast_to(np.arange(6.0).reshape(2, 3), (5, 2, 3)), np.array([1.0, 2.0, 1.0, 2.0, 3.0])
    chosen, back = distinct([same])
    assert chosen.tolist() == [0] and back.tolist() == [0] * 5
    chosen, back = distinct([same, own])
    np.testing.assert_array_equal(own[chosen][back], own)
    assert len(chosen) == 3


@pytest.mark.parametrize("shift", [0.0, 40.0, -40.0])
def test_a_bound_is_beyond_all_losses_where_it_is_above_their_largest_sum(
    shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The largest loss of x c over [-1, 1] is that of the largest |c| of a block of rounds, in every round of it."""
    p = problem(f"decision x in box(-1, 1)\nstream c in [-5, 5]\nminimize c * x + {shift}\n", 300)
    c = np.random.default_rng(0).uniform(-5, 5, 300)
    most = float(100 * np.abs(c.reshape(3, 100)).max(axis=1).sum() + 300 * shift)
    data = load_data(p, {"c": c})
    monkeypatch.setattr(Data, "blocks", partialmethod(Data.blocks, 100))
    assert beyond_all_losses(p, data, most + 1e-6)
    assert not beyond_all_losses(p, data, most - 1e-6)
    assert not beyond_all_losses(p, data, most - 4000.0)
    assert not beyond_all_losses(p, data, -np.inf)
    assert beyond_all_losses(p, data, np.inf)


@pytest.mark.parametrize("factor", [np.arange(3.0), np.arange(6.0).reshape(3, 2)], ids=["vector", "matrix"])
def test_products_with_a_factor_of_all_rounds(factor: np.ndarray) -> None:
    rows = np.random.default_rng(0).normal(size=(7, 4, 3))
    for own in (rows, rows[::2], rows[:0], np.ascontiguousarray(rows.transpose(0, 2, 1)).transpose(0, 2, 1)):
        expected = np.einsum("tij,j...->ti...", own, factor)
        np.testing.assert_allclose(matmul(RoundArray(own), factor).array, expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("rounds", [[], [0], [3, 3, 3], [0, 0, 2, 5, 5], [5, 2, 2, 0]])
def test_rounds_are_taken_once_in_rising_order(rounds: list[int]) -> None:
    own, back = evaluated._each_once(np.array(rounds, dtype=np.int64))
    assert own.tolist() == sorted(set(rounds)) and own[back].tolist() == rounds
