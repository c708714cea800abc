"""Problems on which the default learner is compared with the rules of practice: recorded data where there are any, else seeded seasons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import oco
from benchmarks.practice import fields, recorded
from benchmarks.practice.recorded import MARKETS
from oco.compiler.problem.canonical import canonical
from oco.dsl.expressions import constant
from oco.dsl.model import Model
from oco.dsl.statements import Stream
from oco.evaluation.data import Data, load_data

Array = np.ndarray[Any, Any]
ROOT = Path(__file__).resolve().parent.parent.parent
JOBS, NYISO = ROOT / "examples" / "job_scheduling.oco", ROOT / "examples" / "data" / "nyiso_2017-05.csv"
WIDER = 10.0
"""Factor of the bounds that are too wide."""


@dataclass(frozen=True)
class Problem:
    """Model with its rounds, and prices of a unit of violation in units of the loss.

    wealth  True where the loss is the negative logarithm of wealth, so that differences of totals are ratios of wealth
    """

    name: str
    model: Model
    data: Data
    prices: Sequence[float]
    words: str
    wealth: bool = False


Drawn = tuple[str, Callable[[int], dict[str, Array]], tuple[float, float, float], str]
DRAWN: dict[str, Drawn] = {
    "newsvendor": (
        fields.NEWSVENDOR,
        fields.newsvendor,
        (1.0, 10.0, 100.0),
        "stock in a shared warehouse, weekly seasons, drawn",
    ),
    "charging": (
        fields.CHARGING,
        fields.charging,
        (0.3, 3.0, 30.0),
        "vehicles on a shared connection, daily seasons, drawn",
    ),
    "bandwidth": (
        fields.BANDWIDTH,
        fields.bandwidth,
        (0.3, 3.0, 30.0),
        "flows on a link, two constraints, seasons, drawn",
    ),
    "pacing": (
        fields.PACING,
        fields.pacing,
        (1.0, 5.0, 25.0),
        "advertising within a budget on average, daily seasons, drawn",
    ),
    "autoscaling": (
        fields.AUTOSCALING,
        fields.autoscaling,
        (3.0, 30.0, 300.0),
        "machines for the load of three regions, daily seasons and sudden crowds, drawn",
    ),
    "bloodbank": (
        fields.BLOODBANK,
        fields.bloodbank,
        (3.0, 30.0, 300.0),
        "orders of a blood bank, weekly seasons, one day in twenty missing from the records, drawn",
    ),
    "irrigation": (
        fields.IRRIGATION,
        fields.irrigation,
        (3.0, 30.0, 300.0),
        "irrigation of three fields, seasons, rain, a drought, drawn",
    ),
    "calls": (
        fields.CALLS,
        fields.calls,
        (2.0, 10.0, 50.0),
        "agents of a call centre, hours of days and quieter weekends, drawn",
    ),
}
"""Model, rounds of a seed, prices and words of the problems whose rounds are drawn."""
SHIPPED = ("nyiso", "tracking", *DRAWN, "dispatch", "regression")
LIMITED = tuple(f"{m}-sector" for m in MARKETS)
PROBLEMS = (*SHIPPED, "nyiso-year", "ratings", *LIMITED, *MARKETS)


def priced(model: Model, price: float) -> Model:
    """Model that states this penalty of each of its constraints."""
    penalty = constant(np.asarray(price))
    return replace(model, constraints=tuple(replace(c, penalty=penalty) for c in model.constraints))


def widened(problem: Problem) -> Problem:
    """Problem whose declared bounds of real data are `WIDER` times as wide: [low / 10, 10 high] of data that are not
    negative, else ten times the width about the middle. Streams with a stated distribution keep their bounds.
    """
    own = {s.name: s for s in problem.data.problem.streams}

    def wide(s: Stream) -> Stream:
        if s.bounds is None or s.integer or s.distribution is not None:
            return s
        low, high = own[s.name].lower, own[s.name].upper
        middle, half = (low + high) / 2, WIDER * (high - low) / 2
        least = bool(np.all(low >= 0))
        ends = (low / WIDER, WIDER * high) if least else (middle - half, middle + half)
        return replace(s, bounds=(constant(np.asarray(ends[0])), constant(np.asarray(ends[1]))))

    model = replace(problem.model, streams=tuple(wide(s) for s in problem.model.streams))
    rounds = problem.data.read(0, problem.data.rounds)
    return replace(problem, model=model, data=load_data(canonical(model), dict(rounds)))


def problems(folder: Path | None, seed: int = 0) -> dict[str, Callable[[], Problem]]:
    """Problems by name, made when they are called; those of recorded data that are not shipped need a folder of them."""
    every: dict[str, Callable[[], Problem]] = {"nyiso": partial(_nyiso, seed), "tracking": partial(_tracking, seed)}
    for name, (text, rounds, prices, words) in DRAWN.items():
        every[name] = partial(_drawn, name, text, rounds, seed, prices, words)
    every["dispatch"] = partial(_dispatch, seed)
    every["regression"] = partial(_regression, seed)
    if folder is not None:
        every |= {"nyiso-year": partial(_year, folder, seed), "ratings": partial(_ratings, folder)}
        for market in MARKETS:
            every[f"{market}-sector"] = partial(_market, folder, market, True)
            every[market] = partial(_market, folder, market, False)
    return {name: every[name] for name in PROBLEMS if name in every}


def _nyiso(seed: int) -> Problem:
    model = oco.load(JOBS).with_horizon(744)
    words = (
        "`examples/job_scheduling.oco` on NYISO's hourly prices of May 2017, jobs drawn; a price is $ for a late job"
    )
    return Problem("nyiso", model, load_data(canonical(model), NYISO, seed=seed), (3e4, 1e5, 3e5), words)


def _year(folder: Path, seed: int) -> Problem:
    text = JOBS.read_text(encoding="utf-8").replace("[-1000, 3000]", "[-3100, 1200]")
    prices = recorded.year(folder)
    model = oco.parse(text).with_horizon(len(prices))
    words = "`examples/job_scheduling.oco` on NYISO's prices of 2017, slots of four hours, jobs drawn; a price is $ for a late job"
    data = load_data(canonical(model), {"price": prices}, seed=seed, on_missing="hold")
    return Problem("nyiso-year", model, data, (3e4, 1e5, 3e5), words)


def _tracking(seed: int) -> Problem:
    model = oco.load(ROOT / "examples" / "tracking.oco").with_horizon(1000)
    data = load_data(canonical(model), None, seed=seed, rounds=1000)
    return Problem("tracking", model, data, (1.0, 10.0, 100.0), "`examples/tracking.oco`, drawn")


def _dispatch(seed: int) -> Problem:
    """Prices of NYISO's ten zones in May 2017; loads and their forecasts are drawn."""
    prices = load_data(canonical(oco.load(ROOT / "examples" / "dispatch.oco")), NYISO, seed=seed).array("price")
    words = "power for a load that is forecast, NYISO's hourly prices of May 2017, loads drawn"
    return _given("dispatch", fields.DISPATCH, {**fields.loads(seed), "price": prices}, (100.0, 300.0, 1000.0), words)


