"""The choice of an algorithm: every one is judged by its theorems, and the refusals are part of the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from oco.compiler.algorithms import ALGORITHMS, Algorithm
from oco.compiler.algorithms.common import EXACT_STEP
from oco.compiler.lowering.restarts import first_epoch, restarted
from oco.compiler.proximal.solvable import step_rank
from oco.compiler.selection.finalists import earliest, goes_first, order, reasons_to_go_first, searched_finalists
from oco.compiler.selection.ignored_settings import ignored_settings, unread, using_all_settings
from oco.compiler.selection.modes import PAPER as PAPER
from oco.compiler.selection.modes import Policy as Policy
from oco.compiler.selection.modes import numbers_given, unit_word
from oco.compiler.selection.objections import inapplicable, required, theorem_objections
from oco.compiler.selection.pilots import Pilots
from oco.compiler.selection.relaxed import asking_less, relaxed
from oco.compiler.selection.resolve_again import in_its_units, with_provisos
from oco.compiler.selection.seen_by import seen_by
from oco.compiler.selection.verdicts import (
    Applicability,
    Informativeness,
    Verdict,
    rank,
    weigh,
    why_first,
    why_lost,
    withheld,
)
from oco.compiler.theory.best_constants import ALONE, Rival, optimum
from oco.compiler.theory.delays import in_turns
from oco.compiler.theory.moves import promise
from oco.compiler.theory.resolve import GivenSettings, theorem_settings
from oco.compiler.theory.seen_worst import on_data
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Objection, Restart, Situation, Theorem, UnknownFact, without_sense
from oco.compiler.theory.unit_free import in_user_units, without_units
from oco.dsl.diagnostics import Diagnostic, OcoError, Severity, fail
from oco.dsl.records import dataclass
from oco.dsl.settings import SETTINGS, UNITS
from oco.dsl.source import Span
from oco.dsl.suggest import did_you_mean, nearest


@dataclass(frozen=True, eq=False)
class Choice:
    """Verdicts, the chosen one first. `forced`: the user named the algorithm, and `compared` judges the others.

    unjudged    algorithms on which there is no verdict yet
    unsearched  names of those with the paper's constants, since they come behind others whatever these are: `searched` searches
    """

    situation: Situation
    verdicts: tuple[Verdict, ...]
    forced: bool = False
    warnings: tuple[Diagnostic, ...] = ()
    policy: Policy = PAPER
    unjudged: tuple[Algorithm, ...] = ()
    pilots: Pilots | None = None
    unsearched: frozenset[str] = frozenset()

    def compared(self) -> Choice:
        """Choice with a verdict on every algorithm, those that were not judged with the paper's constants."""
        policy, names = replace(self.policy, plain=True), {a.name for a in self.unjudged}
        others = tuple(judge(a, self.situation, {}, None, policy) for a in self.unjudged)
        unsearched = self.unsearched | names if self.policy.searches else self.unsearched
        return replace(self, verdicts=(*self.verdicts, *others), unjudged=(), unsearched=unsearched)

    def searched(self, v: Verdict) -> Verdict:
        """Verdict with its constants searched, in its place."""
        if v.name not in self.unsearched or v.applicability is not Applicability.APPLICABLE:
            return v
        full = judge(v.algorithm, self.situation, {}, None, self.policy)
        return full if full.applicability is Applicability.REFUSED else replace(full, reason=v.reason)

    def with_searched(self, most: int | None = None) -> Choice:
        """Choice whose first `most` verdicts that apply (None: all) are those of a search of all constants."""
        first, *rest = self.verdicts
        refused = [v for v in rest if v.applicability is Applicability.REFUSED]
        usable, left = [v for v in rest if v not in refused], set(self.unsearched)
        most = len(usable) if most is None else most - 1

        def key(v: Verdict) -> tuple[Any, ...]:
            return earliest(self.situation, v) if v.name in left else order(self.situation, v)

        while behind := [v for v in sorted(usable, key=key)[:most] if v.name in left]:
            left.remove(behind[0].name)
            usable = [self.searched(v) if v is behind[0] else v for v in usable]
        if len(left) < len(self.unsearched):
            usable.sort(key=partial(order, self.situation))
        return replace(self, verdicts=(first, *usable, *refused), unsearched=frozenset(left))

    @property
    def restarts(self) -> tuple[int, Restart] | None:
        """The rounds of the first epoch of a restarted method, and where its epochs begin; None for any other."""
        v = self.winner
        if v is None or v.theorem is None or v.theorem.restarts is None:
            return None
        s = in_its_units(self.situation, v)
        return v.theorem.first_epoch or first_epoch(v.theorem.restarts, s, v.settings), v.theorem.restart

    @property
    def usable(self) -> tuple[Verdict, ...]:
        """Verdicts whose theorems hold, by rank; none where the user named one."""
        return () if self.forced else tuple(v for v in self.verdicts if v.applicability is not Applicability.REFUSED)

    @property
    def vacuous(self) -> bool:
        """True if theorems hold and every guarantee is vacuous: none decides the choice."""
        says_nothing = (Informativeness.VACUOUS, Informativeness.NONE)
        return bool(self.usable) and self.usable[0].informativeness in says_nothing

    @property
    def candidates(self) -> tuple[Verdict, ...]:
        """Verdicts whose theorems hold, where every guarantee is vacuous: none of them decides the choice. Else none."""
        return self.usable if self.vacuous else ()

    def plain(self, v: Verdict) -> Verdict:
        """The verdict on a candidate with the paper's constants, on the problem without units."""
        return judge(v.algorithm, self.situation, {}, None, replace(self.policy, optimal=True, plain=True))

    def decided_by(self, pilots: Pilots) -> Choice:
        """Choice that pilot runs make among the candidates and their constants; those that were not run come after."""
        if not pilots.order:
            first = replace(self.verdicts[0], reason=f"{why_first(self.usable)} (no pilot runs: {pilots.skipped})")
            return replace(self, verdicts=(first, *self.verdicts[1:]), pilots=pilots)
        places = {name: k for k, name in enumerate(pilots.order)}
        ranked = sorted(self.usable, key=lambda v: places.get(v.name, len(places)))
        refused = [v for v in self.verdicts if v.applicability is Applicability.REFUSED]
        preferred = self.plain(ranked[0]) if pilots.plain and not self.policy.plain else ranked[0]
        best_known = preferred.guarantee is not None
        best = replace(preferred, applicability=Applicability.CHOSEN, reason=pilots.why(preferred.name, best_known))
        losers = [replace(v, applicability=Applicability.APPLICABLE, reason=pilots.why(v.name)) for v in ranked[1:]]
        policy = replace(self.policy, plain=pilots.plain)
        return replace(self, verdicts=(best, *losers, *refused), pilots=pilots, policy=policy)

    def alone(self, v: Verdict, s: Situation | None = None) -> Choice:
        """Choice of that verdict as if it were named, in this situation or another."""
        return replace(self, situation=s or self.situation, verdicts=(v,), forced=True, unjudged=())

    def chosen_by(self, pilots: Pilots | None, reason: str) -> Choice:
        """Choice of the same algorithm for the reason that it had at another horizon, and its pilot runs."""
        first = replace(self.verdicts[0], reason=reason)
        return replace(self, verdicts=(first, *self.verdicts[1:]), pilots=pilots, forced=False)

    @property
    def played(self) -> Situation:
        """Situation as the chosen algorithm sees it."""
        return self.situation if self.winner is None else seen_by(self.winner.algorithm, self.situation)

    @property
    def winner(self) -> Verdict | None:
        """Verdict on the chosen algorithm; None where none applies."""
        first = self.verdicts[0] if self.verdicts else None
        return first if first is not None and first.applicability is Applicability.CHOSEN else None


