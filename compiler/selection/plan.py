"""The plan: a model, the theorem that speaks for it, settings, guarantee, and the program that they make."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Self

from oco.compiler.certificates.certificate import CertificateTerms, terms_of
from oco.compiler.certificates.form import certificate_form
from oco.compiler.certificates.watched_conditions import WatchedConditions, watched_conditions
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import Program
from oco.compiler.ir.symbolic import Symbol
from oco.compiler.lowering.round_problem import TraceSpec
from oco.compiler.problem.canonical import Canonical, canonical
from oco.compiler.problem.stores import season_by_round, stores
from oco.compiler.prover.check import check_canonical
from oco.compiler.prover.data_conditions import DataConditions
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.measured import Rounds
from oco.compiler.prover.search_budget import SearchBudget
from oco.compiler.prover.seasons import own_seasons
from oco.compiler.selection.alert import Alert, alert_of, without_statements
from oco.compiler.selection.assemble import assemble
from oco.compiler.selection.choice import Choice, choose, named
from oco.compiler.selection.continuation import continued, continues, is_anytime
from oco.compiler.selection.explain import explain_data, explain_text, refusal
from oco.compiler.selection.frontier import FrontierPoint, frontier
from oco.compiler.selection.judging import judge
from oco.compiler.selection.modes import Mode, SettingsMode, mode_of
from oco.compiler.selection.played_round import trace_spec, with_streams_of
from oco.compiler.selection.request import AlgorithmRequest, request_of
from oco.compiler.selection.resolve_again import given_formulas, in_its_units, promised_again, proved_at, revised
from oco.compiler.selection.verdicts import Applicability, Verdict, withheld
from oco.compiler.theory.best_constants import closed
from oco.compiler.theory.objective import checked_tradeoff
from oco.compiler.theory.resolve import all_formulas, formulas
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Free, Guarantee, Situation
from oco.dsl.diagnostics import Diagnostic, fail
from oco.dsl.model import Model
from oco.dsl.records import dataclass
from oco.dsl.settings import UNITS

OPEN = "free_"
STATIC, DYNAMIC = CERTIFIED = ("static", "dynamic")
"""Kinds of regret that learners may keep certificates of."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Result of `compile_plan`. Immutable; `program` is traced when it is first asked for.

    model      as it was given
    canonical  problem that is played: that of the model, or one that asks for less where the plan gives promises up (`relaxed`)
    mode       kind of the settings that were not given
    given      settings that a caller gave, by name; those of the model's `using` line are not among them
    open       names of the constants that the program leaves open (`opened`)
    certify    kind of regret of which learners keep certificates; "": of none
    pending    True where the data of rounds may wait in the state until the sums of a certificate take them
    after      horizon behind which its learners go on in epochs (`continued`); None where they begin at round 1
    alert      test of what the model states of its streams, which its learners make; None: they do not
    """

    model: Model
    canonical: Canonical
    facts: Facts
    choice: Choice
    mode: Mode = Mode.PAPER
    given: Mapping[str, str | float] = field(default_factory=dict)
    open: tuple[str, ...] = ()
    certify: str = ""
    pending: bool = True
    after: int | None = None
    alert: Alert | None = None

    @property
    def _winner(self) -> Verdict:
        winner = self.choice.winner
        assert winner is not None
        return winner

    @property
    def algorithm(self) -> str:
        """Name of the chosen algorithm."""
        return self._winner.name

    @property
    def settings(self) -> Mapping[str, Setting]:
        """Each setting as a formula in t and T, its number where it is one, and where it comes from."""
        return self._winner.settings

    @property
    def guarantee(self) -> Guarantee | None:
        """None where the user asked for an algorithm whose hypotheses are not met."""
        return self._winner.guarantee

    @property
    def withheld(self) -> str:
        """Reason why nothing is promised of the algorithm although the hypotheses of its theorem hold; "" elsewhere."""
        v = self._winner
        if v.guarantee is not None or v.theorem is None:
            return ""
        return withheld(v.theorem, self.choice.played, v.settings)

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """Verdicts on all algorithms, the chosen one first. Those that come behind others whatever their constants are have the paper's."""
        return self._compared.verdicts

    @cached_property
    def _compared(self) -> Choice:
        return self.choice.compared()

    @property
    def tradeoff(self) -> float:
        """Weight of violations against regret where the two are added."""
        return self.choice.policy.weight

    @property
    def horizon(self) -> int | None:
        """Number of rounds; None where it is unknown."""
        return self.canonical.horizon

    @property
    def season(self) -> int:
        """Season, in rounds, of the data that the plan was made on; 1 where there were none, or none shows."""
        return self.choice.situation.season

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about the model and the choice."""
        return (*self.facts.warnings, *self.choice.warnings)

    def certified(self, kind: str = STATIC) -> Self:
        """Plan whose learners keep the sums of a certificate: of a regret of `CERTIFIED`. Raises OCO735, OCO736."""
        if kind not in CERTIFIED:
            raise fail("OCO736", f"a certificate is of the {' or the '.join(CERTIFIED)} regret, not of {kind!r}")
        if isinstance(form := certificate_form(self.canonical), str):
            raise fail("OCO735", f"there is no certificate of this model: {form}")
        return replace(self, certify=kind)

    def alerting(self, alpha: float) -> Self:
        """Plan whose learners go over to another rule once bets refute what the model states of its streams, with false alarms of
        probability alpha at most. Raises OCO872.
        """

        def without() -> tuple[Choice, Program]:
            mode = self.mode if self.mode in (Mode.PAPER, Mode.UNIT_FREE) and not self.given else Mode.LEAST
            made = compile_plan(without_statements(self.model), None, mode, tradeoff=self.tradeoff)
            return made.choice, made.traced

        plain = replace(self, certify="", alert=None)
        return replace(self, alert=alert_of(self.canonical, alpha, plain.traced, without))

    @property
    def terms(self) -> CertificateTerms | None:
        """Terms of the certificates of its learners; None where they keep no sums for one."""
        form = certificate_form(self.canonical) if self.certify else ""
        if isinstance(form, str):
            return None
        return terms_of(form)

    @cached_property
    def watched(self) -> WatchedConditions | None:
        """Conditions of the guarantee, with what learners keep of the constraints to tell whether they hold; None where there are none."""
        conditions = () if self.guarantee is None or self.canonical.delay else self.guarantee.conditions
        return watched_conditions(conditions, self.canonical) if conditions else None

    @cached_property
    def traced(self) -> Program:
        """Program of the learner in the step IR, as its rule was traced."""
        a, theorem = self._winner.algorithm, self._winner.theorem
        norm = "l2" if theorem is None else theorem.norm
        words = f"{a.title} ({a.cite}) for the model {self.model.name}"
        return assemble(a, self._spec, words, norm, alert=None if self.alert is None else self.alert.traced)

    @cached_property
    def program(self) -> Program:
        """Program of the learner in the step IR, after the passes; `print(plan.program)` shows it, an equation a line."""
        return optimize(self.traced)

    @cached_property
    def disclosing(self) -> Program:
        """Program with the same decisions whose rounds give their streams, and disclose to the rule what the model's feedback does."""
        return optimize(assemble(self._winner.algorithm, self._spec, self._winner.algorithm.title, discloses=True))

    @cached_property
    def _spec(self) -> TraceSpec:
        watch = self.watched is not None and self.watched.constraints is not None and not self.open
        options = {"open": self.open, "certify": self.certify, "pending": self.pending}
        return trace_spec(self.choice, anytime=self.anytime, watch=watch, **options)

    @property
    def kept_equalities(self) -> tuple[int, ...]:
        """Numbers of the entries of the equalities that have a multiplier, from 0; the others follow from them."""
        return self._spec.kept_equalities

    @property
    def distributions(self) -> Mapping[str, str]:
        """Distribution of each random array that a round draws, by name: "uniform" on [0, 1) or "normal"."""
        own = {f.name: distribution for f, distribution in self._spec.drawn().items()}
        return own if self.alert is None else own | self.alert.distributions

    def with_horizon(self, T: int) -> Plan:
        """Plan of the same algorithm, with settings and guarantee for another horizon."""
        settings: SettingsMode = dict(self.given) if self.given else self.mode
        model, name = self.model.with_horizon(T), self.algorithm if self.choice.forced else None
        about: dict[str, Any] = {"keep": self.algorithm, "tradeoff": self.tradeoff, "effort": self.facts.effort}
        season = {"": self.season, **self.choice.situation.own_seasons}
        known = proved_at(self.choice.situation, T) if self.after is None else None
        result = compile_plan(model, name, settings, season=season, known=known, **about)
        result = replace(result, certify=self.certify)
        result = result if self.alert is None else result.alerting(self.alert.alpha)
        by_guarantee = self.choice.forced or (self.choice.pilots is None and not result.choice.forced)
        if by_guarantee or result.algorithm != self.algorithm:
            return result
        return replace(result, choice=result.choice.chosen_by(self.choice.pilots, self._winner.reason))

    @property
    def anytime(self) -> bool:
        """True where theorem and settings know no horizon, and hold as long as rounds come."""
        return is_anytime(self._winner)

    def continued(self) -> Self | None:
        """Plan of a learner that goes on after the horizon T in epochs of T, 2 T, ... rounds; None where none is begun anew."""
        if not continues(self.choice.situation, self._winner):
            return None
        s, verdict = continued(self.choice.situation, self._winner, self.tradeoff)
        return replace(self.deciding(self.choice.alone(verdict, s)), after=self.horizon, alert=None)

    def with_constants(self, numbers: Mapping[str, float] | None = None, T: int | None = None) -> Self:
        """Plan with other numbers of the theorem's free constants, None for the paper's, at this horizon or another; algorithm and
        facts are kept.

        Without a guarantee: `promised` works it out.
        """
        return self._revised(*revised(self.choice.situation, self._winner, numbers, T))

    def opened(self, fixed: Mapping[str, float], T: int | None = None) -> Self:
        """Plan of the same algorithm with its free constants left open, but for those `fixed`: one program for all their numbers.

        The program has a decision more for each, `OPEN` and its name, that a start gives and that stays as it is.
        """
        names = {f.name: OPEN + f.name for f in self.free if f.name not in fixed}
        symbols = {n: Symbol(n) for n in names.values()}
        result = self._revised(*revised(self.choice.situation, self._winner, {**names, **fixed}, T, symbols))
        return replace(result, open=tuple(names.values()), alert=None)

    def _revised(self, s: Situation, verdict: Verdict) -> Self:
        return replace(self.deciding(self.choice.alone(verdict, s)), model=self.model.with_horizon(s.rounds))

    @property
    def free(self) -> tuple[Free, ...]:
        """Constants that the theorem leaves free and that were not given."""
        theorem, settings = self._winner.theorem, self.settings
        return tuple(f for f in (theorem.free if theorem else ()) if f.name in settings and not settings[f.name].given)

    def allows(self, numbers: Mapping[str, float]) -> bool:
        """True if the theorem holds with these numbers of its free constants, by name, in the units of the rule."""
        theorem, s = self._winner.theorem, in_its_units(self.choice.situation, self._winner)
        assert theorem is not None
        values = {OPEN + name: x for name, x in numbers.items()}
        return not theorem.checks(s, closed(self._opened.settings, values))

    @cached_property
    def _opened(self) -> Plan:
        return self.opened({})

    def promised(self) -> Self:
        """Plan with the guarantee of its settings, where `with_constants` left it out."""
        verdict = promised_again(self.choice.situation, self._winner, self.tradeoff)
        return replace(self, choice=replace(self.choice, verdicts=(verdict, *self.choice.verdicts[1:])))

    def only(self, algorithm: str) -> Self:
        """Plan of another one of `verdicts`, by its algorithm's name, its constants searched. Raises OCO701 where none has that name."""
        name = named(algorithm).name
        return self.taking(self._compared.searched(next(v for v in self.verdicts if v.name == name)))

    def taking(self, verdict: Verdict) -> Self:
        """Plan with another verdict on its model as the chosen one."""
        return self.deciding(self.choice.alone(replace(verdict, applicability=Applicability.CHOSEN)))

    def deciding(self, choice: Choice) -> Self:
        """Plan with another choice on its model, and the problem as the algorithm chosen there sees it."""
        return replace(self, choice=choice, canonical=with_streams_of(self.canonical, choice.played.canonical.standing))

    def given_constants(self, numbers: Mapping[str, float]) -> dict[str, str | float]:
        """Settings that give these numbers of the free constants: as few as `compile_plan` needs to resolve all of them again."""
        v, s = self._winner, self.choice.situation
        assert v.theorem is not None
        inner, given = in_its_units(s, v), given_formulas(v)
        units = {} if v.scales is None else {UNITS: "free"}
        wanted = self.with_constants(numbers).settings
        few: dict[str, str | float] = {**units, **given, **formulas(v.theorem, inner, given, numbers)}
        again = judge(v.algorithm, s, AlgorithmRequest(v.name, few, policy=self.choice.policy)).settings
        if {n: x.formula for n, x in again.items()} == {n: x.formula for n, x in wanted.items()}:
            return few
        return {**units, **all_formulas(v.theorem, inner, given, numbers)}

    def frontier(self) -> tuple[FrontierPoint, ...]:
        """Bounds of regret and violation, in the units of the loss and of the constraints, for several weights of the violation."""
        return frontier(self.choice.situation, self._winner)

    def explain(self) -> str:
        """Table of all algorithms: chosen, applicable, or why not and what would make it apply."""
        return explain_text(self.choice)

    def __repr__(self) -> str:
        return f"Plan({self.model.name}, {self.algorithm})"

    def to_json(self) -> str:
        """Text of the plan as JSON, version 1: algorithm, settings, guarantee, verdicts."""
        about = {"version": 1, "model": self.model.name, "settings_kind": self.mode}
        return json.dumps(about | explain_data(self.choice), indent=2)


