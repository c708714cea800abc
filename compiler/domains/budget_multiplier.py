"""Points between bounds with a given total, over the step IR: the search for the multiplier of the total."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from oco.compiler.domains.greedy_allocation import SORTED
from oco.compiler.ir.precision import Tolerance
from oco.compiler.ir.value import Value
from oco.dsl.magnitudes import HUGE
from oco.dsl.records import dataclass

if TYPE_CHECKING:
    from oco.compiler.ir.trace import Tracer, Values

Bound = Value | float

NEWTON_PASSES = 40
"""Passes after which the bracket of the multiplier is halved instead."""

MAX_PASSES = 400  # passes after which a search for the multiplier, which halves an interval, is at rounding
ROUNDING = 2.0**-50
MAX_SHIFTS = 40  # corrections of the total by the entries that are free
FAR = 4.0
"""Ways that a step of Newton's method may go among many entries."""
FAST = Tolerance(1e-9)
"""A lack within this share of all entries together is rounding when Newton's method makes it no less, and ends a search to be repeated."""


@dataclass(frozen=True, eq=False)
class Path(ABC):
    """x(theta) = clip(u(theta), lo, hi), whose total does not grow with theta; `size` is that of the bounds, `total` is to be met.

    `weights`, which are not negative, count in the total; without them it is the plain sum. Between thetas farther apart than `way` no
    entry is between its bounds at both; infinite where that is not known.
    """

    t: Tracer
    lo: Bound
    hi: Bound
    total: float
    size: float
    weights: Value | None = None
    way: float = math.inf

    def clipped(self, u: Value) -> Value:
        """Entries of u, cut to the bounds."""
        return self.t.minimum(self.t.maximum(u, self.lo), self.hi)

    def lack(self, x: Value) -> Value:
        """Amount by which the total of x falls short of `total`."""
        return self.total - self.t.sum(x if self.weights is None else self.weights * x)

    def met(self, w: Value, start: Value) -> Value:
        """x(theta) with the given total, from a first guess of theta.

        w is moved by the theta found; a theta so large that its own rounding shows in the total is searched for again from there.
        """
        t = self.t
        low, high = self.ends(w)
        low, high = low - ROUNDING * t.abs(low), high + ROUNDING * t.abs(high)

        def again(w: Value, theta: Value, low: Value, high: Value, shifts: Value, go: Value) -> tuple[Value, ...]:
            result, low, high = self._search(w, t.minimum(t.maximum(theta, low), high), low, high)
            far = t.and_(t.abs(result) > self.largest_multiplier(w.size), shifts < MAX_SHIFTS)
            return self.moved(w, result), t.lift(0.0), *self.ends_from(result, low, high), shifts + 1, far

        state = (w, start, low, high, t.lift(0), t.lift(True))
        return self.clipped(self.entries(t.while_(lambda *state: state[-1], again, state)[0]))

    def _search(self, w: Value, start: Value, low: Value, high: Value) -> Values:
        """theta and what it lies between, by Newton's method on the piecewise linear total.

        Cominetti, Mascarenhas & Silva, Math. Program. Comput. 6, 2014.
        Where a step leaves the bracket of what is known to be too low and too high, entries that are at one bound all over the bracket
        are fixed there (Kiwiel, J. Optim. Theory Appl. 136, 2008); that and halving take turns. Among many entries of which few are
        between their bounds at a time, all are first taken to pass at once in the middle of their way, by a quantile: that is no farther
        off than half a way, and steps stay within.
        """
        t = self.t
        finest = ROUNDING / 16 * self.unit / w.size
        exact, coarse = ROUNDING * max(abs(self.total), self.size), FAST * self.size * w.size
        crowded = w.size > SORTED and self.way < math.inf

        def step(
            theta: Value, low: Value, high: Value, last: Value, free: Value, go: Value, passes: Value, *about: Value
        ) -> Values:
            u = self.entries(self.moved(w, theta))
            x = self.clipped(u)
            lack, within = self.lack(x), t.to_float(t.eq(x, u))
            off, count = t.abs(lack), t.sum(within)
            high, low = t.where(lack > 0.0, theta, high), t.where(lack < 0.0, theta, low)
            guess = theta - self.advance(u, within, lack)
            if crowded:
                middle, room = about
                lost = t.and_(t.eq(room, math.inf), t.and_(off > coarse, t.abs(guess - theta) > FAR * self.way))
                middle, room = t.if_(lost, lambda: (self.quantile(w), t.lift(0.5 * self.way)), lambda: about)
                onwards = t.where(count > 0.0, guess, t.where(lack > 0.0, -math.inf, math.inf))
                guess = t.where(lost, middle, t.minimum(t.maximum(onwards, middle - room), middle + room))
                about = middle, room
            newton = t.and_(t.and_(guess > low, guess < high), passes < NEWTON_PASSES)
            (aim,) = t.if_(newton, lambda: (guess,), lambda: (self._fallback(w, theta, guess, low, high, passes),))
            stalled = t.and_(t.eq(count, free), 4.0 * off >= last)
            done = t.and_(off <= coarse, t.or_(stalled, t.abs(theta) > self.largest_multiplier(w.size)))
            narrow = t.or_(high - low <= finest, passes >= MAX_PASSES)
            # Where all entries are at bounds theta does not matter, and the lack may be that of the sum's rounding.
            flat = t.and_(t.eq(count, 0.0), off <= math.sqrt(w.size) * exact)
            narrow = t.or_(narrow, flat)
            ended = t.or_(t.or_(off <= exact, done), narrow)
            go = t.and_(t.and_(aim > low, aim < high), t.not_(ended))
            return t.where(go, aim, theta), low, high, off, t.where(newton, count, -1.0), go, passes + 1, *about

        state = (start, low, high, t.lift(0.0), t.lift(-1.0), t.lift(True), t.lift(0))
        about = (start, t.lift(math.inf)) if crowded else ()
        return t.while_(lambda theta, low, high, last, free, go, passes, *about: go, step, state + about)[:3]

    def _fallback(self, w: Value, theta: Value, guess: Value, low: Value, high: Value, passes: Value) -> Value:
        t = self.t
        below = t.to_float(self.entries(self.moved(w, high)) < self.hi)
        above = t.to_float(self.entries(self.moved(w, low)) > self.lo)
        fixed = (1.0 - below) * self.hi + below * (1.0 - above) * self.lo
        aim = self.meeting(w, below * above, self.lack(fixed))
        halved = t.where(t.eq(guess, theta), theta, _middle(t, low, high, self.unit))
        turn = t.eq(t.mod(passes, 2), 0)
        kept = t.or_(t.and_(t.and_(aim > low, aim < high), turn), t.eq(aim, theta))
        return t.where(kept, aim, halved)

    @property
    @abstractmethod
    def unit(self) -> float:
        """The size of a change of theta that matters."""

    @abstractmethod
    def largest_multiplier(self, n: int) -> float:
        """Largest theta whose rounding does not show in the total of n entries."""

    @abstractmethod
    def moved(self, w: Value, theta: Value) -> Value:
        """w from where theta counts as zero."""

    @abstractmethod
    def entries(self, moved: Value) -> Value:
        """u(theta) of w moved by theta."""

    @abstractmethod
    def advance(self, u: Value, free: Value, lack: Value) -> Value:
        """By how much theta is to fall for the entries within their bounds (1, else 0) to make up the lack; infinite if there are none."""

    @abstractmethod
    def meeting(self, w: Value, free: Value, rest: Value) -> Value:
        """The theta at which the free entries, without their bounds, add up to `rest`; infinite where there is none."""

    def quantile(self, w: Value) -> Value:
        """A theta that is off by half a way at most."""
        raise NotImplementedError

    @abstractmethod
    def ends(self, w: Value) -> tuple[Value, Value]:
        """Below the first theta all entries are at their upper bounds, above the second all at their lower."""

    @abstractmethod
    def ends_from(self, theta: Value, low: Value, high: Value) -> tuple[Value, Value]:
        """Ends of the bracket, as of `ends`, after a move by theta."""


