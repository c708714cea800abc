"""Values that a feedback discloses of a round whose streams are known: loss, constraints and gradients at the decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import cast

from oco.compiler.ir.trace import Tracer
from oco.compiler.ir.value import Value
from oco.compiler.lowering.points import Point, Rows
from oco.compiler.lowering.round_problem import Problem
from oco.compiler.lowering.trace_spec import TraceSpec


def with_streams(spec: TraceSpec) -> TraceSpec:
    """Specification of the same problem, in the user's units, whose rounds reveal their streams."""
    return replace(spec, scales=None, open_streams=True)


def disclosed(
    t: Tracer, spec: TraceSpec, now: Value, streams: Mapping[str, Value], x: Point, second: Callable[[], Point]
) -> dict[str, Value]:
    """Values of `spec.fields()` in the round `now` with these streams at the decision x; `second` gives the second point of the round."""
    p = Problem(t, with_streams(spec), streams, now)
    of_point: dict[str, Callable[[], Value]] = {
        "loss": lambda: p.loss(x),
        "second_loss": lambda: p.loss(second()),
        "constraints": lambda: p.constraints(x),
        "equalities": lambda: p.all_equalities(x),
    }
    blocks = spec.canonical.blocks
    for k, b in enumerate(blocks):
        end = "" if len(blocks) == 1 else f"_{b.name}"
        of_point[f"gradient{end}"] = partial(_block, p.gradient, x, k)
        of_point[f"constraint_gradients{end}"] = partial(_block, p.constraint_gradients, x, k)
        of_point[f"equality_gradients{end}"] = partial(_block, p.all_equality_gradients, x, k)
    return {f.name: of_point[f.name]() for f in spec.fields()}


def _block(slopes: Callable[[Point], Point | Rows], x: Point, k: int) -> Value:
    """Part of the gradients at x that is towards decision k."""
    return cast(Value, slopes(x).blocks[k])
