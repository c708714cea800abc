"""Margins that are learned: a constraint that may be broken in a share q of the rounds, met as if its streams had a predicted value.

With g the constraint, s^ a fixed value of the streams that come after the decision, and M at least every g(x; s) - g(x; s^), the decision
x_t satisfies g(x_t; s^) + m_t <= 0; where streams multiply decisions g(x_t; p_t) + m_t <= 0 with what is predicted of them
(`followed_streams`), but for rounds with the margin M. Where it is known at which values s* of the streams g is largest for every decision,
and some decision has g(x; s*) <= 0, such rounds have that in the place of a number M: what streams add to a decision that relies on little
is little. There m_t u_t(x) may stand for m_t, with the usual size u_t(x) of what the streams add at a decision x (`spread_margins`). The
margin m_t, at most M, is a quantile of what the streams add as predicted (`margin_predictions`), in these sizes, at a level that the credit

    c_t = c_{t-1} + q - 1[g(x_t; s_t) > 0],   c_0 = 0,

sets: in rounds with c_{t-1} + b_t <= 0 the margin is M, with a loan of b_t = min(sqrt(q (T - t) / 2), q (T - t)), a standard deviation of
the rounds to come that are broken, which is paid back by round T; 0 where T is unknown. Such a round is not broken, and b_{t-1} - b_t <= q,
so that c_t + b_t >= q - 1 and at most q t + 1 - q + b_t of t rounds are broken, q T + 1 - q of all, whatever comes: Proposition 4.1 of
Gibbs & Candes, Adaptive conformal inference, NeurIPS 2021, with level and step as functions of the
credit, M + eta = (1 - q) eta + m_1. A round whose known constraints allow no decision with the margin M may add one: it takes a fallback,
the quantile at a level of at least half the share, however little credit there is (`proximal/fallback_margins`), so that of exchangeable
errors about a share q is broken in the long run. Entries for which M never is enough do not go back to it.

Where feedback comes d rounds late, each of the d + 1 learners in turn has margin and credit of its own, over its own rounds: of all at
most q T + (d + 1) (1 - q) are broken.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from oco.compiler.problem.followed_streams import Followed
from oco.compiler.problem.kept_values import kept_range, one_minus
from oco.compiler.problem.margin_predictions import Margins
from oco.compiler.problem.spread_margins import Spread
from oco.compiler.problem.stream_ranges import Floats, StreamRange
from oco.dsl.build import call
from oco.dsl.expressions import Expr, Name, constant
from oco.dsl.records import dataclass

SPENT = 1e-9
"""Credit up to which there is none, for rounding."""


@dataclass(frozen=True)
class ShareMargin:
    """Margin of a constraint that may be broken in a share q of the rounds.

    usual    g(x; s^), over the decisions and what is known
    measured g(x; s), what the round reveals
    streams  streams that multiply decisions, as predicted; None where there are none
    hopeless True where streams multiply decisions, and no decision satisfies it at s^
    followed g(x; p) with their predictions p; g(x; s^) where there are none
    most     M, an entry for each of the constraint
    margins  values that rounds leave to the next, from which m is made
    spread   usual size of what streams add at a decision, in which the margin is measured; None where it is the same for all decisions
    worst    g(x; s) with all streams where it is largest, in the place of g(x; s^) + M; None where M is the same for all decisions, or no
             such values are known, or no decision satisfies it there
    begin    the same with streams of stated distributions where a share q of their values is worse: in the place of `worst` before there
             are errors for a quantile, if the loan lets such rounds be broken; None where nothing is stated or lent
    cut      1 for entries to which the streams may add more than M, as far as a decision goes: of these nothing is promised
    """

    usual: Expr
    measured: Expr
    share: float
    most: tuple[float, ...]
    margins: Margins = field(compare=False, repr=False)
    followed: Expr = field(compare=False, repr=False)
    shape: tuple[int, ...] = field(default=())
    cut: tuple[float, ...] = ()
    streams: Followed | None = field(default=None, compare=False, repr=False)
    hopeless: bool = False
    spread: Spread | None = field(default=None, compare=False, repr=False)
    worst: Expr | None = field(default=None, compare=False, repr=False)
    begin: Expr | None = field(default=None, compare=False, repr=False)

    @property
    def enough(self) -> bool:
        """True where the margin M is enough whatever the streams are."""
        return not any(self.cut)

    @property
    def states(self) -> bool:
        """True where stated predictions enter it."""
        return self.margins.stated is not None or (self.streams is not None and bool(self.streams.stated))

    @property
    def greatest(self) -> Floats:
        """M, the margin of rounds in which no more may be broken."""
        return self._array(self.most)

    @property
    def robust(self) -> Expr:
        """Constraint with the greatest margin, which decisions in hindsight satisfy; as it is where it is hopeless."""
        if self.hopeless:
            return self.measured
        return call("add", self.usual, constant(self.greatest)) if self.worst is None else self.worst

    @property
    def moving(self) -> Expr:
        """Constraint with the margin of the round: g(x; s^) + m, and where streams multiply decisions
        (1 - w) (g(x; s^) + m) + w (g(x; p) + m u(x)), with g(x; s) at its worst for the first part where that is known.
        """
        base, margin, weight = self.usual, self.margins.of_round(self._margin, self._stated), self._follows
        if self.worst is not None:
            own = margin if self.spread is None else self._of_decision(margin, self.spread)
            first = self.worst if self.begin is None else _mixed(self._begins, self.worst, self.begin)
            return _mixed(weight, first, call("add", self.followed, own))
        if self.streams is not None:
            base = _mixed(weight, base, self.followed)
        if self.spread is not None:
            margin = _mixed(weight, margin, self._of_decision(margin, self.spread))
        return call("add", base, margin)

    @property
    def ranges(self) -> tuple[StreamRange, ...]:
        """Margin, credit, fallback and what predictions keep, values that are known before the decision; the margins begin at M."""
        own = self.margins
        broken = call("_positive", self.measured)
        credit = call("add", self._credit, call("sub", self.share, broken))
        goes = call("mul", own.ready, call("_positive", call("sub", call("add", credit, own.loan), SPENT)))
        if not self.enough:
            goes = call("maximum", goes, call("mul", own.ready, constant(self._array(self.cut))))
        asked, fallback = own.following(credit), own.fallback(credit)
        unbounded = np.asarray(-np.inf), np.asarray(np.inf)
        ends = unbounded if own.stated is not None else (own.least, np.maximum(own.most, self.greatest))
        kept = [
            kept_range(self._margin, self._following(*asked, goes), self.greatest, ends),
            kept_range(self._credit, credit),
            kept_range(self._fallback, self._following(*fallback, own.ready), self.greatest, ends),
        ]
        if own.stated is not None:
            kept += [kept_range(self._stated, asked[1]), kept_range(self._stated_fallback, fallback[1])]
        if self.streams is not None:
            whole = np.asarray(0.0), np.asarray(1.0)
            kept += [
                kept_range(self._follows, goes, 0.0, whole),
                kept_range(self._always, constant(np.ones(self.shape)), 1.0, whole),
            ]
            if self.begin is not None:
                lent = call("_positive", call("sub", call("add", credit, own.loan), SPENT))
                kept.append(kept_range(self._begins, call("mul", one_minus(own.ready), lent), 1.0, whole))
            kept += self.streams.ranges
            kept += () if self.spread is None else self.spread.ranges
        return (*kept, *own.ranges)

    @property
    def fallbacks(self) -> tuple[tuple[str, str], ...]:
        """Names of the values of which the margin of a round is made, each with that of the fallback."""
        pairs = [(self._margin, self._fallback)]
        pairs += [] if self.margins.stated is None else [(self._stated, self._stated_fallback)]
        pairs += [] if self.streams is None else [(self._follows, self._always)]
        return tuple((a.name, b.name) for a, b in pairs)

    def _of_decision(self, margin: Expr, spread: Spread) -> Expr:
        """m u(x)."""
        return call("add", call("mul", margin, spread.of_round(self.margins.round)), spread.rounding)

    def _following(self, predicted: Expr, stated: Expr, goes: Expr) -> Expr:
        """Margin of the next round: the predicted one where it `goes`, else M; without what is added of the stated prediction."""
        most, least = constant(self.margins.most), constant(self.margins.least)
        always: Expr = constant(self.greatest)
        if self.margins.stated is None:
            predicted = call("maximum", call("minimum", predicted, most), least)
        else:
            always = call("sub", always, call("mul", stated, call("minimum", least, 0.0)))
        return call("add", always, call("mul", goes, call("sub", predicted, always)))

    def allowed(self, rounds: int) -> float:
        """Number of the first so many rounds in which an entry may be broken: q t + 1 - q + b_t."""
        return self.share * rounds + self._more + self.margins.lent(rounds)

    @property
    def _more(self) -> float:
        """Rounds beside the share that may be broken: less than one of each learner that takes turns."""
        return self.margins.turns * (1 - self.share)

    @property
    def words(self) -> str:
        """Guarantee, and the constants in it."""
        ends = sorted({f"{m:.6g}" for m in self.most}, key=float)
        size = ends[0] if len(ends) == 1 else f"{ends[0]} to {ends[-1]}"
        if not self.enough:
            return (
                f"of its share nothing is promised, for no decision satisfies it whatever the streams are (M = {size})"
            )
        lent, horizon = self.margins.lent(1), self.margins.horizon
        before = f"by round {horizon:,}, and at most {lent:.3g} more before, " if lent else ""
        turns, known = self.margins.turns, self.worst is not None
        size, room = ("", "its streams at their worst") if known else (f", M = {size}", "the margin")
        more = "one more" if turns == 1 else f"one more of each of the {turns} learners in turn"
        return (
            f"broken in at most {self.share:.6g} of the rounds and {more} (c = {self._more:.6g}{size}), {before}"
            f"on every sequence whose known constraints leave room for {room}"
        )

    @property
    def _margin(self) -> Name:
        return self.margins.value("margin")

    @property
    def _credit(self) -> Name:
        return self.margins.value("credit")

    @property
    def _stated(self) -> Name:
        return self.margins.value("by_prediction")

    @property
    def _follows(self) -> Name:
        return self.margins.value("follows")

    @property
    def _begins(self) -> Name:
        return self.margins.value("begins")

    @property
    def _always(self) -> Name:
        return self.margins.value("always")

    @property
    def _fallback(self) -> Name:
        return self.margins.value("fallback")

    @property
    def _stated_fallback(self) -> Name:
        return self.margins.value("fallback_by_prediction")

    def _array(self, values: tuple[float, ...]) -> Floats:
        return np.reshape(np.array(values), self.shape)


def _mixed(weight: Expr, first: Expr, second: Expr) -> Expr:
    """(1 - w) first + w second."""
    return call("add", call("mul", one_minus(weight), first), call("mul", weight, second))
