"""Theorems as data: hypotheses as questions to the facts, settings and guarantees as formulas, and where each stands in its paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from oco.compiler.domains import Domain
from oco.compiler.problem.canonical import Canonical, entry_labels
from oco.compiler.prover.data_conditions import DataConditions
from oco.compiler.prover.facts import Facts
from oco.compiler.prover.types import ProofRule, Status
from oco.compiler.theory.free_constants import Free as Free
from oco.compiler.theory.guarantees import Bound as Bound
from oco.compiler.theory.guarantees import Condition as Condition
from oco.compiler.theory.guarantees import Guarantee as Guarantee
from oco.compiler.theory.guarantees import Quantity as Quantity
from oco.compiler.theory.schedule import Rounds, Schedule
from oco.compiler.theory.settings import Default, Setting
from oco.compiler.theory.ways_out import way_to_bound
from oco.dsl.diagnostics import InternalError
from oco.dsl.evaluate import evaluate
from oco.dsl.records import dataclass
from oco.dsl.source import Span
from oco.dsl.statements import Measure

Floats = np.ndarray[Any, Any]
OF_ALL_ROUNDS = ("variation.gradient", "variation.constraint", "V_x", "V_g")
"""Facts on all rounds in their order, which under delays no learner plays."""
ANY_LENGTH = 1000
"""Rounds for which settings are looked at where their number is unknown."""


class Violation(StrEnum):
    """Kind of violation that a theorem bounds: soft where a round may make up for another, else hard."""

    HARD = "hard"
    SOFT = "soft"


@dataclass(frozen=True, eq=False)
class Situation:
    """All that a theorem may look at: the problem, its facts, the horizon of a learner (None: unknown), the weight of violations against
    regret, sentences on promises that are given up, what data show of conditions (None: no data), in units of `margin_unit`, and
    their season in rounds (1: none), and those of streams that have another; `source` is that of another horizon, with the same facts.
    """

    canonical: Canonical
    facts: Facts
    horizon: int | None
    weight: float = 1.0
    given_up: tuple[str, ...] = ()
    seen: DataConditions | None = None
    margin_unit: float = 1.0
    season: int = 1
    own_seasons: Mapping[str, int] = field(default_factory=dict)
    source: Situation | None = None
    _numbers: dict[str, float | None] = field(default_factory=dict, init=False, repr=False)
    _bounds: dict[str, Floats | None] = field(default_factory=dict, init=False, repr=False)
    """Values that `number` returned before: a search over settings asks thousands of times."""

    @property
    def rounds(self) -> int | None:
        """Rounds of a run; under delays each learner plays `horizon` of them."""
        return self.canonical.horizon

    @property
    def domains(self) -> tuple[Domain, ...]:
        """Sets of the decisions, in the order of the model."""
        return tuple(b.domain for b in self.canonical.blocks)

    @property
    def size(self) -> int:
        """n: the number of entries of all decisions together."""
        return self.canonical.size

    @cached_property
    def dependent_rows(self) -> frozenset[str]:
        """Entries of equalities that the others and the domain imply in the mean; they get no multiplier (001, erratum 6a)."""
        fact = self.facts.get("multipliers.bounded")
        steps = fact.why.premises if fact is not None and fact.why is not None else ()
        return frozenset(str(step.value) for step in steps if step.rule == ProofRule.DEPENDENT_ROW)

    @cached_property
    def constraints(self) -> int:
        """N: the number of inequalities, entry by entry."""
        return sum(c.size for c in self.canonical.inequalities)

    @cached_property
    def constraints_vary(self) -> bool:
        """True if a stream or the round enters an inequality."""
        return not self.canonical.fixed

    @cached_property
    def worst_at_centre(self) -> float:
        """max_k g_k at the centre of the domain, of constraints that no data enters."""
        centre = {b.name: b.domain.centre() for b in self.canonical.blocks}
        return max(float(np.max(evaluate(c.expr, centre))) for c in self.canonical.inequalities)

    @cached_property
    def equalities(self) -> int:
        """M: the number of equalities on average, entry by entry."""
        return sum(c.size for c in self.canonical.equalities)

    def number(self, key: str) -> float | None:
        """The value of a fact that may be relied on, in the model's units; None where it is unknown or no finite number."""
        if key not in self._numbers:
            value: Any = None if self.canonical.delay and key in OF_ALL_ROUNDS else self.facts.value(key)
            known = value is not None and not isinstance(value, bool) and np.ndim(value) == 0
            self._numbers[key] = float(value) if known and np.isfinite(float(value)) else None
        return self._numbers[key]

    def holds(self, key: str) -> bool:
        """True if a yes-or-no fact may be relied on and says yes."""
        return self.facts.value(key) is not None and bool(self.facts.value(key))

    def is_declared(self, key: str) -> bool:
        """True where the model assumes that the fact holds."""
        fact = self.facts.get(key)
        return fact is not None and fact.status is Status.DECLARED and fact.value is True

    def is_refuted(self, key: str) -> bool:
        """True where the fact is proved to be wrong."""
        return (fact := self.facts.get(key)) is not None and fact.status is Status.REFUTED

    def claim(self, key: str) -> str:
        """Conclusion of the derivation of a fact, in words; "" where there is none."""
        fact = self.facts.get(key)
        return fact.why.claim if fact is not None and fact.why is not None else ""

    def entries(self, label: str, shape: tuple[int, ...], what: str) -> Floats | None:
        """One bound for each entry of a constraint, shape (size,): its own where it is known, else that of the worst entry."""
        worst = self.number(f"constraints.{label}.{what}")
        size = math.prod(shape)
        first = f"constraints.{label}[{', '.join('0' * len(shape))}].{what}"
        if shape and size and first not in self.facts.items_by_key:
            return None if worst is None else np.full(size, worst)  # no entry has facts of its own
        own = [self.number(f"constraints.{name}.{what}") for name in entry_labels(label, shape)]
        results = [worst if v is None else v if worst is None else min(v, worst) for v in own]
        return None if any(v is None for v in results) else np.array(results, dtype=np.float64)

    def inequality_bounds(self, what: str) -> Floats | None:
        """A fact of every inequality, shape (N,); None where one of them is unknown."""
        if what not in self._bounds:
            self._bounds[what] = _joined([self.entries(c.label, c.shape, what) for c in self.canonical.inequalities])
        return self._bounds[what]

    def equality_bounds(self, what: str) -> Floats | None:
        """A fact of every equality on average, shape (M,); None where one of them is unknown."""
        return _joined([self.entries(c.label, c.shape, what) for c in self.canonical.equalities])

    @cached_property
    def loss_range(self) -> float | None:
        """The most that one round's losses can differ: sup f - inf f, from the values of f or from |grad f| and the diameter."""
        keys = ("loss.bound", "loss.upper", "loss.lower", "loss.lipschitz.l2", "domain.diameter.l2")
        bound, upper, lower, slope, diameter = map(self.number, keys)
        known = [] if bound is None else [2 * bound]
        known += [] if upper is None or lower is None else [math.nextafter(upper - lower, math.inf)]
        known += [] if slope is None or diameter is None else [slope * diameter]
        return min((max(x, 0.0) for x in known), default=None)

    @cached_property
    def violation_range(self) -> float | None:
        """The most that the inequalities together can be broken by in one round: the sum of sup max(g_n, 0); None where one is unknown."""
        sizes, most = self.inequality_bounds("bound"), self.inequality_bounds("upper")
        if sizes is None:
            return None
        return float((sizes if most is None else np.minimum(sizes, np.maximum(most, 0.0))).sum())

    @cached_property
    def constraint_scales(self) -> Floats | None:
        """The largest |g_n| of each inequality and |h_m| of each equality, shape (N + M,)."""
        return _joined([self.inequality_bounds("bound"), self.equality_bounds("bound")])


