"""Guarantees of theorems: bounds of regret and violation as formulas over named quantities, as numbers, curves and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any

import numpy as np

from oco.compiler.ir.symbolic import ONE, UNDEFINED, Call, Formula, Symbol, SymbolicPower, SymbolicProduct
from oco.compiler.ir.symbolic_form import decimal_value, exact
from oco.compiler.theory.conditions import Condition as Condition
from oco.compiler.theory.formula_values import evaluated
from oco.compiler.theory.schedule import KEPT, Rounds, Schedule
from oco.compiler.theory.settings import parse_formula
from oco.dsl.records import dataclass

Floats = np.ndarray[Any, Any]
_NAMES = attrgetter("name", "latex")
FROM_CENTRE = "the guarantee is for a first decision at the centre of the domain"


@dataclass(frozen=True)
class Quantity:
    """Symbol of a guarantee's formula.

    value  a number, or a function that gives one after the last round of each stretch of a run planned for T; None where nothing tells
    total  its last value alone, where that takes less work
    """

    name: str
    latex: str
    meaning: str
    value: float | Callable[[Rounds, int], Floats | Schedule | float] | None
    total: Callable[[Rounds, int], float] | None = None

    def at(self, rounds: Rounds, horizon: int) -> Floats | np.float64:
        """Values after the last round of each stretch, shape (stretches,) or (); NaN where nothing tells them."""
        if self.value is None:
            return np.float64(np.nan)
        values = self.value(rounds, horizon) if callable(self.value) else self.value
        if isinstance(values, Schedule):
            return values.last if values.number is None else np.float64(values.number)
        return np.float64(values) if np.ndim(values) == 0 else np.asarray(values, dtype=np.float64)

    def after_all(self, rounds: Rounds, horizon: int) -> np.float64:
        """Value after all rounds; NaN where nothing tells it."""
        if self.total is not None:
            return np.float64(self.total(rounds, horizon))
        values = self.value(rounds, horizon) if callable(self.value) else self.value
        if isinstance(values, Schedule):
            values = values.last if values.number is None else values.number
        if values is None:
            return np.float64(np.nan)
        return np.float64(values[-1] if isinstance(values, np.ndarray) and values.ndim else values)


@dataclass(frozen=True, eq=False)
class Bound:
    """Bound of a theorem on one measure. `formula` is text over the names of `quantities`; "" where only a rate is known.

    `rate` is text in T (and V_x, V_g where nothing is known of them). `trivial` is the most that one round can add: the range of the
    loss, or the sum over the constraints of their largest proved values; where that is 0, as over a domain of one point, so is the
    bound, whatever the formula gives. `seen` is the most that a round added in the mean over rounds of data
    that were looked at, whatever was decided.
    All of these and the formula are in the theorem's units; `unit` brings them to the user's, `label_units` the same for each
    constraint alone.
    """

    measure: str
    rate: str
    formula: str = ""
    quantities: tuple[Quantity, ...] = ()
    trivial: float | None = None
    note: str = ""
    unit: float = 1.0
    seen: float | None = None
    label_units: Mapping[str, float] = field(default_factory=dict)

    @cached_property
    def expression(self) -> Formula:
        """The formula over symbols that print as the paper writes them; undefined for a rate alone."""
        return _expression(self.formula, tuple(map(_NAMES, self.quantities))) if self.formula else UNDEFINED

    @property
    def latex(self) -> str:
        """Bound in LaTeX: its rate, and its formula where there is one."""
        import sympy

        rate = f"O({sympy.latex(sympy.sympify(parse_formula(self.rate, rate_symbols())))})"
        if not self.formula:
            return rate
        # SymPy reads indices into names, and these are LaTeX already.
        expression = sympy.sympify(self.expression)
        written = {s: s.name for s in expression.free_symbols if "\\" in s.name or " " in s.name}
        shown = sympy.latex(expression, symbol_names=written)
        unit = "" if self.unit == 1 else rf"{self.unit:.6g} \left({shown}\right)"
        return f"{unit or shown} = {rate}"

    def curve(self, rounds: int, horizon: int) -> Floats | None:
        """The bound in the user's units after 1..rounds rounds with the settings of `horizon`, shape (rounds,); None for a rate.

        The last is `number`, which sums over stretches of rounds and is larger by less than a thousandth.
        """
        result, last = self.after(Rounds.every(rounds), horizon), self.number(rounds, horizon)
        return result if result is None or last is None else np.append(result[:-1], last)

    def after(self, rounds: Rounds, horizon: int) -> Floats | None:
        """Values of the bound after the last round of each stretch, shape (stretches,)."""
        result = self._unit_free(rounds, horizon)
        with np.errstate(over="ignore"):  # a bound beyond all numbers is infinite
            return None if result is None else np.broadcast_to(self.unit * result, rounds.last.shape)

    def _unit_free(self, rounds: Rounds, horizon: int) -> Floats | None:
        """Bound in the theorem's units after each stretch, shape (stretches,), or () where it is the same after each."""
        if not self.formula:
            return None
        if self.trivial == 0:
            return np.zeros(())
        if (rounds, horizon) in self._curves:
            return self._curves[rounds, horizon]
        used = self._used
        if used is None:
            return None
        result = evaluated(self.expression, {q.latex: q.at(rounds, horizon) for q in used})
        if len(rounds.last) <= KEPT:
            self._curves[rounds, horizon] = result
        return result

    @cached_property
    def _used(self) -> tuple[Quantity, ...] | None:
        """Quantities that occur in the formula; None where nothing tells the value of one."""
        used = tuple(self.quantities[k] for k in _places(self.formula, tuple(map(_NAMES, self.quantities))))
        return None if any(q.value is None for q in used) else used

    @cached_property
    def _curves(self) -> dict[tuple[Rounds, int], Floats]:
        """Values in the theorem's units that were asked for before."""
        return {}

    @cached_property
    def _totals(self) -> dict[tuple[int, int], float]:
        """Values after all rounds, in the theorem's units, that were asked for before."""
        return {}

    def number(self, rounds: int, horizon: int | None = None) -> float | None:
        """The bound after all rounds, by default with the settings of that horizon."""
        result = self._last(rounds, rounds if horizon is None else horizon)
        return None if result is None else self.unit * result

    def _last(self, rounds: int, horizon: int) -> float | None:
        """Bound in the theorem's units after all rounds."""
        if not self.formula:
            return None
        if self.trivial == 0:
            return 0.0
        if (rounds, horizon) not in self._totals:
            if self._used is None:
                return None
            stretches = Rounds.of(rounds)
            values = {q.latex: q.after_all(stretches, horizon) for q in self._used}
            self._totals[rounds, horizon] = float(evaluated(self.expression, values))
        return self._totals[rounds, horizon]

    def label_numbers(self, rounds: int) -> dict[str, float]:
        """The bound of each constraint alone, where their units are known; the bound of the sum is that of each."""
        result = self._last(rounds, rounds)
        return {} if result is None else {label: unit * result for label, unit in self.label_units.items()}

    def share(self, rounds: int) -> float | None:
        """The bound after all rounds in units of the trivial one, T times `most`; None where that or the number is not known.

        0 where nothing can go wrong: a constraint that no decision breaks.
        """
        result, most = self._last(rounds, rounds), self.most
        if result is None or most is None:
            return None
        if most == 0:
            return math.inf if result > 0 else 0.0
        return result / (most * rounds)

    @property
    def most(self) -> float | None:
        """Most that a round can add: `trivial`, or what it was in the rounds seen where that is less."""
        known = [x for x in (self.trivial, self.seen) if x is not None]
        return min(known) if known else None

    @property
    def worst(self) -> float | None:
        """Largest cost of one round, in the user's units; the mean over the rounds seen where that is less."""
        return None if self.most is None else self.unit * self.most

    def trivial_total(self, rounds: int) -> float | None:
        """Most that the measure can be after all rounds whatever is decided, in the user's units; None where that is not known."""
        return None if self.worst is None else self.worst * rounds

    def vacuous(self, rounds: int) -> bool:
        """True if the number is no better than what every sequence of decisions satisfies."""
        share = self.share(rounds)
        return share is not None and not share < 1


