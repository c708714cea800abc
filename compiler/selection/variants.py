"""Other settings that a search may try beside those of a choice: prices, seasons, memories, and constants of other tradeoffs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from oco.compiler.selection.choice import Choice, judge
from oco.compiler.selection.resolve_again import given_formulas
from oco.compiler.selection.verdicts import Applicability, Verdict
from oco.compiler.theory.objective import stated_prices
from oco.compiler.theory.theorems import Situation
from oco.dsl.diagnostics import OcoError
from oco.dsl.settings import UNIT_WORDS, UNITS

TRADEOFFS = (0.01, 0.1, 10.0, 100.0)
"""Factors of the tradeoff whose best constants a search begins at."""
PENALTIES = (0.1, 0.3, 3.0, 10.0)
"""Factors of the price of violations that an algorithm is given."""
WINDOWS = (24, 168, 672)
"""Rounds that a memory may keep."""
SEASONS = (7, 24, 168)
"""Rounds of a season that data may have without showing it."""
LEAST_SEASONS = 4
"""Seasons that the rounds must hold."""
PAPER, OPTIMAL = "paper", "optimal"


def starts_of(choice: Choice, weight: float) -> dict[str, Mapping[str, float]]:
    """Free constants to begin a search at, by name, those of the choice last: the paper's, and those of the least guarantee at
    this tradeoff and at others.
    """
    v = choice.verdicts[0]
    free = () if v.theorem is None else v.theorem.free
    starts: dict[str, Mapping[str, float]] = {PAPER: {f.name: 1.0 for f in free if f.kind != "value"}}
    best = v if v.best is not None or not choice.policy.plain else _judged(choice.situation, choice, v, {}, weight)
    if best is None or best.best is None or not best.best.constants:
        return starts
    for factor in TRADEOFFS if any(not c.penalties for c in choice.situation.canonical.constraints) else ():
        other = _judged(replace(choice.situation, weight=weight * factor), choice, v, {}, weight * factor)
        if (
            other is not None
            and other.best is not None
            and other.best.numbers not in (*starts.values(), best.best.numbers)
        ):
            starts[f"tradeoff {weight * factor:g}"] = other.best.numbers
    starts[OPTIMAL] = best.best.numbers
    return {**starts, PAPER: starts.pop(PAPER)} if choice.policy.plain else starts


def variants(choice: Choice) -> dict[str, Verdict]:
    """Verdicts on the chosen algorithm with another price of violations or another memory, by the setting in words."""
    v, s = choice.verdicts[0], choice.situation
    results = {}
    for name, value in _others(s, choice, v):
        other = _judged(s, choice, v, {name: value}, choice.policy.weight)
        if other is not None:
            results[f"{name} = {value:g}"] = other
    return results


def _others(s: Situation, choice: Choice, v: Verdict) -> Iterator[tuple[str, float]]:
    """Names and values of settings that were not given."""
    accepted = set() if v.theorem is None else set(v.theorem.accepts)
    open_ = (accepted | set(v.settings)) - {n for n, x in v.settings.items() if x.given}
    if "penalty" in open_ and len(np.unique(stated_prices(s.canonical.inequalities))) == 1:
        own = _judged(s, choice, v, {UNITS: UNIT_WORDS[0]}, choice.policy.weight)
        price = None if own is None else own.settings["penalty"].value
        if price:
            yield from (("penalty", float(f"{price * factor:.6g}")) for factor in PENALTIES)
    if "season" in open_:
        yield from (("season", n) for n in SEASONS if n != s.season and LEAST_SEASONS * n <= (s.horizon or np.inf))
    if "window" in open_:
        seasons = [s.season] if s.season > 1 else []
        yield from (("window", w) for w in dict.fromkeys((*seasons, *WINDOWS)) if w < (s.horizon or np.inf))


def _judged(
    s: Situation, choice: Choice, v: Verdict, given: Mapping[str, str | float], weight: float
) -> Verdict | None:
    """Verdict on the algorithm with more settings given; None where they do not make sense there."""
    policy = replace(choice.policy, weight=weight, plain=False)
    try:
        result = judge(v.algorithm, s, {**given_formulas(v), **given}, None, policy, asked=True)
    except OcoError:
        return None
    return None if result.applicability is Applicability.REFUSED else result
