"""Facts, plan and a short run of a model as JSON values: of examples when the page is built, of changed models in its Python."""

from __future__ import annotations

import base64
import json
import warnings
from typing import Any

import numpy as np

import oco
from oco.compiler.problem.parts import entry_labels
from oco.dsl.diagnostics import OcoError
from oco.evaluation.baselines.rules import RuleChoice, beside
from oco.evaluation.cost import Measured, Trade
from oco.evaluation.drawn import trial_rounds

ROUNDS = 300
"""Rounds that are played of a changed model, at most."""


def examined(text: str) -> str:
    """JSON text about a model: `shown` and `played` on drawn rounds, or the diagnostics of a model that is refused as `error`.

    A model that is checked but for which there is no plan, or whose rounds cannot be drawn or played, has `error` beside what there is.
    """
    values: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = oco.parse(text)
            values["facts"] = oco.check(model)._repr_html_()
            plan = oco.compile(model)
            values |= shown(plan)
            rounds = min(plan.horizon or ROUNDS, ROUNDS)
            drawn = trial_rounds(plan.canonical, rounds, seed=0) or None
            values |= played(plan.run(drawn, rounds=rounds, seed=0, backend="numpy"))
        except OcoError as error:
            values["error"] = str(error).replace("<string>:", "line ")
    return json.dumps(values)


def shown(plan: oco.Plan) -> dict[str, Any]:
    """Facts and the choice of a plan as HTML, and its algorithm."""
    return {
        "algorithm": plan.algorithm,
        "facts": plan.facts._repr_html_(),
        "plan": plan.explain()._repr_html_(),
    }


def played(trace: oco.Trace) -> dict[str, Any]:
    """Streams that data give by name as arrays with the round first, results of the learner, and those of the cheap rules that apply."""
    problem, streams = trace.problem, trace.problem.revealed
    data = trace.data.read(0, trace.rounds)
    rules = beside(RuleChoice.SOME, problem, trace.data, Trade.at_price(problem, 1.0)).played
    return {
        "rounds": trace.rounds,
        "streams": {s.name: packed(data[s.name]) for s in streams},
        "ranges": {s.name: [packed(s.lower), packed(s.upper)] for s in streams},
        "labels": list(trace.labels),
        "entries": {
            x.name: entry_labels(x.name, x.shape, problem.axes.get(x.name, ())) for x in (*problem.blocks, *streams)
        },
        "timings": [str(c.when) for c in problem.inequalities for _ in range(c.size)],
        "learner": {
            "decisions": {name: packed(trace.record.decisions[name]) for name in trace.record.decisions},
            **measures(trace),
        },
        "rules": [{"name": rule.name, **measures(rule)} for rule in rules],
    }


def measures(run: Measured) -> dict[str, Any]:
    """Losses (T,) and constraints (T, N) of a run."""
    return {"loss": packed(run.loss), "constraints": packed(run.constraints)}


def packed(values: Any) -> dict[str, Any]:
    """Array as its shape and its float64 numbers, little-endian in base64."""
    array = np.asarray(values, dtype="<f8")
    return {"shape": list(array.shape), "data": base64.b64encode(array.tobytes()).decode("ascii")}
