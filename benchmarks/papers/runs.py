"""Contenders of an experiment on the same data: their curves, averaged over seeds, beside the best fixed decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import oco
from oco.compiler.theory.guarantees import Guarantee
from oco.evaluation.report.trace import Trace

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Contender:
    """An algorithm with the settings of a paper's table, or a rule without one: `settings` "paper", or formulas by name."""

    label: str
    algorithm: str
    settings: str | Mapping[str, str | float] = "paper"


STAY = Contender("stay at x_1", "ogd", {"eta": "1e-100"})  # a step must be positive; this one is lost in rounding
"""Gradient descent whose steps change no decision."""


@dataclass(frozen=True, eq=False)
class Runs:
    """A contender's runs with their plans, one a seed. Curves are cumulative, (seeds, T)."""

    contender: Contender
    plans: Sequence[oco.Plan]
    traces: Sequence[Trace]

    @property
    def label(self) -> str:
        return self.contender.label

    @cached_property
    def loss(self) -> Array:
        return np.array([np.cumsum(t.loss) for t in self.traces])

    @cached_property
    def hard(self) -> Array:
        """The papers' plain sum over the constraints of sum_t [g_t]_+."""
        return np.array([t.violation("hard", "papers") for t in self.traces])

    @cached_property
    def soft(self) -> Array:
        return np.array([t.violation("soft", "papers") for t in self.traces])

    def regret_bound(self) -> Array | None:
        """Bound of the theorem after each round, (T,): the mean over the seeds, where their models differ."""
        return self._mean_bound(lambda g: g.regret_curve(self.loss.shape[1]))

    def violation_bound(self) -> Array | None:
        return self._mean_bound(lambda g: g.violation_curve(self.loss.shape[1]))

    def _mean_bound(self, curve: Callable[[Guarantee], Array | None]) -> Array | None:
        curves = [None if p.guarantee is None else curve(p.guarantee) for p in dict.fromkeys(self.plans)]
        known = [c for c in curves if c is not None]
        return np.mean(known, axis=0) if len(known) == len(curves) else None


def play(
    model: oco.Model | Callable[[int], oco.Model],
    contenders: Sequence[Contender],
    seeds: Sequence[int],
    data: Callable[[int], Mapping[str, Array] | None] = lambda seed: None,
    start: Any = None,
    **options: Any,
) -> list[Runs]:
    """Every contender on the data of every seed, and on its model where each has its own; data of None is drawn from the model."""
    models = [model(seed) if callable(model) else model for seed in seeds]
    found = []
    for contender in contenders:
        once = {
            id(m): oco.compile(m, contender.algorithm, contender.settings) for m in {id(m): m for m in models}.values()
        }
        plans = [once[id(m)] for m in models]
        traces = [p.run(data(seed), seed=seed, start=start, **options) for p, seed in zip(plans, seeds)]
        found.append(Runs(contender, plans, traces))
    return found


def best_fixed(runs: Runs) -> Array:
    """Cumulative losses of the best fixed decision in hindsight, (seeds, T)."""
    losses = [t.comparator("static").losses for t in runs.traces]
    assert all(found is not None for found in losses)
    return np.array([np.cumsum(found) for found in losses])


def ending(curves: Array) -> tuple[float, float]:
    """Mean and standard deviation over the seeds after the last round."""
    last = curves[:, -1]
    return float(last.mean()), float(last.std(ddof=1)) if len(last) > 1 else 0.0
