"""Causes of the targets that the default misses, by problem, and where parts gain that gain nothing on these problems."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.practice.recorded import MARKETS

_WEIGHTS = (
    "Newton steps lead uniform rebalancing after the first fifth of all six markets, by 0.05 to 0.2 in logarithms of wealth; afterwards "
    "they gain 0.4 to 0.7 on it in three and lose 0.15 to 1.0 in three, and the weights follow them. Weights cost up to ln K beside the "
    "best expert, and much of it while it is not yet known. No part that was tried gains in all six: shares of 0.1% to 3% that go back to "
    "all experts each round; forgetting; half of the first weight on Newton steps; what was bought and is held, in the place of the "
    "exponentiated gradient steps that are near it (-0.015 to +0.013 with and without a limit, of both signs in both halves of the rounds) "
    "or beside them (-0.033 to +0.013)"
)
_ALL_IN = (
    "all in the asset that was best in the last round, or 24 rounds before, gains 0.9 and 1.3 on uniform rebalancing here; in the five "
    "others, of the last 1,300 days each, the two gain -0.2 and 0.4, -2.9 and -0.6, -2.4 and 0.1, 0.1 and -1.0, -0.8 and -2.4"
)

CAUSES: Mapping[str, tuple[str, ...]] = {
    "tracking": (
        "one fixed decision is best in nearly every round, and a weighted mean of experts pays for those that are not",
    ),
    **dict.fromkeys((name for m in MARKETS for name in (m, f"{m}-sector")), (_WEIGHTS,)),
    **dict.fromkeys(("sp500", "sp500-sector"), (_WEIGHTS, _ALL_IN)),
}

ELSEWHERE: Mapping[str, str] = {
    "without last values": (
        "without them autoscaling at 300 costs 0.7% more, and in the first tenth newsvendor at 100 costs 8.6% more, autoscaling at 3 "
        "and 30 1.6% and 2.3%"
    ),
    "without regression on contexts": (
        "where no context is a forecast, as with a reserve of 0.4 of a known load, rounds cost 12% to 19% more without it on three draws"
    ),
    "without forecasts": (
        "compiled without data, the first tenth of dispatch costs 3.3% to 4.8% more without them, until the regression has rounds enough"
    ),
    "without a reserve of budgets": (
        "over 48, 168 and 336 rounds of pacing at price 25, four draws each, budgets end 0.5 to 1.5 units over without it, and totals are "
        "higher in 11 of 12, by 0.6% in the median"
    ),
}
"""Problems elsewhere on which a part gains that gains nothing in the ablation, by its name."""
