"""The dial of the default: dearer violations are fewer and lose more, over two orders of magnitude, on drawn rounds and NYISO's prices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from thorough import corners

import oco
from oco.compiler.problem.canonical import canonical
from oco.evaluation.data import load_data

ROUNDS = 48
STOCK = """model stock
horizon T = 48
decision order[2] in box(0, 80)
stream need[2] in [0, 80]
minimize 0.2 * sum(order) + sum(maximum(order - need, 0))
subject to
    enough: need - order <= 0             each round{penalty}
"""
LIMIT = """model limit
horizon T = 48
decision x[2] in box(0, 10)
stream wish[2] in [0, 15]
stream room in [2, 25]
minimize sum_squares(x - wish)
subject to
    cap: sum(x) <= room                   each round{penalty}
"""
LINK = """model link
horizon T = 48
decision x[2] in box(0, 10)
stream load[2] in [0, 10]
stream price[2] in [0, 5]
minimize price @ x - 4 * sum(log(1 + x))
subject to
    link: load @ x <= 30                  each round{penalty}
"""
JOBS = """model jobs
horizon T = 48
decision x[10] in box(0, 1000)
stream price[10] in [-1000, 3000]
stream jobs ~ poisson(250) in [0, 320]
minimize price @ x
subject to
    service: jobs - 4 * sum(log(1 + 4 * x)) <= 0    each round{penalty}
"""
PRICES = Path(__file__).parent.parent / "examples" / "data" / "nyiso_2017-05.csv"
FACTORS = (0.1, 1.0, 10.0)
UNIT = {STOCK: 2.0, LIMIT: 30.0, LINK: 0.5, JOBS: 2e4}
"""Price of a unit of violation that the factors multiply."""
SLACK = 0.01
"""Share of what loss and violation move by over the grid within which neighbours count as equal."""


def rounds(text: str) -> dict[str, np.ndarray]:
    if text is JOBS:
        given = oco.parse(JOBS.format(penalty=""))
        data = load_data(canonical(given), PRICES, seed=0).first(ROUNDS)
        return {name: data.array(name) for name in ("price", "jobs")}
    rng, t = np.random.default_rng(7), np.arange(ROUNDS)[:, None]
    season = np.sin(2 * np.pi * t / 12 + np.arange(2))
    if text is STOCK:
        return {"need": np.clip(rng.poisson(20 + 8 * season), 0, 80).astype(np.float64)}
    if text is LIMIT:
        return {"wish": 6 + 3 * season + rng.normal(0, 0.5, (ROUNDS, 2)), "room": 9 + rng.normal(0, 1.0, ROUNDS)}
    return {
        "load": np.clip(4 + 2 * season + rng.normal(0, 0.8, (ROUNDS, 2)), 0, 10),
        "price": np.clip(1 + rng.normal(0, 0.3, (ROUNDS, 2)), 0, 5),
    }


CASES = [(STOCK, "tradeoff"), (LIMIT, "tradeoff"), (LINK, "tradeoff"), (JOBS, "tradeoff"), (LIMIT, "penalty")]
KEPT = [(LIMIT, "tradeoff"), (LIMIT, "penalty")]


@pytest.mark.parametrize(
    ("text", "dial"), corners(CASES, KEPT), ids=["stock", "limit", "link", "jobs", "limit, penalty"]
)
def test_dearer_violations_are_fewer_and_lose_more(text: str, dial: str) -> None:
    data, points = rounds(text), []
    for factor in FACTORS:
        penalty = f", penalty {UNIT[text] * factor:g}" if dial == "penalty" else ""
        options = {"tradeoff": factor / 100} if dial == "tradeoff" else {}
        plan = oco.compile(oco.parse(text.format(penalty=penalty)), data=data, backend="numpy", **options)
        run = plan.run(data)
        points.append((float(run.loss.sum()), float(np.maximum(run.constraints, 0).sum())))
    loss, violation = np.array(points).T
    assert (np.diff(violation) <= SLACK * np.ptp(violation)).all(), points
    assert (np.diff(loss) >= -SLACK * np.ptp(loss)).all(), points
    assert violation[0] > 2 * violation[-1] and loss[0] < loss[-1]
