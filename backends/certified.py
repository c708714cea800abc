"""Certificates of learners and fleets, and conditions of their guarantees: what the numbers of a state prove."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oco.backends.base import Compiled
from oco.compiler.certificates import certificate
from oco.compiler.certificates.certificate import Certificate, CertificateTerms
from oco.compiler.certificates.watched_conditions import WatchedConditions
from oco.compiler.theory.conditions import ConditionLine
from oco.dsl.diagnostics import fail


def certificate_of(compiled: Compiled, terms: CertificateTerms | None, state: Sequence[Any]) -> Certificate:
    """Certificate of the rounds that led to a state. Raises OCO735 where the program keeps no sums for it."""
    if compiled.certificate is None or terms is None:
        raise fail("OCO735", "this learner keeps no certificate", hint='compile the model with certify="static"')
    with np.errstate(all="ignore"):
        results = compiled.certificate(*state)
    return certificate.certificate_of(compiled.program, terms, state, results)


def conditions_of(
    compiled: Compiled, watched: WatchedConditions | None, state: Sequence[Any]
) -> tuple[ConditionLine, ...]:
    """Outcome of each condition of the guarantee in the rounds that led to a state; none where there is none."""
    fields = (f.name for f in compiled.program.state)
    return () if watched is None else watched.lines(dict(zip(fields, state, strict=True)))