def _joined(parts: list[Floats | None]) -> Floats | None:
    if any(p is None for p in parts):
        return None
    return np.concatenate([np.zeros(0), *(p for p in parts if p is not None)])


@dataclass(frozen=True)
class Objection:
    """Why a hypothesis does not hold; the smallest change of the model that would make it hold ("" where there is none).

    `slow`, `unasked`: it is about time, or about choice alone, and nothing to one who asks for the algorithm. `drops`: the change gives up
    a part of the problem. `span`: the place in the model that it is about, where it is one.
    """

    reason: str
    fix: str = ""
    slow: bool = False
    drops: bool = False
    span: Span | None = None
    unasked: bool = False


Test = Callable[[Situation], "Objection | Condition | None"]


@dataclass(frozen=True)
class Hypothesis:
    """One assumption of a theorem: the paper's words, the question that decides it, and the facts that answer it.

    last        the question makes sense, and is asked, only where all others hold
    of_horizon  it asks for the number of rounds, which restarts can do without
    """

    words: str
    test: Test
    facts: tuple[str, ...] = ()
    last: bool = False
    of_horizon: bool = False


class Restart(StrEnum):
    """Start of an epoch of a method, when the number of rounds is unknown: the theorem holds from there."""

    FROM_DECISION = "from the decision reached"
    FROM_CENTRE = "from the centre of the domain"
    NEVER = "never: its memory grows with the number of rounds"


