"""The C backend: every operation, random programs and whole learners against the interpreter; clean source."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from ir_programs import CASES, FLOAT, random_learner, type_of
from thorough import thorough

from oco.backends.c99.backend import CBackend
from oco.backends.c99.build import compiler
from oco.backends.c99.entries import ACCESS
from oco.backends.c99.loops import REDUCTIONS
from oco.backends.c99.module import emit
from oco.backends.c99.native import Native
from oco.backends.c99.statements import STATEMENTS
from oco.backends.c99.templates import TEMPLATES
from oco.backends.contract import Contract, Range
from oco.compiler.ir.build import trace_program
from oco.compiler.ir.interpret import interpret
from oco.compiler.ir.ops import OPS
from oco.compiler.ir.passes import optimize
from oco.compiler.ir.program import Field, Program, Type
from oco.compiler.ir.trace import Tracer
from oco.dsl.diagnostics import OcoError

STRICT = ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Wconversion", "-Werror")


def has_compiler() -> bool:
    try:
        return bool(compiler())
    except OcoError:
        return False


needs_compiler = pytest.mark.skipif(not has_compiler(), reason="no C compiler")


def test_every_operation_has_its_row():
    rows = [set(TEMPLATES), set(ACCESS), set(STATEMENTS), set(REDUCTIONS)]
    assert set().union(*rows) == set(OPS) and sum(map(len, rows)) == len(OPS)


def contract(program: Program, **more) -> Contract:
    start = {f.name: np.zeros(f.type.shape) for f in program.decision}
    return Contract("model m", "none", None, **({"start": start} | more))


def build(programs: Sequence[Program], folder, *flags: str, without: Sequence[Sequence[str]] = ()) -> list[Native]:
    """All programs in one library, strictly compiled; `without` names for each the passes of `LOOPS` to leave out."""
    skipped = without or [()] * len(programs)
    sources = [emit(p, contract(p), skip) for p, skip in zip(programs, skipped, strict=True)]
    text = [part for s in sources for part in (s.header, re.sub(r'#include "\w+\.h"', "", s.code))]
    (folder / "all.c").write_text("\n".join(text))
    command = [*compiler(), *STRICT, "-O1", *flags, "-shared", "-fPIC", "all.c", "-o", "all.so", "-lm"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    return [Native(p, s, ctypes.CDLL(str(folder / "all.so"))) for p, s in zip(programs, sources)]


TOGETHER = 10
"""Operations of one program: most of the text of a program is not `measure`."""


def case_program(first: int) -> tuple[Program, list[int]]:
    """A program whose `measure` is `TOGETHER` operations, each on arguments of its own, and the size of what each gives."""
    cases, sizes = CASES[first : first + TOGETHER], list[int]()
    fields = [[Field(f"a{i}_{j}", type_of(a)) for j, a in enumerate(case.args)] for i, case in enumerate(cases)]
    t = Tracer(f"case{first}")

    def measure(now, x, seen):
        found = [t.apply(c.op, *(seen[f.name] for f in own), **c.attrs) for c, own in zip(cases, fields)]
        sizes.extend(sum(v.size for v in values) for values in found)
        flat = [t.reshape(t.to_float(v), (v.size,)) for values in found for v in values]
        return t.lift(0.0), t.concat(*flat), t.zeros((0,))

    program = trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (2,)))],
        feedback=[field for own in fields for field in own],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"]},
        measure=measure,
    )
    return program, sizes[: len(cases)]


def close(found, expected, tolerance) -> bool:
    return all(
        np.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True) for a, b in zip(found, expected, strict=True)
    )


@needs_compiler
def test_operations(tmp_path):
    firsts = range(0, len(CASES), TOGETHER)
    programs, sizes = zip(*map(case_program, firsts))
    for native, program, first, own in zip(
        build(programs, tmp_path, "-Wno-error=unused-function"), programs, firsts, sizes
    ):
        cases = CASES[first : first + TOGETHER]
        args = [1, np.zeros(2), *(a for case in cases for a in case.args)]
        both = native.measure(*args)[1], interpret(program, "measure", args)[1]
        parts = (np.split(values, np.cumsum(own)[:-1]) for values in both)
        for case, found, expected in zip(cases, *parts, strict=True):
            if case.op in ("svd", "eigh"):  # vectors are told up to their sign
                told = slice(4, 6) if case.op == "svd" else slice(2)
                assert np.allclose(np.abs(found[told]), np.abs(expected[told])), case
            else:
                assert close([found], [expected], 1e-15), case


@needs_compiler
@pytest.mark.parametrize("count", [12, thorough(40)])
def test_random_programs(count, tmp_path):
    made = [random_learner(seed) for seed in range(count)]
    programs = [optimize(replace(p, name=f"random{k}")) for k, (p, _) in enumerate(made)]
    quiet = ("-Wno-tautological-compare", "-Wno-type-limits")
    for native, program, (_, args) in zip(build(programs, tmp_path, *quiet), programs, made):
        assert close(native.measure(*args), interpret(program, "measure", args), 1e-9), program.name


def entrywise_program(op: str, size: int) -> Program:
    """A program whose `measure` is one function of each entry."""
    t = Tracer(f"entrywise_{op}")
    return trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (2,)))],
        feedback=[Field("a", Type(FLOAT, (size,)))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"]},
        measure=lambda now, x, seen: (t.lift(0.0), t.apply(op, seen["a"])[0], t.zeros((0,))),
    )


@needs_compiler
def test_exponentials_and_logarithms_are_within_a_unit_of_the_last_place(tmp_path):
    rng, size = np.random.default_rng(3), 60_000
    third = size // 3
    points = {
        "exp": [rng.uniform(-708.0, 709.0, third), rng.uniform(-1.0, 1.0, third), 1e-8 * rng.normal(size=third)],
        "log": [np.exp(rng.uniform(-700, 700, third)), rng.uniform(0.5, 2.0, third), 1 + 1e-6 * rng.normal(size=third)],
    }
    edges = [
        0.0,
        -0.0,
        1.0,
        np.inf,
        -np.inf,
        np.nan,
        -1.0,
        5e-324,
        2.2e-308,
        1e300,
        -1e300,
        709.7,
        710.0,
        -745.0,
        -750.0,
    ]
    programs = [entrywise_program(op, size) for op in points]
    for native, (op, parts) in zip(build(programs, tmp_path, "-O3", "-Wno-error=unused-function"), points.items()):
        x = np.concatenate(parts)
        exact = getattr(np, op)(x.astype(np.longdouble))
        found = native.measure(1, np.zeros(2), x)[1]
        assert np.max(np.abs(found - exact) / np.spacing(np.abs(exact).astype(float))) <= 1.0
        x[: len(edges)] = edges
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(
                native.measure(1, np.zeros(2), x)[1][: len(edges)], getattr(np, op)(np.array(edges)), rtol=3e-16
            )


def queue(size: int = 3) -> Program:
    """A rule with a queue, a call, a loop and, where `size` is large, work space."""
    t = Tracer("queue")

    def project(v):
        return t.minimum(t.maximum(v, 0.0), 1.0)

    def update(state, seen, drawn):
        x, Q = state["x"], state["Q"]
        t.note("(8) */ the queue")
        grown = t.maximum(Q + seen["jobs"] - t.sum(x), 0.0)
        step = t.call("project", project, x - (seen["price"] - grown) / (2.0 * t.sqrt(state["round"])))
        halved, _ = t.while_(
            lambda y, k: t.and_(t.sum(y) > 1.0, k < 50), lambda y, k: (y * 0.5 + 0.0 * y[0], k + 1), (step, 0)
        )
        return {"x": halved, "Q": t.where(grown > 0.0, grown, 0.0), "old": Q}

    return optimize(
        trace_program(
            t,
            decision=[Field("x", Type(FLOAT, (size,)))],
            feedback=[Field("price", Type(FLOAT, (size,))), Field("jobs", Type(FLOAT))],
            init=lambda start: {"x": start["x"], "Q": 0.0, "old": 0.0},
            decide=lambda state, drawn: {"x": state["x"]},
            update=update,
            measure=lambda now, x, seen: (
                t.sum(seen["price"] * x["x"]),
                t.reshape(seen["jobs"] - t.sum(x["x"]), (1,)),
                t.zeros((0,)),
            ),
            labels=["service"],
        )
    )


@needs_compiler
@pytest.mark.parametrize("size", [3, 5000])
def test_learners_agree_with_the_interpreter(size):
    program = queue(size)
    compiled = CBackend().compile(program)
    rng = np.random.default_rng(0)
    ours = compiled.init(np.full(size, 0.5))
    theirs = interpret(program, "init", [np.full(size, 0.5)])
    for _ in range(200):
        price, jobs = rng.uniform(0, 3, size), rng.uniform(0, 2)
        worth = compiled.measure(ours[0], *compiled.decide(*ours), price, jobs)
        expected = interpret(program, "measure", [theirs[0], theirs[1], price, jobs])
        assert close(worth, expected, 1e-12)
        ours = compiled.update(*ours, price, jobs)
        theirs = interpret(program, "update", [*theirs, price, jobs])
        assert close(ours, theirs, 1e-12)


EXAMPLE = r"""
#include "queue.h"
#include <stdio.h>

