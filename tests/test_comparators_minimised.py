"""Comparators on sets whose equations do not fit into memory, against those of the same sets with their rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from oco.compiler.domains import flow as flows
from oco.compiler.domains import sparse_flow
from oco.compiler.problem.canonical import canonical
from oco.dsl.load import parse
from oco.evaluation.comparators import ComparatorBudget
from oco.evaluation.comparators.base import ComparatorStatus
from oco.evaluation.comparators.compare import compare, compare_prefixes
from oco.evaluation.data import Data, load_data

MODEL = """model routes
horizon T = 40
param edges[8, 2] = [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3], [2, 4], [3, 4], [1, 4]]
decision x[8] in flow(edges, 0, 4)
decision y[2] in box(0, 1)
stream c[8] in [-1, 1]
stream d in [-1, 1]
minimize {loss}
"""
AFFINE = "c @ x - d * sum(y) + x[0] + d"
CURVED = "sum_squares(x - c) + sum(y)"


def data_of(loss: str, rounds: int = 40) -> Data:
    rng = np.random.default_rng(3)
    given = {"c": rng.uniform(-1, 1, (rounds, 8)), "d": rng.uniform(-1, 1, rounds)}
    return load_data(canonical(parse(MODEL.format(loss=loss))), given)


@pytest.fixture
def without_rows(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Function that makes the data of a loss over flows whose rows count as too many."""

    def made(loss: str) -> Data:
        with monkeypatch.context() as patched:
            patched.setattr(flows, "MAX_DENSE_ORDER", 0)
            data = data_of(loss)
        monkeypatch.setattr(sparse_flow, "MOST_ROW_NUMBERS", 10)
        assert not data.problem.blocks[0].domain.hull_fits
        return data

    return made


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_affine_losses_are_minimised_as_with_rows(kind: Any, without_rows: Any) -> None:
    whole = data_of(AFFINE)
    rows = compare(whole.problem, whole, kind)
    data = without_rows(AFFINE)
    found = compare(data.problem, data, kind)
    assert found.status is rows.status is ComparatorStatus.CERTIFIED and found.method == "linear minimisation"
    assert found.value == found.bound == pytest.approx(rows.value, rel=1e-6, abs=1e-6)
    assert found.losses is not None and rows.losses is not None and found.losses == pytest.approx(rows.losses, abs=1e-4)
    for name, decision in found.decision.items():
        assert decision.shape == rows.decision[name].shape


def test_prefixes_are_minimised_as_with_rows(without_rows: Any) -> None:
    ends, whole = np.array([1, 7, 40]), data_of(AFFINE)
    rows = compare_prefixes(whole.problem, whole, ends)
    data = without_rows(AFFINE)
    found = compare_prefixes(data.problem, data, ends)
    assert found.value == pytest.approx(rows.value, rel=1e-6, abs=1e-6)
    assert {name: x.shape for name, x in found.decision.items()} == {"x": (3, 8), "y": (3, 2)}


def test_limits_of_memory_and_time_are_kept(without_rows: Any) -> None:
    data = without_rows(AFFINE)
    small = compare(data.problem, data, "dynamic", ComparatorBudget(memory=100))
    late = compare(data.problem, data, "dynamic", ComparatorBudget(seconds=0.0))
    assert small.losses is None and "GiB" in small.why
    assert late.losses is None and late.why == "no time was left of 0 s after 1 of 40 rounds"


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_other_losses_say_what_is_too_large(kind: Any, without_rows: Any) -> None:
    data = without_rows(CURVED)
    found = compare(data.problem, data, kind)
    assert found.losses is None and found.why.startswith("the equations of the set of `x` do not fit in memory")
