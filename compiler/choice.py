"""The choice of an algorithm: every one is judged by its theorems, and the refusals are part of the answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from oco.compiler.algorithms import ALGORITHMS, Algorithm
from oco.compiler.settings import Setting, exact, resolve_settings, schedule_symbols, word_setting
from oco.compiler.theorems import (
    Bound,
    Guarantee,
    Objection,
    Situation,
    Theorem,
    UnknownFact,
    Violation,
    rate_symbols,
)
from oco.dsl.diagnostics import Diagnostic, OcoError, Severity, fail
from oco.dsl.model import Feedback, Measure, Timing
from oco.dsl.settings import SETTINGS, WORD_SETTINGS
from oco.dsl.source import Span
from oco.dsl.suggest import did_you_mean


class Standing(StrEnum):
    CHOSEN = "chosen"
    APPLICABLE = "applicable"
    REFUSED = "refused"


class Strength(StrEnum):
    """How much a guarantee says at the horizon, from most to least."""

    NUMBERS = "numbers"
    RATES = "rates"
    VACUOUS = "vacuous"
    NONE = "none"


@dataclass(frozen=True, eq=False)
class Verdict:
    """What became of one algorithm. `mend` is the smallest change of the model that would make a refused one apply."""

    algorithm: Algorithm
    standing: Standing
    theorem: Theorem | None
    objections: tuple[Objection, ...] = ()
    settings: Mapping[str, Setting] = field(default_factory=dict)
    guarantee: Guarantee | None = None
    score: float = math.inf
    strength: Strength = Strength.NONE
    reason: str = ""

    @property
    def name(self) -> str:
        return self.algorithm.name

    @property
    def reasons(self) -> tuple[str, ...]:
        return tuple(o.reason for o in self.objections) if self.objections else ((self.reason,) if self.reason else ())

    @property
    def mend(self) -> str:
        """The changes for all objections together; "" where one of them has none."""
        changes = list(dict.fromkeys(o.mend for o in self.objections))
        return "; ".join(changes) if changes and all(changes) else ""


@dataclass(frozen=True, eq=False)
class Choice:
    """All verdicts, the chosen one first. `forced`: the user named the algorithm."""

    situation: Situation
    verdicts: tuple[Verdict, ...]
    forced: bool = False
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def winner(self) -> Verdict | None:
        first = self.verdicts[0] if self.verdicts else None
        return first if first is not None and first.standing is Standing.CHOSEN else None


ANY_HORIZON = 10_000
"""Rounds at which guarantees are compared where the model leaves the horizon unknown."""

GivenSettings = Mapping[str, str | float]


def choose(
    s: Situation, name: str | None = None, given: GivenSettings | None = None, span: Span | None = None
) -> Choice:
    """Judge every algorithm and rank those whose theorems hold; with `name`, take that one whatever its theorems say."""
    settings = dict(given or {})
    if name is not None:
        return _forced(s, named(name, span), settings, span)
    check_setting_names(settings, None, span)
    judged = [judge(a, s, {k: v for k, v in settings.items() if k in SETTINGS[a.name]}, span) for a in ALGORITHMS]
    usable = sorted((v for v in judged if v.standing is Standing.APPLICABLE), key=_rank)
    refused = [v for v in judged if v.standing is Standing.REFUSED]
    if not usable:
        return Choice(s, tuple(refused))
    best = replace(usable[0], standing=Standing.CHOSEN, reason=_why_first(usable))
    losers = [replace(v, reason=_why_lost(v, best)) for v in usable[1:]]
    return Choice(s, (best, *losers, *refused), warnings=tuple(_broken(best, s, span)))


def named(name: str, span: Span | None = None) -> Algorithm:
    """The algorithm of that name."""
    for a in ALGORITHMS:
        if a.name == name:
            return a
    if name in SETTINGS:
        raise fail(
            "OCO703",
            f"the algorithm `{name}` is not there yet",
            span,
            f"there are {', '.join(a.name for a in ALGORITHMS)}",
        )
    raise fail(
        "OCO701", f"there is no algorithm `{name}`", span, did_you_mean(name, list(SETTINGS), "see `oco algorithms`")
    )


def check_setting_names(given: GivenSettings, algorithm: Algorithm | None, span: Span | None) -> None:
    """Raises for a setting that the algorithm (None: every algorithm) does not have."""
    known = (
        list(SETTINGS[algorithm.name])
        if algorithm
        else list(dict.fromkeys(n for names in SETTINGS.values() for n in names))
    )
    for name in given:
        if name not in known:
            owner = f"`{algorithm.name}` has" if algorithm else "no algorithm has"
            said = f"{owner} no setting `{name}`" if algorithm else f"{owner} a setting `{name}`"
            raise fail("OCO702", said, span, did_you_mean(name, known, f"the settings are {', '.join(known)}"))


def judge(a: Algorithm, s: Situation, given: GivenSettings, span: Span | None = None) -> Verdict:
    """The verdict on one algorithm: the first of its theorems that holds speaks for it, else what stands in the way of the nearest one."""
    required = [o for h in a.requirements if (o := h.test(s)) is not None]
    measured = [t for t in a.theorems if s.canonical.measure in t.measures]
    if not measured:
        objection = Objection(
            f"it bounds {_listed(a.theorems)} regret, and the model measures {s.canonical.measure} regret",
            f"write `measure {_listed(a.theorems)} regret`",
        )
        required = [objection, *required]
    objections = [(t, [*t.objections(s), *required]) for t in measured or a.theorems]
    theorem, left = min(objections, key=lambda pair: len(pair[1]))
    if left:
        return Verdict(a, Standing.REFUSED, theorem, tuple(left))
    try:
        return _promised(a, theorem, s, given, span)
    except OcoError as error:
        if given:
            raise
        return Verdict(a, Standing.REFUSED, theorem, (Objection(f"its settings have no value here: {error.message}"),))


def _listed(theorems: Sequence[Theorem]) -> str:
    return " or ".join(sorted({str(m) for t in theorems for m in t.measures}))


def _promised(a: Algorithm, theorem: Theorem, s: Situation, given: GivenSettings, span: Span | None) -> Verdict:
    settings = settle(theorem, s, given, span)
    guarantee = theorem.guarantee(s, settings)
    strength, score = weigh(s, guarantee)
    return Verdict(a, Standing.APPLICABLE, theorem, (), settings, guarantee, score, strength)


def settle(theorem: Theorem, s: Situation, given: GivenSettings, span: Span | None) -> dict[str, Setting]:
    """The theorem's settings, with the given ones in their place."""
    defaults = theorem.settings(s)
    words = {
        n: word_setting(n, WORD_SETTINGS[n], d, given.get(n), span) for n, d in defaults.items() if n in WORD_SETTINGS
    }
    formulas = {k: v for k, v in given.items() if k not in WORD_SETTINGS}
    defaults = {**defaults, **theorem.settings_of_words(s, {n: str(w.formula) for n, w in words.items()})}
    numbers = {n: d for n, d in defaults.items() if n not in WORD_SETTINGS}
    return resolve_settings(numbers, formulas, _Symbols(s), s.horizon, span) | words


