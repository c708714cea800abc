"""The JAX backend: every operation, learners, whole runs, fleets and modules beside those of NumPy."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ir_programs import CASES, random_program, type_of
from thorough import one_in

import oco
from oco.backends.registry import backend
from oco.backends.xla import templates
from oco.compiler.ir.interpret import run_function
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.program import Function
from oco.compiler.ir.trace import Tracer
from oco.dsl.diagnostics import OcoError

jax = pytest.importorskip("jax")
from oco.backends.xla.executed import executed, in_64_bits  # noqa: E402  # after the check that JAX is there
from oco.backends.xla.functions import function_lines  # noqa: E402

WALK = """model walk
horizon T = 40
decision x[3] in box(-1, 1)
stream a[3] ~ uniform(-1, 1)
minimize sum_squares(x - a)
subject to
    cap: sum(x) <= 0.5 each round
"""
BLIND = """model blind
horizon T = 40
decision x[2] in box(0, 1)
stream a[2] ~ uniform(0, 1)
minimize a @ x + sum_squares(x)
feedback bandit
"""


@pytest.fixture(scope="module")
def plan() -> oco.Plan:
    return oco.compile(oco.parse(WALK), "coldq", "paper")


@pytest.fixture(scope="module")
def blind() -> oco.Plan:
    return oco.compile(oco.parse(BLIND), "bgd", "paper")


def in_jax(t: Tracer, functions: list[Function]) -> Any:
    """The last of some functions, written for JAX and compiled."""
    head = [
        "import jax",
        "import jax.numpy as jnp",
        "import numpy as np",
        "from jax import lax",
        *templates.HELPERS.values(),
    ]
    head += [f"{g.var.name} = jnp.asarray({g.value.tolist()!r})" for g in t.constants]
    lines = [line for f in functions for line in ("", *function_lines(f, f is functions[-1]))]
    made = executed("\n".join([*head, *lines]), "case")[functions[-1].name]
    return in_64_bits(jax.jit(made))


def test_every_operation_has_a_template() -> None:
    assert set(templates.TEMPLATES) == set(templates.DIFFERENTIABLE) == set(OPS)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.op)
def test_operations_mean_what_they_mean_in_numpy(case: Any) -> None:
    t = Tracer("case")
    params = [(f"a{k}", type_of(a)) for k, a in enumerate(case.args)]
    f = t.function("f", lambda *vs: t.apply(case.op, *vs, **case.attrs), params)
    expected = run_function(f, case.args, t.functions, t.constants)
    results = in_jax(t, [f])(*map(np.asarray, case.args))
    for ours, theirs in zip(results, expected, strict=True):
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        if case.op in ("svd", "eigh"):  # vectors are given up to their signs
            ours, theirs = np.abs(ours), np.abs(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-13, atol=1e-14 if case.op in ("svd", "eigh") else 0)


@pytest.mark.parametrize("seed", one_in(3, range(12)))
def test_random_programs_with_loops_and_branches_agree(seed: int) -> None:
    t, f, args = random_program(seed)
    expected = run_function(f, args, t.functions, t.constants)
    results = in_jax(t, [*t.functions, f])(*args)
    for ours, theirs in zip(results, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_operations_without_a_template_are_named(plan: oco.Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(templates.TEMPLATES, "maximum")
    with pytest.raises(OcoError, match="maximum") as refused:
        backend("jax").compile(plan.program, plan.contract)
    assert refused.value.code == "OCO873"


def test_the_settings_of_the_process_stay(plan: oco.Plan) -> None:
    before = jax.config.jax_enable_x64
    plan.run(rounds=3, backend="jax")
    assert jax.config.jax_enable_x64 == before and jax.numpy.ones(1).dtype == (np.float64 if before else np.float32)


@pytest.mark.parametrize("name", ["plan", "blind"])
def test_whole_runs_are_those_of_numpy(name: str, request: pytest.FixtureRequest) -> None:
    made: oco.Plan = request.getfixturevalue(name)
    ours, theirs = made.run(seed=3, backend="jax"), made.run(seed=3, backend="numpy")
    assert ours.backend == "jax"
    np.testing.assert_allclose(ours.decisions, theirs.decisions, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.loss, theirs.loss, rtol=0, atol=1e-12)
    np.testing.assert_allclose(ours.constraints, theirs.constraints, rtol=0, atol=1e-12)
    assert (made.replay(ours).decisions == ours.decisions).all()


def test_a_run_stops_before_wrong_data_and_names_the_round(plan: oco.Plan) -> None:
    data = np.random.default_rng(0).uniform(-1, 1, (40, 3))
    data[27, 1] = 1.5
    with pytest.raises(OcoError, match="28"):
        plan.run({"a": data}, backend="jax")
    learner = plan.learner(backend="jax")
    run = learner.compiled.run
    assert run is not None
    assert run(learner._state, [data], [], 40, ["loss"]).rounds == 27
    assert run(learner._state, [data[27:]], [], 13, ["loss"]).kept["loss"].shape == (0,)


def test_states_pass_between_backends(plan: oco.Plan) -> None:
    rng = np.random.default_rng(1)
    ours, theirs = plan.learner(backend="jax"), plan.learner(backend="numpy")
    for k in range(9):
        a = rng.uniform(-1, 1, 3)
        np.testing.assert_allclose(ours.decide(), theirs.decide(), rtol=0, atol=1e-13)
        assert ours.observe(a=a).loss == pytest.approx(theirs.observe(a=a).loss)
        if k % 3 == 2:  # each goes on in the other
            states = json.loads(json.dumps([ours.state(), theirs.state()]))
            theirs, ours = (oco.restore(s, b) for s, b in zip(states, ("numpy", "jax")))
    assert (ours.compiled.backend, theirs.compiled.backend, ours.round) == ("jax", "numpy", 10)


@pytest.mark.parametrize(("name", "size"), [("plan", 300), ("blind", 3)])
def test_fleets_are_those_of_numpy(name: str, size: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    made: oco.Plan = request.getfixturevalue(name)
    rng, stream = np.random.default_rng(2), made.canonical.streams[0]
    ours, theirs = made.fleet(size, backend="jax"), made.fleet(size, backend="numpy")
    assert type(ours).__name__ == "MappedFleet"
    for k in range(4):
        np.testing.assert_allclose(ours.decide(), theirs.decide(), rtol=0, atol=1e-12)
        seen = (
            {stream.name: rng.uniform(0, 1, (size, *stream.shape))}
            if name == "plan"
            else {"loss": rng.uniform(0, 1, size)}
        )
        mine, other = ours.observe(**seen), theirs.observe(**seen)
        np.testing.assert_allclose(mine.loss, other.loss, rtol=0, atol=1e-12)
        assert mine.constraints.shape == other.constraints.shape
        if k == 1:
            ours.save(tmp_path / "fleet")
            ours = oco.restore_fleet(tmp_path / "fleet", backend="jax")
    for field, values in theirs.values.items():
        np.testing.assert_allclose(ours.value(field), values, rtol=0, atol=1e-12)


def test_a_fleet_names_the_learner_with_wrong_data(plan: oco.Plan) -> None:
    fleet, data = plan.fleet(3, backend="jax"), np.zeros((3, 3))
    fleet.decide()
    data[2, 0] = 9
    before = fleet.values
    with pytest.raises(OcoError, match="learner 2"):
        fleet.observe(a=data)
    assert all((before[n] == v).all() for n, v in fleet.values.items())


def test_the_written_module_needs_jax_and_numpy_alone(plan: oco.Plan, tmp_path: Path) -> None:
    (path,) = plan.write(tmp_path / "learner.py", backend="jax")
    data = np.random.default_rng(4).uniform(-1, 1, (40, 3)).round(3)
    (tmp_path / "data.csv").write_text("a[0],a[1],a[2]\n" + "".join(",".join(map(str, row)) + "\n" for row in data))
    trace = plan.run({"a": data}, backend="numpy")
    head = "import runpy, sys; sys.modules['oco'] = None; sys.argv = ['learner.py', 'data.csv']"
    text = f"{head}; runpy.run_path({str(path)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert f"40 rounds, loss {trace.loss.sum():g}" in done.stdout, done.stderr
    before = jax.config.jax_enable_x64
    try:
        module = runpy.run_path(str(path))
        state = module["traced_init"](*map(np.asarray, module["START"].values()))
        _, (decided, loss, *_) = module["play"](state, (data,))
        np.testing.assert_allclose(decided[0], trace.decisions, rtol=0, atol=1e-12)
        np.testing.assert_allclose(loss, trace.loss, rtol=0, atol=1e-12)
    finally:
        jax.config.update("jax_enable_x64", before)
