"""Measured run: decisions, losses, constraints, and their comparison with the best in hindsight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal

import numpy as np

from oco.backends.factors import factors_over_rounds
from oco.compiler.certificates.certificate import Certificate
from oco.compiler.problem.canonical import Canonical
from oco.compiler.theory.guarantees import Bound, Condition
from oco.dsl.diagnostics import OcoError, fail
from oco.dsl.records import dataclass
from oco.evaluation import measures
from oco.evaluation.carried import parts_of, run_of
from oco.evaluation.certified import beyond_all_losses, certificates
from oco.evaluation.comparators import Comparator, ComparatorBudget, Prefixes
from oco.evaluation.data import Data
from oco.evaluation.measures import Total, ViolationKind
from oco.evaluation.numbers import number

Array = np.ndarray[Any, Any]
RegretKind = Literal["static", "dynamic"]

CERTIFIED = 12  # rounds at which a plot shows the certificate
PREFIXES = 50  # rounds at which the regret against the best of the rounds so far is computed


@dataclass(frozen=True, eq=False)
class Record:
    """Numbers of a run, round first: loss (T,), constraints g (T, N), equalities h (T, M), duals (T, D) in the model's
    units.

    `decisions` has the decisions of the rounds `kept` (from 0), by name.
    """

    loss: Array
    constraints: Array
    equalities: Array
    duals: Array
    decisions: Mapping[str, Array]
    kept: Array
    seconds: float


class Curves(Mapping[str, Array]):
    """Bounds after each round by measure, computed on first use: a long run that nobody plots never needs them."""

    def __init__(self, bounds: Mapping[str, Bound], rounds: int, horizon: int) -> None:
        self._bounds, self._rounds, self._horizon = bounds, rounds, horizon
        self._curves: dict[str, Array] = {}

    def __getitem__(self, name: str) -> Array:
        if name not in self._curves:
            curve = self._bounds[name].curve(self._rounds, self._horizon)
            assert curve is not None  # there is a formula
            self._curves[name] = curve
        return self._curves[name]

    def last(self, name: str) -> float:
        """Bound after the last round."""
        if name in self._curves:
            return float(self._curves[name][-1])
        number = self._bounds[name].number(self._rounds, self._horizon)
        return float(self[name][-1]) if number is None else number

    def __contains__(self, name: object) -> bool:
        return name in self._bounds

    def __iter__(self) -> Iterator[str]:
        return iter(self._bounds)

    def __len__(self) -> int:
        return len(self._bounds)


@dataclass(frozen=True, eq=False)
class Promise:
    """Guarantee of the run: bounds after every round by measure ("regret", "violation", "equality"), in words, with its
    theorem.

    `settings` are formulas, `values` the numbers of those that have one; `multiplied` lists the constraints that can
    have a multiplier, `conditions` the hypotheses about the sequence under which the guarantee holds, `trivial` what
    each measure is at most after all rounds whatever is decided, `withheld` says why there is no guarantee although the hypotheses hold.
    """

    algorithm: str
    settings: Mapping[str, str]
    theorem: str = ""
    curves: Mapping[str, Array] = field(default_factory=dict)
    rates: Mapping[str, str] = field(default_factory=dict)
    vacuous: tuple[str, ...] = ()
    scales: Array | None = None
    measures: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, float] = field(default_factory=dict)
    multiplied: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    trivial: Mapping[str, float] = field(default_factory=dict)
    withheld: str = ""

    def at_end(self, name: str) -> float:
        """Bound after the last round of a measure that has one."""
        return self.curves.last(name) if isinstance(self.curves, Curves) else float(self.curves[name][-1])


@dataclass(frozen=True, eq=False)
class Origin:
    """Origin from which the same run can be made again: the plan's recipe, the seed, inputs besides the data, and the
    backend.

    `recipe` and `facts` (value and status by key) are JSON values; `versions` are those of the process that ran it,
    where that was another.
    """

    seed: int = 0
    recipe: Mapping[str, Any] = field(default_factory=dict)
    start: Mapping[str, Array] = field(default_factory=dict)
    draws: Mapping[str, Array] = field(default_factory=dict)
    backend: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


class MeasuredRun:
    """Run, round by round, with what it is measured by. Comparators are computed on first use, and kept."""

    def __init__(
        self,
        problem: Canonical,
        data: Data,
        record: Record,
        promise: Promise,
        *,
        origin: Origin | None = None,
        notes: tuple[str, ...] = (),
        warnings: tuple[str, ...] = (),
        budget: ComparatorBudget | None = None,
        certificate: Certificate | None = None,
    ) -> None:
        self.problem = problem
        self.data = data
        self.record = record
        self.promise = promise
        self.origin = origin or Origin()
        self.notes = notes
        self.warnings = warnings
        self.budget = budget or ComparatorBudget()
        self._comparators: dict[str, Comparator] = {}
        self._prefixes: Prefixes | None = None
        self.own_certificate = certificate
        self._certified: tuple[Array, Array] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return run_of, (type(self), parts_of(self))

    # What happened.

    @property
    def rounds(self) -> int:
        """Number of rounds T."""
        return len(self.record.loss)

    @property
    def decisions(self) -> Any:
        """Decisions (T, *shape), or T factors where a large matrix is decided as `Factors`; a dict of them where the
        model has several.
        """
        result = factors_over_rounds(self.record.decisions, tuple(b.name for b in self.problem.blocks))
        return next(iter(result.values())) if len(result) == 1 else result

    @property
    def kept(self) -> Array:
        """Rounds, from 1, whose decisions were kept: all of them unless `keep` or a lack of memory thinned them."""
        return self.record.kept + 1

    @property
    def loss(self) -> Array:
        """Losses f_t(x_t) of the rounds (T,)."""
        return self.record.loss

    @property
    def constraints(self) -> Array:
        """Values g_t(x_t) of the inequalities (T, N), which hold where they are not positive."""
        return self.record.constraints

    @property
    def equalities(self) -> Array:
        """Values h_t(x_t) of the equalities (T, M), which hold where they are 0."""
        return self.record.equalities

    @property
    def duals(self) -> Array:
        """Queues or multipliers of the algorithm after each round, in the model's units (T, D)."""
        return self.record.duals

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of the columns of `constraints`."""
        return self.problem.constraint_names

    @property
    def equality_labels(self) -> tuple[str, ...]:
        """Labels of the columns of `equalities`."""
        return self.problem.equality_names

    @property
    def backend(self) -> str:
        """Name of the backend that ran it; empty where that was not recorded."""
        return self.origin.backend

    @property
    def seed(self) -> int:
        """Seed of all random draws."""
        return self.origin.seed

    @property
    def seconds(self) -> float:
        """Duration of the run in seconds."""
        return self.record.seconds

    @property
    def rounds_per_second(self) -> float:
        """Rounds that were played per second."""
        return self.rounds / max(self.seconds, 1e-9)

    # What it is measured by.

    def comparator(self, kind: RegretKind = "static") -> Comparator:
        """Comparator in hindsight: the best fixed decision ("static") or the best of each round ("dynamic"), with its
        certificate.
        """
        if kind not in ("static", "dynamic"):
            raise fail("OCO831", f"there is no {kind} comparator", hint='it is "static" or "dynamic"')
        if kind not in self._comparators:
            from oco.evaluation.comparators.compare import compare

            self._comparators[kind] = compare(self.problem, self.data, kind, self.budget)
        return self._comparators[kind]

    def strict_comparator(self) -> Comparator:
        """Best fixed decision that satisfies every inequality in every round, those that bind on average included."""
        strict = self.problem.each_round()
        if strict.inequalities == self.problem.inequalities:
            return self.comparator("static")
        from oco.evaluation.comparators.compare import compare

        return compare(strict, self.data, "static", self.budget)

    @property
    def known_comparators(self) -> Mapping[str, Comparator]:
        """Comparators that were computed so far."""
        return dict(self._comparators)

    def regret(self, kind: RegretKind = "static", prefix: bool = False) -> Array:
        """Cumulative regret (T,): the loss of rounds 1..t less that of the whole run's comparator in them.

        With `prefix` the comparator is the best fixed decision for rounds 1..t, at the rounds of `prefixes()`; nan
        between them.
        """
        if prefix and kind == "static":
            return self._prefix_regret()
        comparator = self.comparator(kind)
        if comparator.losses is None:
            raise fail("OCO832", f"the {kind} regret is not known: {comparator.words}")
        return measures.regret(self.loss, comparator.losses)

    def prefixes(self) -> Prefixes:
        """Best fixed decisions for the first t rounds, at `PREFIXES` rounds that are spread evenly on a logarithmic
        axis.
        """
        if self._prefixes is None:
            ends = np.unique(np.geomspace(1, self.rounds, PREFIXES).astype(np.int64))
            from oco.evaluation.comparators.compare import compare_prefixes

            self._prefixes = compare_prefixes(self.problem, self.data, ends, self.budget)
        return self._prefixes

    def certificate(self) -> Certificate:
        """Certificate of the static regret after the last round: the learner's own, or made again from the decisions and the data.

        Raises OCO735 where the model has none, OCO833 where the trace does not hold all decisions and data.
        """
        if self.own_certificate is None:
            (self.own_certificate,) = self.certificates((self.rounds,))
        return self.own_certificate

    def certificates(self, ends: Sequence[int]) -> list[Certificate]:
        """Certificates after these rounds, rising numbers from 1, made again from the decisions and the data."""
        whole = self.record.decisions if len(self.record.kept) == self.rounds else {}
        return certificates(self.problem, self.data, whole, ends)

    def certified_curve(self) -> tuple[Array, Array]:
        """Rounds, evenly spread, and the certified bounds after them; none where there is no certificate. Computed once."""
        if self._certified is None:
            ends = np.unique(np.linspace(1, self.rounds, CERTIFIED + 1).astype(np.int64))
            try:
                bounds = [c.bound for c in self.certificates([int(n) for n in ends])]
            except OcoError:
                ends, bounds = ends[:0], []
            self._certified = ends, np.array(bounds)
        return self._certified

    def certified(self) -> tuple[float | None, str]:
        """Certified bound of the static regret after the last round, and a sentence about it; None with the reason where there is none."""
        try:
            result = self.certificate()
        except OcoError as error:
            return None, error.message
        if result.impossible or beyond_all_losses(self.problem, self.data, result.least):
            return None, "no fixed decision satisfied the constraints of all rounds: proved"
        how = "losses and constraints as they are" if result.terms.exact else "linearised losses or constraints"
        if result.bound < 0:
            worse = f"every fixed decision that satisfied the constraints lost {number(-result.bound)} more at least"
            return result.bound, f"{worse}, from {how}"
        return result.bound, f"no fixed decision lost less by more than {number(result.bound)}, from {how}"

    def _prefix_regret(self) -> Array:
        best, result = self.prefixes(), np.full(self.rounds, np.nan)
        result[best.rounds - 1] = np.cumsum(self.loss)[best.rounds - 1] - best.value
        return result

    def violation(self, kind: ViolationKind = "hard", total: Total | None = None) -> Array:
        """Cumulative violation (T, N) of each constraint; with `total` "papers" (plain sum) or "scaled" (each by its
        scale) of all (T,) but those in a share of the rounds, whose broken rounds count instead. That of a constraint in total is what
        was spent beyond it.
        """
        if kind not in ("hard", "soft"):
            raise fail("OCO831", f"there is no {kind} violation", hint='it is "hard" or "soft"')
        result = measures.violation(self.constraints, kind)
        own, most = self.totals
        result[:, own] = np.maximum(self.spent()[:, own] - most[own], 0.0)
        return result if total is None else self._together(result, total)

    def last_violation(self, kind: ViolationKind = "hard", total: Total | None = None) -> Array:
        """Last row of `violation`, (N,), or its total (), without the rows before it."""
        own, most = self.totals
        result = measures.last_violation(self.constraints, kind)
        result[own] = np.maximum(self.last_spent()[own] - most[own], 0.0)
        return result if total is None else self._together(result[None], total)[0]

    def _together(self, violations: Array, total: Total) -> Array:
        """Totals (R,) of violations (R, N) over all constraints but those in a share of the rounds."""
        scales = self.promise.scales
        summed = np.array([c.margin is None for c in self.problem.inequalities for _ in range(c.size)], dtype=bool)
        units = None if scales is None else scales[: violations.shape[1]][summed]
        return measures.total(violations[:, summed], total, units)

    @property
    def totals(self) -> tuple[Array, Array]:
        """Flag of each entry of the inequalities that binds in total (N,), and what all rounds may cost (N,), 0 for others."""
        each = [b for c in self.problem.inequalities for b in (c.budget.total if c.budget else (None,) * c.size)]
        return np.array([b is not None for b in each], dtype=bool), np.array([b or 0.0 for b in each])

    def spent(self) -> Array:
        """Cost of rounds 1..t of each constraint in total (T, N); 0 of others."""
        return np.asarray(np.cumsum(np.where(self.totals[0], self.constraints + self._shares_of_totals(), 0.0), axis=0))

    def last_spent(self) -> Array:
        """Cost of all rounds of each constraint in total (N,); 0 of others."""
        costs = measures.summed(self.constraints) + self.rounds * self._shares_of_totals()
        return np.where(self.totals[0], costs, 0.0)

    def _shares_of_totals(self) -> Array:
        """Part of what all rounds may cost that each round has, (N,): what a constraint in total was written less of."""
        rounds = [1 if c.budget is None else c.budget.rounds for c in self.problem.inequalities for _ in range(c.size)]
        return np.asarray(self.totals[1] / np.array(rounds, dtype=np.float64))

    def equality_violation(self, total: Total | None = None) -> Array:
        """Cumulative |sum_t h_t| (T, M) of each equality; with `total` as for `violation`."""
        result = measures.equality_violation(self.equalities)
        if total is None:
            return result
        scales = self.promise.scales
        return measures.total(result, total, None if scales is None else scales[self.constraints.shape[1] :])


def tell(run: MeasuredRun, comparators: Mapping[str, Comparator], certificate: Certificate | None) -> None:
    """Give a run what was computed for the same problem, data and decisions, so that it is not computed again."""
    run._comparators.update(comparators)
    run.own_certificate = run.own_certificate or certificate