@dataclass(frozen=True)
class Theorem:
    """One result of a paper about one algorithm. `rates` are text in T, V_x, V_g, d by measure, for `oco algorithms`.

    settings_of_words  the settings that hang on those that are words
    accepts            settings beside those that the rule reads where they are given
    positive           settings without which it says nothing unless they are positive in every round
    words              the words of settings for which it speaks: it is passed over where another is given
    asked_by           it speaks only where one of these settings is given: of what asks more of a round, or promises what few want
    free               the constants that the guarantee holds for any value of, within `checks`: what `optimal` and `tuned` vary
    best               settings whose best value is known as a formula in the others: they are so where free constants are varied
    moves              it holds as well where each decision is moved to the nearest point of a convex set that holds the comparator
    norm               in which decisions and gradients are measured, "l2" or "l1": the unit-free problem has radius one in it
    step_length        bound of |x_{t+1} - x_t| in that norm for each round; None where the proof gives none (see `moves.py`)
    restart            where an epoch begins when the number of rounds is unknown
    restarts           the theorem whose method is begun anew in ever longer epochs (see `restarts.py`)
    first_epoch        rounds of the first of them, where they are given
    withholds          reason why nothing is promised of a situation, with these settings, though its hypotheses hold; "" where something is
    """

    name: str
    measures: frozenset[Measure]
    hypotheses: tuple[Hypothesis, ...]
    settings: Callable[[Situation], Mapping[str, Default]]
    guarantee: Callable[[Situation, Mapping[str, Setting]], Guarantee]
    rates: Mapping[str, str]
    violation: Violation | None = None
    expected: bool = False
    checks: Callable[[Situation, Mapping[str, Setting]], list[str]] = field(default=lambda s, given: [])
    settings_of_words: Callable[[Situation, Mapping[str, str]], Mapping[str, Default]] = field(
        default=lambda s, words: {}
    )
    words: Mapping[str, str] = field(default_factory=dict)
    accepts: tuple[str, ...] = ()
    positive: tuple[str, ...] = ()
    asked_by: tuple[str, ...] = ()
    free: tuple[Free, ...] = ()
    best: Mapping[str, Default] = field(default_factory=dict)
    moves: bool = False
    norm: str = "l2"
    step_length: Callable[[Situation, Mapping[str, Setting]], Callable[[Rounds, int], Schedule]] | None = None
    restart: Restart = Restart.FROM_DECISION
    restarts: Theorem | None = None
    first_epoch: int | None = None
    withholds: Callable[[Situation, Mapping[str, Setting]], str] = field(default=lambda s, settings: "")

    def has_words_of(self, given: Mapping[str, str | float]) -> bool:
        """True if the words among the given settings are its own, and one of those that it is asked by is given."""
        if self.asked_by and not any(n in given for n in self.asked_by):
            return False
        return all(str(given.get(w, word)).strip('"') == word for w, word in self.words.items())

    @property
    def facts(self) -> frozenset[str]:
        """The facts that its hypotheses name."""
        return frozenset(f for h in self.hypotheses for f in h.facts)

    def objections(self, s: Situation) -> list[Objection]:
        """Hypotheses that do not hold, in their order; none where the theorem applies, perhaps under conditions."""
        results = [o for h in self.hypotheses if not h.last and isinstance(o := h.test(s), Objection)]
        return results or [o for h in self.hypotheses if h.last and isinstance(o := h.test(s), Objection)]

    def conditions(self, s: Situation) -> tuple[Condition, ...]:
        """Conditions on the sequence under which the guarantee holds; none where all hypotheses are proved."""
        return tuple(dict.fromkeys(c for h in self.hypotheses if isinstance(c := h.test(s), Condition)))