def choose(
    s: Situation,
    name: str | None = None,
    given: GivenSettings | None = None,
    span: Span | None = None,
    policy: Policy = PAPER,
) -> Choice:
    """Judge every algorithm and rank those whose theorems hold; with `name`, take that one whatever its theorems say."""
    settings = dict(given or {})
    if name is not None:
        return _forced(s, named(name, span), settings, span, policy)
    check_setting_names(settings, None, span)
    judged = _all_judged(s, settings, span, policy)
    usable = [v for v in judged if v.applicability is Applicability.APPLICABLE]
    usable.sort(key=partial(order, s))
    usable, ignoring = using_all_settings(usable, s, settings)
    refused = [*ignoring, *(v for v in judged if v.applicability is Applicability.REFUSED)]
    if not ignoring and (less := relaxed(s, refused, usable)) is not None:
        return choose(less, None, settings, span, policy)
    if not usable:
        return Choice(s, tuple(refused), policy=policy)
    rivals = [v for v in usable if goes_first(s, v.algorithm)] or usable
    first, behind = reasons_to_go_first(s)
    why = first if len(rivals) < len(usable) else why_first(usable)
    best = replace(usable[0], applicability=Applicability.CHOSEN, reason=why)
    losers = [replace(v, reason=why_lost(v, best) if v in rivals else behind) for v in usable[1:]]
    warnings = (*_broken(best, s, span), *ignored_settings(best, s, settings, span))
    unsearched = frozenset(v.name for v in losers if policy.searches and not settings and v.best is None)
    return Choice(s, (best, *losers, *refused), warnings=warnings, policy=policy, unsearched=unsearched)


