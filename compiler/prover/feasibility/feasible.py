"""Feasibility, Slater margin and multipliers: the facts that a solver helps to find."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Equality, Inequality
from oco.compiler.prover.context import ProofContext
from oco.compiler.prover.fact import Fact
from oco.compiler.prover.feasibility.infeasible import (
    ConstraintEntry,
    Impossible,
    conflict,
    free_streams,
    impossible,
    irreducible,
    never_holds,
    relaxations,
    rows_of,
)
from oco.compiler.prover.feasibility.mixture import Mixture, mixture, paired, written
from oco.compiler.prover.feasibility.multipliers import (
    Dependence,
    Interior,
    affine_hull,
    dependent_rows,
    equality_rows,
    fits,
    interior_point,
    separating,
)
from oco.compiler.prover.feasibility.policy import corner_policy
from oco.compiler.prover.feasibility.scenario import SHARE, Scenario, mean, robust
from oco.compiler.prover.feasibility.slater import SlaterPoint, slater_point
from oco.compiler.prover.feasibility.solver import SOLVER_ERROR, magnitude
from oco.compiler.prover.phrasing import number
from oco.compiler.prover.types import ProofRule, Status, Step, Witness
from oco.dsl.diagnostics import Diagnostic, Severity
from oco.dsl.expressions import Kind, names
from oco.dsl.statements import Timing

Floats = np.ndarray[Any, Any]
KEYS = (
    "feasible.common",
    "feasible.each_round",
    "feasible.mean",
    "slater.margin",
    "slater.point",
    "multipliers.bounded",
)


class Feasibility:
    """Proofs of whether the constraints can be met, and with how much to spare."""

    def __init__(self, setting: ProofContext) -> None:
        self.setting = setting
        self.canonical = setting.canonical
        self.search = setting.budget.allowance(SHARE)
        self.robust = robust(setting, self.search)
        self.mean = mean(setting, self.search)

    def find(self) -> tuple[Mapping[str, Fact], tuple[Diagnostic, ...]]:
        """Facts by key, and warnings."""
        results = {f.key: f for f in self.facts()}
        return results, tuple(self.warnings())

    def facts(self) -> Iterator[Fact]:
        """Facts on common feasibility, the mean, Slater points and multipliers."""
        if not self.canonical.inequalities and not self.canonical.equalities:
            yield from _unconstrained(self.setting)
            return
        yield from self._common()
        yield self._in_the_mean()
        yield from self._slater()
        yield self._multipliers()

    # ---- points, each sought once

    @cached_property
    def robust_point(self) -> SlaterPoint | None:
        """Point that satisfies the inequalities for every value of the streams; None where none is known."""
        return slater_point(self.robust) if self.canonical.inequalities else None

    @cached_property
    def mean_point(self) -> SlaterPoint | None:
        """Slater point in the mean; what a decision has to spare for every value of the streams, it has in the mean too."""
        if self.mean is None or not self.mean.averaged or not self.canonical.inequalities:
            return self.robust_point
        point = slater_point(self.mean)
        return self.robust_point if point is None or point.margin <= 0 < self._spare else point

    @property
    def _spare(self) -> float:
        """The margin of one decision for every value of the streams; -inf where none is known."""
        return -np.inf if self.robust_point is None else self.robust_point.margin

    @cached_property
    def robust_mixture(self) -> Mixture | None:
        """Mixture of points that meets every constraint for every value of the streams; None where none is known."""
        return mixture(self.robust, lambda: self.robust_proof is None)

    @cached_property
    def mean_mixture(self) -> Mixture | None:
        """Mixture that meets the constraints at the mean of the streams; None where none is known."""
        mixed = self.robust_mixture
        serves_all = mixed is not None and mixed.common
        return mixed if serves_all or self.mean is None or not self.mean.averaged else mixture(self.mean)

    @cached_property
    def dependent(self) -> list[Dependence]:
        """Equalities that follow from others, at the mean."""
        if self.mean is None or not self.canonical.equalities or not fits(self.setting):
            return []
        return dependent_rows(equality_rows(self.mean), affine_hull(self.setting))

    @cached_property
    def interior(self) -> Interior | None:
        """Point in the interior that meets the independent equalities at the mean; None where none is known."""
        if self.mean is None or not self.mean.bounded or not fits(self.setting):
            return None
        rows = equality_rows(self.mean)
        dropped = {d.index for d in self.dependent}
        return interior_point(self.mean, rows, [i for i in range(len(rows.labels)) if i not in dropped])

    @cached_property
    def robust_proof(self) -> Impossible | None:
        """Proof that no one decision serves every round."""
        return (
            impossible(self.robust, rows_of(self.robust, self.canonical.inequalities)) if self.robust.bounded else None
        )

    @cached_property
    def mean_proof(self) -> Impossible | None:
        """Proof that no decision satisfies the constraints in the mean."""
        if self.mean is None or not self.mean.bounded:
            return None
        return impossible(self.mean, rows_of(self.mean, self.canonical.constraints))

    @cached_property
    def never_proof(self) -> Impossible | None:
        """Proof that no decision satisfies the inequalities of every round, whatever the streams are."""
        return self._whatever(self.robust, self.robust_proof, self.canonical.inequalities)

    @cached_property
    def never_in_the_mean(self) -> Impossible | None:
        """Proof that no decision satisfies the constraints in the mean, whatever the streams of unknown mean are."""
        return None if self.mean is None else self._whatever(self.mean, self.mean_proof, self.canonical.constraints)

    def _whatever(
        self, scenario: Scenario, proof: Impossible | None, constraints: Iterable[Inequality | Equality]
    ) -> Impossible | None:
        """Proof of infeasibility in which no stream takes part but at its mean; `proof` where it is one."""
        if proof is None:
            return None
        if not any(free_streams(scenario, row.expr) for row in proof.rows):
            return proof
        rows = rows_of(scenario, constraints)
        fixed = [row for row in rows if not free_streams(scenario, row.expr)]
        return (impossible(scenario, fixed) if fixed else None) or next(
            (reason for row in rows if (reason := never_holds(scenario, row)) is not None), None
        )

    # ---- feasibility

    def _common(self) -> Iterator[Fact]:
        point, equalities = self.robust_point, self.canonical.equalities
        if point is not None and point.margin >= 0 and all(self._holds_always(c.expr, point.x) for c in equalities):
            yield Fact("feasible.common", True, Status.PROVED, point.step)
            yield Fact("feasible.each_round", True, Status.PROVED, _every_round(point.step))
            return
        mixed = self.robust_mixture
        if mixed is not None and mixed.common:
            yield Fact("feasible.common", True, Status.PROVED, mixed.step)
            yield Fact("feasible.each_round", True, Status.PROVED, _every_round(mixed.step))
            return
        never, sometimes = self.never_proof, self.robust_proof
        common = self._open("feasible.common", never, sometimes)
        error = SOLVER_ERROR * max(1.0, magnitude(self.setting))
        if common.status is Status.UNKNOWN and point is not None and (point.best or 0.0) < -error:
            common = _without_margin(common.key, point, "none satisfies all, whatever the streams are")
        yield common
        yield self._each_round(never, sometimes)

    def _each_round(self, never: Impossible | None, sometimes: Impossible | None) -> Fact:
        """Fact that every round has a feasible decision, where no common one is known."""
        key = "feasible.each_round"
        if (never is None or not never.one_round) and (sometimes is None or not sometimes.one_round):
            mixed = self.robust_mixture
            policy = corner_policy(self.setting, self.search) if mixed is None else mixed.step
            if policy is not None:
                return Fact(key, True, Status.PROVED, policy)
        in_one_round = [r if r is not None and r.one_round else None for r in (never, sometimes)]
        return self._open(key, *in_one_round)

    def _open(self, key: str, never: Impossible | None, sometimes: Impossible | None) -> Fact:
        """Fact that is not proved: refuted where it fails for every value of the streams, a condition where it fails for some."""
        if never is not None:
            return Fact(key, False, Status.REFUTED, never.step, witness=never.witness)
        if sometimes is not None:
            return Fact(key, None, Status.CONDITION, sometimes.step, witness=sometimes.witness)
        return self._undecided(key)

    def _undecided(self, key: str, why: Step | None = None) -> Fact:
        """A fact that is not known, with the word that a search gave up where one did."""
        ended = self.search.ended(f"`{key}`", why) if self.search.refused else why
        return Fact(key, None, Status.UNKNOWN, ended)

    def _holds_always(self, expr: Any, x: Mapping[str, Floats]) -> bool:
        result = self.robust.worst(expr, x)
        return result.least == 0 == result.greatest

    def _in_the_mean(self) -> Fact:
        key = "feasible.mean"
        if self.mean is None:
            shown = self._met_in_the_mean()
            if shown is not None:
                return Fact(key, True, Status.PROVED, shown)
            words = "the mean of a constraint is not known: it is not affine in streams of known mean, or an equality that changes with t"
            why = Step(ProofRule.NO_MEAN, words)
            return Fact(key, None, Status.UNKNOWN, why)
        inconsistent = next((d for d in self.dependent if not d.consistent), None)
        if inconsistent is not None:
            words = f"{inconsistent.label} contradicts the other equalities and the domain in the mean"
            return Fact(
                key, False, Status.REFUTED, Step(ProofRule.DEPENDENT_ROWS, words), witness=Witness({}, 0.0, words)
            )
        shown = self._met_in_the_mean()
        if shown is not None:
            return Fact(key, True, Status.PROVED, shown)
        return self._open(key, self.never_in_the_mean, self.mean_proof)

    def _met_in_the_mean(self) -> Step | None:
        """The proof that some decision satisfies the constraints in the mean."""
        point: SlaterPoint | Interior | None = self.interior if self.canonical.equalities else self.mean_point
        if point is not None and point.margin >= 0:
            return point.step
        mixed = self.mean_mixture
        return mixed.step if mixed is not None and mixed.common else None

    # ---- Slater

    def slater(self) -> dict[str, Fact]:
        """The margin and its point."""
        return {f.key: f for f in self._slater()}

    def _slater(self) -> Iterator[Fact]:
        keys = ("slater.margin", "slater.point")
        tight: list[Inequality | Equality] = [*self.canonical.equalities, *paired(self.canonical.inequalities)]
        if tight:
            first = tight[0]
            words = f"`{written(first)}` is an equality, and has nothing to spare at any decision"
            if self.canonical.equalities:
                words += ": theorems for equalities ask for multipliers.bounded instead"
            why = Step(ProofRule.EQUALITY, words, 0.0, (), first.span)
            yield from (Fact(key, None, Status.REFUTED, why, witness=Witness({}, 0.0, words)) for key in keys)
            return
        point = self._called_for()
        if point is None:
            yield from map(self._undecided, keys)
        elif point.margin > 0:
            loose = point.best is None or point.best > 1.05 * point.margin
            yield Fact("slater.margin", point.margin, Status.PROVED, point.step, loose=loose)
            yield Fact("slater.point", _as_value(point.x), Status.PROVED, point.step)
        elif point.best is not None and point.best <= self._nothing:
            always = self._decides()
            words, status = "none satisfies all strictly", Status.REFUTED if always else Status.CONDITION
            words += "" if always else ", whatever the streams are"
            yield from (_without_margin(key, point, words, status) for key in keys)
        else:
            yield from (self._undecided(key, point.step) for key in keys)

    @property
    def _nothing(self) -> float:
        """Largest margin, in the constraints' own scale, that is taken for 0."""
        return SOLVER_ERROR * min(1.0, magnitude(self.setting))

    def _decides(self) -> bool:
        """True where the margin that was sought is that of every sequence: no stream takes part but at its known mean."""
        exprs = [c.expr for c in self.canonical.inequalities]
        used = {n for e in exprs for n in names(e, Kind.STREAM)}
        if any(c.timing is Timing.EACH_ROUND for c in self.canonical.inequalities):
            return not used
        if any(names(self.setting.simplify(e), Kind.ROUND) for e in exprs):
            return False  # the solver saw one round, and the mean is over all of them
        return self.mean is not None and used <= self.mean.averaged

    def _called_for(self) -> SlaterPoint | None:
        """Slater point of every round where a constraint binds each round; else of the mean, where that is known."""
        each_round = any(c.timing is Timing.EACH_ROUND for c in self.canonical.inequalities)
        return self.robust_point if each_round or self.mean_point is None else self.mean_point

    # ---- multipliers

    def _multipliers(self) -> Fact:
        key = "multipliers.bounded"
        cite = "Wei, Yu & Neely 2020, SELM; a relative-interior point (Rockafellar 1970, 28.2)"
        if not self.canonical.equalities:
            point = self.mean_point
            if point is not None and point.margin > 0:
                return Fact(key, True, Status.PROVED, point.step, cite)
        if self.mean is None:
            return Fact(key, None, Status.UNKNOWN, Step(ProofRule.NO_MEAN, "the mean of a constraint is not known"))
        if not self.canonical.equalities:
            return self._undecided(key)
        inner = self.interior if all(d.consistent for d in self.dependent) else None
        if inner is not None and inner.margin > 0:
            dropped = tuple(
                Step(ProofRule.DEPENDENT_ROW, f"{d.label} follows from the other rows and the domain", d.label)
                for d in self.dependent
            )
            return Fact(
                key,
                True,
                Status.PROVED,
                Step(ProofRule.INTERIOR_POINT, inner.step.claim, True, (inner.step, *dropped)),
                cite,
            )
        witness = separating(self.mean, equality_rows(self.mean)) if fits(self.setting) else None
        if witness is not None:
            return Fact(
                key, False, Status.REFUTED, Step(ProofRule.NO_INTERIOR_POINT, witness.words), cite, witness=witness
            )
        return self._undecided(key)

    def warnings(self) -> Iterator[Diagnostic]:
        """Diagnostics on dependent and conflicting constraints."""
        yield from self._dependence()
        yield from self._conflicts()

    def _conflicts(self) -> Iterator[Diagnostic]:
        """Constraints that cannot hold together in the sense that the model calls for, as a smallest such set."""
        binding = [c for c in self.canonical.inequalities if c.timing is Timing.EACH_ROUND]
        result, scenario = self.never_in_the_mean if self._mean_is_open() else None, self.mean
        if result is None and binding and self.robust_point is not None and self.robust_point.margin < 0:
            scenario = self.robust
            proof = impossible(self.robust, rows_of(self.robust, binding)) if self.robust.bounded else None
            result = self._whatever(self.robust, proof, binding)
            result = result if result is not None and result.one_round else None
        if result is None or scenario is None:
            return
        rows = irreducible(scenario, result.rows)
        labels = [*dict.fromkeys(r.name + r.constraint.proviso for r in rows)]
        together = f"{conflict(labels, result.one_round)} {_when(scenario)}"
        ways = [f"relax {row.name} by {number(amount)}{_line(row)}" for row, amount in relaxations(scenario, rows)]
        hint = "to fix it " + ", or ".join([*([*dict.fromkeys(ways)][:3] or ["relax one of them"]), "widen the domain"])
        yield Diagnostic("OCO605", together, rows[0].constraint.span, hint, Severity.WARNING)

    def _mean_is_open(self) -> bool:
        known = self.mean_point if not self.canonical.equalities else self.interior
        return known is None or known.margin < 0

    def _dependence(self) -> Iterator[Diagnostic]:
        for row in self.dependent:
            label = row.label.partition("[")[0]
            span = next((c.span for c in self.canonical.equalities if c.label == label), None)
            says = "it says nothing new" if row.consistent else "and it contradicts them"
            message = f"{row.label} follows in the mean from the other equalities and the domain: {says}"
            hint = "its multiplier is unbounded along with theirs; the row is left out where bounded multipliers are needed"
            yield Diagnostic("OCO601", message, span, hint, Severity.WARNING)


