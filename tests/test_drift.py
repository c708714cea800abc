"""Decisions stay inside their sets over many rounds. `make soak` (tests/soak.py) plays 10^7 in C and 10^5 in NumPy of every algorithm."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from soak import SETS, SHORT, WAYS, cases, plan_over, soaked, streams
from test_c99 import needs_compiler
from thorough import thorough

from oco.compiler.algorithms import ALGORITHMS

IN_C = [("coldq", "simplex"), ("projection-free", "cut box"), ("ofw-tvc", "flow"), ("yu-neely", "ball")]
IN_NUMPY = [("oeg", "simplex"), ("mirror-prox", "box"), ("bfw-tvc", "cut box"), ("sinha-vaze", "cut ball")]


@pytest.mark.parametrize(
    ("algorithm", "name", "backend", "rounds"),
    [
        *[pytest.param(a, n, "c", 200_000, marks=needs_compiler) for a, n in IN_C],
        *((a, n, "numpy", 400) for a, n in IN_NUMPY),
        *(thorough(a, n, "numpy", 2_000) for a, n in IN_NUMPY),
    ],
)
def test_many_rounds_without_drift(algorithm, name, backend, rounds):
    plan = plan_over(algorithm, SETS[name], SHORT)
    worst = soaked(plan, SETS[name], backend, rounds, block=rounds // 20)
    assert worst.rounds == rounds and worst.stays, worst


@pytest.mark.parametrize("name", SETS)
def test_the_sets_are_looked_at_by_their_definitions(name):
    """A decision inside is inside, and one that is moved a little is as far outside as it was moved, about."""
    plan = plan_over("ogd", SETS[name], SHORT)
    x = plan.contract.start["x"][None]
    assert SETS[name].outside(x)[0] <= 1e-12
    assert SETS[name].outside(3 * x + 2)[0] > 0.5
    edge = plan.contract.domains["x"].project_array(x[0] + 10 * np.arange(1, x.size + 1).reshape(x[0].shape))[None]
    assert abs(SETS[name].outside(edge)[0]) < 1e-9
    moved = edge + 1e-6 * np.sign(edge - x + 1e-300)
    assert SETS[name].outside(moved)[0] > 1e-7


def test_streams_do_their_worst_within_their_bounds():
    plan = plan_over("coldq", SETS["simplex"], SHORT)
    blocks = list(islice(streams(plan, 500, np.random.default_rng(0)), len(WAYS)))
    c, need = (np.stack(parts) for parts in zip(*blocks, strict=True))
    assert (np.abs(c) <= 1).all() and (need >= 0).all() and (need <= 1).all()
    assert (c[0] == 1).all() and (c[2] == c[2][:, :1]).all() and (np.abs(np.diff(c[2], axis=0)) == 2).all()
    assert ((c != 0) & (np.abs(c) < 1e-300)).any() and len({block.tobytes() for block in c}) == len(WAYS)


def test_every_algorithm_is_among_the_cases():
    played = {(algorithm, backend) for algorithm, _, _, backend, _ in cases()}
    assert played == {(a.name, backend) for a in ALGORITHMS for backend in ("c", "numpy")}