def compile_plan(
    model: Model | Canonical,
    algorithm: str | None = None,
    settings: SettingsMode = Mode.PAPER,
    *,
    keep: str | None = None,
    tradeoff: float = 1.0,
    effort: float = 1.0,
    seen: Rounds | None = None,
    season: int | Mapping[str, int] | None = None,
    known: Situation | None = None,
) -> Plan:
    """Check the model, choose an algorithm (or take the one named here or in the model), and fix its settings.

    settings  "paper", "optimal" ("tuned" begins there), "unit-free", or formulas by name, which go before those of the model's `using`
    keep      take that algorithm where its theorem still holds
    tradeoff  what violations count against the regret where the two are added
    effort    how many times the usual number of steps the searches of the proofs may take
    seen      rounds of data by stream, the round first, on which conditions of guarantees are looked at
    season    rounds after which the data repeat themselves, or those of streams by name with "" for all others; None: measured on `seen`
    known     the problem and its facts, where they are known

    Raises OcoError where no theorem applies.
    """
    situation = known or analyzed(model, effort, tradeoff, seen, season)
    request = request_of(situation, algorithm, settings)
    choice = choose(situation, request)
    if choice.winner is not None and keep is not None and choice.winner.name != keep:
        choice = choose(situation, replace(request, algorithm=keep))
    return plan_of(choice, situation.canonical, settings)