def _all_judged(s: Situation, settings: GivenSettings, span: Span | None, policy: Policy) -> list[Verdict]:
    """Verdict on each algorithm, those that come behind others whatever their constants are with the paper's."""

    def on(a: Algorithm, rival: Rival = ALONE, policy: Policy = policy) -> Verdict:
        own = {k: v for k, v in settings.items() if k in (*SETTINGS[a.name], UNITS)}
        return judge(a, s, own, span, policy, rival=rival)

    if settings or not policy.searches:
        return [on(a) for a in ALGORITHMS]
    return searched_finalists(s, [on(a, policy=replace(policy, plain=True)) for a in ALGORITHMS], on)


def named(name: str, span: Span | None = None) -> Algorithm:
    """The algorithm of that name. Raises OCO701."""
    for a in ALGORITHMS:
        if a.name == name:
            return a
    raise fail(
        "OCO701", f"there is no algorithm `{name}`", span, did_you_mean(name, list(SETTINGS), "see `oco algorithms`")
    )


def check_setting_names(given: GivenSettings, algorithm: Algorithm | None, span: Span | None) -> None:
    """Check the names of settings. Raises OCO702 for one that the algorithm (None: every algorithm) does not have."""
    if algorithm is None:
        known = list(dict.fromkeys(n for names in SETTINGS.values() for n in names))
        message, every = "no algorithm has a setting `{}`", "`oco explain` prints those of a model's algorithm"
    else:
        known = list(SETTINGS[algorithm.name])
        message, every = f"`{algorithm.name}` has no setting `{{}}`", f"the settings are {', '.join(known)}"
    for name in (n for n in given if n not in (*known, UNITS)):
        near = nearest(name, known, least=0.5)
        raise fail("OCO702", message.format(name), span, f"did you mean `{near}`?" if near else every)


