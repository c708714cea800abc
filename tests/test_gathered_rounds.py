"""Rounds of an iterator are played several at a time, and give what the same rounds give as arrays or one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import example
from test_backends_agree import rounds_of
from test_c99 import has_compiler

import oco
from oco.evaluation import gathering
from oco.evaluation.gathering import ROUNDS

pytestmark = pytest.mark.skipif(not has_compiler(), reason="no C compiler")
COUNT = ROUNDS + 70  # more than are played at a time


@pytest.fixture(scope="module")
def plan() -> Any:
    return example("tracking", "coldq")


@pytest.fixture(scope="module")
def rows(plan: Any) -> list[dict[str, Any]]:
    return list(rounds_of(plan, COUNT))


@pytest.mark.parametrize("keep", ["all", "last", 7])
@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist], ids=["arrays", "lists"])
def test_an_iterator_gives_what_arrays_give(plan: Any, rows: list[dict[str, Any]], keep: Any, kind: Any) -> None:
    arrays = {name: np.stack([np.asarray(row[name]) for row in rows]) for name in rows[0]}
    whole = plan.run(arrays, backend="c", keep=keep)
    found = plan.run(({n: kind(np.asarray(v)) for n, v in row.items()} for row in rows), backend="c", keep=keep)
    assert found.rounds == COUNT and np.array_equal(found.loss, whole.loss)
    assert np.array_equal(found.constraints, whole.constraints)
    assert np.array_equal(found.decisions, whole.decisions)
    for name, array in arrays.items():
        assert np.array_equal(found.data.array(name), array)


def test_rounds_that_come_slowly_are_not_waited_for(plan: Any, rows: list[dict[str, Any]], monkeypatch: Any) -> None:
    monkeypatch.setattr(gathering, "SECONDS", 0.0)
    told: list[int] = []
    found = plan.run(iter(rows[:50]), backend="c", progress=lambda count, *sums: told.append(count))
    assert told == list(range(1, 51)) and found.rounds == 50


@pytest.mark.parametrize("at", [3, ROUNDS + 9])
def test_wrong_data_is_named_by_its_round(plan: Any, rows: list[dict[str, Any]], at: int) -> None:
    wrong = [dict(row) for row in rows]
    wrong[at]["A"] = np.where(np.arange(20).reshape(2, 10) == 17, 9.0, wrong[at]["A"])
    with pytest.raises(oco.OcoError, match=rf"round {at + 1} of the data: A\[1, 7\]") as caught:
        plan.run(iter(wrong), backend="c")
    assert caught.value.code == "OCO845"


def test_a_round_of_another_form_is_played_alone(plan: Any, rows: list[dict[str, Any]]) -> None:
    mixed = [dict(row) for row in rows[:40]]
    mixed[20]["b"] = np.float32(mixed[20]["b"])
    mixed[20]["H"] = mixed[20]["H"].tolist()
    whole = plan.run(iter(mixed), backend="c")
    assert whole.rounds == 40 and np.isfinite(whole.loss).all()
    with pytest.raises(oco.OcoError, match="round 31 of the data"):
        plan.run(iter([*rows[:30], {**rows[30], "b": np.zeros(3)}]), backend="c")


def test_a_caller_that_hears_of_each_round_hears_before_the_next_is_asked_for(
    plan: Any, rows: list[dict[str, Any]]
) -> None:
    heard: list[int] = []

    def feed() -> Any:
        for k, row in enumerate(rows[:20]):
            assert len(heard) == k
            yield row

    plan.run(feed(), backend="c", on_round=lambda feedback: heard.append(feedback.round))
    assert heard == list(range(1, 21))
