"""The trace of a run: what was decided, what it cost, and how that compares with what was possible in hindsight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from oco.backends.factors import factors_over_rounds
from oco.compiler.canonical import Canonical
from oco.dsl.diagnostics import fail
from oco.evaluation import measures
from oco.evaluation.comparators import Budget, Comparator, Prefixes
from oco.evaluation.data import Data
from oco.evaluation.measures import Total, ViolationKind

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from xarray import Dataset

Array = np.ndarray[Any, Any]
RegretKind = Literal["static", "dynamic"]

PREFIXES = 50  # rounds at which the regret against the best of the rounds so far is computed


@dataclass(frozen=True, eq=False)
class Record:
    """The numbers of a run, round first: loss (T,), constraints g (T, N), equalities h (T, M), duals (T, D) in the model's units.

    `decisions` has the decisions of the rounds `kept` (from 0), by name.
    """

    loss: Array
    constraints: Array
    equalities: Array
    duals: Array
    decisions: Mapping[str, Array]
    kept: Array
    seconds: float


@dataclass(frozen=True, eq=False)
class Promise:
    """What was promised of the run: bounds after every round by measure ("regret", "violation", "equality"), in words, and by whom.

    `settings` are formulas, `values` the numbers of those that are one; `multiplied` the constraints that can have a multiplier.
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


@dataclass(frozen=True, eq=False)
class Origin:
    """What makes the same run again: the plan's recipe, the seed, what was given besides the data, and the backend.

    `recipe` and `facts` (value and status by key) are JSON values; `versions` are those of another process that ran it.
    """

    seed: int = 0
    recipe: Mapping[str, Any] = field(default_factory=dict)
    start: Mapping[str, Array] = field(default_factory=dict)
    draws: Mapping[str, Array] = field(default_factory=dict)
    backend: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)