class _Symbols(Mapping[str, Any]):
    """What a formula of settings may use: t, T, m, d, params that are numbers, and facts that are numbers, worked out when asked for."""

    def __init__(self, s: Situation) -> None:
        numbers = {p.name: p.data.item() for p in s.canonical.model.params if p.data is not None and p.data.ndim == 0}
        self.facts = s
        self.known = {name: exact(v) for name, v in ({"d": s.size} | numbers).items()} | schedule_symbols()

    def __getitem__(self, key: str) -> Any:
        if key in self.known:
            return self.known[key]
        value = self.facts.number(key)
        if value is None:
            raise KeyError(key)
        return exact(value)

    def __iter__(self) -> Iterator[str]:
        return iter([*self.known, *self.facts.facts])

    def __len__(self) -> int:
        return sum(1 for _ in self)


# Ranking.


def weigh(s: Situation, guarantee: Guarantee) -> tuple[Strength, float]:
    """How much a guarantee says, and its normalized sum: regret over the loss's range plus violations over the constraints' scales.

    Where a number is missing or vacuous the trivial bound stands in the sum: it holds of everything.
    """
    rounds = guarantee.horizon or ANY_HORIZON
    numbers = [b.number(rounds) for b in guarantee.bounds]
    vacuous = [b.vacuous(rounds) for b in guarantee.bounds]
    strength = Strength.VACUOUS if any(vacuous) else Strength.RATES if None in numbers else Strength.NUMBERS
    return strength, sum(_normalized(s, b, n, rounds) for b, n in zip(guarantee.bounds, numbers))