def _every_round(of_common: Step) -> Step:
    return Step(ProofRule.COMMON_POINT, "the same decision serves every round", True, (of_common,))


def _when(scenario: Scenario) -> str:
    """In what sense the constraints fail, in words for a warning."""
    return "in the mean" if scenario.averaged else scenario.words


def _line(row: ConstraintEntry) -> str:
    return f" (line {row.constraint.span.line})" if row.constraint.span is not None else ""


def _without_margin(key: str, point: SlaterPoint, words: str, status: Status = Status.CONDITION) -> Fact:
    """Fact that fails, for some sequences or all, as no decision has the margin that it takes; `best` is the solver's."""
    most = point.margin if point.best is None else max(point.best, point.margin)
    claim = f"the greatest margin of any decision is {number(most)}: {words}"
    why = Step(ProofRule.NO_MARGIN, claim, point.best, (point.step,))
    return Fact(key, None, status, why, witness=Witness({}, 0.0, claim))


def _as_value(x: Mapping[str, Floats]) -> Any:
    """The array of a single decision, else a dict by name."""
    return next(iter(x.values())) if len(x) == 1 else dict(x)


def _unconstrained(setting: ProofContext) -> Iterator[Fact]:
    """A model without constraints meets all of them."""
    why = Step(ProofRule.NO_CONSTRAINTS, "there are no constraints", True)
    for key in ("feasible.common", "feasible.each_round", "feasible.mean", "multipliers.bounded"):
        yield Fact(key, True, Status.PROVED, why)
    yield Fact("slater.margin", np.inf, Status.PROVED, why)
    centre = _as_value({b.name: b.domain.centre() for b in setting.canonical.blocks})
    yield Fact("slater.point", centre, Status.PROVED, why)