def without_sense(theorem: Theorem, s: Situation, settings: Mapping[str, Setting]) -> list[Objection]:
    """Settings for which the formulas of a guarantee mean nothing: numbers that must be positive and are not."""
    T = s.horizon or ANY_LENGTH
    wrong = [n for n in theorem.positive if n in settings and not scheduled(settings, n)(Rounds.of(T), T).positive]
    return [Objection(f"the setting {n} must be positive in every round") for n in wrong]


def scheduled(settings: Mapping[str, Setting], name: str) -> Callable[[Rounds, int], Schedule]:
    """The values of a setting in the rounds of a run planned for a horizon."""
    return lambda rounds, horizon: settings[name].along(rounds, horizon)


def constant_settings(s: Situation, settings: Mapping[str, Setting]) -> list[str]:
    """Errors in the settings of a theorem whose settings do not depend on the round."""
    return [f"{n} must not depend on the round" for n, v in settings.items() if "t" in v.symbols]


class UnknownFact(InternalError):
    """A formula needs a fact that is not known: a bug where the theorem's hypotheses hold, else what stands in the way."""

    def __init__(self, key: str) -> None:
        super().__init__(f"a formula needs {key}, which no hypothesis asked for")
        self.key = key


def needed(s: Situation, key: str) -> float:
    """A fact that the theorem's hypotheses have established. Raises UnknownFact."""
    value = s.number(key)
    if value is None:
        raise UnknownFact(key)
    return value


def needed_bounds(s: Situation, what: str) -> Floats:
    """Bounds `what` of every inequality, shape (N,); raises UnknownFact where one is not known."""
    result = s.inequality_bounds(what)
    if result is None:
        raise UnknownFact(f"constraints.*.{what}")
    return result


def fact_is_true(key: str, words: str, claim: str, refuted: str, fix: str = "") -> Hypothesis:
    """A yes-or-no fact: `claim` in words, and what is wrong where it is `refuted`."""

    def test(s: Situation) -> Objection | None:
        if s.holds(key):
            return None
        if s.is_refuted(key):
            return Objection(f"{refuted}: {s.claim(key)}" if s.claim(key) else refuted, fix)
        return Objection(f"it is not proved that {claim}", fix)

    return Hypothesis(words, test, (key,))


def fact_is_known(key: str, words: str, what: str) -> Hypothesis:
    """A number that the facts bound, of the loss or of the domain."""

    def test(s: Situation) -> Objection | None:
        if s.number(key) is not None:
            return None
        if not key.startswith("loss."):
            return Objection(f"nothing bounds {what}", "give a bounded domain")
        loss = s.canonical.objective
        return Objection(f"nothing bounds {what}", way_to_bound(s.canonical, loss, key), span=loss.span)

    return Hypothesis(words, test, (key,))


def inequalities_have(what: str, words: str, meaning: str) -> Hypothesis:
    """A number that the facts bound for every inequality."""

    def test(s: Situation) -> Objection | None:
        for c in s.canonical.inequalities:
            if s.entries(c.label, c.shape, what) is None:
                fix = way_to_bound(s.canonical, c.expr, f"constraints.{c.label}.{what}")
                return Objection(f"nothing bounds {meaning} of `{c.origin}`", fix, span=c.span)
        return None

    return Hypothesis(words, test, (f"constraints.*.{what}",))


def inequalities_convex(words: str) -> Hypothesis:
    """Convexity in the decisions of every inequality; `words` are the paper's."""

    def test(s: Situation) -> Objection | None:
        for c in s.canonical.inequalities:
            if not s.holds(f"constraints.{c.label}.convex"):
                return Objection(
                    f"it is not proved that `{c.origin}` is convex in the decisions",
                    f"write `{c.origin}` with convex functions, or `assume constraints.{c.label}.convex` if it is",
                )
        return None

    return Hypothesis(words, test, ("constraints.*.convex",))


def horizon_known(words: str) -> Hypothesis:
    """A number of rounds that the model states; `words` are the paper's."""

    def test(s: Situation) -> Objection | None:
        message = "its settings use the number of rounds, which the model leaves unknown"
        return Objection(message, "write `horizon T = ...`") if s.horizon is None else None

    return Hypothesis(words, test, of_horizon=True)
