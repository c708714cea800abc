"""The constants that a theorem leaves free, chosen so that its guarantee is least.

What is minimized is R(T) / (range of the loss) + w sum_n V_n(T) / (scale of g_n), on the problem without units, in which the trivial bound
stands for a vacuous one (see `objective`). A constant in which this is a + b k^p + c k^q has its best value in closed form; the others are
found by a search in log k, one after the other and, where they are few, along their products and quotients too. The search begins at the
paper's values and takes only what is better. Where every bound is vacuous there, it looks first for constants with which one is not, and
where it finds none minimizes the sum of the vacuous ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property, lru_cache, partial
from itertools import combinations
from types import MappingProxyType

import numpy as np

from oco.compiler.ir.symbolic import Symbol
from oco.compiler.theory.line_search import FIRST_STEP, GAIN, above, doubled, fit, least, stationary
from oco.compiler.theory.moves import promise
from oco.compiler.theory.objective import (
    ANY_HORIZON,
    ROUNDING,
    Counted,
    Objective,
    Spare,
    Terms,
    all_vacuous,
    most_vacuous,
    summed,
    terms,
    total,
)
from oco.compiler.theory.resolve import GivenSettings, defaults, theorem_settings
from oco.compiler.theory.settings import Setting
from oco.compiler.theory.theorems import Free, Guarantee, Situation, Theorem, UnknownFact
from oco.dsl.diagnostics import OcoError
from oco.dsl.records import dataclass

PASSES = 2  # passes over all constants: later ones gain less than GAIN
MOST_PAIRED = 4
"""So few constants are searched along their products and quotients too."""
SCANS = (FIRST_STEP, FIRST_STEP / 4)
"""Steps of scans, each from where the last one ends."""
FAR_ABOVE, FAR_FROM_NUMBERS = (3.0, 1.4), (3.0, 2.0)
"""Largest sums after each scan for which a search is worth its time, in units of a rival's sum, and largest shares in the trivial bound
where only a bound that says something counts. On the models of `examples` and `benchmarks/corpus` a search came down to 0.51 and 0.86 of
the sums of 481 pairs of scans, and to 0.62 of such a share after the second."""
DIGITS = 5
Logs = tuple[float, ...]
"""Logarithms of the free constants, in the theorem's order."""


@dataclass(frozen=True)
class Best:
    """One free constant at its best: the factor (or value) `number`, and how it was found in words."""

    name: str
    number: float
    how: str


@dataclass(frozen=True)
class Rival:
    """Sum of another theorem, where none of its bounds is vacuous, and the sum of the exponents of T in its rates: of two vacuous ones that
    with the lower one comes first.
    """

    least: float = math.inf
    rate: float = math.inf


ALONE = Rival()


@dataclass(frozen=True, eq=False)
class Optimum:
    """Settings with the free constants at their best. `least` is the sum that they minimize; None where a bound has no number."""

    settings: Mapping[str, Setting]
    guarantee: Guarantee
    least: float | None = None
    constants: tuple[Best, ...] = ()
    note: str = ""

    @property
    def numbers(self) -> dict[str, float]:
        """Best values of the free constants by name."""
        return {b.name: b.number for b in self.constants}


def optimum(
    theorem: Theorem,
    s: Situation,
    given: GivenSettings,
    weight: float = 1.0,
    paper: Mapping[str, Setting] | None = None,
    rival: Rival = ALONE,
) -> Optimum | None:
    """The best settings of a theorem on a problem without units, from those of the paper (worked out where they are not known).

    rival  None is returned where a coarse scan stays far above its sum, or far from saying something where that alone would help

    Raises OcoError where a given setting has no value.
    """
    search = _Search(theorem, s, given, weight, theorem_settings(theorem, s, given) if paper is None else paper)
    if math.isfinite(rival.least) and search.far_above(rival.least):
        return None
    start = search.promised(search.paper)
    if start.least is None:
        unnumbered = ", ".join(b.measure for b in start.guarantee.bounds if not b.formula)
        note = f"{unnumbered} has no number to minimize: the paper's constants, for the problem without units"
        return Optimum(start.settings, start.guarantee, note=note)
    if start.guarantee.exponent > rival.rate and search.stays_vacuous():
        return None
    result = search.best()
    best = search.at({b.name: b.number for b in result})
    sums = [summed(terms(s, at.guarantee, weight)) for at in (best, start)]  # these decide where what counts is equal
    if best.least is None or best.least > start.least or not sums[0] < sums[1]:
        return start
    return Optimum(best.settings, best.guarantee, best.least, tuple(result))