def _normalized(s: Situation, bound: Bound, number: float | None, rounds: int) -> float:
    if bound.trivial is None or bound.trivial <= 0:
        return math.inf if number is None else number
    if bound.measure.endswith("regret"):
        return min(rounds, math.inf if number is None else number / bound.trivial)
    scales = s.constraint_scales
    positive = scales[scales > 0] if scales is not None else None
    if positive is None or not len(positive):
        return 0.0
    worst = rounds * len(positive)
    return float(worst if number is None else min(worst, number / positive.min()))


def _rank(v: Verdict) -> tuple[Any, ...]:
    """Numbers that say something, then rates, then vacuous ones (by rate); on a tie what asks less of a round."""
    order = list(Strength)
    against = 0 if v.guarantee is None else len(v.guarantee.conditions)
    by_rate = _exponents(v) if v.strength is not Strength.NUMBERS else 0.0
    by_score = (v.score, v.algorithm.baseline, v.algorithm.cost_rank, v.name)
    return _only_compared(v), against, order.index(v.strength), by_rate, *by_score


def _only_compared(v: Verdict) -> bool:
    """Whether it is there to compare with: a baseline whose guarantee is not a number that says something."""
    return v.algorithm.baseline and v.strength is not Strength.NUMBERS


def _exponents(v: Verdict) -> float:
    """The sum of the exponents of T in the rates; V_x and V_g, where nothing is known of them, count as 1, and V_* as T."""
    import sympy

    assert v.guarantee is not None
    T = rate_symbols()["T"]
    total = 0.0
    for b in v.guarantee.bounds:
        worst = {"V_x": 1, "V_g": 1, "V_star": T, "d": 2}
        rate = v.guarantee.rates[b.measure].subs({rate_symbols()[name]: x for name, x in worst.items()})
        rest, exponent = rate.replace(sympy.log, lambda argument: sympy.Integer(1)).as_coeff_exponent(T)
        total += float(sympy.limit(sympy.log(rate) / sympy.log(T), T, sympy.oo) if rest.has(T) else exponent)
    return total


def _why_first(usable: Sequence[Verdict]) -> str:
    best = usable[0]
    if len(usable) == 1:
        return "it is the only one whose theorem holds here"
    if best.strength is Strength.NUMBERS:
        return "its guarantee is the best number at this horizon"
    if best.strength is Strength.RATES:
        return "its rates are the best, and no other guarantee is a number that says more"
    return "every guarantee has a vacuous number at this horizon; its rates are the best (pilot runs are not there yet)"


def _why_lost(v: Verdict, best: Verdict) -> str:
    known = best.guarantee.conditions if best.guarantee is not None else ()
    if provisos := [c for c in (v.guarantee.conditions if v.guarantee is not None else ()) if c not in known]:
        return provisos[0]
    said = {Strength.RATES: "is a rate without a number", Strength.VACUOUS: "is vacuous at this horizon"}
    if _only_compared(v) and not _only_compared(best):
        return f"it is a baseline, there to compare with: its guarantee {said[v.strength]}"
    if v.strength is not best.strength:
        return f"its guarantee {said.get(v.strength, 'says less')}"
    if v.score > best.score * (1 + 1e-12):
        return f"its guarantee is weaker: {v.score:.3g} against {best.score:.3g} (regret and violations in units of one round's range)"
    return "it costs more a round" if v.algorithm.cost_rank > best.algorithm.cost_rank else "its guarantee is no better"


# An algorithm that the user names.


