"""Other settings that a search may try beside those of a choice: prices, seasons, memories, and constants of other tradeoffs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from oco.compiler.selection.choice import Choice
from oco.compiler.selection.judging import judge
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.request import AlgorithmRequest, Policy
from oco.compiler.selection.resolve_again import given_formulas
from oco.compiler.selection.verdicts import Applicability, Verdict
from oco.compiler.theory.objective import stated_prices
from oco.compiler.theory.resolve import GivenSettings
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


def starts_of(choice: Choice) -> dict[str, Mapping[str, float]]:
    """Free constants to begin a search at, by name, those of the choice last: the paper's, and those of the least guarantee at
    this tradeoff and at others.
    """
    v, s = choice.verdicts[0], choice.situation
    free = () if v.theorem is None else v.theorem.free
    papers: dict[str, Mapping[str, float]] = {Mode.PAPER.value: {f.name: 1.0 for f in free if f.kind != "value"}}
    has_papers = choice.policy.mode is Mode.UNIT_FREE
    least = _best_numbers(_judged(choice, s) if v.best is None and has_papers else v)
    if not least:
        return papers
    others: dict[str, Mapping[str, float]] = {}
    for factor in TRADEOFFS if any(not c.penalties for c in s.canonical.constraints) else ():
        numbers = _best_numbers(_judged(choice, replace(s, weight=s.weight * factor)))
        if numbers is not None and numbers not in (*papers.values(), *others.values(), least):
            others[f"tradeoff {s.weight * factor:g}"] = numbers
    searched = {**others, Mode.LEAST.value: least}
    return searched | papers if has_papers else papers | searched


def _best_numbers(v: Verdict | None) -> Mapping[str, float] | None:
    """Free constants of the least guarantee by name; None where they were not searched."""
    return None if v is None or v.best is None else v.best.numbers


def variants(choice: Choice) -> dict[str, Verdict]:
    """Verdicts on the chosen algorithm with another price of violations or another memory, by the setting in words."""
    others = {f"{name} = {x:g}": _judged(choice, choice.situation, {name: x}) for name, x in _other_settings(choice)}
    return {words: v for words, v in others.items() if v is not None}


def _other_settings(choice: Choice) -> Iterator[tuple[str, float]]:
    """Names and values of settings that were not given."""
    v, s = choice.verdicts[0], choice.situation
    accepted = set() if v.theorem is None else set(v.theorem.accepts)
    left = (accepted | set(v.settings)) - {n for n, x in v.settings.items() if x.given}
    if "penalty" in left and len(np.unique(stated_prices(s.canonical.inequalities))) == 1:
        own = _judged(choice, s, {UNITS: UNIT_WORDS[0]})
        price = None if own is None else own.settings["penalty"].value
        if price:
            yield from (("penalty", float(f"{price * factor:.6g}")) for factor in PENALTIES)
    if "season" in left:
        yield from (("season", n) for n in SEASONS if n != s.season and LEAST_SEASONS * n <= (s.horizon or np.inf))
    if "window" in left:
        seasons = [s.season] if s.season > 1 else []
        yield from (("window", w) for w in dict.fromkeys((*seasons, *WINDOWS)) if w < (s.horizon or np.inf))


def _judged(choice: Choice, s: Situation, given: GivenSettings = MappingProxyType({})) -> Verdict | None:
    """Verdict on the chosen algorithm in a situation, with more settings given and its constants searched where it is played without
    units; None where they do not make sense there.
    """
    v = choice.verdicts[0]
    policy = Policy(Mode.LEAST if choice.policy.unit_free else Mode.PAPER, s.weight)
    try:
        result = judge(v.algorithm, s, AlgorithmRequest(v.name, {**given_formulas(v), **given}, None, policy))
    except OcoError:
        return None
    return None if result.applicability is Applicability.REFUSED else result
