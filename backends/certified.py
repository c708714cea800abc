"""Certificates of learners and fleets: the sums of a state, and the program's entry that bounds with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oco.backends.base import Compiled
from oco.compiler.certificates import certificate
from oco.compiler.certificates.certificate import Certificate, CertificateTerms
from oco.dsl.diagnostics import fail


def certificate_of(compiled: Compiled, terms: CertificateTerms | None, state: Sequence[Any]) -> Certificate:
    """Certificate of the rounds that led to a state. Raises OCO735 where the program keeps no sums for it."""
    if compiled.certificate is None or terms is None:
        raise fail("OCO735", "this learner keeps no certificate", hint='compile the model with certify="static"')
    with np.errstate(all="ignore"):
        results = compiled.certificate(*state)
    return certificate.certificate_of(compiled.program, terms, state, results)
