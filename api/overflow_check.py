"""Rehearsal of a few rounds while compiling with settings given by hand: do they overflow on data that the model
allows?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from oco.backends import BACKENDS
from oco.backends.python.intake import NotFinite
from oco.backends.round_work import work_of
from oco.compiler.problem.canonical import StreamRange
from oco.dsl.diagnostics import fail
from oco.dsl.expressions import walk
from oco.dsl.statements import Feedback
from oco.evaluation.revealed import Revealed
from oco.plan import Plan

Array = np.ndarray[Any, Any]
ROUNDS = 4
MOST_NUMBERS = 20_000
"""Numbers in decisions, and in streams: larger models are neither rehearsed nor played in pilot runs, which should take seconds."""
MOST_PARTS = 1_000
"""Parts of loss and constraints: so many are traced within a quarter of a second."""
MOST_OPERATIONS = 5_000
"""Operations of a round, counting each turn of a loop: some tenths of a second in all."""


def check_overflow(plan: Plan) -> None:
    """Play the first and the last rounds with streams at the ends of their ranges. Raises OCO714 where a number is not
    finite.

    Such an overflow can happen on real data; one that the rehearsal misses is refused by the learner in its round
    (OCO859).
    """
    given = {name: s for name, s in plan.settings.items() if s.given}
    numbers = plan.canonical.size + sum(int(np.prod(s.shape)) for s in plan.canonical.streams)
    parts = sum(1 for e in (plan.canonical.objective, *(c.expr for c in plan.canonical.constraints)) for _ in walk(e))
    if not given or numbers > MOST_NUMBERS or parts > MOST_PARTS:
        return  # before the program is traced, which takes a while
    if plan.program.factored or work_of(plan.program).operations > MOST_OPERATIONS:
        return
    for words, rounds in _corners(plan.canonical.streams):
        try:
            _play(plan, rounds)
        except NotFinite as error:
            message = ", ".join(f"{n} = {s.formula if s.value is None else f'{s.value:.6g}'}" for n, s in given.items())
            raise fail(
                "OCO714",
                f"`{plan.algorithm}` overflows with {message}: with streams {words}, {error.name} is not finite after few rounds",
                plan.model.using.span if plan.model.using else None,
                "give settings of another size, or leave them out: `oco` resolves them",
            ) from None


def _corners(streams: tuple[StreamRange, ...]) -> Iterator[tuple[str, list[dict[str, Array]]]]:
    """Data of a few rounds, in words and numbers."""
    ends = {s.name: (_end(s, s.upper, 1.0), _end(s, s.lower, -1.0)) for s in streams}
    yield "at their upper ends", [{n: e[0] for n, e in ends.items()}] * ROUNDS
    yield "at their lower ends", [{n: e[1] for n, e in ends.items()}] * ROUNDS
    yield "at either end by turns", [{n: e[k % 2] for n, e in ends.items()} for k in range(ROUNDS)]
    mixed = {n: np.where(np.arange(hi.size).reshape(hi.shape) % 2, lo, hi) for n, (hi, lo) in ends.items()}
    yield "at either end, entry by entry", [mixed] * ROUNDS


def _end(s: StreamRange, end: Any, without: float) -> Array:
    """An end of a range as an array; a number within it where it has no end."""
    whole = np.broadcast_to(np.asarray(end, dtype=np.float64), s.shape)
    return np.where(np.isfinite(whole), whole, np.clip(without, s.lower, s.upper))


def _play(plan: Plan, rounds: list[dict[str, Array]]) -> None:
    """The first rounds, then the last ones from the state after them. Raises NotFinite."""
    compiled, program, rng = plan.compiled(next(iter(BACKENDS))), plan.program, np.random.default_rng(0)
    revealed = Revealed(plan.canonical)
    state = compiled.init(*(np.array(plan.contract.start[f.name], dtype=np.float64) for f in program.decision))
    places = {f.name: k for k, f in enumerate(program.state)}
    last = max(1, (plan.horizon or 10**6) - ROUNDS + 1)
    for t, streams in [*enumerate(rounds, 1), *enumerate(rounds, last)]:
        state = (type(state[0])(t), *state[1:])
        draws = [rng.random(f.type.shape) for f in program.draws]
        decisions, others = (compiled.decide(*state, *(sign * a for a in draws)) for sign in (1, -1))
        seen: Mapping[str, Any] = streams
        if plan.canonical.feedback is not Feedback.FULL:
            with np.errstate(all="ignore"):
                names = [f.name for f in program.decision]
                *_, seen = revealed(dict(zip(names, decisions)), streams, t, dict(zip(names, others)))
        before = {name: state[places[own]] for name, own in program.previous}
        seen = {**streams, **seen, **before}
        given = [
            np.asarray(seen[f.name], dtype=np.int64 if f.type.dtype == "int64" else np.float64)[()]
            for f in program.feedback
        ]
        state = compiled.update(*state, *given, *draws)
