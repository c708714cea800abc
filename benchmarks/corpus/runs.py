"""A model of the corpus compiled and run: on rounds that are ordinary, and on rounds that are as bad as the model allows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

import oco
from oco.compiler.problem.canonical import Canonical, StreamRange
from oco.dsl.diagnostics import OcoError
from oco.evaluation.summary import summarize

ROUNDS = 50
REACH = 10.0
"""Values of streams without bounds are drawn up to this size."""
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Result:
    """One model: processor seconds to compile it, algorithm, vacuous parts of the guarantee, and its conditions on both kinds of rounds.

    `refused` is the code and the message of an error, "" where there is none.
    """

    name: str
    seconds: float
    algorithm: str = ""
    vacuous: tuple[str, ...] = ()
    ordinary: tuple[str, ...] = ()
    extreme: tuple[str, ...] = ()
    refused: str = ""


def result_of(path: Path, rounds: int = ROUNDS) -> Result:
    """Compile a model and run it twice. An OcoError is part of the result; anything else is raised."""
    name, began = path.stem, process_time()
    try:
        plan = oco.compile(oco.load(path))
    except OcoError as error:
        return Result(name, process_time() - began, refused=f"{error.code}: {error.message}")
    seconds = process_time() - began
    guarantee = plan.guarantee
    vacuous = () if guarantee is None else guarantee.vacuous
    outcomes = [_run(plan, rounds_of(plan.canonical, rounds, extreme)) for extreme in (False, True)]
    return Result(name, seconds, plan.algorithm, vacuous, *outcomes)


def _run(plan: Any, data: Mapping[str, Array]) -> tuple[str, ...]:
    """Outcome of each condition of the guarantee on these rounds."""
    trace = plan.run(data)
    kept = trace.decisions
    for block in plan.canonical.blocks:
        x = np.asarray(kept[block.name] if isinstance(kept, Mapping) else kept)
        assert np.isfinite(x).all() and block.domain.contains(x[-1]), (
            f"{plan.model.name}: {block.name} leaves its domain"
        )
    small = plan.canonical.size <= 5000 and not plan.canonical.feedback.gives_values_alone
    return tuple(c.text.split(":")[0] for c in summarize(trace).conditions) if small else ()


def rounds_of(problem: Canonical, rounds: int, extreme: bool) -> dict[str, Array]:
    """Rounds with a season of a fifth of their number and noise; where they are extreme, every value is at an end of its range."""
    rng = np.random.default_rng(0)
    return {s.name: _values(s, rounds, rng, extreme) for s in problem.streams}


def _values(s: StreamRange, rounds: int, rng: np.random.Generator, extreme: bool) -> Array:
    shape = (rounds, *s.shape)
    low, high = (
        np.broadcast_to(np.clip(end, -REACH, REACH) if not np.isfinite(end).all() else end, s.shape)
        for end in (s.lower, s.upper)
    )
    if s.stream.values:
        return rng.choice(s.stream.values, size=shape)
    if s.distribution is not None and not extreme:
        return np.asarray(s.distribution.sample(rng, rounds)).reshape(shape)
    season = np.sin(2 * np.pi * np.arange(rounds) / (rounds / 5)).reshape(-1, *(1,) * len(s.shape))
    share = np.full(shape, 1.0) if extreme else np.clip(0.4 + 0.2 * season + 0.1 * rng.normal(size=shape), 0, 1)
    values = low + share * (high - low)
    return np.rint(values).astype(np.int64) if s.integer else values
