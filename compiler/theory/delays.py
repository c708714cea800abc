"""Delayed feedback: d + 1 learners in turn, none of which decides before the feedback of its last round is there.

Round t is that of learner (t - 1) mod (d + 1), which decides again in round t + d + 1, and by then the feedback of round t has come, in
whatever order (Joulani, Gyorgy & Szepesvari 2013, Algorithm 1 with fixed turns). Learner i plays n_i rounds, sum n_i = n, n_i =
floor(n / (d + 1)) or one more, on the losses of its own rounds. Its theorem holds there, with settings for ceil(T / (d + 1)) rounds:

    sum_t f_t(x_t) - f_t(u) = sum_i sum_{t of i} f_t(x_t) - f_t(u) <= sum_i B(n_i)

for a fixed u, and for moving ones, whose path over every (d + 1)th round is no longer than over all. Violations of the learners add up, as
do positive parts and absolute values of their sums. A round that is skipped is none of its learner's rounds.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.theory.guarantees import Bound, Guarantee, Quantity
from oco.compiler.theory.schedule import Rounds
from oco.compiler.theory.theorems import Floats

SKIPPED = "rounds whose feedback never comes are no part of regret and violation"


def in_turns(guarantee: Guarantee, canonical: Canonical) -> Guarantee:
    """Guarantee of the learners that take turns, from that of one of them; itself where feedback comes at once."""
    if not canonical.delay:
        return guarantee
    count = canonical.delay + 1
    bounds = {
        field: None if bound is None else _summed(bound, count)
        for field, bound in (
            ("regret_bound", guarantee.regret_bound),
            ("violation_bound", guarantee.violation_bound),
            ("equality_bound", guarantee.equality_bound),
        )
    }
    theorem = f"{guarantee.theorem}, for {count} learners in turn (Joulani, Gyorgy & Szepesvari 2013, Theorem 1)"
    remarks = (*guarantee.remarks, SKIPPED)
    return replace(guarantee, theorem=theorem, horizon=canonical.horizon, remarks=remarks, **bounds)  # type: ignore[arg-type]


def _summed(bound: Bound, count: int) -> Bound:
    """Sum of the bounds of so many learners."""
    if not bound.formula:
        return bound

    def total(rounds: Rounds, horizon: int) -> Floats:
        whole, more = np.divmod(rounds.last, count)
        ends = np.unique(np.concatenate([whole, whole + (more > 0), [1.0]]))
        ends = ends[ends > 0]
        values = bound.after(Rounds(ends), -(-horizon // count))
        assert values is not None
        known = np.concatenate([[0.0], values])
        places = np.concatenate([[0.0], ends])

        def after(n: Floats) -> Floats:
            return np.asarray(known[np.searchsorted(places, n)])

        return np.asarray((count - more) * after(whole) + more * after(whole + (more > 0)))

    latex = rf"\sum_{{i=1}}^{{{count}}} B(n_i)"
    quantity = Quantity("turns", latex, f"bounds of {count} learners in turn, each for its own rounds", total)
    trivial = None if bound.trivial is None else bound.trivial * bound.unit
    labels = {label: unit / bound.unit for label, unit in bound.label_units.items()}
    return replace(bound, formula="turns", quantities=(quantity,), trivial=trivial, unit=1.0, label_units=labels)
