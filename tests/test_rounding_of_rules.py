"""Violations of rules by rounding alone: they add up over many rounds, and are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oco
from oco.evaluation.baselines.base import KNOWN, Played
from oco.evaluation.baselines.rule_table import Beside, rule_line, rule_table
from oco.evaluation.cost import Trade

CAPPED = """\
model capped
horizon T = 400
decision x[2] in box(0, 300)
stream c[2] in [-1, 1]
minimize c @ x
subject to
    cap: sum(x) + c[0] <= 260  each round, penalty 5
"""


@pytest.mark.parametrize(("beyond", "broken"), [(KNOWN / 2, 0), (0.5, 400)])
def test_what_rounding_adds_up_to_is_no_violation(beyond: float, broken: int) -> None:
    plan = oco.compile(oco.parse(CAPPED))
    trace = plan.run({"c": np.random.default_rng(0).uniform(-1, 1, (400, 2))})
    trace.constraints[:] = beyond
    line = rule_line("a rule", trace, Trade.at_price(trace.problem, 1.0))
    assert line.broken == broken
    assert line.violation == pytest.approx(400 * beyond if broken else 0.0, abs=1e-12)
    assert line.priced == pytest.approx(line.loss + 5 * line.violation, abs=1e-9)


FIXED = """\
model fixed
horizon T = 120
decision gas in box(0, 150)
decision x[2] in box(0, 60)
stream w[2] in [0, 1]
minimize 5 * gas + sum(x)
subject to
    served: 80 - gas - w @ x <= 0  in 90% of rounds
    fixed:  sum(x) + gas / 3 <= 77.7  each round
"""


def test_rows_that_do_not_count_are_broken_by_no_rounding_either() -> None:
    """What a solver leaves over a row of the size 92 is less than the learner's own rounding, whatever the row's unit in the trade."""
    plan = oco.compile(oco.parse(FIXED))
    trace = plan.run({"w": np.random.default_rng(0).uniform(0.3, 0.8, (120, 2))}, backend="c")
    trade = Trade.of(plan.choice.played, 1.0, trace.problem)
    assert sorted(trade.units > 0) == [False, True]  # the share counts by its rounds
    for beyond, broken in ((4e-8, 0), (1e-3, 120)):
        trace.constraints[:] = beyond
        assert rule_line("a rule", trace, trade).broken == broken


def _broken(trace: Any, name: str, loss: float, rounds: int) -> Played:
    """Rule with this loss in every round, by which the first constraint is broken in the first so many."""
    g = np.zeros_like(trace.constraints)
    g[:rounds, 0] = 3.0
    return Played(name, {}, np.full(len(g), loss), g, trace.equalities)


def test_rules_that_keep_constraints_come_first() -> None:
    """Without a penalty a rule that serves nothing costs least, and is none that anybody would prefer."""
    shared = FIXED[: FIXED.index("    fixed:")]  # the first 0.1 x 120 + 0.9 rounds may be broken
    for form, most in ((shared, 12), (shared.replace("in 90% of rounds", "each round"), 0)):
        plan = oco.compile(oco.parse(form))
        trace = plan.run({"w": np.full((120, 2), 0.5)}, backend="c")
        trace.constraints[:] = 0.0

        trade = Trade.of(plan.choice.played, 1.0, trace.problem)
        played = (
            _broken(trace, "nothing", 0.0, 120),
            _broken(trace, "dear", 9.0, 0),
            _broken(trace, "cheap", 7.0, most),
        )
        table = rule_table(trace, Beside(tuple(sorted(played, key=lambda r: trade.score(r)[2])), (), trade))
        assert [line.name for line in table.lines] == ["cheap", "dear", "nothing"]
        assert table.keeping == 2