@dataclass(frozen=True, eq=False)
class _Search:
    theorem: Theorem
    s: Situation
    given: GivenSettings
    weight: float
    paper: Mapping[str, Setting]
    seen: dict[tuple[float, ...], Terms | None] = field(default_factory=dict)
    last: dict[str, Setting] = field(default_factory=dict)
    """Settings with the numbers of the step before: those whose numbers stay keep their schedules and their sums."""

    @property
    def rounds(self) -> int:
        return self.s.horizon or ANY_HORIZON

    @cached_property
    def free(self) -> tuple[Free, ...]:
        """The free constants of settings that are there and not given."""
        names, _ = defaults(self.theorem, self.s, self.given)
        return tuple(f for f in self.theorem.free if f.name in names and f.name not in self.given)

    @cached_property
    def open_settings(self) -> dict[str, Setting]:
        """The settings with a symbol for each free constant."""
        names = {f.name: f"free_{f.name}" for f in self.free}
        symbols = {n: Symbol(n) for n in names.values()}
        return theorem_settings(self.theorem, self.s, self.given, None, names, symbols)

    @cached_property
    def varied(self) -> dict[str, Setting]:
        """Open settings in which a free constant occurs."""
        names = {f"free_{f.name}" for f in self.free}
        return {n: x for n, x in self.open_settings.items() if not names.isdisjoint(x.symbols)}

    def at(self, numbers: Mapping[str, float]) -> Optimum:
        """The settings and the guarantee with these numbers, as the paper has the others."""
        return self.promised(theorem_settings(self.theorem, self.s, self.given, None, numbers))

    def promised(self, settings: Mapping[str, Setting]) -> Optimum:
        """Settings with their guarantee, and its sum."""
        guarantee = promise(self.theorem, self.s, settings)
        return Optimum(settings, guarantee, total(terms(self.s, guarantee, self.weight)))

    def terms_at(self, logs: Logs) -> Terms | None:
        """The bounds at e^logs; None where the theorem does not hold."""
        if logs not in self.seen:
            self.seen[logs] = self._terms_at(tuple(rounded(f, x) for f, x in zip(self.free, logs)))
        return self.seen[logs]

    def _terms_at(self, numbers: tuple[float, ...]) -> Terms | None:
        if any(not f.low <= x <= f.high for f, x in zip(self.free, numbers)):
            return None
        known = {f"free_{f.name}": x for f, x in zip(self.free, numbers)}
        self.last.update(closed(self.varied, known, self.last))
        settings = self.open_settings | self.last
        try:
            if self.theorem.checks(self.s, settings):
                return None
            return terms(self.s, promise(self.theorem, self.s, settings), self.weight)
        except (OcoError, UnknownFact, OverflowError, ZeroDivisionError, ValueError):
            return None  # the guarantee has no value here

    def far_above(self, rival: float) -> bool:
        """True where scans from the paper's constants show that the sum stays above that of a rival."""
        return self._stays_above([far * rival for far in FAR_ABOVE], summed)

    def stays_vacuous(self) -> bool:
        """True where scans from the paper's constants show that some bound stays above its trivial one."""
        return self._stays_above(FAR_FROM_NUMBERS, most_vacuous)

    def _stays_above(self, levels: Sequence[float], objective: Objective) -> bool:
        logs, near = self._start, min(levels)
        for step, level in zip(SCANS, levels, strict=True):
            logs, value = _Descent(self, objective).scan(logs, step, near)
            if value > level:
                return True
            if value <= near:
                return False
        return False

    def best(self) -> list[Best]:
        """The best constants found, from the paper's; where a bound is vacuous there, from those of the least sum and of balance too."""
        first = _Place(self._start)
        start = self.terms_at(first.logs) or terms(self.s, self.promised(self.paper).guarantee, self.weight)
        counted = Counted(start)
        if not any(t.vacuous for t in start):
            return self._named(self._least(counted, first))
        least, best = self._least(summed, first), self._least(counted, first)
        for place in (least, self._least(most_vacuous, first)):
            if self._value(counted, place) < self._value(counted, best):
                best = self._least(counted, place)
        if not math.isfinite(self._value(counted, best)) or all_vacuous(self._terms(best)):
            return self._named(least)
        taken = self._terms(best)
        return self._named(self._least(Spare(taken), best) if any(t.vacuous for t in taken) else best)

    def _terms(self, place: _Place) -> Terms:
        result = self.terms_at(place.logs)
        assert result is not None
        return result

    def _least(self, objective: Objective, place: _Place) -> _Place:
        return _Descent(self, objective).run(place)

    def _value(self, objective: Objective, place: _Place) -> float:
        return _Descent(self, objective).value(place.logs)

    def _named(self, place: _Place) -> list[Best]:
        return [
            Best(f.name, rounded(f, x), place.how.get(f.name, "numeric search")) for f, x in zip(self.free, place.logs)
        ]

    @cached_property
    def _start(self) -> Logs:
        """Logarithms of the paper's constants."""

        def log(f: Free) -> float:
            value = self.paper[f.name].value if f.kind == "value" else 1.0
            return math.log(value if value is not None and f.low <= value <= f.high else math.sqrt(f.low * f.high))

        return tuple(map(log, self.free))