def analyzed(
    model: Model | Canonical,
    effort: float = 1.0,
    tradeoff: float = 1.0,
    seen: Rounds | None = None,
    season: int | Mapping[str, int] | None = None,
) -> Situation:
    """The canonical problem and its facts; arguments are those of `compile_plan`. Raises OcoError where the model is wrong."""
    weight = checked_tradeoff(tradeoff)
    problem = model if isinstance(model, Canonical) else canonical(model)
    if season is None:
        unknown = (s.name for s in problem.revealed if not s.stream.known or stores(problem))
        season, stated = {"": 1} if seen is None else own_seasons(seen, unknown), season_by_round(problem)
        measured = season[""]  # noise repeats itself after any number of rounds
        if measured == 1 or (measured % stated and stated % measured):
            season = {"": stated}
    by_name = {"": season} if isinstance(season, int) else season
    problem = problem.with_seasons(tuple(sorted({k for k in by_name.values() if k > 1})))
    facts = check_canonical(problem.model, problem, budget=SearchBudget(effort))
    conditions = None if seen is None else DataConditions(problem, seen, SearchBudget(effort))
    own = {n: k for n, k in by_name.items() if n}
    about = {"seen": conditions, "season": by_name[""], "own_seasons": own}
    return Situation(problem.learned, facts, problem.learner_rounds, weight, **about)  # type: ignore[arg-type]


def plan_of(choice: Choice, given: Canonical, settings: SettingsMode = Mode.PAPER) -> Plan:
    """The plan of the algorithm that was chosen for a problem and with these settings. Raises OCO708 where none was."""
    if choice.winner is None:
        message, hint, place = refusal(choice)
        raise fail("OCO708", message, place or given.model.span, hint)
    played = with_streams_of(given, choice.played.canonical.standing)
    return Plan(given.model, played, choice.situation.facts, choice, *mode_of(settings))


def explain_choice(
    model: Model | Canonical,
    settings: str = Mode.PAPER,
    tradeoff: float = 1.0,
    effort: float = 1.0,
    seen: Rounds | None = None,
) -> Choice:
    """The verdicts on a model, also where no algorithm applies. Arguments are those of `compile_plan`."""
    situation = analyzed(model, effort, tradeoff, seen)
    return choose(situation, request_of(situation, settings=settings))
