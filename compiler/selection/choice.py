"""The choice of an algorithm: every one is judged by its theorems, and the refusals are part of the answer."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from oco.compiler.algorithms import ALGORITHMS, Algorithm
from oco.compiler.lowering.restarts import first_epoch
from oco.compiler.selection.finalists import earliest, goes_first, order, reasons_to_go_first, searched_finalists
from oco.compiler.selection.ignored_settings import ignored_settings, using_all_settings
from oco.compiler.selection.judging import broken_conditions, check_horizon, judge
from oco.compiler.selection.modes import Mode
from oco.compiler.selection.objections import inapplicable, required
from oco.compiler.selection.pilots import Pilots
from oco.compiler.selection.relaxed import asking_less, relaxed
from oco.compiler.selection.request import NOTHING_ASKED, PAPER, AlgorithmRequest, Policy
from oco.compiler.selection.resolve_again import in_its_units
from oco.compiler.selection.seen_by import seen_by
from oco.compiler.selection.verdicts import Applicability, Informativeness, Verdict, why_first, why_lost
from oco.compiler.theory.resolve import theorem_settings
from oco.compiler.theory.theorems import Objection, Restart, Situation, UnknownFact, without_sense
from oco.compiler.theory.unit_free import without_units
from oco.dsl.diagnostics import Diagnostic, OcoError, Severity, fail
from oco.dsl.records import dataclass
from oco.dsl.settings import SETTINGS
from oco.dsl.source import Span
from oco.dsl.suggest import did_you_mean


@dataclass(frozen=True, eq=False)
class Choice:
    """Verdicts on algorithms, the chosen one first.

    forced      True where the user named the algorithm
    policy      of the settings that were not given
    unjudged    algorithms on which there is no verdict yet: `compared` judges them
    pilots      runs that decided the choice, or why there were none; None where guarantees decide
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
        request, names = AlgorithmRequest(policy=self.policy.unsearched), {a.name for a in self.unjudged}
        others = tuple(judge(a, self.situation, request) for a in self.unjudged)
        unsearched = self.unsearched | names if self.policy.searches else self.unsearched
        return replace(self, verdicts=(*self.verdicts, *others), unjudged=(), unsearched=unsearched)

    def searched(self, v: Verdict) -> Verdict:
        """Verdict with its constants searched, in its place."""
        if v.name not in self.unsearched or v.applicability is not Applicability.APPLICABLE:
            return v
        full = judge(v.algorithm, self.situation, AlgorithmRequest(policy=self.policy))
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

    def with_papers_constants(self, v: Verdict) -> Verdict:
        """Verdict on the same algorithm with the paper's constants, on the problem without units."""
        policy = replace(self.policy, mode=Mode.UNIT_FREE)
        return judge(v.algorithm, self.situation, AlgorithmRequest(policy=policy))

    def decided_by(self, pilots: Pilots) -> Choice:
        """Choice that pilot runs make among the candidates and their constants; those that were not run come after."""
        if not pilots.order:
            return self._unpiloted(pilots)
        places = {name: k for k, name in enumerate(pilots.order)}
        ranked = sorted(self.usable, key=lambda v: places.get(v.name, len(places)))
        refused = [v for v in self.verdicts if v.applicability is Applicability.REFUSED]
        best, policy = ranked[0], self.policy
        if pilots.papers_constants and policy.mode is not Mode.UNIT_FREE:
            best, policy = self.with_papers_constants(best), replace(policy, mode=Mode.UNIT_FREE)
        why = pilots.why(best.name, promised=best.guarantee is not None)
        best = replace(best, applicability=Applicability.CHOSEN, reason=why)
        losers = [replace(v, applicability=Applicability.APPLICABLE, reason=pilots.why(v.name)) for v in ranked[1:]]
        return replace(self, verdicts=(best, *losers, *refused), pilots=pilots, policy=policy)

    def _unpiloted(self, pilots: Pilots) -> Choice:
        """Choice where no pilot runs were made: where time was short for them, of an algorithm that weighs rules as the rounds come."""
        best, *others = sorted(self.usable, key=lambda v: not (v.algorithm.mixes and pilots.left_out))
        why, skipped = why_first(self.usable), pilots.skipped
        if pilots.left_out and best.algorithm.mixes:
            names = ", ".join(v.name for v in others)
            why, pilots = "it weighs rules as the rounds come", replace(pilots, left_out=tuple(v.name for v in others))
            skipped = f"{pilots.seconds:g} s leave no time to compare it with {names}; `--budget` gives more time"
        first = replace(best, applicability=Applicability.CHOSEN, reason=f"{why} (no pilot runs: {skipped})")
        behind = [
            v
            if v.applicability is Applicability.APPLICABLE
            else replace(v, applicability=Applicability.APPLICABLE, reason=f"`{best.name}` {why.removeprefix('it ')}")
            for v in others
        ]
        refused = (v for v in self.verdicts if v.applicability is Applicability.REFUSED)
        return replace(self, verdicts=(first, *behind, *refused), pilots=pilots)

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


