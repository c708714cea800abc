"""Judging of one algorithm: the theorem that speaks for it on a problem, its settings and its guarantee, or what stands in the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from oco.compiler.algorithms import Algorithm
from oco.compiler.algorithms.common import EXACT_STEP
from oco.compiler.lowering.restarts import restarted
from oco.compiler.proximal.solvable import step_rank
from oco.compiler.selection.ignored_settings import unread
from oco.compiler.selection.objections import required, theorem_objections
from oco.compiler.selection.request import NOTHING_ASKED, AlgorithmRequest
from oco.compiler.selection.resolve_again import in_its_units, with_guarantee
from oco.compiler.selection.seen_by import seen_by
from oco.compiler.selection.verdicts import Applicability, Verdict, rank, withheld
from oco.compiler.theory.best_constants import ALONE, Rival, optimum
from oco.compiler.theory.moves import promise
from oco.compiler.theory.resolve import theorem_settings
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Objection, Situation, Theorem, without_sense
from oco.compiler.theory.unit_free import without_units
from oco.dsl.diagnostics import Diagnostic, OcoError, Severity, fail
from oco.dsl.source import Span


def judge(a: Algorithm, s: Situation, request: AlgorithmRequest = NOTHING_ASKED, rival: Rival = ALONE) -> Verdict:
    """Verdict on one algorithm; where no theorem holds, the objections to the nearest one.

    Of several theorems that one which reads most of the given settings, of these one whose conditions they satisfy, of these the one that
    promises most, the first of equals.

    rival  another algorithm: constants with which this one stays far behind it are not searched

    Raises OcoError where given settings are wrong for every theorem.
    """
    s = seen_by(a, s)
    objections = _objections(a, s, request)
    nearest, against = min(objections, key=lambda pair: len(pair[1]))
    if against:
        return Verdict(a, Applicability.REFUSED, nearest, tuple(against))
    cost = step_rank(s) if EXACT_STEP in a.requirements else 0
    ranked: list[tuple[tuple[int, int], Verdict]] = []
    errors: list[OcoError] = []
    for theorem in (t for t, against in objections if not against):
        try:
            verdict = replace(_verdict_by(theorem, a, s, request, rival), inner_cost=cost)
            ranked.append(
                ((len(unread(theorem, s, request.given)), len(broken_conditions(verdict, s, request))), verdict)
            )
        except OcoError as error:  # a given formula may name what one theorem has and another lacks
            errors.append(error)
    if ranked:
        promised = [(ignored, v) for ignored, v in ranked if v.guarantee is not None]
        return min(promised, key=lambda pair: (pair[0], rank(pair[1])), default=ranked[0])[1]
    if request.given:
        raise errors[0]
    message = f"its settings have no value here: {errors[0].message}"
    return Verdict(a, Applicability.REFUSED, nearest, (Objection(message),))


def _objections(a: Algorithm, s: Situation, request: AlgorithmRequest) -> list[tuple[Theorem, list[Objection]]]:
    """Theorems of an algorithm for the given settings and the horizon, each with its objections.

    Where some are about the measure of the model, these alone.
    """
    theorems = [t for t in a.theorems if t.has_words_of(request.given)] or list(a.theorems)
    theorems = [restarted(t) for t in theorems] if s.horizon is None else theorems
    unit_free, common = request.unit_free, required(a, s, request.names(a))
    if measured := [t for t in theorems if s.canonical.measure in t.measures]:
        theorems = measured
    else:
        bounded = _measures(a.theorems)
        reason = f"it bounds {bounded} regret, and the model measures {s.canonical.measure} regret"
        common = [Objection(reason, f"write `measure {bounded} regret`"), *common]
    return [(t, [*theorem_objections(t, s, unit_free), *common]) for t in theorems]


def _measures(theorems: Sequence[Theorem]) -> str:
    return " or ".join(sorted({str(m) for t in theorems for m in t.measures}))


def _verdict_by(theorem: Theorem, a: Algorithm, s: Situation, request: AlgorithmRequest, rival: Rival) -> Verdict:
    """Verdict by a theorem whose hypotheses hold, with its settings and the guarantee in the user's units."""
    inner, scales = without_units(s, theorem.norm) if request.unit_free else (s, None)
    settings = theorem_settings(theorem, inner, request.given, request.span)
    if request.given and (senseless := without_sense(theorem, inner, settings)):
        return Verdict(a, Applicability.REFUSED, theorem, tuple(senseless), settings)
    check_horizon(a, theorem, s, settings, request.span)
    weight, best = request.policy.weight, None
    if request.searches:
        best = optimum(theorem, inner, request.given, weight, settings, rival)
    settings = settings if best is None else dict(best.settings)
    result = Verdict(a, Applicability.APPLICABLE, theorem, (), settings, scales=scales, best=best)
    if why := withheld(theorem, s, settings):
        return replace(result, reason=why)
    guarantee = promise(theorem, inner, settings) if best is None else best.guarantee
    return with_guarantee(result, s, inner, guarantee, weight)


def check_horizon(
    a: Algorithm, theorem: Theorem, s: Situation, settings: Mapping[str, Setting], span: Span | None
) -> None:
    """Raise OCO706 for settings in T where the horizon is unknown, and no restart gives one."""
    using = [n for n, v in settings.items() if "T" in v.symbols]
    if s.horizon is None and using and theorem.restarts is None:
        message = f"{', '.join(using)} use T, which the model leaves unknown"
        raise fail("OCO706", f"`{a.name}` has no settings here: {message}", span, "write `horizon T = ...`")


def broken_conditions(v: Verdict, s: Situation, request: AlgorithmRequest) -> list[Diagnostic]:
    """Warnings about conditions of the theorem that given settings break."""
    if v.theorem is None or v.guarantee is None or not any(x.given for x in v.settings.values()):
        return []
    words = "the guarantee does not hold with these settings"
    return [
        Diagnostic("OCO707", f"{words}: {message}", request.span, "", Severity.WARNING)
        for message in v.theorem.checks(in_its_units(s, v), v.settings)
    ]