@dataclass(frozen=True)
class _Place:
    """Logarithms of the constants, and of some how they were found."""

    logs: Logs
    how: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Descent:
    """A search along the free constants, their products and quotients, for the least value of an objective."""

    search: _Search
    objective: Objective

    @property
    def free(self) -> tuple[Free, ...]:
        return self.search.free

    def value(self, logs: Logs) -> float:
        result = self.search.terms_at(logs)
        return math.inf if result is None else self.objective(result)

    def run(self, place: _Place) -> _Place:
        """The best constants that are found from a place."""
        logs, how = place.logs, dict(place.how)
        for first in (True, *(False,) * (PASSES - 1)):
            before = self.value(logs)
            for i, f in enumerate(self.free):
                closed = self._closed_form(logs, i, f)
                if closed is not None and not self.value(closed[0]) > above(self.value(logs), ROUNDING):
                    logs, how[f.name] = closed
                else:
                    logs = self._along(logs, _direction(len(logs), {i: 1.0}))
            for direction in self._pairs() if first else ():
                logs = self._along(logs, direction)
            after = self.value(logs)
            if len(self.free) == 1 or not after < above(before, -GAIN):
                break
        return _Place(logs, how)

    def scan(self, logs: Logs, step: float, near: float) -> tuple[Logs, float]:
        """Place of the least value on steps that double while they gain, along the constants, their products and quotients.

        near  a value that ends the scan where it comes down to it
        """
        size, value = len(logs), self.value(logs)
        for direction in (*(_direction(size, {i: 1.0}) for i in range(size)), *self._pairs()) * PASSES:
            if value <= near:
                break
            value, by = doubled(partial(self._moved_value, logs, direction), step)
            logs = _moved(logs, direction, by)
        return logs, value

    def _moved_value(self, logs: Logs, direction: Logs, by: float) -> float:
        return self.value(_moved(logs, direction, by))

    def _pairs(self) -> Iterator[Logs]:
        if len(self.free) <= MOST_PAIRED:
            for i, j in combinations(range(len(self.free)), 2):
                yield _direction(len(self.free), {i: 1.0, j: -1.0})
                yield _direction(len(self.free), {i: 1.0, j: 1.0})

    def _along(self, logs: Logs, direction: Logs) -> Logs:
        share = least(lru_cache(maxsize=None)(partial(self._moved_value, logs, direction)))
        return _moved(logs, direction, share)

    def _closed_form(self, logs: Logs, i: int, f: Free) -> tuple[Logs, str] | None:
        """The best k where the sum is a + b k^p + c k^q, checked at a fourth point; None where it is not of that form."""
        if f.powers is None:
            return None
        ks = (0.5, 1.0, 2.0, 3.0)
        unit = _direction(len(logs), {i: 1.0})
        values = [self.value(_moved(logs, unit, math.log(k))) for k in ks]
        fitted = fit(f.powers, ks, values)
        if fitted is None:
            return None
        formula, text = stationary(f.powers)
        a, b, c = fitted
        k = float(formula(b, c))
        words = f"sum = {a:.4g} + {b:.4g} k^{f.powers[0]} + {c:.4g} k^{f.powers[1]}, least at k = {text} = {k:.4g}"
        return _moved(logs, unit, math.log(k)), words


def rounded(f: Free, log: float) -> float:
    """The number itself, with few digits: settings are meant to be read."""
    return float(f"{math.exp(log):.{DIGITS}g}")


def _direction(size: int, entries: Mapping[int, float]) -> Logs:
    return tuple(entries.get(i, 0.0) for i in range(size))


def _moved(logs: Logs, direction: Logs, by: float) -> Logs:
    return tuple(x + by * d for x, d in zip(logs, direction))


def closed(
    settings: Mapping[str, Setting], numbers: Mapping[str, float], before: Mapping[str, Setting] = MappingProxyType({})
) -> dict[str, Setting]:
    """The settings with numbers for their open symbols; a theorem reads their values by `number` and `scheduled`.

    before  settings closed before: one with the same numbers is that one, with the schedules that it has worked out
    """
    results = {}
    for name, setting in settings.items():
        used = setting.formula.symbols
        if used.isdisjoint(numbers):
            results[name] = setting
        else:
            known = tuple((n, np.float64(x)) for n, x in numbers.items() if n in used)
            last = before.get(name)
            if last is None or last.numbers != known:
                last = Setting(name, setting.formula, None, setting.why, setting.given, known)
            results[name] = last
    return results