def choose(s: Situation, request: AlgorithmRequest = NOTHING_ASKED) -> Choice:
    """Judge every algorithm and rank those whose theorems hold; one that is asked for is taken whatever its theorems say.

    Raises OCO701 and OCO702 for names of algorithms and settings that there are not, OCO705, OCO706 and OCO715 where the algorithm that
    is asked for cannot run.
    """
    if request.algorithm is not None:
        return _asked_for(named(request.algorithm, request.span), s, request)
    request.check_names(None)
    judged = _all_judged(s, request)
    usable = [v for v in judged if v.applicability is Applicability.APPLICABLE]
    usable.sort(key=partial(order, s))
    usable, ignoring = using_all_settings(usable, s, request.given)
    refused = [*ignoring, *(v for v in judged if v.applicability is Applicability.REFUSED)]
    if not ignoring and (less := relaxed(s, refused, usable)) is not None:
        return choose(less, request)
    if not usable:
        return Choice(s, tuple(refused), policy=request.policy)
    best, *losers = _with_reasons(s, usable)
    warnings = (*broken_conditions(best, s, request), *ignored_settings(best, s, request))
    searches = request.policy.searches and not request.given
    unsearched = frozenset(v.name for v in losers if searches and v.best is None)
    return Choice(s, (best, *losers, *refused), False, warnings, request.policy, unsearched=unsearched)


def _all_judged(s: Situation, request: AlgorithmRequest) -> list[Verdict]:
    """Verdict on each algorithm, those that come behind others whatever their constants are with the paper's."""
    if request.given or not request.policy.searches:
        return [judge(a, s, request.of(a)) for a in ALGORITHMS]
    unsearched = replace(request, policy=request.policy.unsearched)
    papers = [judge(a, s, unsearched) for a in ALGORITHMS]
    return searched_finalists(s, papers, lambda a, rival: judge(a, s, request, rival))


def _with_reasons(s: Situation, usable: list[Verdict]) -> list[Verdict]:
    """Verdicts that apply, by rank, each with the reason for its place; the first is chosen."""
    rivals = [v for v in usable if goes_first(s, v.algorithm)] or usable
    first, behind = reasons_to_go_first(s)
    why = first if len(rivals) < len(usable) else why_first(usable)
    best = replace(usable[0], applicability=Applicability.CHOSEN, reason=why)
    return [best, *(replace(v, reason=why_lost(v, best) if v in rivals else behind) for v in usable[1:])]


def named(name: str, span: Span | None = None) -> Algorithm:
    """The algorithm of that name. Raises OCO701."""
    for a in ALGORITHMS:
        if a.name == name:
            return a
    hint = did_you_mean(name, list(SETTINGS), "see `oco algorithms`")
    raise fail("OCO701", f"there is no algorithm `{name}`", span, hint)


# An algorithm that is asked for.


def _asked_for(a: Algorithm, s: Situation, request: AlgorithmRequest) -> Choice:
    request.check_names(a)
    verdict = judge(a, s, request)
    warnings: list[Diagnostic] = []
    if verdict.applicability is Applicability.REFUSED:
        s, verdict = asking_less(s, verdict, partial(judge, a, request=request), partial(_runs, a))
    if verdict.applicability is Applicability.REFUSED:
        verdict = _against_objections(a, verdict, s, request)
        message = f"nothing is guaranteed of `{a.name}` here: {'; '.join(verdict.reasons)}"
        warnings.append(Diagnostic("OCO704", message, request.span, verdict.fix, Severity.WARNING))
    chosen = replace(verdict, applicability=Applicability.CHOSEN, reason="the model or the caller asks for it")
    warnings += [*broken_conditions(chosen, s, request), *ignored_settings(chosen, s, request)]
    others = tuple(b for b in ALGORITHMS if b is not a)
    return Choice(s, (chosen,), True, tuple(warnings), request.policy, others)


def _against_objections(a: Algorithm, verdict: Verdict, s: Situation, request: AlgorithmRequest) -> Verdict:
    """Settings without a guarantee, where the rule itself can run: the paper's, in the user's units where numbers are given."""
    s, span = seen_by(a, s), request.span
    if unmet := _unmet(a, s):
        message = "; ".join(o.reason for o in unmet)
        raise fail("OCO705", f"`{a.name}` cannot run on this model: {message}", span, unmet[0].fix)
    theorem, no_settings = verdict.theorem or a.theorems[-1], f"`{a.name}` has no settings here"
    inner, scales = without_units(s, theorem.norm) if request.unit_free else (s, None)
    try:
        settings = theorem_settings(theorem, inner, request.given, span)
    except OcoError as error:
        hint = f"give them: using {a.name} with ... = ..."
        raise fail("OCO706", f"{no_settings}: {error.message}", span, hint) from None
    except UnknownFact as missing:
        raise fail("OCO706", f"{no_settings}: they need {missing.key}, which is not known", span, verdict.fix) from None
    if wrong := without_sense(theorem, inner, {n: v for n, v in settings.items() if v.given}):
        message = "; ".join(o.reason for o in wrong)  # a step would go uphill, or have no minimum
        raise fail("OCO715", f"`{a.name}` cannot run: {message}", span, "give positive numbers or formulas")
    check_horizon(a, theorem, s, settings, span)
    return replace(verdict, settings=settings, theorem=theorem, scales=scales)


def _runs(a: Algorithm, s: Situation) -> bool:
    return not _unmet(a, seen_by(a, s))


def _unmet(a: Algorithm, s: Situation) -> list[Objection]:
    """Objections for which a rule cannot run at all, though a user asks for it."""
    return required(a, s, True) + inapplicable(a, s)