def judge(
    a: Algorithm,
    s: Situation,
    given: GivenSettings,
    span: Span | None = None,
    policy: Policy = PAPER,
    asked: bool = False,
    rival: Rival = ALONE,
) -> Verdict:
    """The verdict on one algorithm; where no theorem holds, what stands in the way of the nearest one.

    Of several theorems that one which reads most of the given settings, of these one whose conditions they satisfy, of these the one that
    promises most, the first of equals.

    asked  the user named it, so that it may take its time
    rival  another algorithm: constants with which it comes nowhere near are not searched

    Raises OcoError where given settings are wrong for every theorem.
    """
    s = seen_by(a, s)
    scaled, unmet = made_without_units(given, span, policy), required(a, s, asked)
    theorems, unmeasured = _theorems(a, s, given)
    objections = [(t, [*theorem_objections(t, s, scaled), *unmeasured, *unmet]) for t in theorems]
    theorem, left = min(objections, key=lambda pair: len(pair[1]))
    if left:
        return Verdict(a, Applicability.REFUSED, theorem, tuple(left))
    cost = step_rank(s) if EXACT_STEP in a.requirements else 0
    results: list[tuple[tuple[int, int], Verdict]] = []
    errors: list[OcoError] = []
    for theorem in (t for t, left in objections if not left):
        try:
            promised = replace(_promised(a, theorem, s, given, span, policy, rival), inner_cost=cost)
            results.append(((len(unread(theorem, s, given)), len(_broken(promised, s, span))), promised))
        except OcoError as error:  # a given formula may name what one theorem has and another lacks
            errors.append(error)
    if results:
        usable = [(left, v) for left, v in results if v.guarantee is not None]
        return min(usable, key=lambda pair: (pair[0], rank(pair[1])), default=results[0])[1]
    if given:
        raise errors[0]
    message = f"its settings have no value here: {errors[0].message}"
    return Verdict(a, Applicability.REFUSED, theorem, (Objection(message),))


def _theorems(a: Algorithm, s: Situation, given: GivenSettings) -> tuple[list[Theorem], list[Objection]]:
    """Theorems for the given settings, the horizon and the measure; where none is for the measure, the others with that objection."""
    theorems = [t for t in a.theorems if t.has_words_of(given)] or list(a.theorems)
    theorems = [restarted(t) for t in theorems] if s.horizon is None else theorems
    if measured := [t for t in theorems if s.canonical.measure in t.measures]:
        return measured, []
    reason = f"it bounds {_listed(a.theorems)} regret, and the model measures {s.canonical.measure} regret"
    return theorems, [Objection(reason, f"write `measure {_listed(a.theorems)} regret`")]


def _listed(theorems: Sequence[Theorem]) -> str:
    return " or ".join(sorted({str(m) for t in theorems for m in t.measures}))


def _promised(
    a: Algorithm,
    theorem: Theorem,
    s: Situation,
    given: GivenSettings,
    span: Span | None,
    policy: Policy,
    rival: Rival,
) -> Verdict:
    """Verdict on the theorem with its settings: the guarantee in the user's units."""
    scaled = made_without_units(given, span, policy)
    inner, scales = without_units(s, theorem.norm) if scaled else (s, None)
    settings = theorem_settings(theorem, inner, given, span)
    if given and (senseless := without_sense(theorem, inner, settings)):
        return Verdict(a, Applicability.REFUSED, theorem, tuple(senseless), settings)
    _check_horizon(a, theorem, s, settings, span)
    searched = scaled and not numbers_given(given) and not policy.plain
    best = optimum(theorem, inner, given, policy.weight, settings, rival) if searched else None
    settings = settings if best is None else dict(best.settings)
    if why := withheld(theorem, s, settings):
        return Verdict(a, Applicability.APPLICABLE, theorem, (), settings, reason=why, scales=scales, best=best)
    guarantee = on_data(best.guarantee if best is not None else promise(theorem, inner, settings), s, scales)
    informativeness, score = weigh(inner, guarantee, policy.weight)
    guarantee = with_provisos(theorem, s, guarantee)
    promised = in_turns(guarantee if scales is None else in_user_units(guarantee, s, scales), s.canonical)
    return Verdict(
        a, Applicability.APPLICABLE, theorem, (), settings, promised, score, informativeness, "", scales, best
    )


def made_without_units(given: GivenSettings, span: Span | None, policy: Policy) -> bool:
    """True if settings are made for the problem without units: where that is asked for, or nothing is given."""
    return unit_word(given, span) == "free" or (policy.optimal and UNITS not in given and not numbers_given(given))


# An algorithm that the user names.


