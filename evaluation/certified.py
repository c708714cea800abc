"""Certificates of runs, from what their traces hold: every sum is made again from the decisions and the data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from oco.backends.base import Compiled
from oco.backends.certified import certificate_of
from oco.backends.registry import backend, usable
from oco.compiler.certificates.certificate import Certificate, CertificateTerms, terms_of
from oco.compiler.certificates.form import certificate_form
from oco.compiler.certificates.replay import PLAYED, replay_program
from oco.compiler.problem.canonical import Canonical
from oco.dsl.diagnostics import OcoError, fail
from oco.evaluation.numbers import number

if TYPE_CHECKING:
    from oco.evaluation.measured_run import MeasuredRun

Array = np.ndarray[Any, Any]
MANY = 20_000
"""Rounds from which on the sums are compiled, where a backend does that."""


def certificates(run: MeasuredRun, ends: Sequence[int]) -> list[Certificate]:
    """Certificates after these rounds of a run, rising numbers from 1.

    Raises OCO735 where the model has none, OCO833 where the trace does not hold all decisions and data.
    """
    _require_all(run)
    compiled, terms = _compiled(run.problem, _backend(run.rounds))
    blocks = [b.name for b in run.problem.blocks]
    state: tuple[Any, ...] = compiled.init(*(np.zeros(b.shape) for b in run.problem.blocks))
    results, done = list[Certificate](), 0
    for end in ends:
        streams = run.data.read(done, end)
        arrays = {**streams, **{n + PLAYED: run.record.decisions[n][done:end] for n in blocks}}
        inputs = [arrays[f.name] for f in compiled.program.feedback]
        state, done = _summed(compiled, state, inputs, end - done), end
        results.append(certificate_of(compiled, terms, state))
    return results


def _summed(compiled: Compiled, state: tuple[Any, ...], inputs: Sequence[Array], rounds: int) -> tuple[Any, ...]:
    """State after these rounds more; inputs have the round first."""
    if compiled.run is not None:
        recorded = compiled.run(state, inputs, (), rounds, ())
        if recorded.rounds == rounds:
            return tuple(recorded.state)
    for k in range(rounds):
        state = compiled.update(*state, *(a[k] for a in inputs))
    return state


def _require_all(run: MeasuredRun) -> None:
    if (
        run.data.absent
        or len(run.record.kept) < run.rounds
        or {b.name for b in run.problem.blocks} - {*run.record.decisions}
    ):
        message = "the trace does not hold the decisions and data of all rounds, from which a certificate is made"
        raise fail(
            "OCO833", message, hint='run with keep="all", or compile with certify="static": the learner keeps the sums'
        )


def _backend(rounds: int) -> str | None:
    return usable("c") if rounds > MANY else None


@lru_cache(maxsize=8)
def _compiled(problem: Canonical, name: str | None) -> tuple[Compiled, CertificateTerms]:
    program = replay_program(problem)
    form = certificate_form(problem)
    assert not isinstance(form, str)
    return backend(name).compile(program), terms_of(form)


def certified(run: MeasuredRun) -> tuple[float | None, str]:
    """Certified bound of the static regret after the last round, and a sentence about it; None with the reason where there is none."""
    try:
        result = run.certificate()
    except OcoError as error:
        return None, error.message
    if result.impossible:
        return None, "no fixed decision satisfied the constraints of all rounds: proved"
    how = (
        "losses and constraints summed as they are"
        if result.terms.exact
        else "made of linearised losses or constraints"
    )
    if result.bound < 0:
        return (
            result.bound,
            f"every fixed decision that satisfied the constraints lost {number(-result.bound)} more at least: {how}",
        )
    return result.bound, f"no fixed decision lost less by more than {number(result.bound)}: {how}"