def _forced(s: Situation, a: Algorithm, given: GivenSettings, span: Span | None) -> Choice:
    check_setting_names(given, a, span)
    verdict = judge(a, s, given, span)
    warnings: list[Diagnostic] = []
    if verdict.standing is Standing.REFUSED:
        verdict = _against_objections(a, verdict, s, given, span)
        said = "; ".join(verdict.reasons)
        warnings.append(
            Diagnostic(
                "OCO704", f"nothing is guaranteed of `{a.name}` here: {said}", span, verdict.mend, Severity.WARNING
            )
        )
    chosen = replace(verdict, standing=Standing.CHOSEN, reason="the model or the caller asks for it")
    others = [judge(b, s, {}, span) for b in ALGORITHMS if b is not a]
    return Choice(s, (chosen, *others), True, (*warnings, *_broken(chosen, s, span)))


def _against_objections(
    a: Algorithm, verdict: Verdict, s: Situation, given: GivenSettings, span: Span | None
) -> Verdict:
    """Settings without a guarantee, where the rule itself can run."""
    required = [o for h in a.requirements if (o := h.test(s)) is not None] + _inapplicable(a, s)
    if required:
        said = "; ".join(o.reason for o in required)
        raise fail("OCO705", f"`{a.name}` cannot run on this model: {said}", span, required[0].mend)
    theorem = verdict.theorem or a.theorems[-1]
    try:
        settings = settle(theorem, s, given, span)
    except OcoError as error:
        raise fail(
            "OCO706",
            f"`{a.name}` has no settings here: {error.message}",
            span,
            f"give them: using {a.name} with ... = ...",
        ) from None
    except UnknownFact as missing:
        said = f"they need {missing.key}, which is not known"
        raise fail("OCO706", f"`{a.name}` has no settings here: {said}", span, verdict.mend) from None
    using = [n for n, v in settings.items() if "T" in {x.name for x in v.formula.free_symbols}]
    if s.horizon is None and using:
        said = f"{', '.join(using)} use T, which the model leaves unknown"
        raise fail("OCO706", f"`{a.name}` has no settings here: {said}", span, "write `horizon T = ...`")
    return replace(verdict, settings=settings, theorem=theorem)


def _inapplicable(a: Algorithm, s: Situation) -> list[Objection]:
    """What no setting mends: the rule reads data that the feedback or the model does not have."""
    found: list[Objection] = []
    hard = any(t.violation is Violation.HARD for t in a.theorems)
    reads = a.reads or (Feedback.FULL if hard else Feedback.GRADIENT)
    if s.canonical.feedback is Feedback.BANDIT and reads is not Feedback.BANDIT:
        found.append(
            Objection("it needs gradients, and bandit feedback gives only values", "write `feedback gradient`")
        )
    if reads is Feedback.FULL and s.canonical.feedback is not Feedback.FULL:
        found.append(Objection("it needs each round's constraints as functions", "write `feedback full`"))
    if hard and s.equalities:
        found.append(Objection("it has no rule for equalities on average", "write `each round` after them"))
    if hard and not s.constraints:
        found.append(Objection("it has no rule without constraints", "write `using ogd`"))
    return found


def _broken(v: Verdict, s: Situation, span: Span | None) -> list[Diagnostic]:
    """A warning for each condition of the theorem that given settings break."""
    if v.theorem is None or v.guarantee is None or not any(x.given for x in v.settings.values()):
        return []
    return [
        Diagnostic("OCO707", f"the guarantee does not hold with these settings: {said}", span, "", Severity.WARNING)
        for said in v.theorem.checks(s, v.settings)
    ]


def constraint_words(s: Situation) -> str:
    """The kinds of constraints of the model, for a reader."""
    each = any(c.timing is Timing.EACH_ROUND for c in s.canonical.inequalities)
    mean = any(c.timing is Timing.ON_AVERAGE for c in s.canonical.inequalities) or bool(s.canonical.equalities)
    kinds = [w for w, there in (("each round", each), ("on average", mean)) if there]
    measure = "static" if s.canonical.measure is Measure.STATIC else "dynamic"
    return f"{measure} regret, constraints {' and '.join(kinds)}" if kinds else f"{measure} regret, no constraints"
