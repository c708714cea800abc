"""Fleets in C: every learner is the learner that it would be alone, also where learners of a block go different ways."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from ir_programs import random_learner
from test_backends_agree import rounds_of
from test_c99 import has_compiler

import oco
from oco.backends.c99.fleet_source import emit_fleet
from oco.compiler.ir.batching import batch
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.passes import optimize

EXAMPLES = Path(__file__).parent.parent / "examples"
LANES = 3


def varied(array, lane):
    """Another value of the same kind and shape."""
    a = np.asarray(array)
    return a * (1 + 0.3 * lane) if a.dtype.kind == "f" else ~a if a.dtype.kind == "b" and lane % 2 else a


def test_a_batch_computes_what_each_learner_computes():
    for seed in range(40):
        program, args = random_learner(seed)
        many = [[args[0], *(varied(a, k) for a in args[1:])] for k in range(LANES)]
        stacked = [args[0], *(np.stack(same, axis=-1) for same in list(zip(*many))[1:])]
        found = interpret(optimize(batch(program, LANES)), "measure", stacked)
        for k, own in enumerate(many):
            for a, b in zip(found, interpret(program, "measure", own), strict=True):
                assert np.allclose(a[..., k], b, rtol=1e-12, atol=1e-12, equal_nan=True), f"seed {seed}, lane {k}"


MODELS = [
    ("tracking", "coldq", 8),
    ("online_qp", "mirror-prox", 8),
    ("portfolio", "mirror-descent", 8),
    ("job_scheduling", "coldq", 8),
    ("datacenter", "mirror-descent", 8),
    ("blind_pricing", None, None),
]


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name, algorithm, lanes", MODELS)
def test_learners_of_a_fleet_are_learners(name, algorithm, lanes):
    plan = oco.compile(oco.load(EXAMPLES / f"{name}.oco"), algorithm=algorithm)
    size, count = 11, 12
    if lanes is not None:
        assert emit_fleet(plan.program, plan.contract).lanes == lanes
    together = plan.fleet(size, backend="c")
    alone = [plan.learner(seed=k, backend="c") for k in range(size)]
    rows = list(rounds_of(plan, size * count))
    for k in range(count):
        data = rows[k * size : (k + 1) * size]
        decided = together.decide()
        single = [a.decide() for a in alone]
        for key in decided if isinstance(decided, dict) else [None]:
            ours = decided if key is None else decided[key]
            theirs = np.stack([s if key is None else s[key] for s in single])
            assert np.allclose(ours, theirs, rtol=1e-12, atol=1e-12 * np.abs(theirs).max())
        found = together.observe(**{n: np.stack([d[n] for d in data]) for n in data[0]})
        worth = [a.observe(**d) for a, d in zip(alone, data)]
        assert np.allclose(found.loss, [w.loss for w in worth], rtol=1e-10, atol=1e-12)
        assert np.allclose(found.constraints, [w.constraints for w in worth], rtol=1e-10, atol=1e-10)
    values = together.values
    for f in plan.program.state:
        theirs = np.stack([a.value(f.name) for a in alone])
        assert np.allclose(values[f.name], theirs, rtol=1e-10, atol=1e-10 * max(np.abs(theirs).max(initial=0), 1))


TRACKING = oco.parse(EXAMPLES.joinpath("tracking.oco").read_text())


@pytest.mark.parametrize(
    "backend", ["numpy", pytest.param("c", marks=pytest.mark.skipif(not has_compiler(), reason="no C"))]
)
def test_a_fleet_takes_numbers_alone(backend):
    fleet = oco.compile(TRACKING, "coldq").fleet(3, backend=backend)
    shapes = {"H": (3, 4, 10), "noise": (3, 4), "A": (3, 2, 10), "b": (3, 2)}
    good = {name: np.full(shape, 0.5) for name, shape in shapes.items()}
    before = fleet.values
    text = good["b"].astype(object)
    text[2, 1] = "much"
    for wrong, code in (
        (good["b"] + 1j, "OCO841"),
        (np.ma.masked_array(good["b"], good["b"] > 0), "OCO841"),
        (text, "OCO841"),
        ([[0.5, 0.5], [0.5], [0.5, 0.5]], "OCO841"),
        (good["b"][0], "OCO842"),
        (None, "OCO841"),
    ):
        with pytest.raises(oco.OcoError) as caught:
            fleet.observe(**good | {"b": wrong})
        assert caught.value.code == code, wrong
        assert all(np.array_equal(a, before[name]) for name, a in fleet.values.items())
    other = oco.compile(TRACKING, "coldq").fleet(3, backend=backend)
    kinds = {name: a.astype(np.float32) for name, a in good.items()} | {"b": good["b"].tolist()}
    assert np.array_equal(fleet.observe(**good).loss, other.observe(**kinds).loss)


@pytest.mark.parametrize(
    "wrong, code",
    [
        ({"size": 0}, "OCO852"),
        ({"size": 2.5}, "OCO852"),
        ({"size": "3"}, "OCO852"),
        ({"workers": 0}, "OCO852"),
        ({"workers": 1.5}, "OCO852"),
        ({"seeds": [1]}, "OCO852"),
        ({"seeds": [1, -2]}, "OCO849"),
        ({"start": {"z": np.zeros(10)}}, "OCO846"),
        ({"start": "here"}, "OCO846"),
    ],
)
def test_a_fleet_that_cannot_be_made_is_an_error(wrong, code):
    with pytest.raises(oco.OcoError) as caught:
        oco.compile(TRACKING, "coldq").fleet(**{"size": 2, "backend": "numpy"} | wrong)
    assert caught.value.code == code
