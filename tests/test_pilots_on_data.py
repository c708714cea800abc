"""The choice on data: pilot runs of all algorithms that apply decide, within a limit of wall time."""

from __future__ import annotations

import numpy as np
import pytest

import oco
from oco.compiler.selection.verdicts import Informativeness
from oco.dsl.statements import Feedback
from oco.evaluation.pilot import score

TEXT = """
model pacing
horizon T = 480
decision bid[3] in box(0, 1)
stream value[3] in [0, 10]
stream price[3] in [0, 10]
minimize -(value @ bid)
subject to
    budget: price @ bid <= 3 on average
"""


def rounds(seed: int) -> dict[str, np.ndarray]:
    """Prices and values with a season of 96 rounds, far below what the model allows."""
    rng = np.random.default_rng(seed)
    season = 1 + 0.6 * np.sin(2 * np.pi * np.arange(480) / 96)[:, None]
    price, value = (season * rng.lognormal(mean, sd, (480, 3)) for mean, sd in ((0.6, 0.4), (0.8, 0.6)))
    return {"price": np.clip(price, 0, 10), "value": np.clip(value[::-1], 0, 10)}


def test_an_ad_campaign_earns_what_the_best_candidate_earns() -> None:
    """The guarantee that is the best number overall earns less than half of it."""
    model, data = oco.parse(TEXT), rounds(0)
    plan = oco.compile(model, data=data, budget=60)
    pilots = plan.choice.pilots
    assert pilots is not None and pilots.measured and not pilots.left_out
    usable = [v for v in plan.choice.verdicts if v.guarantee is not None and v.algorithm.reads is not Feedback.BANDIT]
    assert set(pilots.order) == {v.name for v in usable} and len(usable) > 4
    assert usable[0].informativeness is Informativeness.NUMBERS
    s = plan.choice.situation
    costs = {v.name: score(plan.taking(v).run(data), s, 1.0)[2] for v in usable}
    least = min(costs.values())
    assert costs[plan.algorithm] <= least + 0.02 * abs(least)
    by_guarantee = oco.compile(model)
    assert by_guarantee.choice.pilots is None and costs[by_guarantee.algorithm] > least + 0.3 * abs(least)


def test_what_the_time_does_not_suffice_for_is_named() -> None:
    plan = oco.compile(oco.parse(TEXT), data=rounds(0), budget=0)
    pilots = plan.choice.pilots
    assert pilots is not None and len(pilots.order) == 1 and pilots.order[0] == plan.algorithm
    assert plan.algorithm == oco.compile(oco.parse(TEXT)).algorithm
    why = plan.choice.verdicts[0].reason
    assert pilots.left_out and all(name in why for name in pilots.left_out) and "`--budget` gives more time" in why


@pytest.mark.parametrize("options", [{"algorithm": "coldq"}, {"settings": "paper"}])
def test_what_is_asked_for_needs_no_pilots(options: dict[str, str]) -> None:
    plan = oco.compile(oco.parse(TEXT), data=rounds(0), **options)
    assert plan.choice.pilots is None
