"""Facts of constraints with very many entries, which are those of their worst entry, are those of a few entries."""

from __future__ import annotations

import pytest

import oco
from oco.compiler.prover.vector import MOST_ENTRIES

MODEL = """model m
horizon T = 1000
decision x[{n}] in box(0, 1)
stream c[{n}] in [-1, 1]
stream A[{n}, {n}] in [0, 1]
stream b[{n}] in [1, 2]
minimize c @ x
subject to
    use: {body} on average
"""
KEYS = ("convex", "smoothness.l2", "lipschitz.l1")
ENTRYWISE = ["square(x) <= b", "exp(2 * x) <= 7 + b", "x <= b", "abs(x - b) <= b", "square(x - b) + x <= 9"]
STRUCTURES = {
    "A @ x <= 5": "affine",
    "x <= b": "affine",
    "exp(2 * x) <= 9": "separable",
    "square(A @ x) <= 5": "general",
}


@pytest.mark.parametrize("body", ENTRYWISE)
def test_many_entries_have_the_facts_of_few(body: str) -> None:
    few, many = (oco.check(oco.parse(MODEL.format(n=n, body=body))) for n in (3, MOST_ENTRIES + 1))
    for key in KEYS:
        ours, theirs = (facts[f"constraints.use.{key}"] for facts in (many, few))
        assert ours.status == theirs.status, key
        if ours.value is not None:
            assert ours.value == pytest.approx(theirs.value, rel=1e-9), key


@pytest.mark.parametrize(("body", "kind"), STRUCTURES.items())
def test_many_entries_have_a_structure(body: str, kind: str) -> None:
    facts = oco.check(oco.parse(MODEL.format(n=MOST_ENTRIES + 1, body=body)))
    assert facts["constraints.use.structure"].value == kind