class Shifts(Path):
    """u(theta) = w - theta a, with a the weights: the Euclidean projection."""

    @property
    def unit(self) -> float:
        return self.size

    def largest_multiplier(self, n: int) -> float:
        met = self.size if self.weights is not None else max(abs(self.total), self.size)
        return max(1e-3 * self.size, 100.0 / n * met)

    def moved(self, w: Value, theta: Value) -> Value:
        return w - (theta if self.weights is None else theta * self.weights)

    def entries(self, moved: Value) -> Value:
        return moved

    def advance(self, u: Value, free: Value, lack: Value) -> Value:
        t = self.t
        slope = t.sum(free if self.weights is None else self.weights * self.weights * free)
        return t.where(slope > 0.0, lack / t.where(slope > 0.0, slope, 1.0), float("inf"))

    def meeting(self, w: Value, free: Value, rest: Value) -> Value:
        t, a = self.t, 1.0 if self.weights is None else self.weights
        slope = t.sum(a * a * free)
        above = t.sum(a * w * free) - rest
        return t.where(slope > 0.0, above / t.where(slope > 0.0, slope, 1.0), float("inf"))

    def quantile(self, w: Value) -> Value:
        t, a, width, middle = self.t, self.weights, self.hi - self.lo, 0.5 * self.lo + 0.5 * self.hi
        if a is None:
            least = t.sum(self.lo) if isinstance(self.lo, Value) else w.size * self.lo
            room, price = t.broadcast(width, w.shape), middle - w
        else:
            least, room, price = t.sum(a * self.lo), a * width, (middle - w) / t.where(a > 0.0, a, 1.0)
        return -t.minimum(t.weighted_quantile(price, room, self.total - least), t.max(price))

    def ends(self, w: Value) -> tuple[Value, Value]:
        t = self.t
        if self.weights is None:
            return t.min(w) - 2.0 * self.size, t.max(w) + 2.0 * self.size
        counts = self.weights > 0.0
        a = t.where(counts, self.weights, 1.0)
        low = t.min(t.where(counts, (w - self.hi) / a, HUGE))
        high = t.max(t.where(counts, (w - self.lo) / a, -HUGE))
        return t.maximum(low - self.size, -HUGE), t.minimum(high + self.size, HUGE)

    def ends_from(self, theta: Value, low: Value, high: Value) -> tuple[Value, Value]:
        return low - theta - self.size, high - theta + self.size


