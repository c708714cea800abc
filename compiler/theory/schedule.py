"""Rounds 1..n in stretches, so that sums over a million rounds take as many terms as sums over a thousand, and stay upper bounds.

The first rounds are stretches of their own; later ones are shorter than a 64th of what came before. A formula in t is worked out for
the last round of each stretch, with enclosures of its values and of its change from one round to the next over the stretch, by interval
arithmetic and the mean value theorem. From the last round backwards x_t <= x_last - (last - t) inf(change), so that a stretch of c rounds
adds at most c x_last - c (c - 1) / 2 inf(change): exact for straight lines, and for powers of t too large by a few parts in ten thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from oco.compiler.theory.schedule_powers import Floats, Interval, Powers, hull, plus, scaled, times, total
from oco.dsl.records import dataclass

SINGLE = 1000
"""So many rounds are stretches of their own."""
SHARE = 64
"""A later stretch is at most one such part of the rounds before it."""
KEPT = 20_000
"""Up to so many rounds that are stretches of their own, what is worked out for them is kept."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """Rounds 1..n in stretches. `last`: the last round of each, ascending, shape (stretches,)."""

    last: Floats

    @staticmethod
    def every(n: int) -> Rounds:
        """Each round is a stretch of its own. What is worked out for few rounds is kept; for many it would take memory for good."""
        return _few(n) if n <= KEPT else Rounds(np.arange(1.0, n + 1))

    @staticmethod
    @lru_cache(maxsize=64)
    def of(n: int) -> Rounds:
        """Few stretches, by the logarithm of n."""
        last = [float(t) for t in range(1, min(n, SINGLE) + 1)]
        while last[-1] < n:
            last.append(min(float(n), last[-1] + last[-1] // SHARE))
        return Rounds(np.array(last))

    def within(self, start: float, length: int) -> Rounds:
        """Rounds start + 1 to start + length counted from 1, in stretches of their own that end where these end, too."""
        if self.single:
            return Rounds.every(length)
        ends = self.last[(self.last > start) & (self.last <= start + length)] - start
        return Rounds(np.union1d(Rounds.of(length).last, ends))

    @property
    def n(self) -> int:
        """Number of rounds."""
        return int(self.last[-1])

    @cached_property
    def first(self) -> Floats:
        """First round of each stretch, shape (stretches,)."""
        return np.concatenate([[1.0], self.last[:-1] + 1])

    @cached_property
    def count(self) -> Floats:
        """Number of rounds of each stretch, shape (stretches,)."""
        return self.last - self.first + 1

    @cached_property
    def single(self) -> bool:
        """True if every stretch is one round."""
        return len(self.last) == self.n

    @cached_property
    def t(self) -> Schedule:
        """The number of the round."""
        one = np.ones(len(self.last))
        ends = np.maximum(self.first - 1, 1.0), self.last
        return Schedule(self, self.last, ends, (one, one), power=(1.0, 1.0))

    def scaled_power(self, last: Floats, k: float, p: float) -> Schedule:
        """k t^p, whose values and slope are monotone: as near as the ends of a stretch tell, whatever formula it came from."""
        return self.constant(k) if p == 0 else Schedule(self, last, power=(k, p))

    @cached_property
    def powers(self) -> Powers:
        """Powers of t over the stretches."""
        return Powers(self.last, self.t.values[0], self.count)

    @cached_property
    def known(self) -> dict[Any, Any]:
        """Schedules of formulas in t alone, once they are worked out."""
        return {}

    def constant(self, number: float) -> Schedule:
        """Schedule with one number in every round."""
        same, none = np.full(len(self.last), number), np.zeros(len(self.last))
        return Schedule(self, same, (same, same), (none, none), number)


@lru_cache(maxsize=8)
def _few(n: int) -> Rounds:
    return Rounds(np.arange(1.0, n + 1))


class Schedule(NDArrayOperatorsMixin):
    """A number for each round. Operators and NumPy's functions of it give schedules.

    last    its value in the last round of each stretch
    values  enclose it from the round before the stretch to its last
    change  encloses x_t - x_{t-1} for the rounds t of the stretch
    number  its value where that is known to be the same in all rounds
    power   k and p where it is known to be k t^p
    """

    def __init__(
        self,
        rounds: Rounds,
        last: Floats,
        values: Interval | None = None,
        change: Interval | None = None,
        number: float | None = None,
        power: tuple[float, float] | None = None,
    ):
        self.rounds, self.last, self.number, self.power = rounds, last, number, power
        self._values, self._change = values, change

    @property
    def values(self) -> Interval:
        """Enclosure of the values, from the round before each stretch on."""
        if self._values is None:
            self._values = (self.last, self.last) if self.power is None else self._powered(0)
        return self._values

    @property
    def change(self) -> Interval:
        """Enclosure of the changes from round to round."""
        if self._change is None:
            self._change = (self.last, self.last) if self.power is None else self._powered(1)
        return self._change

    def _powered(self, derivatives: int) -> Interval:
        """The range of k t^p or of its slope: worked out when asked for, as most of what a formula makes on the way is not."""
        assert self.power is not None
        k, p = self.power
        known = self.rounds.powers
        return scaled(k * p, known.range(p - 1)) if derivatives else scaled(k, known.range(p))

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options or function not in _RULES:
            return NotImplemented
        parts = [x if not isinstance(x, Schedule) or x.number is None else x.number for x in inputs]
        with np.errstate(all="ignore"):
            last = function(*(x.last if isinstance(x, Schedule) else x for x in parts))
            if not any(isinstance(x, Schedule) for x in parts):
                return self.rounds.constant(float(last))
            if self.rounds.single:
                return Schedule(self.rounds, last)
            if power := _power_of(function, parts):
                return self.rounds.scaled_power(last, *power)
            return Schedule(self.rounds, last, *_RULES[function](*parts))

    @cached_property
    def inverse(self) -> Schedule:
        """Schedule of 1 / value."""
        result: Schedule = 1.0 / self
        return result

    def sums(self) -> Floats:
        """x_1 + ... + x_t at the last round t of each stretch, or a little more."""
        return self._sums

    @cached_property
    def _sums(self) -> Floats:
        if self.rounds.single:
            return np.cumsum(self.last)
        if self.power is not None and self.power[0] > 0:
            return np.asarray(self.power[0] * self.rounds.powers.sums(self.power[1]))
        return np.cumsum(total(self.rounds.count, self.last, self.change[0], self.values[1]))

    def summed(self) -> Schedule:
        """The sums as a schedule: their change is x_t."""
        total = self.sums()
        return Schedule(self.rounds, total, (np.concatenate([[0.0], total[:-1]]), total), self.values)

    def part(self, after: Floats, stretch: Any) -> Floats:
        """The sum of x_t over the rounds t > `after` of some stretches, or a little more. `after` lies in or just before each."""
        c = self.rounds.last[stretch] - after
        result = total(c, self.last[stretch], self.change[0][stretch], self.values[1][stretch])
        return np.asarray(np.where(c > 0, result, 0.0))

    def at(self, t: Floats, stretch: Any) -> Floats:
        """x_t, or a little more, for a round of each of these stretches."""
        back = self.rounds.last[stretch] - t
        with np.errstate(all="ignore"):
            result = np.minimum(self.last[stretch] - back * self.change[0][stretch], self.most[stretch])
        return np.asarray(np.where(back > 0, result, self.last[stretch]))

    def growth(self, free: float = 0.0) -> Floats:
        """sum_t [x_t - x_{t-1} - free]_+ with x_0 = 0 at the last round of each stretch, or a little more."""
        if free == 0 and self.rising_power:
            return self.last
        c = self.rounds.count
        moved = np.diff(self.last, prepend=0.0) - free * c
        if self.rounds.single:
            return np.cumsum(np.maximum(moved, 0.0))
        low, high = self.change
        with np.errstate(all="ignore"):
            between = np.where(low >= free, moved, c * np.maximum(high - free, 0.0))
        return np.cumsum(np.where(c > 1, between, np.maximum(moved, 0.0)))

    def peaks(self) -> Floats:
        """The largest of x_1, ..., x_t at the last round of each stretch, or a little more."""
        if self.rising_power:
            return self.last
        return np.maximum.accumulate(np.where(self.change[0] >= 0, self.last, self.most))

    def envelope(self) -> Schedule:
        """The largest value so far as a schedule: this one where it does not decrease."""
        if self.nondecreasing:
            return self
        peaks = self.peaks()
        before = np.concatenate([peaks[:1], peaks[:-1]])
        none = np.zeros(len(peaks))
        return Schedule(self.rounds, peaks, (before, peaks), (none, np.maximum(self.change[1], none)))

    @property
    def rising_power(self) -> bool:
        """True where it is known to be k t^p with positive k and p that is not negative."""
        return self.power is not None and self.power[0] > 0 and self.power[1] >= 0

    @property
    def most(self) -> Floats:
        """Upper bounds of x_t over each stretch."""
        return np.where(self.rounds.count == 1, self.last, self.values[1])

    @property
    def positive(self) -> bool:
        """True where every value is proved positive."""
        return bool((np.where(self.rounds.count == 1, self.last, self.values[0]) > 0).all())

    @property
    def nondecreasing(self) -> bool:
        """True where no change is negative."""
        if self.rising_power:
            return True
        rising = self.last[1:] >= self.last[:-1]
        if self.rounds.single:
            return bool(rising.all())
        return bool(np.where(self.rounds.count[1:] == 1, rising, self.change[0][1:] >= 0).all())


def _power_of(function: np.ufunc, parts: Sequence[Any]) -> tuple[float, float] | None:
    """k and p of k t^p, where that is what a function makes of numbers and such powers."""
    known = [x.power if isinstance(x, Schedule) else (float(x), 0.0) for x in parts]
    match function, known:
        case np.multiply, [(a, p), (b, q)]:
            return a * b, p + q
        case np.divide, [(a, p), (b, q)] if b:
            return a / b, p - q
        case np.power, [(a, p), (b, 0.0)] if a > 0:
            return a**b, p * b
        case np.sqrt, [(a, p)] if a > 0:
            return float(np.sqrt(a)), p / 2
        case np.negative, [(a, p)]:
            return -a, p
    return None


# What functions of schedules do to their values and changes.


def _ends(x: Any) -> tuple[Interval, Interval]:
    """Values and changes; a number does not change."""
    if isinstance(x, Schedule):
        return x.values, x.change
    number, none = np.asarray(x, dtype=np.float64), np.zeros(())
    return (number, number), (none, none)


Enclosed = tuple[Interval, Interval]


def _add(x: Any, y: Any) -> Enclosed:
    (a, da), (b, db) = _ends(x), _ends(y)
    return plus(a, b), plus(da, db)


def _negative(x: Any) -> Enclosed:
    (low, high), (fall, rise) = _ends(x)
    return (-high, -low), (-rise, -fall)


def _subtract(x: Any, y: Any) -> Enclosed:
    (a, da), (b, db) = _ends(x), _negative(y)
    return plus(a, b), plus(da, db)


def _multiply(x: Any, y: Any) -> Enclosed:
    """u_t v_t - u_{t-1} v_{t-1} = u_t (v_t - v_{t-1}) + v_{t-1} (u_t - u_{t-1})."""
    if not isinstance(x, Schedule):
        x, y = y, x
    (a, da), (b, db) = _ends(x), _ends(y)
    if not isinstance(y, Schedule):
        return scaled(y, a), scaled(y, da)
    return times(a, b), plus(times(a, db), times(b, da))


def _through(x: Any, f: Callable[[Any], Any], slope: Callable[[Any], Any], above: float = -np.inf) -> Enclosed:
    """A monotone function with a monotone slope; nothing is known where the argument may be at or below `above`."""
    (low, high), change = _ends(x)
    known = low > above
    values = hull(f(low), f(high))
    step = times(hull(slope(low), slope(high)), change)
    if known.all():
        return values, step
    return cast(
        Enclosed,
        tuple(tuple(np.where(known, end, side) for end, side in zip(i, (-np.inf, np.inf))) for i in (values, step)),
    )


def _divide(x: Any, y: Any) -> Enclosed:
    if not isinstance(y, Schedule):
        return _multiply(x, 1.0 / y)
    return _multiply(x, y**-1.0)


def _power(base: Any, exponent: Any) -> Enclosed:
    if isinstance(exponent, Schedule):
        whole = np.exp(exponent * np.log(base))
        return whole.values, whole.change
    p = float(exponent)
    if p == 0:
        return _ends(1.0 + 0.0 * base)
    if p == 1:
        return _ends(base)
    if p in (2.0, 3.0, 4.0):
        return _multiply(base, base ** (p - 1))
    if p == -1:
        return _through(base, np.reciprocal, lambda v: -np.reciprocal(v * v), above=0.0)
    if p == 0.5:
        return _through(base, np.sqrt, lambda v: 0.5 / np.sqrt(v), above=0.0)
    return _through(base, lambda v: v**p, lambda v: p * v ** (p - 1), above=0.0)


def _absolute(x: Any) -> Enclosed:
    (low, high), (fall, rise) = _ends(x)
    most = np.maximum(-low, high)
    least = np.maximum(np.maximum(low, -high), 0.0)
    far = np.maximum(-fall, rise)
    steps = (
        np.where(low >= 0, fall, np.where(high <= 0, -rise, -far)),
        np.where(low >= 0, rise, np.where(high <= 0, -fall, far)),
    )
    return (least, most), steps


def _larger(x: Any, y: Any) -> Enclosed:
    """The larger of two changes by no more, and by no less, than both of them; where one is always above, as that one does."""
    (a, da), (b, db) = _ends(x), _ends(y)
    mixed = hull(da[0], da[1], db[0], db[1])
    first, second = a[0] >= b[1], b[0] >= a[1]
    steps = [np.where(first, p, np.where(second, q, r)) for p, q, r in zip(da, db, mixed)]
    return (np.maximum(a[0], b[0]), np.maximum(a[1], b[1])), (steps[0], steps[1])


def _smaller(x: Any, y: Any) -> Enclosed:
    return _negative(np.maximum(-x, -y))


def _stepped(whole: Callable[[Any], Any]) -> Callable[[Any], Enclosed]:
    """floor or ceiling: a change of d becomes one between floor(d) and ceil(d)."""

    def rule(x: Any) -> Enclosed:
        (low, high), (fall, rise) = _ends(x)
        return (whole(low), whole(high)), (np.floor(fall), np.ceil(rise))

    return rule


_RULES: dict[np.ufunc, Callable[..., Enclosed]] = {
    np.add: _add,
    np.subtract: _subtract,
    np.negative: _negative,
    np.multiply: _multiply,
    np.divide: _divide,
    np.power: _power,
    np.sqrt: lambda x: _power(x, 0.5),
    np.log: lambda x: _through(x, np.log, lambda v: 1 / v, above=0.0),
    np.exp: lambda x: _through(x, np.exp, np.exp),
    np.absolute: _absolute,
    np.maximum: _larger,
    np.minimum: _smaller,
    np.floor: _stepped(np.floor),
    np.ceil: _stepped(np.ceil),
}
