"""Selection among many numbers without sorting them. An emitted module contains it if it uses it."""

from __future__ import annotations

from typing import Any

import numpy as np


def weighted_quantile(keys: Any, weights: Any, amount: float) -> float:
    """Least key up to which the weights add up to `amount`; infinite where they never do. Passes over ever fewer
    entries.

    Most lie outside the two keys of a sample that the quantile is likely between (Floyd and Rivest, Commun. ACM 18,
    1975).
    """
    least = float(keys.min())
    if least != least:
        keys, weights = keys[keys == keys], weights[keys == keys]
    whole, margin = float(weights.sum()), 32
    if not (whole >= amount and keys.size):
        return np.inf
    while amount > 0 and keys.size > 2048:
        places = (np.arange(512) * 0.6180339887498949 % 1.0 * keys.size).astype(np.int64)
        places = places[keys[places].argsort()]
        shares = weights[places].cumsum()
        place = int(shares.searchsorted(amount / whole * shares[-1])) if margin else 256
        low = float(keys[places[place - margin]]) if place >= margin else -np.inf
        high = float(keys[places[place + margin]]) if place + margin < 512 else np.inf
        before, between = keys < low, ((keys >= low) & (keys <= high)).nonzero()[0]
        below, within = float(weights @ before), float(weights[between].sum())
        if high == np.inf:
            amount = min(amount, below + within)  # all that is left, but for rounding
        if below >= amount:
            chosen, whole = before.nonzero()[0], below
        elif below + within >= amount:
            chosen, whole, amount = between, within, amount - below
        else:
            chosen, amount = (keys > high).nonzero()[0], amount - (below + within)
            whole -= below + within
        if (low == high and chosen is between) or not chosen.size:
            return high
        margin = 32 if 2 * chosen.size <= keys.size else 0  # the middle of the sample next where too many are left
        keys, weights = keys[chosen], weights[chosen]
    order = keys.argsort(kind="stable")
    reached = (weights[order].cumsum() >= amount).nonzero()[0]
    return float(keys[order[reached[0] if reached.size else -1]])
