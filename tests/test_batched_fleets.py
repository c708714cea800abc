"""Fleets in NumPy that take many learners at once: every learner is the learner that it would be alone."""

from __future__ import annotations

import numpy as np
import pytest
from driving import example
from test_backends_agree import rounds_of
from test_past_horizon import T, plan_for
from thorough import turns

import oco
from oco.backends.fleet import Fleet
from oco.backends.python import fleet as batched
from oco.backends.python.fleet import BatchedFleet

SIZE = 41
MODELS = [
    ("tracking", "coldq"),
    ("online_qp", "mirror-prox"),
    ("portfolio", "mirror-descent"),
    ("blind_pricing", None),
]


def parts(decided):
    return decided if isinstance(decided, dict) else {"": decided}


def stacked(rows):
    return {n: np.stack([r[n] for r in rows]) for n in rows[0]}


@pytest.mark.parametrize(("model", "most"), turns(MODELS, [2048, 32]))
def test_learners_of_a_batch_are_learners(model, most, monkeypatch):
    monkeypatch.setattr(batched, "MOST", most)
    plan = example(*model)
    together = plan.fleet(SIZE, backend="numpy")
    alone = Fleet(plan.compiled("numpy"), plan.contract, SIZE)
    assert type(together) is BatchedFleet and len(together._batches) == (1 if most > SIZE else 2)
    rows = list(rounds_of(plan, 4 * SIZE))
    for k in range(4):
        ours, theirs = parts(together.decide()), parts(alone.decide())
        for key, value in theirs.items():
            assert np.allclose(ours[key], value, rtol=1e-11, atol=1e-12 * np.abs(value).max())
        data = stacked(rows[k * SIZE : (k + 1) * SIZE])
        found, meant = together.observe(**data), alone.observe(**data)
        for a, b in zip((found.loss, found.constraints), (meant.loss, meant.constraints)):
            assert a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=1e-10)
    assert together.round == alone.round == 5
    for name, value in alone.values.items():
        assert np.allclose(together.value(name), value, rtol=1e-9, atol=1e-9 * max(np.abs(value).max(initial=0), 1))


def test_wrong_data_of_one_is_named_and_changes_none(monkeypatch):
    monkeypatch.setattr(batched, "MOST", 32)
    plan = example("tracking", "coldq")
    together, good = plan.fleet(SIZE, backend="numpy"), stacked(list(rounds_of(plan, SIZE)))
    before, decided = together.values, together.decide()
    for place, value, code in ((0, 9.0, "OCO845"), (9, np.nan, "OCO843"), (40, -np.inf, "OCO843")):
        wrong = {n: v.copy() for n, v in good.items()}
        wrong["A"][place, 1, 7] = value
        with pytest.raises(oco.OcoError, match=rf"learner {place}: A\[1, 7\]") as caught:
            together.observe(**wrong)
        assert caught.value.code == code
        assert all(np.array_equal(v, together.value(n)) for n, v in before.items())
        assert np.array_equal(decided, together.decide())
    assert together.observe(**good).round == 1 and together.round == 2


def test_fleets_go_over_to_the_next_epochs_together():
    plan = plan_for(f"= {T}")
    together, alone = plan.fleet(SIZE, backend="numpy"), Fleet(plan.compiled("numpy"), plan.contract, SIZE)
    for rows in np.random.default_rng(0).uniform(-1, 1, (3 * T + 2, SIZE, 3)):
        np.testing.assert_allclose(together.decide(), alone.decide(), rtol=0, atol=1e-12)
        np.testing.assert_allclose(together.observe(c=rows).loss, alone.observe(c=rows).loss, rtol=0, atol=1e-12)
    assert (together.value("T") == 4 * T).all()


def test_few_learners_and_rules_of_many_values_go_one_by_one():
    plan = example("tracking", "coldq")
    assert type(plan.fleet(batched.FEWEST - 1, backend="numpy")) is Fleet
    large = example("job_scheduling", "coldq")
    assert type(large.fleet(SIZE, backend="numpy")) is Fleet
