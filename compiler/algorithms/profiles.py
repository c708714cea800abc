"""Predictions of data with a season of k rounds, from k averages, one of each phase, and from seasons within seasons.

Hours of a day hang on the day of the week. Where k is a multiple of 7, the season is a week, and its days have k/7 rounds; a season of
other length is the day of a week of 7 k rounds. With s the average at the phase of the day and r its scale (s of data that are never
negative, so that days multiply it; else 1, so that they add to it) the weekly prediction is

    s + r sum_i (x_i - s_i) / (sum_i r_i + 10 r),    sums over the rounds of the days with the place of its day in the week,

which knows the hours after a day and the days after a week, where averages of a week wait a week for each hour. Ten rounds on which
nothing was above s stand beside those that came, and shrink what is little known. A season of at most 7 rounds, or a year, has no days.

Rows: the averages of the phases, the weekly prediction standing for those that have not come, or where k is a day, the mean of all rounds;
and the weekly prediction with levels, averages that forget of what the rounds were above it. All are cut to the streams' ranges.

A profile takes k numbers for each entry of the data, whatever the number of rounds.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Structured
from oco.compiler.lowering.predicted_round import data_ranges, positions, predicted_of, within_ranges
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.rule import State, array, joined
from oco.compiler.problem.calendars import DAYS, day_of
from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.stores import season_by_round
from oco.compiler.theory.settings import Default
from oco.compiler.theory.theorems import Situation
from oco.dsl.magnitudes import TINY

LEVEL_RATES = (0.1, 0.3)
"""Rates at which the level of each weekly prediction forgets."""
ROWS = 1 + len(LEVEL_RATES)
SHRUNK = 10.0
"""Rounds that shrink what a day of the week is above the average of all days."""
MOST_NUMBERS = 10**6
"""Numbers of the profiles, beyond which a season is not remembered."""
PROFILE, HOURS, WEEK, LEVEL, VISITS = "profile", "hours", "week", "level", "visits"
SeasonPart = tuple[str, tuple[int, int], int]
"""Entries of the data with one season: the ending of the names of their state, from which entry to which, and the rounds."""


def longest_season(canonical: Canonical) -> int:
    """Rounds of the longest season whose profile is kept."""
    return MOST_NUMBERS // max(1, ROWS * predicted_of(canonical).size)


def season_measured(s: Situation, together: bool = False) -> Default:
    """Rounds of a season, as the setting `season`; 1 for none. Learners in turn that do not learn `together` count their own rounds."""
    season = s.season // (1 if together else math.gcd(s.season, s.canonical.delay + 1))
    if 1 < season <= longest_season(s.canonical):
        if season == season_by_round(s.canonical):
            return Default(
                float(season), "rounds after which what the model reads by the round, or predicts by, repeats itself"
            )
        return Default(float(season), "rounds after which the data repeat themselves, measured on data")
    return Default(1.0, "no season is known: `season = 24` states one of 24 rounds")


def season_parts(p: Problem) -> tuple[SeasonPart, ...]:
    """Entries of the data by their seasons: all of them, or stream by stream where some have their own; none without a season."""
    season, sizes, own = p.whole("season"), predicted_of(p.spec.canonical).streams, p.spec.seasons
    whole = sum(sizes.values())
    if season == 1 or positions(p.spec.canonical) or not whole:
        return ()
    if p.spec.settings["season"].given or own.keys().isdisjoint(sizes):
        return (("", (0, whole), season),)
    longest, turns = longest_season(p.spec.canonical), p.spec.canonical.delay + 1 if p.turn is None else 1
    lengths = {n: min(max(2, k // math.gcd(k, turns)), longest) for n, k in own.items()}
    ends = np.cumsum((0, *sizes.values())).tolist()
    return tuple((f"_{n}", (a, b), lengths.get(n, season)) for n, (a, b) in zip(sizes, pairwise(ends)))


class Profiles:
    """State and rows of the predictions by seasons; `parts` are entries of the data by their seasons."""

    def __init__(self, p: Problem) -> None:
        self.p, self.t, self.parts = p, p.tracer, season_parts(p)
        self.later = p.ahead - 1

    @property
    def waiting(self) -> int:
        """Rounds after which the first predictions are more than means: a day where there is one, else a season."""
        return max((k * -(-self.p.ahead // k) for k in (day_of(k) or k for _, _, k in self.parts)), default=1)

    def init(self) -> dict[str, Structured]:
        """State before the first round."""
        level = self.t.zeros((len(LEVEL_RATES), max(b for _, (_, b), _ in self.parts)))
        return joined({LEVEL: level}, *(self._tables(end, b - a, k) for end, (a, b), k in self.parts))

    def _tables(self, end: str, size: int, k: int) -> dict[str, Structured]:
        """State before the first round of `size` entries with a season of k rounds, under names that end so."""
        rounds = {f"{PROFILE}{end}": k} | ({f"{HOURS}{end}": day_of(k)} if 0 < day_of(k) < k else {})
        tables = {name: self.t.zeros((m, size)) for name, m in rounds.items()}
        late = self.p.turn is not None
        visits = {_visits_of(name): self.t.zeros((m,)) for name, m in rounds.items()} if late else {}
        week = {f"{WEEK}{end}": self.t.zeros((DAYS, 2 * size))} if day_of(k) else {}
        return joined(tables, visits, week)

    def update(self, state: State, mean: Value, after: Value, now: Value) -> tuple[Value, State]:
        """Predictions (rows, entries) of the next round, and the state that they come from; `mean` of all rounds before and after."""
        levels = array(state, LEVEL)
        made, kept, moved = [], dict[str, Structured](), []
        for part in self.parts:
            a, b = part[1]
            whole = len(self.parts) == 1
            given = (levels, mean, after, now) if whole else (levels[:, a:b], mean[a:b], after[a:b], now[a:b])
            rows, level, of_part = self._of_part(part, state, *given)
            made.append(rows)
            moved.append(level)
            kept |= of_part
        rows, level = (v[0] if len(v) == 1 else self.t.concat(*v, axis=1) for v in (made, moved))
        return rows, {**kept, LEVEL: level}

    def _of_part(
        self, part: SeasonPart, state: State, levels: Value, mean: Value, after: Value, now: Value
    ) -> tuple[Value, Value, State]:
        """Predictions of the entries of one season, their levels, and the other state."""
        t, (end, (a, b), k) = self.t, part
        self.p.note(f"profiles of a season of {k} rounds, and levels above them")
        if 0 < day_of(k) < k:
            hour, kept = self._averaged(state, f"{HOURS}{end}", day_of(k), mean, after, now)
            base, following, known = self._weekly(part, state, kept, hour, now)
            (_, phase, _), profile = self._averaged(state, f"{PROFILE}{end}", k, base, following, now)
            kept |= profile
        else:
            hour, kept = self._averaged(state, f"{PROFILE}{end}", k, mean, after, now)
            phase = hour[1]
            base, following, known = self._weekly(part, state, kept, hour, now) if day_of(k) else hour
        follows = t.constant(np.reshape(LEVEL_RATES, (-1, 1)), "follows", "rates at which levels forget")
        level = t.name("level", t.where(known, levels + follows * (now - base - levels), levels))
        rows = t.concat(t.reshape(phase, (1, b - a)), following + level)
        return t.name("seasonal", within_ranges(self.p, rows, a, b)), level, kept

    def _averaged(
        self, state: State, name: str, k: int, mean: Value, after: Value, now: Value
    ) -> tuple[tuple[Value, Value, Value], dict[str, Structured]]:
        """Averages at the phase of this round before it and at the phase of the coming one after it, `mean` and `after` where the phase has
        not come; True where that of this round had; and the state.
        """
        t, table = self.t, array(state, name)
        assert self.p.round is not None
        phase, coming = (self.p.round - 1) % k, (self.p.round + self.later if self.later else self.p.round) % k
        seen, visits, known, kept = self._visits(state, name, k, phase, coming)
        base = t.where(seen, table[phase], mean)
        table = t.name(name, t.put(table, base + (now - base) / visits, phase))
        return (base, t.where(known, table[coming], after), seen), {name: table, **kept}

    def _visits(
        self, state: State, name: str, k: int, phase: Value, coming: Value
    ) -> tuple[Value, Value, Value, dict[str, Structured]]:
        """True where the phase of the round came before, how often it came with it, True where the coming phase came, and the counts."""
        t, played = self.t, self.p.played
        if self.p.turn is None:
            return played > k + 0.5, 1.0 + t.floor((played - 0.5) / float(k)), played > k - 0.5, {}
        before = array(state, _visits_of(name))
        count = before[phase] + 1.0
        counts = t.name("visits", t.put(before, count, phase))
        return count > 1.5, count, counts[coming] > 0.5, {_visits_of(name): counts}

    def _weekly(
        self,
        part: SeasonPart,
        state: State,
        kept: dict[str, Structured],
        hour: tuple[Value, Value, Value],
        now: Value,
    ) -> tuple[Value, Value, Value]:
        """Weekly predictions of this round before it and of the coming one after it, True where its hour came; adds the sums to `kept`.

        hour  averages at the phases of the day, as `_averaged` gives them
        """
        t, (end, (a, b), k), (base, following, seen) = self.t, part, hour
        n, sums = b - a, array(state, f"{WEEK}{end}")
        is_scaled = t.constant(data_ranges(self.p.spec.canonical)[0][a:b] >= 0.0, "is_scaled", "never negative")
        self.p.note("what the days of the week are above the average of all days")

        def above(average: Value, own: Value) -> tuple[Value, Value]:
            scale = t.where(is_scaled, average, 1.0)
            return scale, average + scale * own[:n] / t.maximum(own[n:] + SHRUNK * scale, TINY)

        today, next_ = (self._weekday(day_of(k), later) for later in (-1, self.later))
        scale, predicted = above(base, today @ sums)
        change = t.where(seen, t.concat(now - base, scale), 0.0)
        sums = t.name("week", sums + t.outer(today, change))
        kept[f"{WEEK}{end}"] = sums
        return predicted, above(following, next_ @ sums)[1], seen

    def _weekday(self, day: int, later: int) -> Value:
        """1 at the day of the week of the round so many rounds later, less one, and 0 at the others, (7,)."""
        t = self.t
        assert self.p.round is not None
        at = t.to_float((self.p.round + later) % (DAYS * day))
        first = t.constant(day * np.arange(DAYS) - 0.5, "days", "round of a week before which each day begins")
        return t.to_float(t.and_(at > first, at < first + float(day)))


def _visits_of(name: str) -> str:
    return f"{VISITS}_{name}"
