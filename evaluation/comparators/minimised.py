"""Best decisions in hindsight by linear minimisation alone: for affine losses over sets whose equations do not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical
from oco.compiler.problem.degrees import degree
from oco.evaluation.comparators.base import Comparator, ComparatorBudget, ComparatorStatus, Prefixes, unsolved
from oco.evaluation.comparators.composite import affine
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
METHOD = "linear minimisation"


def is_minimised(problem: Canonical) -> bool:
    """True where a minimiser of a linear function over the sets is all that a comparator needs, and their equations are too many."""
    if all(b.domain.hull_fits for b in problem.blocks) or problem.constraints or problem.moving is not None:
        return False
    return degree(problem.objective, tuple(b.name for b in problem.blocks)) <= 1


def minimised_static(problem: Canonical, data: Data) -> Comparator:
    """Best fixed decision: it minimises the sum of the losses, whose value is its own lower bound."""
    began = perf_counter()
    (x,), _ = _minimisers(problem, _sums(problem, data, np.array([data.rounds]))[1])
    losses = np.concatenate([constant + slopes @ x for constant, slopes in _parts(problem, data)])
    return _comparator("static", problem, x[None], losses, began)


def minimised_prefixes(problem: Canonical, data: Data, ends: Array) -> Prefixes:
    """Best fixed decisions for the first t rounds, for rising t."""
    began = perf_counter()
    constants, slopes = _sums(problem, data, ends)
    x, least = _minimisers(problem, slopes)
    value, status = constants + least, (ComparatorStatus.CERTIFIED,) * len(ends)
    return Prefixes(ends, value, value, status, _split(problem, x), METHOD, perf_counter() - began)


def minimised_dynamic(problem: Canonical, data: Data, budget: ComparatorBudget) -> Comparator:
    """Best decision of each round."""
    began, size = perf_counter(), sum(b.domain.size for b in problem.blocks)
    if 8 * data.rounds * size > budget.memory:
        needed, allowed = 8 * data.rounds * size / 2**30, budget.memory / 2**30
        why = f"the decisions of all rounds take {needed:.3g} GiB, more than the budget of {allowed:.3g} GiB"
        return unsolved("dynamic", why, -np.inf, began)
    x, losses, done = np.empty((data.rounds, size)), np.empty(data.rounds), 0
    for constant, slopes in _parts(problem, data):
        for c, level in zip(np.broadcast_to(slopes, (len(constant), size)), constant):
            (x[done],), (least,) = _minimisers(problem, c[None])
            losses[done] = level + least
            done += 1
            budget.solved(done, data.rounds)
            if perf_counter() - began > budget.seconds and done < data.rounds:
                why = f"no time was left of {budget.seconds:g} s after {done:,} of {data.rounds:,} rounds"
                return unsolved("dynamic", why, -np.inf, began)
    return _comparator("dynamic", problem, x, losses, began)


def _comparator(kind: str, problem: Canonical, x: Array, losses: Array, began: float) -> Comparator:
    """Comparator of exact minimisers x (1 or T, n)."""
    value, status = float(losses.sum()), ComparatorStatus.CERTIFIED
    decision = {name: parts if kind == "dynamic" else parts[0] for name, parts in _split(problem, x).items()}
    return Comparator(kind, status, decision, losses, value, value, method=METHOD, seconds=perf_counter() - began)


def _split(problem: Canonical, x: Array) -> dict[str, Array]:
    """Rows of x (k, n) as decisions (k, *shape) by name."""
    rounds = RoundArrays.of(problem, {}, np.arange(0))
    return {name: x[:, rounds.places[name]].reshape(len(x), *shape) for name, shape in rounds.layout}


def _parts(problem: Canonical, data: Data) -> Iterator[tuple[Array, Array]]:
    """Iterate over the rounds a part at a time: constants (k,) and slopes (k, n), or (1, n) where all are the same, of their losses."""
    for start, streams in data.blocks() if data.names else [(0, {})]:
        count = len(next(iter(streams.values()))) if streams else data.rounds
        loss = affine(RoundArrays.of(problem, streams, np.arange(start, start + count) + 1), problem.objective)
        yield np.broadcast_to(loss.constant[:, 0], (count,)), loss.linear[:, 0]


def _sums(problem: Canonical, data: Data, ends: Array) -> tuple[Array, Array]:
    """Constants (B,) and slopes (B, n) of the sums of the losses of the first t rounds, for rising t."""
    constants, slopes, start = np.zeros(len(ends)), np.zeros((len(ends), sum(b.domain.size for b in problem.blocks))), 0
    for constant, slope in _parts(problem, data):
        for k, end in enumerate(np.clip(ends - start, 0, len(constant))):
            constants[k] += constant[:end].sum()
            slopes[k] += slope[:end].sum(axis=0) if len(slope) == len(constant) else end * slope[0]
        start += len(constant)
    return constants, slopes


def _minimisers(problem: Canonical, slopes: Array) -> tuple[Array, Array]:
    """Minimisers (k, n) of <c, x> over the sets for each row c of `slopes` (k, n), and the least values (k,)."""
    ends, results = np.cumsum([b.domain.size for b in problem.blocks]), np.empty(slopes.shape)
    for k, c in enumerate(slopes):
        for block, end in zip(problem.blocks, ends):
            own = slice(end - block.domain.size, end)
            results[k, own] = block.domain.lmo_array(c[own].reshape(block.shape)).ravel()
    return results, np.einsum("kn,kn->k", slopes, results)
