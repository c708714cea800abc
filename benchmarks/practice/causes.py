"""Causes of the targets that the default misses, by problem, and where parts gain that gain nothing on these problems."""

from __future__ import annotations

from collections.abc import Mapping

_LUCK = (
    "Newton steps lead uniform rebalancing after the first fifth of all six markets, by 0.05 to 0.2 in logarithms of wealth; afterwards "
    "they gain 0.4 to 0.7 on it in three and lose 0.15 to 1.0 in three. Weights cost up to ln K beside the best expert, and much of it "
    "while it is not yet known. Shares of 0.1% to 3% that go back to all experts each round, forgetting, and half of the first weight on "
    "Newton steps gain in some of the markets and lose in others; beside weights with the rate of exp-concave losses "
    "alone the default ends with 18% to 42% more wealth in three and with 5% to 7% less in three"
)
_CHANCE = (
    f"{_LUCK}. Without a limit, all in the asset that was best in the last round, or 24 rounds before, gains 0.9 and 1.3 on uniform "
    "rebalancing, with standard deviations of 0.7 and 0.8 and 0 within both intervals of 95% (bootstrap of the scored rounds in blocks of "
    "20); in the five other markets, of the last 1,300 days each, the two gain -0.2 and 0.4, -2.9 and -0.6, -2.4 and 0.1, 0.1 and -1.0, "
    "-0.8 and -2.4"
)
_TURNED = "Newton steps lead on the first fifth and lose afterwards, and the weights follow them down"

CAUSES: Mapping[str, str] = {
    "tracking": "one fixed decision is best in nearly every round, and a weighted mean of experts pays for those that are not",
    **dict.fromkeys(("djia", "tse", "msci", "nyse_o", "nyse_n"), _LUCK),
    **{f"{market}-sector": _LUCK for market in ("djia", "tse", "nyse_o", "nyse_n")},
    **dict.fromkeys(("sp500", "sp500-sector"), _CHANCE),
    "msci-sector": _TURNED,
}

ELSEWHERE: Mapping[str, str] = {
    "without last values": (
        "without them autoscaling at 300 costs 0.7% more, and in the first tenth newsvendor at 100 costs 8.6% more, autoscaling at 3 "
        "and 30 1.6% and 2.3%"
    ),
    "without regression on contexts": (
        "where no context is a forecast, as with a reserve of 0.4 of a known load, rounds cost 12% to 19% more without it on three draws"
    ),
    "without a reserve of budgets": (
        "over 48, 168 and 336 rounds of pacing at price 25, four draws each, budgets end 0.5 to 1.5 units over without it, and totals are "
        "higher in 11 of 12, by 0.6% in the median"
    ),
}
"""Problems elsewhere on which a part gains that gains nothing in the ablation, by its name."""