int main(void) {
    static queue learner, other;
    double x[3], loss, g[1], h[1];
    const double price[6] = {1.0, 2.0, 0.5, 0.5, 1.5, 2.5};
    const double jobs[2] = {1.5, 0.5};
    queue_init(&learner, NULL);
    queue_init(&other, NULL);
    for (int t = 0; t < 2; ++t) {
        queue_decide(&learner, x);
        queue_measure(&learner, x, price + 3 * t, jobs[t], &loss, g, h);
        printf("%.17g %.17g %.17g\n", x[0], loss, g[0]);
        if (queue_observe(&learner, price + 3 * t, jobs[t]) != 0) {
            return 1;
        }
    }
    double decisions[6], losses[2], values[2], queues[2];
    const queue_record record = {.decisions = decisions, .loss = losses, .constraints = values, .after_Q = queues};
    if (queue_run(&other, 2, price, jobs, &record) != 2 || losses[1] != loss || values[1] != g[0] || queues[1] != other.Q) {
        return 2;
    }
    const double wrong[3] = {1.0, 11.0, 1.0};
    if (queue_observe(&other, wrong, 1.0) != 2 || queue_observe(&other, price, -1.0) != 4 || other.round != 3) {
        return 3;
    }
    return 0;
}
"""


@needs_compiler
def test_a_program_of_its_own(tmp_path):
    program = queue()
    ranges = {"price": Range(0.0, np.array([10.0, 10.0, 20.0])), "jobs": Range(0.0)}
    source = emit(program, contract(program, ranges=ranges))
    (tmp_path / "queue.h").write_text(source.header)
    (tmp_path / "queue.c").write_text(source.code)
    (tmp_path / "main.c").write_text(EXAMPLE)
    command = [*compiler(), *STRICT, "queue.c", "main.c", "-o", "main", "-lm"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True)
    assert done.returncode == 0, done.returncode
    rows = [list(map(float, line.split())) for line in done.stdout.splitlines()]
    state = interpret(program, "init", [np.zeros(3)])
    for row, price, jobs in zip(rows, ([1.0, 2.0, 0.5], [0.5, 1.5, 2.5]), (1.5, 0.5), strict=True):
        loss, g, _ = interpret(program, "measure", [state[0], state[1], price, jobs])
        assert np.allclose(row, [state[1][0], loss, g[0]], rtol=1e-15)
        state = interpret(program, "update", [*state, price, jobs])


def test_source_is_clean():
    source = emit(queue(), contract(queue()))
    assert source == emit(queue(), contract(queue()))
    assert set(re.findall(r"#include <(.*?)>", source.header + source.code)) <= {
        "stdbool.h",
        "stdint.h",
        "float.h",
        "math.h",
        "stddef.h",
        "string.h",
    }
    assert not re.search(r"\b(malloc|calloc|free|printf|time|rand)\b", source.code)
    assert not re.search(r"^static (?!const|inline|void|double|int64_t|int|bool)", source.code, re.M)
    assert "(8) * / the queue" in source.code
    defined = re.findall(r"^(?:static )?(?:void|double|int64_t) (\w+)\(", source.code, re.M)
    assert defined and all(name.startswith("queue_") for name in defined)


def test_numbers_read_back():
    t = Tracer("numbers")
    values = [1e-22, 0.1, 1 / 3, 5e-324, 1.7976931348623157e308, 2.0, -0.0]
    program = trace_program(
        t,
        decision=[Field("x", Type(FLOAT, (7,)))],
        init=lambda start: {"x": start["x"]},
        decide=lambda state, drawn: {"x": state["x"]},
        update=lambda state, seen, drawn: {"x": state["x"] * t.constant(np.array(values), "values")},
    )
    code = emit(program, contract(program)).code
    found = re.search(r"numbers_values\[7\] = \{(.*?)\}", code, re.S)
    assert found and [float(v).hex() for v in found[1].strip(" \n,").split(",")] == [v.hex() for v in values]
