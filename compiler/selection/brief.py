"""The chosen algorithm in three sentences: what it does, what is promised of it on every sequence, and what to expect of it."""

from __future__ import annotations

import textwrap

from oco.compiler.selection.choice import Choice
from oco.compiler.selection.verdicts import Verdict
from oco.compiler.theory.guarantees import Bound, vacuous_words

WIDTH = 104
LABELS = ("does", "worst case", "typically")


def brief_lines(choice: Choice) -> list[str]:
    """Three sentences on the chosen algorithm, a line each where that is within `WIDTH` columns; none where none was chosen."""
    v = choice.winner
    if v is None:
        return []
    texts = (_does(v, choice), _worst_case(v), _typically(v, choice))
    return [
        f"{label + ':' if k == 0 else '':<12}{line}"
        for label, text in zip(LABELS, texts)
        for k, line in enumerate(textwrap.wrap(text, WIDTH))
    ]


def _does(v: Verdict, choice: Choice) -> str:
    before = {c.label for c in choice.situation.canonical.known}
    fixed = dict.fromkeys(f"`{c.origin}`" for c in choice.played.canonical.known if c.label not in before)
    keeps = f"; each decision keeps to {', '.join(fixed)}, from the first on" if fixed else ""
    return f"`{v.name}`, {v.algorithm.title} ({v.algorithm.cite}){keeps}"


def _worst_case(v: Verdict) -> str:
    if v.guarantee is None:
        return "nothing is promised"
    parts = [_bound_words(bound, v.guarantee.horizon) for bound in v.guarantee.bounds]
    price = f", by {v.guarantee.theorem} with the price of its weights" if v.algorithm.gap is not None else ""
    count = len(v.guarantee.conditions)
    conditions = (
        f", if {count} condition{'s' if count > 1 else ''} below hold{'' if count > 1 else 's'}" if count else ""
    )
    return f"{', '.join(parts)}{conditions}{price}"


def _bound_words(bound: Bound, T: int | None) -> str:
    number = None if T is None else bound.number(T)
    if T is None or number is None:
        return f"{bound.measure} O({bound.rate})"
    if bound.vacuous(T):
        return f"{bound.measure} {vacuous_words(f'{bound.trivial_total(T):.3g}')}"
    share = bound.share(T)
    beside = "" if share is None else f" ({share:.2g} of the most)"
    return f"{bound.measure} <= {number:.4g}{beside}"


def _typically(v: Verdict, choice: Choice) -> str:
    if v.algorithm.gap_on(choice.situation.canonical) is not None:
        return "within a gap of its best rule, in loss and violations at their prices; every run certifies the gap"
    pilots = choice.pilots
    if pilots is not None and pilots.results and pilots.results[0].algorithm == v.name:
        return f"in pilot runs of {pilots.rounds} rounds it cost {pilots.results[0]} a round, the least of {len(pilots.order)}"
    return "`oco run` prints loss, violation and certified regret beside the rules that a practitioner would write"
