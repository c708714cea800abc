"""Explanations of codes with the lists of domains, distributions and facts that they name."""

from __future__ import annotations

from oco.dsl.codes import Code
from oco.dsl.distributions import DISTRIBUTIONS
from oco.dsl.domains import DOMAINS
from oco.dsl.fact_keys import catalogue

LISTS = {
    "{domains}": ", ".join(kind.signature for kind in DOMAINS.values()),
    "{distributions}": ", ".join(kind.signature for kind in DISTRIBUTIONS.values()),
    "{facts}": ", ".join(catalogue(())),
}
"""Text of each place that the explanation of a code may have."""


def explanation(row: Code) -> str:
    """Explanation of a code, its lists filled in."""
    text = row.explanation
    for place, words in LISTS.items():
        text = text.replace(place, words)
    return text
