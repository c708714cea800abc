"""Fleets in C: every learner is the learner that it would be alone, also where learners of a block go different ways."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest
from driving import example
from ir_programs import random_learner
from test_backends_agree import rounds_of
from test_c99 import has_compiler
from thorough import corners, thorough

import oco
from oco.backends.c99 import fleet as native_fleet
from oco.backends.c99 import vectors
from oco.backends.c99.build import FLAGS, compiler
from oco.backends.c99.fleet import NativeFleet
from oco.backends.c99.fleet_source import emit_fleet
from oco.backends.c99.library import linked
from oco.compiler.ir.batching import batch
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.loop_groups import LONG
from oco.compiler.ir.passes import PASSES, optimize
from oco.compiler.ir.sums_in_parts import FEWEST

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
@pytest.mark.parametrize("name, algorithm, lanes", corners(MODELS, [m for m in MODELS if m[0] != "datacenter"]))
def test_learners_of_a_fleet_are_learners(name, algorithm, lanes):
    plan = example(name, algorithm)
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


SUMS = """
model sums
horizon T = 100
decision x[{n}] in box(-1, 1)
stream A[3, {n}] in [-1, 1]
stream b[3] in [-1, 1]
stream M[{n}, {n}] in [-1, 1]
minimize sum_squares(A @ x - b) + sum(abs(x - A[0])) / 10 + sum_squares(M @ x) / 10
"""


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("n", [FEWEST - 1, FEWEST + 3, thorough(FEWEST), thorough(LONG - 1)])
def test_short_sums_of_a_fleet_have_the_bits_of_its_learners(n):
    """Sums of a vector, inner products and products of rows are added up in one order, with entries left over or none."""
    plan, size = oco.compile(oco.parse(SUMS.format(n=n)), "ogd", settings="paper"), 11
    assert ("parts[" in plan.source("c")) is (n >= FEWEST) and emit_fleet(plan.program, plan.contract).lanes > 1
    together, alone = plan.fleet(size, backend="c"), [plan.learner(seed=k, backend="c") for k in range(size)]
    rows = list(rounds_of(plan, 5 * size))
    for k in range(5):
        data = rows[k * size : (k + 1) * size]
        assert np.array_equal(together.decide(), [a.decide() for a in alone])
        found = together.observe(**{name: np.stack([d[name] for d in data]) for name in data[0]})
        assert np.array_equal(found.loss, [a.observe(**d).loss for a, d in zip(alone, data)])


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name", ["portfolio", thorough("tracking")])
def test_operations_without_a_template_over_vectors_are_taken_lane_by_lane(name, monkeypatch):
    plan = example(name, "mirror-descent" if name == "portfolio" else None)
    whole = plan.fleet(5, backend="c")
    meant = emit_fleet(plan.program, plan.contract).code
    monkeypatch.setattr(vectors, "TEMPLATES", {})
    assert emit_fleet(plan.program, plan.contract).code.count("[7]") > meant.count("[7]")
    plain = NativeFleet(whole.compiled, plan.contract, 5, seeds=range(5))
    for data in zip(*[iter(rounds_of(plan, 20))] * 5):
        ours, theirs = plain.decide(), whole.decide()
        for key in theirs if isinstance(theirs, dict) else [...]:
            assert np.allclose(ours[key], theirs[key], rtol=1e-12, atol=1e-12 * np.abs(theirs[key]).max())
        given = {n: np.stack([d[n] for d in data]) for n in data[0]}
        assert np.allclose(plain.observe(**given).loss, whole.observe(**given).loss, rtol=1e-11, atol=0)


LEFT_OUT = [
    *((n, tuple(PASSES)) for n in ("portfolio", "job_scheduling", "blind_pricing")),
    *(("portfolio", (p,)) for p in PASSES),
]


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("name, skip", corners(LEFT_OUT, LEFT_OUT[::2]))
def test_a_fleet_without_passes_decides_the_same(name, skip):
    plan = example(name, "mirror-descent" if name == "portfolio" else None)
    whole = plan.fleet(5, backend="c")
    bare = NativeFleet(whole.compiled, plan.contract, 5, seeds=range(5), skip=skip)
    if len(skip) > 1:
        sources = [emit_fleet(plan.program, plan.contract, left).code for left in ((), skip)]
        assert sources[0] != sources[1]
    for data in zip(*[iter(rounds_of(plan, 20))] * 5):
        ours, theirs = (f.decide() for f in (bare, whole))
        for key in theirs if isinstance(theirs, dict) else [...]:
            assert np.allclose(ours[key], theirs[key], rtol=1e-12, atol=1e-12 * np.abs(theirs[key]).max())
        given = {n: np.stack([d[n] for d in data]) for n in data[0]}
        found, meant = (f.observe(**given) for f in (bare, whole))
        assert np.allclose(found.loss, meant.loss, rtol=1e-11, atol=0)
        assert np.allclose(found.constraints, meant.constraints, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    "backend", ["numpy", pytest.param("c", marks=pytest.mark.skipif(not has_compiler(), reason="no C"))]
)
def test_a_fleet_takes_numbers_alone(backend):
    fleet = example("tracking", "coldq").fleet(3, backend=backend)
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
    other = example("tracking", "coldq").fleet(3, backend=backend)
    kinds = {name: a.astype(np.float32) for name, a in good.items()} | {"b": good["b"].tolist()}
    fleet.decide()
    other.decide()
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
        example("tracking", "coldq").fleet(**{"size": 2, "backend": "numpy"} | wrong)
    assert caught.value.code == code


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
@pytest.mark.parametrize("workers", [1, 2])
def test_wrong_data_in_any_block_is_named_and_changes_no_block(workers, monkeypatch):
    monkeypatch.setattr(native_fleet, "LEAST_WORK", 1)
    plan, size = example("tracking", "coldq"), 21
    together = plan.fleet(size, backend="c", workers=workers)
    rows = list(rounds_of(plan, 2 * size))
    first, second = ({n: np.stack([r[n] for r in part]) for n in part[0]} for part in (rows[:size], rows[size:]))
    together.decide()
    together.observe(**first)
    before, decided = {n: v.copy() for n, v in together.values.items()}, together.decide()
    for place, value, code in ((0, 9.0, "OCO845"), (9, np.nan, "OCO843"), (20, -np.inf, "OCO843")):
        wrong = {n: v.copy() for n, v in second.items()}
        wrong["A"][place, 1, 7] = value
        with pytest.raises(oco.OcoError, match=rf"learner {place}: A\[1, 7\]") as caught:
            together.observe(**wrong)
        assert caught.value.code == code and together.round == 2
        assert all(np.array_equal(v, together.values[n]) for n, v in before.items())
        assert np.array_equal(decided, together.decide())
    assert together.observe(**second).round == 2


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_one_comparison_with_a_number_is_the_larger_or_smaller(tmp_path):
    """Bit for bit what two comparisons give: NaN stays NaN, and of two zeros the first one."""
    entries = np.array([np.nan, -np.inf, np.inf, -0.0, 0.0, 1.5, -1.5, 5e-324])
    pairs = (("v_at_least", "v_max"), ("v_at_most", "v_min"))
    calls = [
        f"void @{n}_of(const @vector *a, double b, @vector *to) {{ *to = @{n}(*a, @splat(b)); }}"
        for pair in pairs
        for n in pair
    ]
    source = tmp_path / "extremes.c"
    source.write_text("\n".join(["#include <stdint.h>", *linked(calls, "x")]))
    subprocess.run([*compiler(), *FLAGS, str(source), "-o", str(tmp_path / "extremes.so")], check=True)
    library = ctypes.CDLL(str(tmp_path / "extremes.so"))
    for short, long in pairs:
        for number in (0.0, -0.0, 1.5, -3.0, 1e-290):
            found = [np.empty(8), np.empty(8)]
            for name, to in zip((short, long), found):
                given = [ctypes.c_void_p(a.ctypes.data) for a in (entries, to)]
                getattr(library, f"x_{name}_of")(given[0], ctypes.c_double(number), given[1])
            assert found[0].tobytes() == found[1].tobytes(), (short, number)
            assert np.array_equal(
                found[0], getattr(np, long.replace("v_", "") + "imum")(entries, number), equal_nan=True
            )


@pytest.mark.skipif(not has_compiler(), reason="no C compiler")
def test_a_fleet_takes_as_many_workers_as_have_enough_to_do():
    plan = example("tracking", "coldq")
    assert [plan.fleet(n, backend="c", workers=3)._helping + 1 for n in (100, 1_000, 10_000)] == [1, 1, 3]