def _regression(seed: int) -> Problem:
    words = "load by hour, temperature and weekend, weights that drift and jump once, no constraints, drawn"
    return _given("regression", fields.REGRESSION, fields.regression(seed), (1.0,), words)


def _ratings(folder: Path) -> Problem:
    streams = recorded.ratings(folder)
    text = recorded.RATINGS.format(users=recorded.USERS, films=recorded.FILMS, rounds=len(streams["user"]))
    words = (
        f"ratings of MovieLens as they came, of the {recorded.USERS} users and {recorded.FILMS} films with the most of them; "
        "side information drawn"
    )
    return _given("ratings", text, streams, (0.003, 0.03, 0.3), words)


def _market(folder: Path, market: str, limited: bool) -> Problem:
    values = recorded.relatives(folder, market)
    words = f"portfolio on {len(values):,} daily price relatives of {market}, "
    words += "at most 30% in the first third of the assets after each day's moves" if limited else "no limit"
    text, prices = recorded.market_text(values, limited), (0.01, 0.1, 1.0) if limited else (1.0,)
    return _given(f"{market}-sector" if limited else market, text, {"relative": values}, prices, words, wealth=True)


def _drawn(
    name: str,
    text: str,
    rounds: Callable[[int], dict[str, Array]],
    seed: int,
    prices: Sequence[float],
    words: str,
) -> Problem:
    return _given(name, text, rounds(seed), prices, words)


def _given(
    name: str, text: str, streams: dict[str, Array], prices: Sequence[float], words: str, wealth: bool = False
) -> Problem:
    """Problem on these rounds; values that are missing are those of the round before."""
    model = oco.parse(text)
    return Problem(name, model, load_data(canonical(model), streams, on_missing="hold"), prices, words, wealth)
