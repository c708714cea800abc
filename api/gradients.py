"""Cost of a plan's run over data as a function of its free settings, which a backend differentiates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from oco.backends.gradients import Prices, RecordedInputs, SettingsLoss
from oco.backends.registry import differentiating, settings_loss
from oco.compiler.selection.plan import OPEN
from oco.dsl.diagnostics import fail
from oco.dsl.statements import Feedback
from oco.evaluation.cost import Trade
from oco.evaluation.data import Data, load_data


def loss_of_settings(
    plan: Any, data: Any, rounds: int | None, seed: int, price: float, backend: str | None
) -> SettingsLoss:
    """Total loss of a run, and `price` times its violations, as a function of the constants that the plan's theorem leaves free."""
    loaded = load_data(plan.canonical, data, seed=seed, rounds=rounds)
    return cost_of_settings(plan, loaded, seed, prices_of(Trade.at_price(plan.canonical, price)), backend)


def prices_of(trade: Trade, start: int = 0) -> Prices:
    """Prices of a trade in units of the loss, for the rounds from `start` (from 0) on."""
    count, prices = len(trade.hard), np.asarray(trade.prices, dtype=np.float64)
    return Prices(prices[:count], trade.hard, prices[count:], start)


def cost_of_settings(plan: Any, data: Data, seed: int, prices: Prices, backend: str | None = None) -> SettingsLoss:
    """Cost of a run over data as a function of the free settings, in numbers as `SearchSpace` has them. Raises OCO711 where none is free,
    OCO874 where the rounds cannot be played in one piece, OCO911 without the backend's package.
    """
    name = differentiating(backend)
    horizon = plan.horizon or data.rounds
    settings = plan.with_constants({}, horizon).settings
    numbers = {f.name: settings[f.name].value if f.kind == "value" else 1.0 for f in plan.free if f.kind != "count"}
    if not numbers:
        raise fail("OCO711", f"`{plan.algorithm}` leaves no constant free here", hint='use settings="optimal"')
    if data.rounds > horizon:
        raise fail("OCO874", f"there are {data.rounds} rounds and the plan is for {horizon}", hint="give fewer rounds")
    own = plan.opened({f.name: 1.0 for f in plan.free if f.kind == "count"}, horizon)
    start = {OPEN + n: x for n, x in numbers.items()}
    options: dict[str, Any] = {"seed": seed, "start": start}
    full = plan.canonical.feedback is Feedback.FULL
    learner = own.learner(backend=name, **options) if full else own.player(data.rounds, name, **options)
    if learner is None or learner.compiled.run is None or plan.canonical.delay:
        known = "where learners are told values alone, of rounds with contexts or with what earlier ones left"
        why = "under delayed feedback" if plan.canonical.delay else known
        raise fail("OCO874", f"{plan.model.name}: runs are not differentiated {why}", hint="leave the gradient out")
    program, streams = learner.compiled.program, data.read(0, data.rounds)
    first = {f.name: np.asarray(learner.contract.start.get(f.name, 0.0)) for f in program.decision}
    inputs = [np.asarray(streams[f.name]) for f in program.revealed]
    recorded = RecordedInputs(inputs, learner.random_arrays(data.rounds), first)
    return settings_loss(learner.compiled, recorded, {n: float(x) for n, x in numbers.items()}, OPEN, prices)


def slopes_of(
    plan: Any, seed: int, trade: Trade, data: Data
) -> Callable[[Mapping[str, float]], tuple[float, dict[str, float]]]:
    """Cost of a trade over the second half of the rounds, a round and in its units, with its slope in each constant."""
    start = data.rounds // 2
    loss = cost_of_settings(plan, data, seed, prices_of(trade, start))
    unit = trade.loss_unit * (data.rounds - start)

    def slopes(numbers: Mapping[str, float]) -> tuple[float, dict[str, float]]:
        known = {**loss.settings, **{name: x for name, x in numbers.items() if name in loss.settings}}
        value, each = loss.value_and_slopes(known)
        return value / unit, {name: slope / unit for name, slope in each.items()}

    return slopes