def vacuous_words(trivial: str) -> str:
    """Text in the place of a vacuous number, with the trivial bound, as text, beside it."""
    return f"vacuous (any decisions: {trivial})" if trivial else "vacuous"


@lru_cache(maxsize=256)
def _expression(formula: str, names: tuple[tuple[str, str], ...]) -> Formula:
    """The formula over symbols called by their LaTeX."""
    return parse_formula(formula, {name: Symbol(latex) for name, latex in names})


@lru_cache(maxsize=256)
def _places(formula: str, names: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
    """Places of the symbols that occur in a formula among those that may: a search asks in every step."""
    symbols = _expression(formula, names).symbols
    return tuple(k for k, (_, latex) in enumerate(names) if latex in symbols)


def rate_symbols() -> dict[str, Formula]:
    """The symbols of a rate: T, d, and the exponents of path length and constraint variation."""
    return {name: Symbol(name) for name in ("T", "d", "V_x", "V_g", "V_star", "beta")}


@lru_cache(maxsize=256)
def exponent_of(rate: str) -> float:
    """The exponent of T in a rate, in text; V_x and V_g, where nothing is known of them, count as 1, and V_* as T."""
    return _growth(parse_formula(rate, rate_symbols() | {"V_x": ONE, "V_g": ONE, "V_star": Symbol("T"), "d": exact(2)}))


def _growth(f: Formula) -> float:
    """Exponent of T in a formula as T grows: logarithms and numbers count as T^0."""
    of_args = list(map(_growth, f.args))
    match f:
        case Symbol():
            return float(f.name == "T")
        case SymbolicPower():
            return of_args[0] * float(decimal_value(f.exponent))
        case SymbolicProduct():
            return sum(of_args)
        case Call(name="log"):
            return 0.0
        case Call(name="min"):
            return min(of_args)
    return max(of_args, default=0.0)


@dataclass(frozen=True, eq=False)
class Guarantee:
    """Guarantee of a plan's learner. `violation` covers the inequalities, `equality` the equalities on average; None: there are none.

    conditions   hypotheses about the sequence that are not proved
    remarks      sentences on what the bounds are about
    from_centre  whether it is for a first decision at the centre of the domain alone
    """

    theorem: str
    horizon: int | None
    regret_bound: Bound
    violation_bound: Bound | None = None
    equality_bound: Bound | None = None
    remarks: tuple[str, ...] = ()
    from_centre: bool = False
    conditions: tuple[Condition, ...] = ()

    @property
    def reservations(self) -> tuple[str, ...]:
        """Conditions and remarks as sentences: each makes the guarantee say less than another with the same bounds."""
        return (*map(str, self.conditions), *self.remarks)

    @property
    def openness(self) -> tuple[int, int]:
        """Number of reservations that nothing settles, and of conditions that hold on data alone."""
        measured = sum(bool(c.measured) for c in self.conditions)
        return len(self.reservations) - measured, measured

    @property
    def provisos(self) -> tuple[str, ...]:
        """Sentences that a reader of the guarantee should know."""
        return (*self.reservations, *((FROM_CENTRE,) if self.from_centre else ()))

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """Bounds of regret, violation and equalities, those that there are."""
        return tuple(b for b in (self.regret_bound, self.violation_bound, self.equality_bound) if b is not None)

    def regret(self, T: int | None = None) -> float | None:
        """The bound of the regret for a horizon of T rounds (default: the plan's); None where only a rate is known."""
        rounds = self.horizon if T is None else T
        return None if rounds is None else self.regret_bound.number(rounds)

    def violation(self, T: int | None = None) -> float | None:
        """The bound of the summed violation of the inequalities; 0 where there are none, None where only a rate is known."""
        rounds = self.horizon if T is None else T
        if self.violation_bound is None:
            return 0.0
        return None if rounds is None else self.violation_bound.number(rounds)

    def regret_curve(self, rounds: int) -> Floats | None:
        """The bound after each of the first `rounds` rounds of this plan."""
        return self.regret_bound.curve(rounds, self.horizon or rounds)

    def violation_curve(self, rounds: int) -> Floats | None:
        """Bound of the violation after each of so many rounds, shape (rounds,); None where there is none."""
        return None if self.violation_bound is None else self.violation_bound.curve(rounds, self.horizon or rounds)

    @property
    def rates(self) -> dict[str, Formula]:
        """Formulas in T by the name of the measure; SymPy takes each as an expression."""
        return {b.measure: parse_formula(b.rate, rate_symbols()) for b in self.bounds}

    @property
    def exponent(self) -> float:
        """Sum of the exponents of T in the rates."""
        return sum(exponent_of(b.rate) for b in self.bounds)

    @property
    def latex(self) -> str:
        """Bounds in LaTeX, a line each."""
        return r" \\ ".join(rf"\text{{{b.measure}}} \le {b.latex}" for b in self.bounds)

    @property
    def vacuous(self) -> tuple[str, ...]:
        """The measures whose number says nothing at the plan's horizon."""
        return tuple(b.measure for b in self.bounds if self.horizon is not None and b.vacuous(self.horizon))