class Scalings(Path):
    """u(theta) = exp(w - theta), for the total one: the mirror step of the entropy."""

    @property
    def unit(self) -> float:
        return 1.0

    def largest_multiplier(self, n: int) -> float:
        return 50.0

    def moved(self, w: Value, theta: Value) -> Value:
        return w - theta

    def entries(self, moved: Value) -> Value:
        # No share is more than one: larger ones are cut off before they overflow.
        return self.t.exp(self.t.minimum(moved, 50.0))

    def advance(self, u: Value, free: Value, lack: Value) -> Value:
        t = self.t
        held = t.sum(u * free)
        possible = t.and_(held > 0.0, held + lack > 0.0)
        factor = t.where(possible, (held + lack) / t.where(possible, held, 1.0), 1.0)
        return t.where(possible, t.log(factor), float("inf"))

    def meeting(self, w: Value, free: Value, rest: Value) -> Value:
        t = self.t
        largest = t.max(t.where(free > 0.0, w, -HUGE))
        held = t.sum(t.exp(t.minimum(w - largest, 0.0)) * free)
        possible = t.and_(held > 0.0, rest > 0.0)
        ratio = t.where(possible, held / t.where(possible, rest, 1.0), 1.0)
        return t.where(possible, largest + t.log(ratio), float("inf"))

    def ends(self, w: Value) -> tuple[Value, Value]:
        return self.t.min(w) - 1500.0, self.t.max(w) + 1500.0

    def ends_from(self, theta: Value, low: Value, high: Value) -> tuple[Value, Value]:
        return low - theta - 1.0, high - theta + 1.0


def _middle(t: Tracer, low: Value, high: Value, unit: float) -> Value:
    """Between low < high: their mean where they are alike, else 0, else the geometric mean, so that any scale is reached in a few steps."""
    near, far = t.minimum(t.abs(low), t.abs(high)), t.maximum(t.abs(low), t.abs(high))
    floor = t.maximum(near, Tolerance(1e-20) * unit)
    geometric = t.sign(low + high) * (t.sqrt(floor) * t.sqrt(far))
    mean = low + (high - low) * 0.5
    apart = t.where(t.and_(low < 0.0, high > 0.0), 0.0, t.where(far > 4.0 * floor, geometric, mean))
    return t.where(high - low <= 4.0 * unit, mean, apart)
