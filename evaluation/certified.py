"""Certificates of runs, from what their traces hold: every sum is made again from the decisions and the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from oco.backends.base import Compiled
from oco.backends.certified import certificate_of
from oco.backends.registry import backend, usable
from oco.compiler.certificates.certificate import Certificate, CertificateTerms, terms_of
from oco.compiler.certificates.form import certificate_form
from oco.compiler.certificates.replay import PLAYED, replay_program
from oco.compiler.problem.canonical import Canonical
from oco.dsl.diagnostics import fail
from oco.dsl.enclose import enclose
from oco.evaluation.comparators.functions import RoundArrays
from oco.evaluation.comparators.lift import least_loss, ranges_of
from oco.evaluation.data import Data

Array = np.ndarray[Any, Any]
MANY = 20_000
"""Rounds from which on the sums are compiled, where a backend does that."""
TOGETHER = 1 << 15
"""Rounds whose data are in memory at once."""


class RowsOfRounds(Protocol):
    """Array with the round first, or what gives a part of the rounds as one."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> Array: ...


def certificates(
    problem: Canonical, data: Data, decisions: Mapping[str, RowsOfRounds], ends: Sequence[int]
) -> list[Certificate]:
    """Certificates after these rounds, rising numbers from 1, from the data and the decisions by name, the round first.

    Raises OCO735 where the model has none, OCO833 where decisions or data of a round are missing.
    """
    last = max(ends, default=0)
    names = [b.name for b in problem.blocks]
    if data.absent or not all(name in decisions and len(decisions[name]) >= last for name in names):
        message = "the trace does not hold the decisions and data of all rounds, from which a certificate is made"
        hint = 'run with keep="all", or compile with certify="static": the learner keeps the sums'
        raise fail("OCO833", message, hint=hint)
    compiled, terms = _compiled(problem, usable("c") if last > MANY else None)
    state: tuple[Any, ...] = compiled.init(*(np.zeros(b.shape) for b in problem.blocks))
    results, done = list[Certificate](), 0
    for end in ends:
        for start in range(done, end, TOGETHER):
            stop = min(start + TOGETHER, end)
            arrays = {**data.read(start, stop), **{n + PLAYED: decisions[n][start:stop] for n in names}}
            state = _summed(compiled, state, [arrays[f.name] for f in compiled.program.feedback], stop - start)
        done = end
        results.append(certificate_of(compiled, terms, state))
    return results


def beyond_all_losses(problem: Canonical, data: Data, bound: float) -> bool:
    """True where a bound is above the sum of the losses of any fixed decision, by the ranges of the domain and of the data.

    Rounds are looked at until the others cannot change the answer.
    """
    total, least = 0.0, least_loss(problem, data.rounds)
    for first, part in data.blocks():
        stop = first + len(next(iter(part.values()))) if part else data.rounds
        ranges = ranges_of(RoundArrays.of(problem, part, np.arange(first, stop) + 1))
        total += (stop - first) * float(np.max(enclose(problem.objective, ranges).hi))
        if stop == data.rounds:
            break
        if total + (data.rounds - stop) * least >= bound:
            return False
    return total < bound


def _summed(compiled: Compiled, state: tuple[Any, ...], inputs: Sequence[Array], rounds: int) -> tuple[Any, ...]:
    """State after these rounds more; inputs have the round first."""
    if compiled.run is not None:
        recorded = compiled.run(state, inputs, (), rounds, ())
        if recorded.rounds == rounds:
            return tuple(recorded.state)
    for k in range(rounds):
        state = compiled.update(*state, *(a[k] for a in inputs))
    return state


@lru_cache(maxsize=8)
def _compiled(problem: Canonical, name: str | None) -> tuple[Compiled, CertificateTerms]:
    program = replay_program(problem)
    form = certificate_form(problem)
    assert not isinstance(form, str)
    return backend(name).compile(program), terms_of(form)
