"""Causes of the targets that the default misses, by problem: what was seen of its experts, weights and choice."""

from __future__ import annotations

from collections.abc import Mapping

_NEWTON = "pilots choose among first-order steps; no candidate takes online Newton steps, and predictions of relatives say nothing"
_CLOSE = "no expert takes Newton steps; weighing experts costs more than they differ by, and the best of one week is the worst of the next"

CAUSES: Mapping[str, str] = {
    "nyiso": (
        "the expert at the 99.9% quantile of the stated distribution costs 276 M$ at the highest price, but one early round with many "
        "late jobs makes the weights' rate small for good: at the end it has 64% of the weight"
    ),
    "nyiso-year": "as in nyiso",
    "tracking": "one fixed decision is best in nearly every round, and a weighted mean of experts pays for those that are not",
    "pacing": (
        "the price of the budget is learned from 0 and spends less than all of it at the highest penalty; ascent with a step tuned on the "
        "first fifth begins nearer to that price"
    ),
    "ratings": (
        "`hedged` averages the data, and positions have no average, so that pilots choose among the algorithms of the papers; dual ascent "
        "with observed slopes costs less"
    ),
    "autoscaling": "crowds come seldom: what a margin for them saves shows after weights have moved; `ofw-tvc` keeps more machines always",
    **dict.fromkeys(("djia", "sp500", "tse", "msci", "nyse_o", "nyse_n"), _NEWTON),
    **{f"{market}-sector": _CLOSE for market in ("djia", "sp500", "tse", "msci", "nyse_o", "nyse_n")},
}
