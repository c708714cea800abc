"""Comparators where the loss is about the decision before: a fixed one pays nothing for moving, one of each round pays for its moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from oco.compiler.problem.canonical import Canonical, DecisionBlock
from oco.dsl.expressions import Expr, Kind, Name, rewrite
from oco.evaluation.batch import RoundArray, values_of
from oco.evaluation.comparators.base import Comparator, ComparatorStatus
from oco.evaluation.comparators.functions import RoundArrays

Array = np.ndarray[Any, Any]


def moving_losses(rounds: RoundArrays, x: Array) -> Array:
    """Losses (T,) of decisions x (T, n), each after that of the round before; the first stands still."""
    problem, rows = rounds.problem, rounds.everything
    if problem.moving is None:
        return np.asarray(rounds.at_each(problem.objective, x), dtype=float)
    before = rounds.split(np.concatenate([x[:1], x[:-1]]))
    own = {s.name: s.stream.previous for s in problem.previous if s.stream.previous}
    extra = {name: before[of] if len(x) > 1 else RoundArray(before[of][None]) for name, of in own.items()}
    return np.asarray(values_of(rounds.evaluate(problem.moving, x, rows, extra), len(rows)), dtype=float)


def moving_freely(problem: Canonical) -> Canonical:
    """Problem of single rounds in which each may choose the decision before it too: no sequence loses less."""
    assert problem.moving is not None
    domains = {b.name: b.domain for b in problem.blocks}
    before = [s for s in problem.previous if s.stream.previous]
    names = {s.name for s in before}

    def decided(node: Expr) -> Expr:
        return replace(node, kind=Kind.DECISION) if isinstance(node, Name) and node.name in names else node

    blocks = (*problem.blocks, *(DecisionBlock(s.name, s.shape, domains[s.stream.previous]) for s in before))
    return replace(problem, blocks=blocks, objective=rewrite(problem.moving, decided), previous=(), moving=None)


def paying_moves(free: Comparator, fixed: Callable[[], Comparator], rounds: RoundArrays) -> Comparator:
    """Best decisions of each round with what their moves cost, or the best fixed decision where that loses less.

    free   solution of `moving_freely`, whose bound holds of all sequences
    fixed  best fixed decision, worked out where the gap is open
    """
    if free.losses is None:
        return replace(free, estimate=None)  # it leaves out what moves cost
    names = rounds.variables
    own = {name: free.decision[name] for name in names}
    losses = moving_losses(rounds, np.concatenate([own[n].reshape(rounds.count, -1) for n in names], axis=1))
    result = replace(free, decision=own, losses=losses, value=float(losses.sum()))
    closed = ComparatorStatus.of_gap(result.value, result.bound, abs(result.bound)) is ComparatorStatus.CERTIFIED
    if closed or free.status is ComparatorStatus.LEAST_VIOLATING:
        return result
    still = fixed()
    if still.losses is not None and still.status is not ComparatorStatus.LEAST_VIOLATING and still.value < result.value:
        held = {n: np.broadcast_to(d, (rounds.count, *d.shape)) for n, d in still.decision.items()}
        result = replace(result, decision=held, losses=still.losses, value=still.value, violation=still.violation)
    return replace(result, status=ComparatorStatus.INTERVAL)