class Trace:
    """A run, round by round. Comparators are found when they are first asked for, and kept."""

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
        budget: Budget | None = None,
    ) -> None:
        self.problem = problem
        self.data = data
        self.record = record
        self.promise = promise
        self.origin = origin or Origin()
        self.notes = notes
        self.warnings = warnings
        self.budget = budget or Budget()
        self._comparators: dict[str, Comparator] = {}
        self._prefixes: Prefixes | None = None

    def __repr__(self) -> str:
        return f"Trace({self.problem.name}, {self.promise.algorithm}, {self.rounds} rounds)"

    def _repr_html_(self) -> str:
        from oco.evaluation.report import brief

        return brief(self)

    def _repr_latex_(self) -> str:
        from oco.evaluation.report import brief_latex

        return brief_latex(self)

    # What happened.

    @property
    def rounds(self) -> int:
        return len(self.record.loss)

    @property
    def decisions(self) -> Any:
        """(T, *shape), or T factors where a large matrix is decided as `Factors`; a dict of them when the model has several decisions."""
        result = factors_over_rounds(self.record.decisions, tuple(b.name for b in self.problem.blocks))
        return next(iter(result.values())) if len(result) == 1 else result

    @property
    def kept(self) -> Array:
        """The rounds, from 1, whose decisions were kept: all of them unless the run was told to thin or memory asked for it."""
        return self.record.kept + 1

    @property
    def loss(self) -> Array:
        """(T,)"""
        return self.record.loss

    @property
    def constraints(self) -> Array:
        """(T, N) values of g."""
        return self.record.constraints

    @property
    def equalities(self) -> Array:
        """(T, M) values of h."""
        return self.record.equalities

    @property
    def duals(self) -> Array:
        """(T, D) the queues or multipliers that the algorithm carried, after each round, in the model's units."""
        return self.record.duals

    @property
    def labels(self) -> tuple[str, ...]:
        """One label for each column of `constraints`."""
        return self.problem.constraint_labels

    @property
    def equality_labels(self) -> tuple[str, ...]:
        """One label for each column of `equalities`."""
        return self.problem.equality_labels

    @property
    def seed(self) -> int:
        """Of all that was drawn."""
        return self.origin.seed

    @property
    def seconds(self) -> float:
        return self.record.seconds

    @property
    def rounds_per_second(self) -> float:
        return self.rounds / max(self.seconds, 1e-9)

    # What it is measured by.

    def comparator(self, kind: RegretKind = "static") -> Comparator:
        """The best in hindsight: one fixed decision ("static") or one a round ("dynamic"), with its certificate."""
        if kind not in ("static", "dynamic"):
            raise fail("OCO831", f"there is no {kind} comparator", hint='it is "static" or "dynamic"')
        if kind not in self._comparators:
            from oco.evaluation.comparators.compare import compare

            self._comparators[kind] = compare(self.problem, self.data, kind, self.budget)
        return self._comparators[kind]

    @property
    def known_comparators(self) -> Mapping[str, Comparator]:
        """Those that were asked for so far."""
        return dict(self._comparators)

    def regret(self, kind: RegretKind = "static", prefix: bool = False) -> Array:
        """(T,) cumulative: the loss of rounds 1..t less what the comparator of the whole run lost in them.

        With `prefix` less what the best fixed decision for rounds 1..t lost in them, at the rounds of `prefixes()`; nan between them.
        """
        if prefix and kind == "static":
            return self._prefix_regret()
        comparator = self.comparator(kind)
        if comparator.losses is None:
            raise fail("OCO832", f"the {kind} regret is not known: {comparator.words}")
        return measures.regret(self.loss, comparator.losses)

    def prefixes(self) -> Prefixes:
        """The best fixed decisions for the first t rounds, at `PREFIXES` rounds that are spread evenly on a logarithmic axis."""
        if self._prefixes is None:
            ends = np.unique(np.geomspace(1, self.rounds, PREFIXES).astype(np.int64))
            from oco.evaluation.comparators.compare import compare_prefixes

            self._prefixes = compare_prefixes(self.problem, self.data, ends, self.budget)
        return self._prefixes

    def _prefix_regret(self) -> Array:
        best, result = self.prefixes(), np.full(self.rounds, np.nan)
        result[best.rounds - 1] = np.cumsum(self.loss)[best.rounds - 1] - best.value
        return result

    def violation(self, kind: ViolationKind = "hard", total: Total | None = None) -> Array:
        """(T, N) cumulative, per constraint; with `total` "papers" (plain sum) or "scaled" (each by its scale) one number: (T,)."""
        if kind not in ("hard", "soft"):
            raise fail("OCO831", f"there is no {kind} violation", hint='it is "hard" or "soft"')
        result = measures.violation(self.constraints, kind)
        if total is None:
            return result
        scales = self.promise.scales
        return measures.total(result, total, None if scales is None else scales[: result.shape[1]])

    def equality_violation(self, total: Total | None = None) -> Array:
        """(T, M) cumulative |sum_t h_t|, per equality; with `total` as for `violation`."""
        result = measures.equality_violation(self.equalities)
        if total is None:
            return result
        scales = self.promise.scales
        return measures.total(result, total, None if scales is None else scales[self.constraints.shape[1] :])

    # What can be made of it.

    def plot(self, **options: Any) -> Figure:
        """Regret, violation and decisions against the round, with the guarantee beside them. See `plots.figure`."""
        from oco.evaluation.plots import figure

        return figure(self, **options)

    def to_dataset(self) -> Dataset:
        """An xarray.Dataset with dims round, constraint, equality and those of the decisions."""
        from oco.evaluation.storage import to_dataset

        return to_dataset(self)

    def save(self, path: str | Path) -> None:
        """Write as NetCDF (.nc) or Zarr (.zarr) with everything that `load_trace` needs, or as a Parquet table of the rounds."""
        from oco.evaluation.storage import save

        save(self, Path(path))
