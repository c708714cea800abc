"""Causes of the targets that the default misses, by problem: what was seen of its experts, weights and choice."""

from __future__ import annotations

from collections.abc import Mapping

_LUCK = (
    "Newton steps and rules that hold the stocks of one day 24 days before are best in some markets and the worst in others; weights cost "
    "up to ln K in logarithms of wealth beside the best expert, and much of it while it is not yet known"
)
_TURNED = "Newton steps lead on the first fifth and lose afterwards, and the weights follow them down"

CAUSES: Mapping[str, str] = {
    "nyiso": (
        "at the highest price the expert at the 99.9% quantile of the stated distribution pays 276 M$ on the last 80% and the next one "
        "284, but 71 and 63 on the first 20%: it leads in total only at the very end, and weights cannot know; weights of second order "
        "(Squint, Adapt-ML-Prod) pay 8% to 77% more"
    ),
    "nyiso-year": "as in nyiso",
    "tracking": "one fixed decision is best in nearly every round, and a weighted mean of experts pays for those that are not",
    "autoscaling": "crowds come seldom: what a margin for them saves shows after weights have moved; `ofw-tvc` keeps more machines always",
    **dict.fromkeys(("djia", "sp500", "tse", "msci", "nyse_o", "nyse_n"), _LUCK),
    **{f"{market}-sector": _LUCK for market in ("djia", "sp500", "tse", "nyse_o", "nyse_n")},
    "msci-sector": _TURNED,
}