def _forced(s: Situation, a: Algorithm, given: GivenSettings, span: Span | None, policy: Policy) -> Choice:
    check_setting_names(given, a, span)
    verdict = judge(a, s, given, span, policy, asked=True)
    warnings: list[Diagnostic] = []
    if verdict.applicability is Applicability.REFUSED:
        again = partial(judge, a, given=given, span=span, policy=policy, asked=True)
        s, verdict = asking_less(s, verdict, again, lambda less: not _unmet(a, seen_by(a, less)))
    if verdict.applicability is Applicability.REFUSED:
        verdict = _against_objections(a, verdict, s, given, span, policy)
        message = "; ".join(verdict.reasons)
        warnings.append(
            Diagnostic(
                "OCO704", f"nothing is guaranteed of `{a.name}` here: {message}", span, verdict.fix, Severity.WARNING
            )
        )
    chosen = replace(verdict, applicability=Applicability.CHOSEN, reason="the model or the caller asks for it")

    warnings += [*_broken(chosen, s, span), *ignored_settings(chosen, s, given, span)]
    return Choice(s, (chosen,), True, tuple(warnings), policy, tuple(b for b in ALGORITHMS if b is not a))


def _against_objections(
    a: Algorithm, verdict: Verdict, s: Situation, given: GivenSettings, span: Span | None, policy: Policy
) -> Verdict:
    """Settings without a guarantee, where the rule itself can run: the paper's, in the user's units where numbers are given."""
    s = seen_by(a, s)
    if unmet := _unmet(a, s):
        message = "; ".join(o.reason for o in unmet)
        raise fail("OCO705", f"`{a.name}` cannot run on this model: {message}", span, unmet[0].fix)
    theorem = verdict.theorem or a.theorems[-1]
    inner, scales = without_units(s, theorem.norm) if made_without_units(given, span, policy) else (s, None)
    try:
        settings = theorem_settings(theorem, inner, given, span)
    except OcoError as error:
        raise fail(
            "OCO706",
            f"`{a.name}` has no settings here: {error.message}",
            span,
            f"give them: using {a.name} with ... = ...",
        ) from None
    except UnknownFact as missing:
        message = f"they need {missing.key}, which is not known"
        raise fail("OCO706", f"`{a.name}` has no settings here: {message}", span, verdict.fix) from None
    if wrong := without_sense(theorem, inner, {n: v for n, v in settings.items() if v.given}):
        message = "; ".join(o.reason for o in wrong)  # a step would go uphill, or have no minimum
        raise fail("OCO715", f"`{a.name}` cannot run: {message}", span, "give positive numbers or formulas")
    _check_horizon(a, theorem, s, settings, span)
    return replace(verdict, settings=settings, theorem=theorem, scales=scales)


def _unmet(a: Algorithm, s: Situation) -> list[Objection]:
    """Objections for which a rule cannot run at all, though a user asks for it."""
    return required(a, s, True) + inapplicable(a, s)


def _check_horizon(
    a: Algorithm, theorem: Theorem, s: Situation, settings: Mapping[str, Setting], span: Span | None
) -> None:
    """Raises OCO706 for settings in T where the horizon is unknown, and no restart gives one."""
    using = [n for n, v in settings.items() if "T" in v.symbols]
    if s.horizon is None and using and theorem.restarts is None:
        message = f"{', '.join(using)} use T, which the model leaves unknown"
        raise fail("OCO706", f"`{a.name}` has no settings here: {message}", span, "write `horizon T = ...`")


def _broken(v: Verdict, s: Situation, span: Span | None) -> list[Diagnostic]:
    """A warning for each condition of the theorem that given settings break."""
    if v.theorem is None or v.guarantee is None or not any(x.given for x in v.settings.values()):
        return []
    return [
        Diagnostic("OCO707", f"the guarantee does not hold with these settings: {message}", span, "", Severity.WARNING)
        for message in v.theorem.checks(in_its_units(s, v), v.settings)
    ]
