"""Runs of a plan with other values of its free constants, which share one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from oco.compiler.selection.plan import OPEN

if TYPE_CHECKING:
    from oco.evaluation.data import Data
    from oco.evaluation.report.trace import Trace


def trial_of(plan: Any, rounds: int, runs: int) -> Callable[[Mapping[str, float], Data, int], Trace]:
    """Runs of `Plan.trial` of a plan as users hold it: numbers, data, seed -> trace."""
    horizon = plan.horizon or rounds
    paper = plan.with_constants({}, horizon).settings
    usual = {f.name: paper[f.name].value if f.kind == "value" else 1.0 for f in plan.free}
    counts = [f.name for f in plan.free if f.kind == "count"]

    @cache
    def opened(*fixed: float) -> tuple[Any, str]:
        own = plan.opened(dict(zip(counts, fixed)), horizon)
        return own, own.backend_for(rounds * (1 if counts else runs)).name

    def run(numbers: Mapping[str, float], data: Data, seed: int) -> Trace:
        all_numbers = {**usual, **numbers}
        own, backend = opened(*(all_numbers[name] for name in counts))
        start = {OPEN + name: number for name, number in all_numbers.items() if name not in counts}
        trace: Trace = own.run(data, seed=seed, start=start, backend=backend, keep="last")
        return trace

    return run
