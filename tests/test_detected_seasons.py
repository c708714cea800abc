"""Seasons of stores that are detected as rounds come: their averages, which one is taken, and what a store earns without data before."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from driving import plan_for
from numpy.testing import assert_allclose

MODEL = """model cold
horizon T = 480
decision cool in box(0, 2)
stream price in [0, 100]
context outside in [0, 40]
state temperature = temperature + 0.04 * (outside - temperature) - cool in [2, 8] start 5
minimize price * cool
"""
TRIED = (7, 24, 96)
"""Seasons that come three times in 480 rounds."""


def rounds_of(T: int, period: int) -> dict[str, Any]:
    rng, t = np.random.default_rng(5), np.arange(T)
    price = np.clip(45 + 20 * np.sin(2 * np.pi * (t - 9) / period) + rng.normal(0, 4, T), 0, 100)
    return {"price": price, "outside": 22 + 8 * np.sin(2 * np.pi * (t - 9) / 24)}


@pytest.mark.parametrize("period", [7, 24])
def test_the_season_with_the_least_errors_is_detected(period: int) -> None:
    T, data = 200, rounds_of(200, period)
    learner = plan_for(MODEL).learner()
    for t in range(T):
        learner.decide(outside=data["outside"][t])
        learner.observe(price=data["price"][t])
    tables = np.split(learner.value("phases")[:, 0], np.cumsum(TRIED))
    for k, table in zip(TRIED, tables, strict=False):
        for phase in range(k):
            came, average = data["price"][phase::k], 0.0
            for n, price in enumerate(came, 1):
                average += max(1 / n, 0.05) * (price - average)
            assert table[phase] == pytest.approx(average)
    assert (1, *TRIED)[int(np.argmin(learner.value("missed")[:, 0]))] == period
    # The prediction of the next round is that of its phase in this season, and what a unit costs is learned by it, too.
    assert_allclose(learner.value("predicted")[-1], tables[TRIED.index(period)][T % period])
    assert (1, *TRIED)[int(np.argmin(learner.value("cost_usual")[:, 0]))] == period


def test_a_store_without_data_before_does_as_well_as_one_that_knows_its_season() -> None:
    data = rounds_of(480, 24)
    own, known = (
        float(plan_for(MODEL + using).run(data, backend="c").loss.sum())
        for using in ("", "using hedged with season = 24\n")
    )
    assert own <= 1.02 * known


def test_nothing_is_tried_where_nothing_is_left_in_stores_or_a_season_is_known() -> None:
    def kept(text: str) -> dict[str, tuple[int, ...]]:
        return {f.name: f.type.shape for f in plan_for(text).program.state}

    assert "phases" in kept(MODEL) and kept(MODEL)["cost_usual"] == (1 + len(TRIED), 1)
    known = kept(MODEL + "using hedged with season = 24\n")
    assert "phases" not in known and known["cost_usual"] == (1, 1) and known["cost_by_phase"][0] == 24
    short = kept(MODEL.replace("480", "60"))
    assert short["cost_usual"] == (2, 1) and short["cost_by_phase"][0] == 1 + 7
    stateless = MODEL.replace(
        "state temperature = temperature + 0.04 * (outside - temperature) - cool in [2, 8] start 5\n", ""
    )
    assert "phases" not in kept(stateless + "using hedged\n")
